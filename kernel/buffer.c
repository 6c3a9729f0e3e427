// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers: host memory that a card may reach, pinned and mapped from
 * registration on, with a scatter list in the card's own format.
 *
 * User memory is pinned where it lies. A memfd is mapped into the caller for
 * as long as its pages are being pinned: that way the seals, huge pages and
 * the limits of the process are the kernel's business and not ours. Pins are
 * charged to RLIMIT_MEMLOCK of the process that opened the card, which alone
 * may register: what a child pins through a file that it inherited would
 * outlive the child's account.
 */
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "spanker.h"

#define BYTES_MAX	BIT_ULL(40)
#define OFFSET_UNIT	4096
#define BATCH_PAGES	(PAGE_SIZE / sizeof(struct page *))

/* ---- taking it apart ---- */

static void free_list(struct spanker_buffer *buffer)
{
	struct device *dev = &buffer->card->pdev->dev;

	while (buffer->slots_used--) {
		struct spk_sg_slot *slot = &buffer->slots[buffer->slots_used];

		dma_free_coherent(dev, SPK_SG_PAGE_BYTES, slot->page,
				  slot->bus);
	}
	kvfree(buffer->slots);
	kvfree(buffer->starts);
}

static unsigned long pages_of(const struct scatterlist *part)
{
	return DIV_ROUND_UP(part->offset + part->length, PAGE_SIZE);
}

static void unpin(struct spanker_buffer *buffer)
{
	bool dirty = buffer->access & SPANKER_BUFFER_WRITE;
	struct scatterlist *part;
	unsigned int index;

	for_each_sgtable_sg(&buffer->memory.sgt, part, index)
		unpin_user_page_range_dirty_lock(sg_page(part), pages_of(part),
						 dirty);
	sg_free_append_table(&buffer->memory);
}

/* An atomic number: the mm's lock may be held by who waits for us. */
static void uncharge(struct spanker_buffer *buffer)
{
	atomic64_sub(buffer->pages, &buffer->mm->pinned_vm);
	mmdrop(buffer->mm);
}

static void unmap(struct spanker_buffer *buffer)
{
	free_list(buffer);
	dma_unmap_sgtable(&buffer->card->pdev->dev, &buffer->memory.sgt,
			  buffer->direction, DMA_ATTR_SKIP_CPU_SYNC);
}

static void release_buffer(struct spanker_object *object)
{
	struct spanker_buffer *buffer = container_of(object,
						     struct spanker_buffer,
						     object);

	unmap(buffer);
	unpin(buffer);
	uncharge(buffer);
	kfree(buffer);
}

/* ---- pinning ---- */

static long pin_pages(u64 address, unsigned long pages, unsigned int flags,
		      struct page **list)
{
	unsigned long done = 0;

	while (done < pages) {
		int got = pin_user_pages_fast(address + done * PAGE_SIZE,
					      pages - done,
					      flags | FOLL_LONGTERM,
					      list + done);

		if (got <= 0) {
			unpin_user_pages(list, done);
			return got ? got : -EFAULT;
		}
		done += got;
	}
	return 0;
}

/*
 * Memory that the card only reads is pinned for writing all the same where
 * its owner may write: else a page that is shared until its first write would
 * be left behind by that write, and the card would read the old one for ever.
 */
static long pin_batch(const struct spanker_buffer *buffer, u64 address,
		      unsigned long pages, bool by_memfd, struct page **list)
{
	bool writes = buffer->access & SPANKER_BUFFER_WRITE;
	long err;

	if (by_memfd && !writes)
		return pin_pages(address, pages, 0, list);
	err = pin_pages(address, pages, FOLL_WRITE, list);
	if (err == -EFAULT && !writes)
		err = pin_pages(address, pages, 0, list);
	return err;
}

static int append(struct spanker_buffer *buffer, struct page **list,
		  unsigned long pages, unsigned long left)
{
	size_t limit = dma_max_mapping_size(&buffer->card->pdev->dev);
	int err;

	limit = min_t(size_t, limit, SPK_SG_ENTRY_MAX_BYTES);
	limit = ALIGN_DOWN(limit, PAGE_SIZE);
	err = sg_alloc_append_table_from_pages(&buffer->memory, list, pages, 0,
					       pages << PAGE_SHIFT, limit, left,
					       GFP_KERNEL_ACCOUNT);
	if (err)
		unpin_user_pages(list, pages);
	return err;
}

/* The table is appended to by whole pages; what was asked for may be less. */
static void trim(struct spanker_buffer *buffer, u64 offset)
{
	struct scatterlist *first = buffer->memory.sgt.sgl;
	struct scatterlist *last = buffer->memory.prv;

	first->offset += offset;
	first->length -= offset;
	last->length -= (buffer->pages << PAGE_SHIFT) - offset - buffer->bytes;
}

/* By batches: who asks for much and has little makes us take little. */
static int pin_at(struct spanker_buffer *buffer, u64 address, bool by_memfd)
{
	u64 next = address & PAGE_MASK;
	unsigned long left = buffer->pages;
	struct page **list;
	int err = 0;

	list = kmalloc_array(BATCH_PAGES, sizeof(*list), GFP_KERNEL_ACCOUNT);
	if (!list)
		return -ENOMEM;
	while (!err && left) {
		unsigned long pages = min(left, BATCH_PAGES);

		err = pin_batch(buffer, next, pages, by_memfd, list);
		if (err)
			break;
		next += pages << PAGE_SHIFT;
		left -= pages;
		err = append(buffer, list, pages, left);
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	kfree(list);
	if (err)
		unpin(buffer);
	else
		trim(buffer, offset_in_page(address));
	return err;
}

/* ---- a memfd ---- */

/* Nobody may take away pages that a card writes to. */
static int check_memfd(struct file *memfd,
		       const struct spanker_buffer_register *arg)
{
	struct inode *inode = file_inode(memfd);
	unsigned int seals;
	u64 size;

	if (!shmem_file(memfd) || !S_ISREG(inode->i_mode))
		return -EBADF;
	seals = READ_ONCE(SHMEM_I(inode)->seals);
	if (!(seals & F_SEAL_SHRINK) || !(seals & F_SEAL_GROW))
		return -EBADF;
	if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) &&
	    (arg->flags & SPANKER_BUFFER_WRITE))
		return -EPERM;
	size = i_size_read(inode);
	if (arg->offset > size || arg->bytes > size - arg->offset)
		return -ERANGE;
	return 0;
}

static int pin_mapped(struct spanker_buffer *buffer, struct file *memfd,
		      const struct spanker_buffer_register *arg)
{
	unsigned long bytes = buffer->pages << PAGE_SHIFT;
	unsigned long protection = PROT_READ;
	unsigned long address;
	int err;

	if (buffer->access & SPANKER_BUFFER_WRITE)
		protection |= PROT_WRITE;
	address = vm_mmap(memfd, 0, bytes, protection, MAP_SHARED, arg->offset);
	if (IS_ERR_VALUE(address))
		return (int)(long)address;
	err = pin_at(buffer, address, true);
	vm_munmap(address, bytes);
	return err;
}

static int pin_memfd(struct spanker_buffer *buffer,
		     const struct spanker_buffer_register *arg)
{
	struct file *memfd = fget(arg->memfd);
	int err;

	if (!memfd)
		return -EBADF;
	err = (memfd->f_mode & FMODE_READ) ? check_memfd(memfd, arg) : -EBADF;
	if (!err && (buffer->access & SPANKER_BUFFER_WRITE) &&
	    !(memfd->f_mode & FMODE_WRITE))
		err = -EPERM;
	if (!err)
		err = pin_mapped(buffer, memfd, arg);
	fput(memfd);
	return err;
}

/* ---- the card's list ---- */

static int alloc_list(struct spanker_buffer *buffer, u32 pages)
{
	struct device *dev = &buffer->card->pdev->dev;

	buffer->slots = kvcalloc(pages, sizeof(*buffer->slots),
				 GFP_KERNEL_ACCOUNT);
	buffer->starts = kvmalloc_array(pages, SPK_SG_ENTRIES *
					sizeof(*buffer->starts),
					GFP_KERNEL_ACCOUNT);
	if (!buffer->slots || !buffer->starts)
		return -ENOMEM;
	for (; buffer->slots_used < pages; buffer->slots_used++) {
		struct spk_sg_slot *slot = &buffer->slots[buffer->slots_used];
		dma_addr_t bus;

		slot->page = dma_alloc_coherent(dev, SPK_SG_PAGE_BYTES, &bus,
						GFP_KERNEL);
		if (!slot->page)
			return -ENOMEM;
		slot->bus = bus;
	}
	return 0;
}

static int fill_list(struct spanker_buffer *buffer)
{
	struct scatterlist *part;
	unsigned int index;
	u64 entries = 0;
	u32 pages;
	int err;

	for_each_sgtable_dma_sg(&buffer->memory.sgt, part, index)
		entries += spk_sg_entries_for(sg_dma_len(part));
	if (entries > U32_MAX)
		return -ENOMEM;
	pages = spk_sg_pages_for(entries);
	err = alloc_list(buffer, pages);
	if (err)
		return err;
	spk_sg_init(&buffer->sg, buffer->slots, pages, buffer->starts);
	for_each_sgtable_dma_sg(&buffer->memory.sgt, part, index) {
		err = spk_sg_add(&buffer->sg, sg_dma_address(part),
				 sg_dma_len(part));
		if (err)
			return err;
	}
	return spk_sg_seal(&buffer->sg);
}

static bool is_page_aligned(const struct scatterlist *part)
{
	return PAGE_ALIGNED(part->offset) && PAGE_ALIGNED(part->length);
}

/* Behind an IOMMU, what dma_need_sync() says depends on the kernel. */
static bool is_translated(struct device *dev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	return domain && iommu_is_dma_domain(domain);
}

/*
 * A mapping that is copied through another place is no shared memory: what
 * one side writes the other would not see. An IOMMU copies parts of pages, and
 * only for functions that are not trusted with the rest of the page.
 */
static bool is_shared(struct spanker_buffer *buffer)
{
	struct pci_dev *pdev = buffer->card->pdev;
	bool translated = is_translated(&pdev->dev);
	struct scatterlist *part;
	unsigned int index;

	if (!dev_is_dma_coherent(&pdev->dev))
		return false;
	if (translated && !pdev->untrusted)
		return true;
	if (translated) {
		for_each_sgtable_sg(&buffer->memory.sgt, part, index)
			if (!is_page_aligned(part))
				return false;
		return true;
	}
	for_each_sgtable_dma_sg(&buffer->memory.sgt, part, index)
		if (dma_need_sync(&pdev->dev, sg_dma_address(part)))
			return false;
	return true;
}

static enum dma_data_direction direction_of(u32 access)
{
	if (access == SPANKER_BUFFER_FLAGS)
		return DMA_BIDIRECTIONAL;
	return access & SPANKER_BUFFER_WRITE ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
}

/* In the gate. */
static int map(struct spanker_buffer *buffer)
{
	struct device *dev = &buffer->card->pdev->dev;
	int err;

	buffer->direction = direction_of(buffer->access);
	/* Only shared memory is kept: there is no copy of it to look after. */
	err = dma_map_sgtable(dev, &buffer->memory.sgt, buffer->direction,
			      DMA_ATTR_NO_WARN | DMA_ATTR_SKIP_CPU_SYNC);
	/* Where there is a limit, it is that of the memory to copy through. */
	if (err && dma_max_mapping_size(dev) != SIZE_MAX)
		return -EOPNOTSUPP;
	if (err)
		return err == -EIO ? -ENOMEM : err;
	err = is_shared(buffer) ? fill_list(buffer) : -EOPNOTSUPP;
	if (err)
		unmap(buffer);
	return err;
}

/* ---- the verbs ---- */

static int check_arg(const struct spanker_buffer_register *arg)
{
	bool by_memfd = arg->memfd >= 0;

	if (!arg->flags || !arg->bytes || arg->bytes > BYTES_MAX)
		return -EINVAL;
	if (arg->memfd < -1 || by_memfd == !!arg->address)
		return -EINVAL;
	if (by_memfd)
		return arg->offset % OFFSET_UNIT ? -EINVAL : 0;
	if (arg->offset)
		return -EINVAL;
	return access_ok(u64_to_user_ptr(arg->address), arg->bytes) ? 0 :
								      -EFAULT;
}

static int charge(struct spanker_buffer *buffer)
{
	u64 limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;
	u64 pinned = atomic64_add_return(buffer->pages, &mm->pinned_vm);

	if (pinned > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(buffer->pages, &mm->pinned_vm);
		return -ENOMEM;
	}
	buffer->mm = mm;
	mmgrab(mm);
	return 0;
}

static int pin(struct spanker_buffer *buffer,
	       const struct spanker_buffer_register *arg)
{
	u64 offset = offset_in_page(arg->address);
	int err;

	buffer->bytes = arg->bytes;
	buffer->access = arg->flags;
	buffer->pages = DIV_ROUND_UP(offset + arg->bytes, PAGE_SIZE);
	err = charge(buffer);
	if (err)
		return err;
	if (arg->memfd >= 0)
		err = pin_memfd(buffer, arg);
	else
		err = pin_at(buffer, arg->address, false);
	if (err)
		uncharge(buffer);
	return err;
}

/* In the gate, so that an unbind finds it in the table or not mapped. */
static int map_and_add(struct spanker_file *file, struct spanker_buffer *buffer,
		       u32 *handle)
{
	int err = map(buffer);

	if (err)
		return err;
	spanker_object_init(&buffer->object, release_buffer);
	mutex_lock(&file->lock);
	err = spanker_handle_add(&file->buffers, buffer, handle);
	if (!err)
		file->pinned_bytes += buffer->pages << PAGE_SHIFT;
	mutex_unlock(&file->lock);
	if (err)
		unmap(buffer);
	return err;
}

int spanker_buffer_register(struct spanker_file *file,
			    struct spanker_buffer_register *arg)
{
	struct spanker_buffer *buffer;
	int index, err;

	if (current->mm != file->mm)
		return -EPERM;
	err = spanker_gate_check(file->card, file->generation);
	if (!err)
		err = check_arg(arg);
	if (err)
		return err;
	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	if (!buffer)
		return -ENOMEM;
	buffer->card = file->card;
	err = pin(buffer, arg);
	if (err)
		goto free;
	/* Pages may have taken any time to come. */
	err = spanker_enter(file->card, file->generation, &index);
	if (err)
		goto unpin;
	err = map_and_add(file, buffer, &arg->out_handle);
	spanker_exit(file->card, index);
	if (!err)
		return 0;
unpin:
	unpin(buffer);
	uncharge(buffer);
free:
	kfree(buffer);
	return err;
}

int spanker_buffer_unregister(struct spanker_file *file, u32 handle)
{
	struct spanker_buffer *buffer;
	int err = 0;

	mutex_lock(&file->lock);
	buffer = xa_load(&file->buffers.table, handle);
	if (!buffer) {
		err = spanker_gate_check(file->card, file->generation);
		if (!err)
			err = -ENOENT;
		goto unlock;
	}
	/* What used it may be done. */
	if (kref_read(&buffer->object.refs) > 1)
		spanker_queue_reap(file);
	if (kref_read(&buffer->object.refs) > 1) {
		err = -EBUSY;
		goto unlock;
	}
	spanker_handle_remove(&file->buffers, handle);
	file->pinned_bytes -= buffer->pages << PAGE_SHIFT;
	/* With the lock: an unbind waits for it before the mapping goes. */
	spanker_object_put(&buffer->object);
unlock:
	mutex_unlock(&file->lock);
	return err;
}
