// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups: exclusive channels on the cards of some files. Who owns what, the
 * core's table says; here it is written to the cards' domain registers.
 *
 * Items in flight hold the group's `use`. A group that closes lets no new
 * item in, aborts what is in flight, waits until `use` is nobody's, and only
 * then gives its channels to others.
 */
#include <linux/anon_inodes.h>
#include <linux/completion.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "mmio.h"
#include "spanker.h"

#define MEMBERS_MAX	(SPK_MAX_CARDS * SPK_MAX_CHANNELS)

struct spanker_group {
	struct spanker_object use;
	struct completion unused;
	u32 domain;
	u32 cards;			/* that it spans */
	u32 count;			/* of all that follows */
	struct spk_channel_claim *claims;
	struct spanker_card **card;	/* of each claim; held */
	struct spanker_membership *members;	/* of distinct files */
	u32 files;
};

/* What stands in the table, and who is a member of what. */
DEFINE_MUTEX(spanker_groups_lock);
static struct spk_channel_table channels;	/* spanker_groups_lock */

/* ---- registers ---- */

/* In the gate. */
static void write_domain(struct spanker_card *card, u32 port, u32 channel,
			 u32 domain)
{
	spanker_write(card, SPK_REG_PORT(port, SPK_P_DOMAIN(channel)), domain);
}

static void write_claim(struct spanker_card *card,
			const struct spk_channel_claim *claim, u32 domain)
{
	u32 port;
	int index;

	/* A card that does not answer gets them when it is started again. */
	if (spanker_enter_card(card, &index))
		return;
	for (port = 0; port < card->caps.ports; port++)
		if (claim->port_mask & (1u << port))
			write_domain(card, port, claim->channel, domain);
	spanker_exit(card, index);
}

static void write_domains(struct spanker_group *group, u32 domain)
{
	u32 index;

	for (index = 0; index < group->count; index++)
		write_claim(group->card[index], &group->claims[index], domain);
}

void spanker_groups_restore(struct spanker_card *card)
{
	u32 port, channel;

	mutex_lock(&spanker_groups_lock);
	for (port = 0; port < card->caps.ports; port++)
		for (channel = 0; channel < card->caps.channels; channel++) {
			u32 domain =
				channels.at[card->number][port][channel].domain;

			if (domain)
				write_domain(card, port, channel, domain);
		}
	mutex_unlock(&spanker_groups_lock);
}

void spanker_groups_leave(struct spanker_card *card)
{
	mutex_lock(&spanker_groups_lock);
	spk_group_leave(&channels, card->number);
	mutex_unlock(&spanker_groups_lock);
}

/* ---- what files know of it ---- */

int spanker_group_find(struct spanker_file *file, u32 domain,
		       struct spk_group_ref *ref)
{
	struct spanker_membership *member;

	lockdep_assert_held(&file->lock);
	list_for_each_entry(member, &file->groups, in_file) {
		struct spanker_group *group = member->group;

		if (group->domain != domain)
			continue;
		spanker_object_get(&group->use);
		ref->object = &group->use;
		ref->domain = domain;
		ref->cards = group->cards;
		memcpy(ref->ports, member->ports, sizeof(ref->ports));
		return 0;
	}
	return -ENOENT;
}

void spanker_groups_forget(struct spanker_file *file)
{
	struct spanker_membership *member, *next;

	mutex_lock(&spanker_groups_lock);
	mutex_lock(&file->lock);
	list_for_each_entry_safe(member, next, &file->groups, in_file) {
		list_del(&member->in_file);
		member->file = NULL;
	}
	mutex_unlock(&file->lock);
	mutex_unlock(&spanker_groups_lock);
}

static bool is_member(const struct spanker_group *group,
		      const struct spanker_file *file)
{
	u32 index;

	for (index = 0; index < group->files; index++)
		if (group->members[index].file == file)
			return true;
	return false;
}

static void join(struct spanker_group *group, struct spanker_file *file)
{
	struct spanker_membership *member = &group->members[group->files];
	u32 channel;

	if (is_member(group, file))
		return;
	group->files++;
	member->group = group;
	member->file = file;
	for (channel = 0; channel < SPK_MAX_CHANNELS; channel++)
		member->ports[channel] = spk_group_ports(&channels,
							 group->domain,
							 file->card->number,
							 channel);
	mutex_lock(&file->lock);
	list_add_tail(&member->in_file, &file->groups);
	mutex_unlock(&file->lock);
}

/* No new items; aborts for those in flight. */
static void leave(struct spanker_membership *member, u32 domain)
{
	struct spanker_file *file = member->file;
	int index, shut;

	if (!file)
		return;
	shut = spanker_enter(file->card, file->generation, &index);
	mutex_lock(&file->lock);
	list_del(&member->in_file);
	spk_batch_cancel_group(&file->queue->core.batches, domain);
	if (!shut)
		spanker_queue_issue_aborts(file);
	mutex_unlock(&file->lock);
	if (!shut)
		spanker_exit(file->card, index);
}

/* ---- making and closing ---- */

static void free_group(struct spanker_group *group)
{
	u32 index;

	if (!group)
		return;
	for (index = 0; group->card && index < group->count; index++)
		if (group->card[index])
			spanker_card_put(group->card[index]);
	kfree(group->claims);
	kfree(group->card);
	kfree(group->members);
	kfree(group);
}

static void nobody_uses(struct spanker_object *use)
{
	complete(&container_of(use, struct spanker_group, use)->unused);
}

static struct spanker_group *alloc_group(u32 count)
{
	struct spanker_group *group = kzalloc(sizeof(*group),
					      GFP_KERNEL_ACCOUNT);

	if (!group)
		return NULL;
	group->count = count;
	group->claims = kcalloc(count, sizeof(*group->claims),
				GFP_KERNEL_ACCOUNT);
	group->card = kcalloc(count, sizeof(*group->card), GFP_KERNEL_ACCOUNT);
	group->members = kcalloc(count, sizeof(*group->members),
				 GFP_KERNEL_ACCOUNT);
	spanker_object_init(&group->use, nobody_uses);
	init_completion(&group->unused);
	if (group->claims && group->card && group->members)
		return group;
	free_group(group);
	return NULL;
}

static void close_group(struct spanker_group *group)
{
	u32 index;

	mutex_lock(&spanker_groups_lock);
	for (index = 0; index < group->files; index++)
		leave(&group->members[index], group->domain);
	mutex_unlock(&spanker_groups_lock);
	/* They end by ABORT within a moment, or by the reset of who hangs. */
	spanker_object_put(&group->use);
	wait_for_completion(&group->unused);

	mutex_lock(&spanker_groups_lock);
	write_domains(group, 0);
	spk_group_release(&channels, group->domain);
	mutex_unlock(&spanker_groups_lock);
	free_group(group);
}

static int group_release(struct inode *inode, struct file *filp)
{
	close_group(filp->private_data);
	return 0;
}

static const struct file_operations group_fops = {
	.owner = THIS_MODULE,
	.release = group_release,
};

/* One member as it was given, and its file. */
static int claim_of(struct spanker_group *group, u32 index,
		    const struct spanker_group_member *member,
		    struct file *filp)
{
	struct spanker_file *file = filp->private_data;
	struct spanker_card *card;
	int err;

	if (filp->f_op != &spanker_card_fops || member->reserved)
		return -EINVAL;
	card = file->card;
	err = spanker_gate_check(card, file->generation);
	if (err)
		return err;
	if (!spanker_file_queue(file) || !member->port_mask ||
	    member->port_mask >> card->caps.ports ||
	    member->channel >= card->caps.channels)
		return -EINVAL;
	group->claims[index] = (struct spk_channel_claim){
		.card = card->number,
		.port_mask = member->port_mask,
		.channel = member->channel,
	};
	group->card[index] = spanker_card_get(card);
	return 0;
}

static int take_channels(struct spanker_group *group, struct file **files,
			 u32 *busy_pid)
{
	struct spk_channel_conflict conflict;
	u32 index;
	int err;

	lockdep_assert_held(&spanker_groups_lock);
	err = spk_group_claim(&channels, group->claims, group->count,
			      task_tgid_nr(current), &group->domain, &conflict);
	if (err) {
		*busy_pid = conflict.pid;
		return err;
	}
	group->cards = spk_group_cards(&channels, group->domain);
	write_domains(group, group->domain);
	for (index = 0; index < group->count; index++)
		join(group, files[index]->private_data);
	return 0;
}

/*
 * The files are held while they join; a later close of theirs is heard. A
 * card that goes frees its channels under the lock, so it is looked at under
 * it, too.
 */
static int make_group(struct spanker_group *group,
		      const struct spanker_group_member *members,
		      u32 *busy_pid)
{
	struct file **files;
	u32 index, held = 0;
	int err = 0;

	files = kcalloc(group->count, sizeof(*files), GFP_KERNEL);
	if (!files)
		return -ENOMEM;
	mutex_lock(&spanker_groups_lock);
	while (!err && held < group->count) {
		files[held] = fget(members[held].card_fd);
		if (!files[held]) {
			err = -EBADF;
			break;
		}
		err = claim_of(group, held, &members[held], files[held]);
		held++;
	}
	if (!err)
		err = take_channels(group, files, busy_pid);
	mutex_unlock(&spanker_groups_lock);
	for (index = 0; index < held; index++)
		fput(files[index]);
	kfree(files);
	return err;
}

int spanker_group_create(struct spanker_group_create *arg, struct file **out)
{
	struct spanker_group_member *members;
	struct spanker_group *group;
	int err;

	arg->out_busy_pid = 0;
	if (!arg->count || arg->count > MEMBERS_MAX ||
	    arg->member_bytes != sizeof(*members))
		return -EINVAL;
	members = memdup_user(u64_to_user_ptr(arg->members),
			      arg->count * sizeof(*members));
	if (IS_ERR(members))
		return PTR_ERR(members);
	group = alloc_group(arg->count);
	err = group ? make_group(group, members, &arg->out_busy_pid) : -ENOMEM;
	kfree(members);
	if (err) {
		free_group(group);
		return err;
	}
	*out = anon_inode_getfile("[spanker-group]", &group_fops, group,
				  O_RDWR);
	if (IS_ERR(*out)) {
		close_group(group);
		return PTR_ERR(*out);
	}
	arg->out_group = group->domain;
	return 0;
}
