// SPDX-License-Identifier: Apache-2.0
//
// What commands do to bytes. Each effect runs once, when the clockwork says the command's last byte has moved; operands were
// checked at decode. No lock is held on entry: effects take data_mutex around what they touch of card memory.
#pragma once

#include "sim/machine.hpp"

namespace spanker::sim {

// One command at its end.
struct effect_context {
    machine& m;
    card_state& card;
    const spk_cmd& cmd;
    const ticket& who;
    const timing::running& run;  // its messages
};

using effect = timing::outcome (*)(const effect_context& at);

// Null for commands that touch no data.
effect effect_of(unsigned opcode);

timing::outcome fill_effect(const effect_context& at);
timing::outcome copy_effect(const effect_context& at);
timing::outcome reduce_effect(const effect_context& at);
timing::outcome scale_effect(const effect_context& at);
timing::outcome dma_in_effect(const effect_context& at);
timing::outcome dma_out_effect(const effect_context& at);
timing::outcome matmul_effect(const effect_context& at);
timing::outcome send_effect(const effect_context& at);
timing::outcome recv_effect(const effect_context& at);
timing::outcome recv_reduce_effect(const effect_context& at);
timing::outcome recv_reduce_send_effect(const effect_context& at);
timing::outcome recv_reduce_copy_effect(const effect_context& at);
timing::outcome recv_copy_send_effect(const effect_context& at);
timing::outcome forward_effect(const effect_context& at);

}  // namespace spanker::sim
