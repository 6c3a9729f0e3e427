/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How long the commands of a queue kept the card's engines busy. A command
 * occupies the engine of its class; a link command one RX or TX engine for
 * each port that it names, whose times add up in their class.
 *
 * Times of one lane may overlap: a send completes at the acknowledgment,
 * when its lane has moved on already. A lane is in order, so what lies before
 * the end of the command before is not counted again, and an engine is never
 * busier than time went by.
 *
 * Locking: the caller serialises all calls.
 */
#ifndef SPANKER_CORE_ENGINES_H
#define SPANKER_CORE_ENGINES_H

#include "core_port.h"
#include "../../uapi/spanker_card.h"

SPK_C_BEGIN

/* What one command occupies. */
struct spk_engine_use {
	u8 engine;		/* enum spk_engine, unless ports are named */
	u8 rx_ports;
	u8 tx_ports;
	u8 rx_channel;
	u8 tx_channel;
};

/* Zero at first; it goes on when the queue is created anew. */
struct spk_engine_time {
	u64 busy_ns[SPK_ENGINE_CLASSES];
	u64 end_ns[SPK_LANES];	/* of the last command of each lane */
};

/* The engine of a command that names no ports. */
enum spk_engine spk_engine_of(u8 opcode);
struct spk_engine_use spk_engine_use_of(const struct spk_cmd *cmd);
/* A command ran from start to end; both 0: it did not run. */
void spk_engine_charge(struct spk_engine_time *time,
		       const struct spk_engine_use *use, u64 start_ns,
		       u64 end_ns);

SPK_C_END

#endif /* SPANKER_CORE_ENGINES_H */
