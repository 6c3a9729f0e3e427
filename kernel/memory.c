// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tensors: pieces of card memory. A tensor is held by handles, by exported
 * descriptors and by items in flight, and given back with the last of them.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "spanker.h"

static void release_tensor(struct spanker_object *object)
{
	struct spanker_tensor *tensor = container_of(object,
						     struct spanker_tensor,
						     object);

	spanker_heap_free(tensor->card, tensor->generation, &tensor->block);
	spanker_card_put(tensor->card);
	kfree(tensor);
}

/* Takes the reference, whatever happens. */
static int add_handle(struct spanker_file *file, struct spanker_tensor *tensor,
		      u32 *handle)
{
	int err;

	mutex_lock(&file->lock);
	err = spanker_handle_add(&file->tensors, tensor, handle);
	mutex_unlock(&file->lock);
	if (err)
		spanker_object_put(&tensor->object);
	return err;
}

int spanker_tensor_alloc(struct spanker_file *file, u64 bytes, u32 *handle)
{
	struct spanker_tensor *tensor;
	int err;

	tensor = kzalloc(sizeof(*tensor), GFP_KERNEL_ACCOUNT);
	if (!tensor)
		return -ENOMEM;
	tensor->bytes = bytes;
	tensor->generation = file->generation;
	err = spanker_heap_alloc(file->card, file->generation, bytes,
				 &tensor->block);
	if (err) {
		kfree(tensor);
		return err;
	}
	tensor->card = spanker_card_get(file->card);
	spanker_object_init(&tensor->object, release_tensor);
	return add_handle(file, tensor, handle);
}

int spanker_tensor_free(struct spanker_file *file, u32 handle)
{
	struct spanker_tensor *tensor;
	int err;

	err = spanker_gate_check(file->card, file->generation);
	if (err)
		return err;
	mutex_lock(&file->lock);
	tensor = spanker_handle_remove(&file->tensors, handle);
	mutex_unlock(&file->lock);
	if (!tensor)
		return -ENOENT;
	spanker_object_put(&tensor->object);
	return 0;
}

/* ---- travelling ---- */

static int export_release(struct inode *inode, struct file *filp)
{
	struct spanker_tensor *tensor = filp->private_data;

	spanker_object_put(&tensor->object);
	return 0;
}

static const struct file_operations export_fops = {
	.owner = THIS_MODULE,
	.release = export_release,
};

int spanker_tensor_export(struct spanker_file *file, u32 handle,
			  struct file **out)
{
	struct spanker_tensor *tensor;
	int err;

	err = spanker_gate_check(file->card, file->generation);
	if (err)
		return err;
	mutex_lock(&file->lock);
	tensor = xa_load(&file->tensors.table, handle);
	if (tensor)
		spanker_object_get(&tensor->object);
	mutex_unlock(&file->lock);
	if (!tensor)
		return -ENOENT;
	*out = anon_inode_getfile("[spanker-tensor]", &export_fops, tensor,
				  O_RDWR);
	if (!IS_ERR(*out))
		return 0;
	spanker_object_put(&tensor->object);
	return PTR_ERR(*out);
}

static int check_import(struct spanker_file *file, struct file *filp)
{
	struct spanker_tensor *tensor = filp->private_data;

	if (filp->f_op != &export_fops || tensor->card != file->card)
		return -EINVAL;
	return tensor->generation == file->generation ? 0 : -ESTALE;
}

int spanker_tensor_import(struct spanker_file *file, int fd, u32 *handle,
			  u64 *bytes)
{
	struct spanker_tensor *tensor;
	struct file *filp;
	int err;

	err = spanker_gate_check(file->card, file->generation);
	if (err)
		return err;
	filp = fget(fd);
	if (!filp)
		return -EBADF;
	err = check_import(file, filp);
	if (!err) {
		tensor = filp->private_data;
		spanker_object_get(&tensor->object);
		*bytes = tensor->bytes;
		err = add_handle(file, tensor, handle);
	}
	fput(filp);
	return err;
}
