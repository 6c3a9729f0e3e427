// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Decoding and judging capability registers.
 */
#include "caps.h"
#include "ring.h"

#define WORD(reg)	words[(reg) / 4]
#define WORDS(lo)	(WORD(lo) | (u64)words[(lo) / 4 + 1] << 32)

static void decode(const u32 *words, struct spk_caps *caps)
{
	*caps = (struct spk_caps){
		.serial = WORDS(SPK_REG_SERIAL_LO),
		.ddr_bytes = WORDS(SPK_REG_CAP_DDR_LO),
		.ddr_bytes_per_s = WORDS(SPK_REG_CAP_DDR_BW_LO),
		.link_bytes_per_s = WORDS(SPK_REG_CAP_LINK_BW_LO),
		.host_bytes_per_s = WORDS(SPK_REG_CAP_HOST_BW_LO),
		.macs_per_s = WORDS(SPK_REG_CAP_MAC_LO),
		.abi = WORD(SPK_REG_ABI),
		.gateware = WORD(SPK_REG_GATEWARE),
		.queues = WORD(SPK_REG_CAP_QUEUES),
		.queue_depth = WORD(SPK_REG_CAP_QUEUE_DEPTH),
		.ports = WORD(SPK_REG_CAP_PORTS),
		.lanes = WORD(SPK_REG_CAP_LANES),
		.channels = WORD(SPK_REG_CAP_CHANNELS),
		.rx_buffer_bytes = WORD(SPK_REG_CAP_RX_BUFFER),
		.dma_bits = WORD(SPK_REG_CAP_DMA_BITS),
		.signals = WORD(SPK_REG_CAP_SIGNALS),
		.hop_ns = WORD(SPK_REG_CAP_HOP_NS),
		.issue_ns = WORD(SPK_REG_CAP_ISSUE_NS),
		.features = WORD(SPK_REG_CAP_FEATURES),
		.vectors = WORD(SPK_REG_CAP_VECTORS),
	};
}

static bool outside(u32 value, u32 least, u32 most)
{
	return value < least || value > most;
}

static const char *find_fault(const struct spk_caps *caps)
{
	if (outside(caps->queues, 2, SPK_MAX_QUEUES))
		return "number of queues (2 to 16)";
	if (spk_ring_check_depth(caps->queue_depth))
		return "queue depth (a power of two from 2 to 4096)";
	if (outside(caps->ports, 1, SPK_MAX_PORTS))
		return "number of ports (1 to 8)";
	if (outside(caps->lanes, 1, SPK_MAX_LANES))
		return "lanes of a port (1 to 4)";
	if (outside(caps->channels, 1, SPK_MAX_CHANNELS))
		return "channels of a port (1 to 8)";
	if (caps->rx_buffer_bytes < SPK_FLIT_BYTES)
		return "receive buffer (at least a flit)";
	if (outside(caps->dma_bits, 32, 64))
		return "DMA address bits (32 to 64)";
	if (outside(caps->signals, 1, SPK_SIGNALS))
		return "signals of a queue (1 to 256)";
	if (caps->ddr_bytes < SPK_SG_PAGE_BYTES ||
	    caps->ddr_bytes > 1ull << SPK_ADDRESS_BITS)
		return "memory size (4 KiB to 2^48 bytes)";
	if (outside(caps->vectors, 1, SPK_MSIX_VECTORS))
		return "interrupt vectors (1 to 16)";
	return NULL;
}

int spk_caps_decode(const u32 *words, struct spk_caps *caps, const char **why)
{
	if (WORD(SPK_REG_MAGIC) == 0xffffffffu) {
		*why = "the card does not answer";
		return -ENODEV;
	}
	if (WORD(SPK_REG_MAGIC) != SPK_MAGIC) {
		*why = "not a Sail card: its magic number is wrong";
		return -EPROTO;
	}
	decode(words, caps);
	if (caps->abi >> 16 != SPK_ABI_MAJOR) {
		*why = "the card speaks another major version of the interface";
		return -EPROTO;
	}
	*why = find_fault(caps);
	return *why ? -EINVAL : 0;
}
