// SPDX-License-Identifier: GPL-2.0-only
/*
 * The law of verbs: size, flags, tail, answers.
 */
#include <linux/build_bug.h>
#include <linux/file.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "ioctl.h"
#include "spanker.h"

/* What every struct starts with. */
struct head {
	u32 size;
	u32 flags;
};

static_assert(sizeof(struct spanker_get_info) <= SPANKER_IOCTL_MAX_BYTES);
static_assert(sizeof(struct spanker_work_submit) <= SPANKER_IOCTL_MAX_BYTES);
static_assert(sizeof(struct spanker_group_create) <= SPANKER_IOCTL_MAX_BYTES);

static int get_version(void __user *user)
{
	struct spanker_version version = {
		.major = SPANKER_DRIVER_MAJOR,
		.minor = SPANKER_DRIVER_MINOR,
		.patch = SPANKER_DRIVER_PATCH,
	};

	return copy_to_user(user, &version, sizeof(version)) ? -EFAULT : 0;
}

/*
 * A later version's struct is longer, and so is the size in its command:
 * what tells verbs apart is the number and the direction.
 */
static const struct spanker_ioctl *find(const struct spanker_ioctl *verbs,
					u32 count, unsigned int cmd)
{
	const struct spanker_ioctl *verb;
	u32 number = _IOC_NR(cmd);

	if (_IOC_TYPE(cmd) != SPANKER_IOC_MAGIC || number >= count)
		return NULL;
	verb = &verbs[array_index_nospec(number, count)];
	if (!verb->cmd || _IOC_DIR(verb->cmd) != _IOC_DIR(cmd))
		return NULL;
	return verb;
}

static int answer(void __user *user, const void *arg, u32 bytes)
{
	return copy_to_user(user, arg, bytes) ? -EFAULT : 0;
}

/* The caller's struct, and the proof that an answer can be written there. */
static int take(const struct spanker_ioctl *verb, void __user *user, void *arg)
{
	const struct head *head = arg;
	u32 bytes;
	int err;

	if (get_user(bytes, (u32 __user *)user))
		return -EFAULT;
	if (bytes < verb->bytes)
		return -EINVAL;
	if (bytes > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(arg, verb->bytes, user, bytes);
	if (err)
		return err;
	if (head->flags & ~verb->flags)
		return -EINVAL;
	if (_IOC_DIR(verb->cmd) & _IOC_READ)
		return answer(user, arg, verb->bytes);
	return 0;
}

long spanker_ioctl(struct file *filp, const struct spanker_ioctl *verbs,
		   u32 count, unsigned int cmd, unsigned long arg)
{
	u64 memory[SPANKER_IOCTL_MAX_BYTES / sizeof(u64)];
	void __user *user = (void __user *)arg;
	const struct spanker_ioctl *verb;
	int err, told;

	if (cmd == SPANKER_IOC_PING)
		return 0;
	if (cmd == SPANKER_IOC_GET_VERSION)
		return get_version(user);
	verb = find(verbs, count, cmd);
	if (!verb)
		return -ENOTTY;
	err = take(verb, user, memory);
	if (err)
		return err;
	err = verb->call(filp, memory, user);
	if (!(_IOC_DIR(verb->cmd) & _IOC_READ) ||
	    (err ? !verb->answers_errors : verb->answers_itself))
		return err;
	told = answer(user, memory, verb->bytes);
	return err ? err : told;
}

int spanker_give_fd(struct file *made, s32 *out_fd, void __user *user,
		    const void *arg, size_t bytes)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0) {
		fput(made);
		return fd;
	}
	*out_fd = fd;
	if (answer(user, arg, bytes)) {
		put_unused_fd(fd);
		fput(made);
		*out_fd = -1;
		return -EFAULT;
	}
	fd_install(fd, made);
	return 0;
}
