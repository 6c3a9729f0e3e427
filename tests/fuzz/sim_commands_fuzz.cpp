// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as commands, on both ends of a link. Whatever they are, the card touches no host memory it was not given, every
// decoded command completes at most once, and after all queues are stopped each has completed and nothing is pending.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/unit/sim_bench.hpp"

namespace {

using namespace spanker::sim;
using namespace spanker::sim::bench;

constexpr std::uint32_t depth = 64;

[[noreturn]] void broken(const char* what)
{
    std::fprintf(stderr, "invariant broken: %s\n", what);
    std::abort();
}

fabric_config two_cards()
{
    card_config card;
    card.ddr_bytes = 1 << 20;
    return make_fabric_config(2, "ring", card);
}

// Reads commands from the input: a selector, then 64 bytes; half of them become plausible first, for deep paths.
class commands final {
public:
    commands(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

    bool next(unsigned& selector, spk_cmd& cmd)
    {
        if (left_ == 0)
            return false;
        selector = take();
        std::uint8_t raw[sizeof cmd] = {};
        for (std::uint8_t& byte : raw)
            byte = take();
        std::memcpy(&cmd, raw, sizeof cmd);
        if ((selector & 1) != 0)
            tame(cmd);
        return true;
    }

private:
    std::uint8_t take()
    {
        if (left_ == 0)
            return 0;
        left_--;
        return *data_++;
    }

    // Legal enumerations and small sizes; what else is wrong stays.
    static void tame(spk_cmd& cmd)
    {
        cmd.opcode %= SPK_OP_COUNT;
        cmd.flags &= SPK_CMD_FLAGS;
        cmd.dtype %= SPK_DTYPE_COUNT;
        cmd.reduce %= SPK_REDUCE_COUNT;
        cmd.wait_signal = (cmd.wait_signal & 1) != 0 ? cmd.wait_signal & 7 : SPK_NO_SIGNAL;
        cmd.post_signal = (cmd.post_signal & 1) != 0 ? cmd.post_signal & 7 : SPK_NO_SIGNAL;
        cmd.wait_value &= 3;
        if (cmd.opcode < SPK_OP_LINK_SEND || cmd.opcode > SPK_OP_LINK_FORWARD) {
            cmd.rx_ports = cmd.tx_ports = 0;
            for (__u64& word : cmd.raw)
                word &= 0x0000'0fff'0000'ffff;
            return;
        }
        cmd.rx_ports &= 3;
        cmd.tx_ports &= 3;
        spk_op_link& op = cmd.link;
        op = {.src = op.src & 0xffff,
              .dst = op.dst & 0xffff,
              .rows = op.rows & 3,
              .row_bytes = op.row_bytes & 0x3fc,
              .src_pitch = 1024,
              .dst_pitch = 1024,
              .rx_tag = 0,
              .tx_tag = 0,
              .rx_channel = static_cast<__u8>(op.rx_channel & 1),
              .tx_channel = static_cast<__u8>(op.tx_channel & 1),
              .reserved = 0};
    }

    const std::uint8_t* data_;
    std::size_t left_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    rig it(two_cards(), 1 << 20);
    it.train();
    std::vector<queue*> queues;
    for (unsigned card = 0; card < 2; card++)
        for (const unsigned q : {0u, 1u})
            queues.push_back(&it.open(card, q, {.sq_depth = depth, .cq_depth = depth}));
    std::size_t put[4] = {}, done[4] = {};
    const auto collect = [&] {
        for (unsigned i = 0; i < 4; i++)
            done[i] += queues[i]->collect().size();
    };

    commands input(data, size);
    unsigned selector = 0;
    spk_cmd cmd;
    while (input.next(selector, cmd)) {
        const unsigned target = selector >> 1 & 3;
        if (put[target] - done[target] == depth)
            continue;
        queues[target]->put(cmd);
        put[target]++;
        queues[target]->ring();
        if ((selector & 8) != 0) {
            it.cards.run((selector >> 4) * 4);
            collect();
        }
    }
    if (!it.cards.run(1'000'000))
        broken("the fabric never comes to rest");
    collect();
    for (queue* q : queues)  // one at a time: a full ring holds the rest back until it is read
        q->write(SPK_Q_CTRL, SPK_QCTRL_ENABLE | SPK_QCTRL_STOP);
    it.cards.run();
    collect();
    it.cards.run();
    for (unsigned i = 0; i < 4; i++) {
        if (queues[i]->state() != SPK_QSTATE_STOPPED)
            broken("a queue does not stop");
        if (done[i] != queues[i]->read(SPK_Q_SQ_HEAD) || done[i] > put[i])
            broken("a command did not complete exactly once");
    }
    if (!it.cards.idle())
        broken("stopped cards are not idle");
    return 0;
}
