// SPDX-License-Identifier: GPL-2.0-only
/*
 * One card: its gate, its state, its interrupts, and how it is started after
 * a reset.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/slab.h>
#include <linux/ktime.h>

#include "ladder.h"
#include "mmio.h"
#include "spanker.h"
#include "trace.h"

#define HEAP_NODES		BIT(16)	/* pieces of memory at a time */
#define READY_TIMEOUT_NS	(2 * NSEC_PER_SEC)
#define OWN_VECTOR		0		/* queue 0 and events */
#define EVENTS			(SPK_EVENT_FATAL | SPK_EVENT_TEMP | \
				 SPK_EVENT_QUEUE_FAULT)

/* ---- the gate ---- */

int spanker_gate_check(struct spanker_card *card, u32 generation)
{
	/* Partner: the release in spanker_set_state(). */
	enum spanker_card_state state = smp_load_acquire(&card->state);

	return spk_gate_check(state, READ_ONCE(card->generation), generation);
}

int spanker_enter(struct spanker_card *card, u32 generation, int *index)
{
	int err;

	*index = srcu_read_lock(&card->gate);
	err = spanker_gate_check(card, generation);
	if (err)
		srcu_read_unlock(&card->gate, *index);
	else
		__release(&card->gate);	/* for sparse: not followed further */
	return err;
}

int spanker_enter_card(struct spanker_card *card, int *index)
{
	return spanker_enter(card, READ_ONCE(card->generation), index);
}

void spanker_exit(struct spanker_card *card, int index)
{
	__acquire(&card->gate);
	srcu_read_unlock(&card->gate, index);
}

void spanker_set_state(struct spanker_card *card,
		       enum spanker_card_state state)
{
	enum spanker_card_state old = card->state;

	lockdep_assert_held(&card->reset_lock);
	if (old == state || WARN_ON_ONCE(!spk_gate_may_move(old, state)))
		return;
	/*
	 * The generation is the driver's own: a counter of the card would begin
	 * anew when it loses power. A file that is opened now is of the next
	 * one; the lock keeps it from seeing half of this.
	 */
	mutex_lock(&card->lock);
	/* Partner: the acquire in spanker_gate_check(). */
	smp_store_release(&card->state, state);
	if (old == SPANKER_CARD_READY)
		WRITE_ONCE(card->generation, card->generation + 1);
	mutex_unlock(&card->lock);
	trace_spanker_state(card->number, old, state);
	spanker_tell_state(card, old);
}

/* ---- making it ---- */

static void release_card(struct device *dev)
{
	struct spanker_card *card = container_of(dev, struct spanker_card, dev);

	cleanup_srcu_struct(&card->gate);
	kvfree(card->nodes);
	pci_dev_put(card->pdev);
	kfree(card);
}

struct spanker_card *spanker_card_create(struct pci_dev *pdev)
{
	struct spanker_card *card = kzalloc(sizeof(*card), GFP_KERNEL);

	if (!card)
		return NULL;
	card->nodes = kvcalloc(HEAP_NODES, sizeof(*card->nodes), GFP_KERNEL);
	if (!card->nodes || init_srcu_struct(&card->gate)) {
		kvfree(card->nodes);
		kfree(card);
		return NULL;
	}
	card->pdev = pci_dev_get(pdev);
	card->state = SPANKER_CARD_PROBING;
	mutex_init(&card->reset_lock);
	mutex_init(&card->tell_lock);
	mutex_init(&card->lock);
	spanker_telemetry_init(&card->telemetry);
	INIT_LIST_HEAD(&card->files);
	INIT_WORK(&card->recover, spanker_recover_work);
	INIT_DELAYED_WORK(&card->watch, spanker_own_watch);
	init_waitqueue_head(&card->cleaning);
	card->own.rings.depth = SPANKER_OWN_DEPTH;
	card->own.rings.vector = OWN_VECTOR;

	device_initialize(&card->dev);
	card->dev.class = &spanker_class;
	card->dev.parent = &pdev->dev;
	card->dev.release = release_card;
	return card;
}

/* ---- starting it ---- */

int spanker_card_identify(struct spanker_card *card, struct spk_caps *caps)
{
	u32 words[SPK_CAPS_WORDS];
	u32 word;
	int err;

	for (word = 0; word < SPK_CAPS_WORDS; word++)
		words[word] = spanker_read(card, 4 * word);
	err = spk_caps_decode(words, caps, &card->why);
	if (!err)
		return 0;
	if (err == -EINVAL)
		dev_err(&card->pdev->dev, "the driver cannot use its %s\n",
			card->why);
	dev_err(&card->pdev->dev,
		"magic %#x (a Sail card has %#x), interface %u.%u (the driver speaks %u)\n",
		words[SPK_REG_MAGIC / 4], SPK_MAGIC,
		words[SPK_REG_ABI / 4] >> 16, words[SPK_REG_ABI / 4] & 0xffff,
		SPK_ABI_MAJOR);
	return -ENODEV;
}

bool spanker_card_answers(struct spanker_card *card)
{
	return spanker_read(card, SPK_REG_MAGIC) == SPK_MAGIC;
}

bool spanker_card_stands(struct spanker_card *card)
{
	u32 status = spanker_read(card, SPK_REG_STATUS);

	return status != SPANKER_ALL_ONES && (status & SPK_STATUS_STANDSTILL);
}

int spanker_check_there(struct spanker_card *card)
{
	if (spanker_card_answers(card))
		return 0;
	spanker_look_for(card);
	return -ENODEV;
}

static bool is_ready(u32 status)
{
	return status != SPANKER_ALL_ONES && (status & SPK_STATUS_READY) &&
	       (status & SPK_STATUS_DDR_OK);
}

int spanker_card_wait_ready(struct spanker_card *card)
{
	u64 end_ns = ktime_get_ns() + READY_TIMEOUT_NS;
	u32 status;

	for (;;) {
		bool late = ktime_get_ns() > end_ns;

		status = spanker_read(card, SPK_REG_STATUS);
		if (is_ready(status) || late)
			break;
		usleep_range(500, 2000);
	}
	card->why = NULL;
	if (status == SPANKER_ALL_ONES || !(status & SPK_STATUS_READY))
		card->why = "it does not come out of reset";
	else if (!(status & SPK_STATUS_DDR_OK))
		card->why = "its memory is not calibrated";
	else if (status & SPK_STATUS_FATAL)
		card->why = "it reports a fatal error right after its reset";
	if (!card->why)
		return 0;
	dev_err(&card->pdev->dev, "%s (status register %#x)\n", card->why,
		status);
	return -EIO;
}

/* Whoever comes out of a reset, a sleep or a slot must be who went in. */
static int identify_again(struct spanker_card *card)
{
	struct spk_caps caps;
	int err;

	memset(&caps, 0, sizeof(caps));
	err = spanker_card_identify(card, &caps);
	if (!err && memcmp(&caps, &card->caps, sizeof(caps))) {
		card->why = "it is another card, or has other gateware, than before";
		err = -ENODEV;
	}
	if (!err)
		return 0;
	dev_err(&card->pdev->dev, "%s; remove the function and rescan the bus\n",
		card->why);
	return -EIO;
}

int spanker_card_start(struct spanker_card *card)
{
	int err;

	err = spanker_card_wait_ready(card);
	if (err)
		return err;
	err = identify_again(card);
	if (err)
		return err;
	pci_set_master(card->pdev);
	spanker_write(card, SPK_REG_CARD_ID, card->number);

	mutex_lock(&card->lock);
	err = spk_heap_init(&card->heap, card->caps.ddr_bytes, card->nodes,
			    HEAP_NODES);
	spanker_own_start(card);
	mutex_unlock(&card->lock);
	if (err) {
		card->why = "its memory size makes no sense";
		return -EIO;
	}
	spanker_write(card, SPK_REG_EVENT_VECTOR, OWN_VECTOR);
	spanker_write(card, SPK_REG_CTRL, SPK_CTRL_ENABLE);
	spanker_groups_restore(card);
	spanker_set_state(card, SPANKER_CARD_READY);

	/* Not before: an event that finds the gate shut is lost for good. */
	spanker_write(card, SPK_REG_EVENT_CAUSE, SPANKER_ALL_ONES);
	spanker_write(card, SPK_REG_EVENT_MASK,
		      EVENTS | ((1u << card->caps.ports) - 1));
	spanker_ports_start(card);
	mutex_lock(&card->lock);
	spanker_zero_more(card);
	mutex_unlock(&card->lock);
	return 0;
}

/* ---- what it is ---- */

static void read_live(struct spanker_card *card, struct spanker_get_info *out)
{
	int index;

	if (spanker_enter_card(card, &index))
		return;
	if (!spanker_check_there(card)) {
		mutex_lock(&card->lock);
		out->out_memory_free_bytes = spk_heap_free_bytes(&card->heap);
		mutex_unlock(&card->lock);
		/* One moment on two clocks: nothing sleeps in between. */
		out->out_device_ns = spanker_read64(card, SPK_REG_CLOCK_LO);
		out->out_boottime_ns = ktime_get_boottime_ns();
	}
	spanker_exit(card, index);
}

void spanker_card_info(struct spanker_card *card, struct spanker_get_info *out)
{
	const struct spk_caps *caps = &card->caps;

	out->out_serial = caps->serial;
	out->out_number = card->number;
	out->out_gateware = caps->gateware;
	out->out_card_abi = caps->abi;
	out->out_state = READ_ONCE(card->state);
	out->out_reset_generation = READ_ONCE(card->generation);
	out->out_features = caps->features;
	out->out_queues = caps->queues;
	out->out_queue_depth = caps->queue_depth;
	out->out_ports = caps->ports;
	out->out_lanes = caps->lanes;
	out->out_channels = caps->channels;
	out->out_rx_buffer_bytes = caps->rx_buffer_bytes;
	out->out_hop_ns = caps->hop_ns;
	out->out_issue_ns = caps->issue_ns;
	out->out_memory_bytes = caps->ddr_bytes;
	out->out_memory_free_bytes = 0;
	out->out_ddr_bytes_per_s = caps->ddr_bytes_per_s;
	out->out_link_bytes_per_s = caps->link_bytes_per_s;
	out->out_host_bytes_per_s = caps->host_bytes_per_s;
	out->out_macs_per_s = caps->macs_per_s;
	out->out_device_ns = 0;
	memset(out->out_bus_id, 0, sizeof(out->out_bus_id));
	strscpy(out->out_bus_id, pci_name(card->pdev), sizeof(out->out_bus_id));
	out->out_boottime_ns = ktime_get_boottime_ns();
	read_live(card, out);
}

/* ---- interrupts ---- */

static void temperature_crossed(struct spanker_card *card)
{
	s32 millidegrees = (s32)spanker_read(card, SPK_REG_TEMP_MC);

	dev_warn_ratelimited(&card->dev,
			     "the temperature crossed the card's limit: %d.%d degrees\n",
			     millidegrees / 1000, abs(millidegrees) % 1000 / 100);
	spanker_tell_temperature(card, millidegrees);
}

static void service_events(struct spanker_card *card)
{
	u32 causes = spanker_read(card, SPK_REG_EVENT_CAUSE);

	if (!causes)
		return;
	if (causes == SPANKER_ALL_ONES) {
		spanker_look_for(card);
		return;
	}
	/* Clear first, then look at the state, then sleep. */
	spanker_write(card, SPK_REG_EVENT_CAUSE, causes);
	spanker_ports_event(card, causes & ((1u << card->caps.ports) - 1));
	if (causes & SPK_EVENT_TEMP)
		temperature_crossed(card);
	if (causes & SPK_EVENT_FATAL) {
		dev_err(&card->dev, "fatal error (reason register %#x)\n",
			spanker_read(card, SPK_REG_FATAL_REASON));
		spanker_dump(card, NULL, "fatal error");
		spanker_trouble(card, READ_ONCE(card->generation),
				SPANKER_TROUBLE_CARD);
	} else if (causes & SPK_EVENT_QUEUE_FAULT) {
		spanker_queues_faulted(card);
	}
}

static void service_queue(struct spanker_card *card, u32 queue)
{
	struct spanker_file *file = spanker_queue_owner(card, queue);

	if (!file)
		return;
	spanker_queue_service(file);
	spanker_file_put(file);
}

/*
 * Nothing is read here; the thread looks at rings in memory. The vector stays
 * open meanwhile: what comes while the thread runs makes it run again.
 */
static irqreturn_t on_interrupt(int irq, void *context)
{
	return IRQ_WAKE_THREAD;
}

static irqreturn_t on_interrupt_thread(int irq, void *context)
{
	struct spanker_vector *vector = context;
	struct spanker_card *card = vector->card;
	int index;
	u32 queue;

	if (spanker_enter_card(card, &index))
		return IRQ_HANDLED;
	if (vector->index == OWN_VECTOR) {
		spanker_own_service(card);
		service_events(card);
	}
	for (queue = vector->index; queue < card->caps.queues;
	     queue += card->vectors)
		if (queue)
			service_queue(card, queue);
	spanker_exit(card, index);
	return IRQ_HANDLED;
}

int spanker_vectors_request(struct spanker_card *card)
{
	u32 wanted = min(card->caps.vectors, card->caps.queues);
	u32 index;
	int got, err;

	got = pci_alloc_irq_vectors(card->pdev, 1, wanted,
				    PCI_IRQ_MSIX | PCI_IRQ_MSI);
	if (got < 0) {
		card->why = "no interrupt vector (neither MSI-X nor MSI)";
		return got;
	}
	card->vectors = got;
	for (index = 0; index < card->vectors; index++) {
		struct spanker_vector *vector = &card->vector[index];

		vector->card = card;
		vector->index = index;
		err = request_threaded_irq(pci_irq_vector(card->pdev, index),
					   on_interrupt, on_interrupt_thread, 0,
					   SPANKER_NAME, vector);
		if (err) {
			card->why = "an interrupt vector was refused";
			spanker_vectors_free(card);
			return err;
		}
		vector->requested = true;
	}
	return 0;
}

void spanker_vectors_free(struct spanker_card *card)
{
	u32 index;

	for (index = 0; index < card->vectors; index++) {
		struct spanker_vector *vector = &card->vector[index];

		if (vector->requested)
			free_irq(pci_irq_vector(card->pdev, index), vector);
		vector->requested = false;
	}
	pci_free_irq_vectors(card->pdev);
}
