/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a verb is called: the law of uapi/spanker.h in one place, a table per
 * node that says what each verb has of its own.
 */
#ifndef SPANKER_IOCTL_H
#define SPANKER_IOCTL_H

#include <linux/fs.h>
#include <linux/types.h>

struct spanker_ioctl {
	unsigned int cmd;	/* 0: there is no such verb */
	u32 bytes;		/* of its struct, as in version 1 */
	u32 flags;		/* that are known */
	bool answers_errors;	/* what it says is also sent with an error */
	bool answers_itself;	/* before what cannot be undone, when it is 0 */
	/* arg: the struct, checked up to its flags; user: where it came from */
	int (*call)(struct file *filp, void *arg, void __user *user);
};

/* The size of the longest struct that a verb takes. */
#define SPANKER_IOCTL_MAX_BYTES	168

long spanker_ioctl(struct file *filp, const struct spanker_ioctl *verbs,
		   u32 count, unsigned int cmd, unsigned long arg);
/*
 * Gives a new file to the caller as a descriptor that is closed on exec. It
 * is installed when the caller has learnt its number: nothing that is written
 * later may fail. Takes the file, whatever happens.
 */
int spanker_give_fd(struct file *made, s32 *out_fd, void __user *user,
		    const void *arg, size_t bytes);

#endif /* SPANKER_IOCTL_H */
