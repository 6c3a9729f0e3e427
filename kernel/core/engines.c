// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Engines and their time.
 */
#include "engines.h"

enum spk_engine spk_engine_of(u8 opcode)
{
	switch (opcode) {
	case SPK_OP_DMA_IN:
		return SPK_ENGINE_HOST_IN;
	case SPK_OP_DMA_OUT:
		return SPK_ENGINE_HOST_OUT;
	case SPK_OP_MATMUL_Q4_K:
		return SPK_ENGINE_COMPUTE;
	case SPK_OP_FILL:
	case SPK_OP_COPY:
	case SPK_OP_REDUCE:
	case SPK_OP_SCALE:
		return SPK_ENGINE_MEMORY;
	default:
		return SPK_ENGINE_CONTROL;
	}
}

struct spk_engine_use spk_engine_use_of(const struct spk_cmd *cmd)
{
	struct spk_engine_use use = {
		.engine = (u8)spk_engine_of(cmd->opcode),
		.rx_ports = cmd->rx_ports,
		.tx_ports = cmd->tx_ports,
	};

	if (use.rx_ports)
		use.rx_channel = cmd->link.rx_channel % SPK_MAX_CHANNELS;
	if (use.tx_ports)
		use.tx_channel = cmd->link.tx_channel % SPK_MAX_CHANNELS;
	return use;
}

static void charge_lane(struct spk_engine_time *time, u32 lane, u32 engine,
			u64 start_ns, u64 end_ns)
{
	if (start_ns < time->end_ns[lane])
		start_ns = time->end_ns[lane];
	if (start_ns >= end_ns)
		return;
	time->busy_ns[engine] += end_ns - start_ns;
	time->end_ns[lane] = end_ns;
}

void spk_engine_charge(struct spk_engine_time *time,
		       const struct spk_engine_use *use, u64 start_ns,
		       u64 end_ns)
{
	u32 port;

	if (!use->rx_ports && !use->tx_ports) {
		charge_lane(time, use->engine, use->engine, start_ns, end_ns);
		return;
	}
	for (port = 0; port < SPK_MAX_PORTS; port++) {
		if (use->rx_ports & (1u << port))
			charge_lane(time, SPK_LANE_RX(port, use->rx_channel),
				    SPK_ENGINE_RX, start_ns, end_ns);
		if (use->tx_ports & (1u << port))
			charge_lane(time, SPK_LANE_TX(port, use->tx_channel),
				    SPK_ENGINE_TX, start_ns, end_ns);
	}
}
