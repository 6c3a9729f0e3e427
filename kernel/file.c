// SPDX-License-Identifier: GPL-2.0-only
/*
 * An open card: how it begins and ends, and its handles.
 *
 * Handles count upwards, so that one that was given back does not soon name
 * something else.
 */
#include <linux/cred.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "spanker.h"

void spanker_object_put(struct spanker_object *object)
{
	if (refcount_dec_and_test(&object->refs.refcount))
		object->release(object);
}

/* ---- handles ---- */

int spanker_handle_add(struct spanker_handles *handles, void *what, u32 *handle)
{
	int err;

	if (handles->count >= handles->max)
		return -EDQUOT;
	err = xa_alloc_cyclic(&handles->table, handle, what,
			      XA_LIMIT(1, INT_MAX), &handles->next,
			      GFP_KERNEL_ACCOUNT);
	if (err < 0)
		return err;
	handles->count++;
	return 0;
}

void *spanker_handle_remove(struct spanker_handles *handles, u32 handle)
{
	void *what = xa_erase(&handles->table, handle);

	if (what)
		handles->count--;
	return what;
}

static void init_handles(struct spanker_handles *handles, u32 max)
{
	xa_init_flags(&handles->table, XA_FLAGS_ALLOC1);
	handles->max = max;
}

/* ---- open ---- */

struct spanker_file *spanker_file_create(struct spanker_card *card)
{
	struct spanker_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	int err = 0;

	if (!file)
		return ERR_PTR(-ENOMEM);
	kref_init(&file->refs);
	file->card = spanker_card_get(card);
	file->mm = current->mm;
	if (file->mm)
		mmgrab(file->mm);
	file->pid = task_tgid_nr(current);
	file->uid = current_uid();
	strscpy(file->comm, current->group_leader->comm, sizeof(file->comm));
	mutex_init(&file->submit_lock);
	mutex_init(&file->read_lock);
	mutex_init(&file->lock);
	init_waitqueue_head(&file->wait);
	init_handles(&file->tensors, SPANKER_TENSORS_MAX);
	init_handles(&file->buffers, SPANKER_BUFFERS_MAX);
	INIT_LIST_HEAD(&file->groups);

	/* Whoever unbinds the card walks the files after it said so. */
	mutex_lock(&card->lock);
	file->number = ++card->opened;
	file->generation = READ_ONCE(card->generation);
	if (READ_ONCE(card->unbound))
		err = -ENODEV;
	list_add_tail(&file->in_card, &card->files);
	mutex_unlock(&card->lock);
	if (!err)
		return file;
	spanker_file_close(file);
	return ERR_PTR(err);
}

/*
 * Not in the order of the list, in which a reset moves them about: whoever
 * walks so sees each file once that was open all the time.
 */
struct spanker_file *spanker_file_after(struct spanker_card *card, u64 number)
{
	struct spanker_file *file, *found = NULL;

	mutex_lock(&card->lock);
	list_for_each_entry(file, &card->files, in_card)
		if (file->number > number &&
		    (!found || file->number < found->number))
			found = file;
	if (found)
		kref_get(&found->refs);
	mutex_unlock(&card->lock);
	return found;
}

/* ---- close ---- */

static void free_file(struct kref *refs)
{
	struct spanker_file *file = container_of(refs, struct spanker_file,
						 refs);

	spanker_queue_free(file->queue);
	if (file->mm)
		mmdrop(file->mm);
	spanker_card_put(file->card);
	kfree(file);
}

struct spanker_file *spanker_queue_owner(struct spanker_card *card, u32 number)
{
	struct spanker_file *file;

	mutex_lock(&card->lock);
	file = card->queue[number];
	if (file)
		kref_get(&file->refs);
	mutex_unlock(&card->lock);
	return file;
}

void spanker_file_put(struct spanker_file *file)
{
	kref_put(&file->refs, free_file);
}

static void drop_tensors(struct spanker_file *file)
{
	struct spanker_tensor *tensor;
	unsigned long handle;

	xa_for_each(&file->tensors.table, handle, tensor)
		spanker_object_put(&tensor->object);
	xa_destroy(&file->tensors.table);
	file->tensors.count = 0;
}

void spanker_file_drop_buffers(struct spanker_file *file)
{
	struct spanker_buffer *buffer;
	unsigned long handle;

	lockdep_assert_held(&file->lock);
	xa_for_each(&file->buffers.table, handle, buffer)
		spanker_object_put(&buffer->object);
	xa_destroy(&file->buffers.table);
	file->buffers.count = 0;
	file->pinned_bytes = 0;
}

/*
 * It stands in the card's list until its memory is unmapped, so that an
 * unbind meanwhile waits for that.
 */
void spanker_file_close(struct spanker_file *file)
{
	struct spanker_card *card = file->card;

	spanker_groups_forget(file);
	spanker_queue_stop(file);
	mutex_lock(&file->lock);
	spanker_queue_end(file, -ECANCELED, SPANKER_CARD_CANCELLED, true);
	spanker_file_drop_buffers(file);
	drop_tensors(file);
	mutex_unlock(&file->lock);

	mutex_lock(&card->lock);
	if (file->queue)
		card->queue[file->queue->rings.number] = NULL;
	list_del(&file->in_card);
	mutex_unlock(&card->lock);
	spanker_file_put(file);
}
