/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What a card says about itself. The caller reads the identity and
 * capability registers, one word each from SPK_REG_MAGIC on; here they are
 * decoded, and refused when the driver cannot live with them: nothing later
 * checks a capability again.
 */
#ifndef SPANKER_CORE_CAPS_H
#define SPANKER_CORE_CAPS_H

#include "core_port.h"
#include "../../uapi/spanker_card.h"

SPK_C_BEGIN

/* Words to read: registers SPK_REG_MAGIC .. SPK_REG_CAP_VECTORS. */
#define SPK_CAPS_WORDS	(SPK_REG_CAP_VECTORS / 4 + 1)

struct spk_caps {
	u64 serial;
	u64 ddr_bytes;
	u64 ddr_bytes_per_s;
	u64 link_bytes_per_s;
	u64 host_bytes_per_s;
	u64 macs_per_s;
	u32 abi;
	u32 gateware;
	u32 queues;
	u32 queue_depth;
	u32 ports;
	u32 lanes;
	u32 channels;
	u32 rx_buffer_bytes;
	u32 dma_bits;
	u32 signals;
	u32 hop_ns;
	u32 issue_ns;
	u32 features;
	u32 vectors;
};

/*
 * -ENODEV: all ones, nobody answers; -EPROTO: not a Sail card, or of another
 * ABI major; -EINVAL: a capability outside what the format allows. *why says
 * which, for people; it points to constant text.
 */
int spk_caps_decode(const u32 *words, struct spk_caps *caps, const char **why);

SPK_C_END

#endif /* SPANKER_CORE_CAPS_H */
