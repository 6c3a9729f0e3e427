/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * spanker.h - what the parts of the module share.
 *
 * The driver core (core/) decides: what is in a ring, which item is good,
 * who owns which memory and which channel, what a deadline means. The module
 * carries: it owns memory, locks, interrupts, clocks and registers, and asks.
 *
 * The gate
 * --------
 * Registers are touched only between spanker_enter() and spanker_exit(). That
 * is an SRCU read section: a reset, an unplug or an unbind first changes the
 * card's state, which shuts the gate, and then waits until everybody is out.
 *
 *	Never sleep on a device event inside the gate, and never take
 *	reset_lock inside it.
 *
 * Who has to wait for the card leaves, sleeps, and enters again; the answer
 * may then be that the card was reset meanwhile (-ESTALE) or is no more.
 *
 * Locks, outer to inner
 * ---------------------
 *	card->reset_lock	one reset, loss or return at a time
 *	spanker_groups_lock	who owns which channel
 *	file->submit_lock	staging of items; user memory is read under it
 *	file->read_lock		who takes records; user memory is written
 *	file->lock		the file's queue, handles and memberships
 *	card->tell_lock		one event after the other
 *	card->lock		card memory, queue 0, ports, files
 *	card->telemetry.lock	what was read of it last
 *	spanker_cards_lock	the table of cards
 *
 * User memory is never touched with file->lock or anything further in held:
 * a page fault may take for ever, and a reset needs those locks.
 *
 * Lifetimes
 * ---------
 * struct spanker_card lives as long as its device node or an open file. What
 * the card can reach by DMA does not: unbinding walks all files and takes
 * rings and buffers from them while they stay open. struct spanker_file lives
 * as long as its descriptor, and as long as an interrupt looks at it.
 */
#ifndef SPANKER_H
#define SPANKER_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../uapi/spanker.h"
#include "../uapi/spanker_netlink.h"
#include "../uapi/spanker_status.h"
#include "core/caps.h"
#include "core/gate.h"
#include "core/group.h"
#include "core/heap.h"
#include "core/ladder.h"
#include "core/link_simple.h"
#include "core/progress.h"
#include "core/queue.h"
#include "telemetry.h"

#ifndef __LITTLE_ENDIAN
#error "the card's structures are little endian and used in place"
#endif

#define SPANKER_NAME	"spanker"

struct spanker_card;
struct spanker_file;

/* ---- objects that items and handles hold ---- */

struct spanker_object {
	struct kref refs;
	void (*release)(struct spanker_object *object);
};

static inline void spanker_object_init(struct spanker_object *object,
				       void (*release)(struct spanker_object *))
{
	kref_init(&object->refs);
	object->release = release;
}

static inline void spanker_object_get(struct spanker_object *object)
{
	kref_get(&object->refs);
}

void spanker_object_put(struct spanker_object *object);

/* ---- rings.c: memory and registers of one queue pair ---- */

struct spanker_rings {
	u32 number;		/* of the hardware queue */
	u32 depth;
	u32 vector;
	struct spk_cmd *sq;	/* NULL: not allocated, or taken back */
	struct spk_completion *cq;
	struct spk_status_block *status;
	dma_addr_t sq_bus;
	dma_addr_t cq_bus;
	dma_addr_t status_bus;
	struct spk_progress *progress;
};

int spanker_rings_alloc(struct spanker_card *card, struct spanker_rings *rings);
void spanker_rings_free(struct spanker_card *card, struct spanker_rings *rings);
/* In the gate: zeroes them, writes the registers, enables the queue. */
void spanker_rings_start(struct spanker_card *card,
			 struct spanker_rings *rings);
/* In the gate: a command runs without progress. */
bool spanker_rings_hang(struct spanker_rings *rings, struct spk_hang *hang);
/*
 * Outside: 0, and the queue is off and does no DMA; else the gate's errno,
 * -ETIMEDOUT, -ENXIO (nobody answers).
 */
int spanker_rings_quiesce(struct spanker_card *card,
			  struct spanker_rings *rings, u32 generation);
/* The same, whatever has to be done for it. */
void spanker_rings_stop(struct spanker_card *card, struct spanker_rings *rings,
			u32 generation);

/* ---- own.c: queue 0, the driver's own ---- */

#define SPANKER_OWN_DEPTH	64

enum spanker_job_kind { SPANKER_JOB_ZERO, SPANKER_JOB_ABORT };

struct spanker_job {
	enum spanker_job_kind kind;
	bool flying;
	u16 own_id;			/* of its command */
	struct spk_block block;		/* ZERO */
	u32 queue;			/* ABORT */
	u16 id;
};

/* Guarded by card->lock. */
struct spanker_own {
	struct spanker_rings rings;
	struct spk_sq sq;
	struct spk_cq cq;
	struct spk_ids ids;
	struct spk_id_slot slots[SPANKER_OWN_DEPTH];
	struct spanker_job jobs[SPANKER_OWN_DEPTH];
	unsigned long silent_at;	/* jiffies; unless something moves */
	struct spk_patience patience;	/* since something moved */
	u32 aborts;		/* in flight */
	u32 failures;		/* of FILLs in a row */
	u32 next_queue;		/* whose aborts come next */
};

/* In the gate, with card->lock held. */
void spanker_own_start(struct spanker_card *card);
/* Commands that are in flight. */
u32 spanker_own_busy(const struct spanker_card *card);
/* How many more of a kind may be: neither can take the other's place. */
u32 spanker_own_room(const struct spanker_card *card,
		     enum spanker_job_kind kind);
void spanker_own_zero(struct spanker_card *card, const struct spk_block *block);
void spanker_own_abort(struct spanker_card *card, u32 queue, u16 id);
/* In the gate: takes completions, acts on them. */
void spanker_own_service(struct spanker_card *card);
void spanker_own_watch(struct work_struct *work);

/* ---- card.c: one card ---- */

#define SPANKER_MOMENTS		32

/* How a port was seen at some time. */
struct spanker_moment {
	u64 boottime_ns;
	u32 state;		/* SPK_PORT_* */
	u32 phase;		/* SPK_PHASE_* */
	u32 reason;		/* SPK_REASON_* */
};

struct spanker_port {
	struct spk_link_simple link;
	u32 admin;		/* SPANKER_LINK_* */
	u32 lane_mask;		/* 0: all */
	u32 moments;		/* seen so far; the last ones are kept */
	struct spanker_moment moment[SPANKER_MOMENTS];
};

struct spanker_vector {
	struct spanker_card *card;
	u32 index;
	bool requested;
};

struct spanker_card {
	struct device dev;		/* its release frees the card */
	struct cdev cdev;
	struct pci_dev *pdev;		/* held */
	void __iomem *bar;		/* valid inside the gate */
	u32 number;			/* N of /dev/spankerN */
	struct spk_caps caps;
	struct spanker_vector vector[SPK_MSIX_VECTORS];
	u32 vectors;			/* granted */
	struct device *sensors;
	struct dentry *debugfs;
	/* One for the card, one for each port. */
	const struct attribute_group *groups[SPK_MAX_PORTS + 3];
	struct spanker_telemetry telemetry;
	bool announced;			/* CARD_ADDED was told */
	u32 steps;			/* of the probe that were done */
	const char *why;		/* the probe failed */

	/* The gate. Written with reset_lock held, read anywhere. */
	struct srcu_struct gate;
	enum spanker_card_state state;
	u32 generation;			/* counts how often it was shut */

	struct mutex reset_lock;	/* see above, and all that follows */
	bool unbound;
	bool taken;			/* somebody else resets it, */
	bool taken_by_error;		/* the bus, after an error, */
	unsigned long taken_at;		/* since then (jiffies) */
	u32 walk;			/* counts walks over the files */
	struct work_struct recover;
	atomic64_t troubles;		/* SPANKER_TROUBLE_*, and above them */
					/* the generation that has them */

	struct delayed_work watch;	/* of queue 0, and for its return */
	struct mutex tell_lock;		/* their order */
	atomic_t events;		/* sequence number of netlink events */

	struct mutex lock;		/* all that follows */
	struct list_head files;
	u64 opened;			/* files so far */
	struct spanker_file *queue[SPK_MAX_QUEUES];
	struct spanker_own own;
	struct spk_ladder ladder;
	u32 missed_interrupts;
	struct spk_heap heap;
	struct spk_region *nodes;
	u32 cleaned;			/* counts what may help an allocation */
	wait_queue_head_t cleaning;
	struct spanker_port port[SPK_MAX_PORTS];
};

/*
 * 0, and the gate is entered: a file of this generation may use the card.
 * Else the errno of core/gate.h, and it is not.
 */
int spanker_enter(struct spanker_card *card, u32 generation, int *index);
/* The same for what belongs to no file: the card must be READY. */
int spanker_enter_card(struct spanker_card *card, int *index);
void spanker_exit(struct spanker_card *card, int index);
/* What spanker_enter() would say now. */
int spanker_gate_check(struct spanker_card *card, u32 generation);
/* The one setter of the state; reset_lock is held. Tells who listens. */
void spanker_set_state(struct spanker_card *card,
		       enum spanker_card_state state);

struct spanker_card *spanker_card_create(struct pci_dev *pdev);
/* Reads what the card says it is; logs and sets `why` when it is none. */
int spanker_card_identify(struct spanker_card *card, struct spk_caps *caps);
/* From fresh out of reset to READY; reset_lock is held. */
int spanker_card_start(struct spanker_card *card);
int spanker_card_wait_ready(struct spanker_card *card);
/* All ones anywhere: ask whether anybody answers at all. */
bool spanker_card_answers(struct spanker_card *card);
/* Its clock stands (core/patience.h). */
bool spanker_card_stands(struct spanker_card *card);
/* In the gate: 0, or -ENODEV when nobody answers, and sees to that. */
int spanker_check_there(struct spanker_card *card);
void spanker_card_info(struct spanker_card *card, struct spanker_get_info *out);

int spanker_vectors_request(struct spanker_card *card);
void spanker_vectors_free(struct spanker_card *card);

static inline const char *spanker_card_name(const struct spanker_card *card)
{
	return dev_name(&card->dev);
}

static inline struct spanker_card *spanker_card_get(struct spanker_card *card)
{
	get_device(&card->dev);
	return card;
}

static inline void spanker_card_put(struct spanker_card *card)
{
	put_device(&card->dev);
}

/* ---- heap.c: card memory ---- */

/* In the gate, with card->lock held: zeroes more of what is dirty. */
void spanker_zero_more(struct spanker_card *card);
/* Outside the gate; sleeps while memory is being zeroed. */
int spanker_heap_alloc(struct spanker_card *card, u32 generation, u64 bytes,
		       struct spk_block *block);
void spanker_heap_free(struct spanker_card *card, u32 generation,
		       const struct spk_block *block);

/* ---- link.c: ports ---- */

/* In the gate: as after a reset; what the ports changed to. */
void spanker_ports_start(struct spanker_card *card);
void spanker_ports_event(struct spanker_card *card, u32 ports);
int spanker_link_train(struct spanker_card *card, u32 port_mask, bool retrain);
int spanker_link_set_admin(struct spanker_card *card, u32 port, u32 flags,
			   u32 lane_mask);

/* ---- reset.c ---- */

/*
 * An administrator's; mode: SPANKER_RESET_*. 0, -ENODEV: it is gone, -EIO: it
 * is dead now.
 */
int spanker_reset(struct spanker_card *card, u32 mode);
/* reset_lock is held; the same without more ado, */
int spanker_reset_now(struct spanker_card *card, u32 mode);
/* whether it is there, whatever that takes to find out, */
bool spanker_is_gone(struct spanker_card *card);
void spanker_vanish(struct spanker_card *card);
/* and the end of all attempts. */
void spanker_give_up(struct spanker_card *card);
void spanker_recover_work(struct work_struct *work);
/* Stops it for good; afterwards it reaches no memory. */
void spanker_card_unbind(struct spanker_card *card);
void spanker_card_shutdown(struct spanker_card *card);
/* Around a reset or a sleep that is not ours: the card is taken meanwhile. */
void spanker_reset_prepare(struct spanker_card *card, bool answers);
void spanker_reset_done(struct spanker_card *card);

/* ---- file.c, queue.c, record.c, submit.c: an open card ---- */

/* Of a file. Tensors of all files share the pieces of a card's memory. */
#define SPANKER_TENSORS_MAX	8192
#define SPANKER_BUFFERS_MAX	65535

struct spanker_handles {
	struct xarray table;
	u32 next;
	u32 count;
	u32 max;
};

/* A hardware queue of a file; its memory is taken once. */
struct spanker_queue {
	struct spanker_rings rings;
	struct spk_queue core;
	struct spk_item_env env;
	struct spanker_work_item *items;	/* file->submit_lock */
	u32 records;
	u64 tick_ns;			/* when tick is due */
	struct delayed_work tick;
	struct spk_engine_time time;	/* file->lock */
	u64 looked_seq;			/* progress since the last tick */
	u32 looked_head;
	u32 services;			/* by interrupts */
	u32 suspect_services;		/* then completions came without one */
	u64 told_bad;			/* completions that made no sense */
	bool suspect;
	bool restarting;		/* it was reported */
	bool closing;
	/* memory of core */
	struct spk_id_slot *ids;
	struct spk_item_uses *uses;
	struct spk_batch_memory batches;
};

struct spanker_file {
	struct kref refs;
	struct spanker_card *card;	/* held */
	struct mm_struct *mm;		/* of who opened it; held */
	pid_t pid;			/* and who that was, for people */
	kuid_t uid;
	char comm[TASK_COMM_LEN];
	u64 number;			/* counts all that were opened */
	u32 generation;
	struct list_head in_card;	/* card->lock */
	u32 walk;			/* reset_lock */
	wait_queue_head_t wait;

	struct mutex submit_lock;	/* queue->items */
	struct mutex read_lock;		/* one taker of records */
	struct mutex lock;		/* all that follows */
	struct spanker_queue *queue;	/* made once, or NULL */
	struct spanker_handles tensors;
	struct spanker_handles buffers;
	u64 pinned_bytes;
	struct list_head groups;	/* memberships */
};

/* Without its lock: a queue is made once and stays as long as the file. */
static inline struct spanker_queue *
spanker_file_queue(const struct spanker_file *file)
{
	/* Partner: the release in spanker_queue_create(). */
	return smp_load_acquire(&file->queue);
}

extern const struct file_operations spanker_card_fops;

struct spanker_file *spanker_file_create(struct spanker_card *card);
void spanker_file_close(struct spanker_file *file);
void spanker_file_put(struct spanker_file *file);
/* With a reference: whose hardware queue this is; NULL: nobody's. */
struct spanker_file *spanker_queue_owner(struct spanker_card *card, u32 number);
/* The open file that comes after this number, with a reference, or NULL. */
struct spanker_file *spanker_file_after(struct spanker_card *card, u64 number);
/* A new handle, or 0: -EDQUOT, -ENOMEM in *err. file->lock is held. */
int spanker_handle_add(struct spanker_handles *handles, void *what, u32 *handle);
void *spanker_handle_remove(struct spanker_handles *handles, u32 handle);
/* Buffers back to who owned their pages; file->lock is held. */
void spanker_file_drop_buffers(struct spanker_file *file);

int spanker_queue_create(struct spanker_file *file, u32 depth, u32 records,
			 u32 *number);
/* file->lock is held: takes completions, wakes who waits for records. */
void spanker_queue_reap(struct spanker_file *file);
/* In the gate: from an interrupt. */
void spanker_queue_service(struct spanker_file *file);
/* In the gate, file->lock held: hands wanted ABORTs to queue 0. */
void spanker_queue_issue_aborts(struct spanker_file *file);
/* In the gate: queue 0 answered the ABORT of this id. */
void spanker_queue_abort_done(struct spanker_file *file, u16 id);
/* file->lock is held: the tick is due at ns (CLOCK_MONOTONIC) or earlier. */
void spanker_queue_tick_at(struct spanker_file *file, u64 ns);
/* file->lock is held, the gate entered: the tick when it is needed next. */
void spanker_queue_watch(struct spanker_file *file);
/* Ends all work; for good also takes the rings away. file->lock is held. */
void spanker_queue_end(struct spanker_file *file, int result, u32 card_status,
		       bool for_good);
void spanker_queue_stop(struct spanker_file *file);
/* With a reference: whose queue it is, if that is to be started again. */
struct spanker_file *spanker_queue_reported(struct spanker_card *card,
					    u32 number);
/* reset_lock is held: stops it and starts it again; its work ends -EIO. */
int spanker_queue_restart(struct spanker_file *file);
void spanker_queue_free(struct spanker_queue *queue);
void spanker_file_wake(struct spanker_file *file);

int spanker_submit(struct spanker_file *file, struct spanker_work_submit *arg);
int spanker_cancel(struct spanker_file *file, u64 seq, bool all);

ssize_t spanker_records_read(struct spanker_file *file, char __user *to,
			     size_t bytes, bool wait);
int spanker_records_wait(struct spanker_file *file,
			 struct spanker_work_wait *arg, void __user *user);
__poll_t spanker_records_poll(struct file *filp, struct spanker_file *file,
			      struct poll_table_struct *table);

/* ---- memory.c: tensors ---- */

struct spanker_tensor {
	struct spanker_object object;
	struct spanker_card *card;	/* held */
	struct spk_block block;
	u64 bytes;			/* as asked for */
	u32 generation;
};

int spanker_tensor_alloc(struct spanker_file *file, u64 bytes, u32 *handle);
int spanker_tensor_free(struct spanker_file *file, u32 handle);
/* The descriptor is made, not yet installed. */
int spanker_tensor_export(struct spanker_file *file, u32 handle,
			  struct file **out);
int spanker_tensor_import(struct spanker_file *file, int fd, u32 *handle,
			  u64 *bytes);

/* ---- buffer.c: host memory ---- */

struct spanker_buffer {
	struct spanker_object object;
	struct spanker_card *card;	/* of the file that holds it */
	struct mm_struct *mm;		/* accounted there; held */
	unsigned long pages;
	struct sg_append_table memory;
	enum dma_data_direction direction;
	u64 bytes;
	u32 access;
	/* its list for the card */
	struct spk_sg sg;
	struct spk_sg_slot *slots;
	u64 *starts;
	u32 slots_used;
};

int spanker_buffer_register(struct spanker_file *file,
			    struct spanker_buffer_register *arg);
int spanker_buffer_unregister(struct spanker_file *file, u32 handle);

/* ---- group.c ---- */

extern struct mutex spanker_groups_lock;

struct spanker_group;

/* A file's membership; on file->groups. */
struct spanker_membership {
	struct list_head in_file;	/* file->lock */
	struct spanker_file *file;	/* NULL: closed; spanker_groups_lock */
	struct spanker_group *group;
	u8 ports[SPK_MAX_CHANNELS];
};

int spanker_group_find(struct spanker_file *file, u32 domain,
		       struct spk_group_ref *ref);
/* The file closes. */
void spanker_groups_forget(struct spanker_file *file);
/* In the gate: the domain registers of a card as they ought to be. */
void spanker_groups_restore(struct spanker_card *card);
/* The card goes: who has its number next has all its channels. */
void spanker_groups_leave(struct spanker_card *card);
/* The descriptor is made, not yet installed. */
int spanker_group_create(struct spanker_group_create *arg, struct file **out);

/* ---- hwmon.c ---- */

#if IS_ENABLED(CONFIG_HWMON)
int spanker_sensors_add(struct spanker_card *card);
void spanker_sensors_remove(struct spanker_card *card);
#else
static inline int spanker_sensors_add(struct spanker_card *card)
{
	return 0;
}

static inline void spanker_sensors_remove(struct spanker_card *card)
{
}
#endif

/* ---- drv.c: the table of cards ---- */

#define SPANKER_MINORS		(SPK_MAX_CARDS + 1)
#define SPANKER_CTL_MINOR	SPK_MAX_CARDS

extern struct class spanker_class;
extern struct workqueue_struct *spanker_workqueue;
extern struct pci_driver spanker_pci_driver;
extern const struct file_operations spanker_ctl_fops;

dev_t spanker_devt(u32 minor);
u64 spanker_default_deadline_ns(void);
/* Running so long without progress is a hang; 0: never. */
u64 spanker_hang_ns(void);
/* A number for the card by its serial; -ENOSPC: there are too many. */
int spanker_cards_add(struct spanker_card *card);
/* Nobody finds it any more; its number is still its own, */
void spanker_cards_hide(struct spanker_card *card);
/* until now. */
void spanker_cards_remove(struct spanker_card *card);
/* With a reference; NULL: there is none of this number. */
struct spanker_card *spanker_cards_find(u32 number);
/* The first from this number on. */
struct spanker_card *spanker_cards_next(u32 number);
/* Moves when a card comes or goes. */
u32 spanker_cards_generation(void);

/* sysfs.c, sysfs_port.c: attributes of a card, by what it has. */
void spanker_sysfs_init(void);
void spanker_sysfs_groups(struct spanker_card *card);
const struct attribute_group *spanker_sysfs_port_group(u32 port);

/* debugfs.c: made last, removed first; waits for who is reading. */
void spanker_debugfs_init(void);
void spanker_debugfs_exit(void);
int spanker_debugfs_add(struct spanker_card *card);
void spanker_debugfs_remove(struct spanker_card *card);

int spanker_ctl_create(void);
void spanker_ctl_destroy(void);

/* ---- netlink.c ---- */

int spanker_netlink_register(void);
void spanker_netlink_unregister(void);
void spanker_tell_card(struct spanker_card *card, u32 message);
void spanker_tell_state(struct spanker_card *card,
			enum spanker_card_state old);
void spanker_tell_port(struct spanker_card *card, u32 port);
void spanker_tell_rung(struct spanker_card *card, enum spanker_reset_rung rung,
		       int result);
void spanker_tell_hang(struct spanker_card *card, u32 queue, u32 id, u32 opcode,
		       pid_t pid);
void spanker_tell_temperature(struct spanker_card *card, s32 millidegrees);

#endif /* SPANKER_H */
