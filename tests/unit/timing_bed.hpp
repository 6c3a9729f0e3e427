// SPDX-License-Identifier: Apache-2.0
//
// A bench for the event engine: a world whose ends are written down, and short names for commands.
// Times in the tests are worked out by hand from the reference card: DDR 2e9, link 5e8, host 4e8
// bytes/s, hop 1 us, issue 0.5 us; a flit of 256 bytes takes 0.512 us.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "timing/world.hpp"

namespace spanker::timing {

constexpr time_ps ns(std::int64_t n) { return n * ps_per_ns; }
constexpr time_ps us(std::int64_t n) { return ns(n * 1000); }

struct bed : observer {
    explicit bed(unsigned cards, std::vector<cable> cables = {}, const card_costs& costs = {})
        : w(std::vector<card_costs>(cards, costs), cables, this)
    {
        for (unsigned card = 0; card < cards; ++card)
            w.queue_create(card, 0);
    }

    void completed(const ended& e) override { ends.push_back(e); }

    // Queue 0 unless said otherwise; gives the command the next id and returns it.
    std::uint16_t put(unsigned card, command cmd, unsigned queue = 0)
    {
        cmd.id = ++last_id;
        w.submit(card, queue, cmd);
        return cmd.id;
    }

    // The end of a command; a test that asks for one that has not ended fails.
    ended end(std::uint16_t id) const
    {
        for (const ended& e : ends) {
            if (e.cmd.id == id)
                return e;
        }
        ADD_FAILURE() << "command " << id << " has not ended";
        return {};
    }
    bool has_ended(std::uint16_t id) const
    {
        for (const ended& e : ends) {
            if (e.cmd.id == id)
                return true;
        }
        return false;
    }

    std::vector<ended> ends;
    std::uint16_t last_id = 0;
    world w;
};

// A buffer counts as empty when less is left than a picosecond moves, so an end behind one may be
// a few picoseconds late.
constexpr time_ps slack_ps = 10;

inline ::testing::AssertionResult ended_at(const bed& b, std::uint16_t id, time_ps from, time_ps to)
{
    const ended e = b.end(id);
    if (e.status == SPANKER_CARD_OK && e.start_ps == from && e.end_ps >= to &&
        e.end_ps <= to + slack_ps)
        return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << "command " << id << " ended " << spanker_card_status_name(e.status) << ", from "
           << e.start_ps << " to " << e.end_ps << " ps, not OK from " << from << " to " << to;
}

inline ::testing::AssertionResult ended_with(const bed& b, std::uint16_t id, unsigned status,
                                             std::uint64_t detail)
{
    const ended e = b.end(id);
    if (e.status == status && e.detail == detail)
        return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << "command " << id << " ended " << spanker_card_status_name(e.status) << " with 0x"
           << std::hex << e.detail << ", not " << spanker_card_status_name(status) << " with 0x"
           << detail;
}

#define EXPECT_ENDED(b, id, from, to) EXPECT_TRUE(ended_at(b, id, from, to))
#define EXPECT_STATUS(b, id, status, detail) EXPECT_TRUE(ended_with(b, id, status, detail))

inline command work(unsigned opcode, std::uint64_t bytes)
{
    return {.opcode = static_cast<std::uint8_t>(opcode), .payload_bytes = bytes};
}
inline command dma_in(std::uint64_t bytes) { return work(SPK_OP_DMA_IN, bytes); }
inline command dma_out(std::uint64_t bytes) { return work(SPK_OP_DMA_OUT, bytes); }
inline command fill(std::uint64_t bytes) { return work(SPK_OP_FILL, bytes); }
inline command copy(std::uint64_t bytes) { return work(SPK_OP_COPY, bytes); }
inline command matmul(std::uint64_t bytes, std::uint64_t macs = 0)
{
    command cmd = work(SPK_OP_MATMUL_Q4_K, bytes);
    cmd.macs = macs;
    return cmd;
}
inline command nop() { return {}; }

inline command waiting(command cmd, std::uint16_t signal, std::uint32_t value)
{
    cmd.wait_signal = signal;
    cmd.wait_value = value;
    return cmd;
}
inline command posting(command cmd, std::uint16_t signal)
{
    cmd.post_signal = signal;
    return cmd;
}
inline command fenced(command cmd)
{
    cmd.flags |= SPK_CMD_FENCE;
    return cmd;
}

inline std::uint8_t mask(unsigned port) { return static_cast<std::uint8_t>(1u << port); }

inline command send(unsigned port, std::uint64_t bytes, unsigned channel = 0)
{
    command cmd = work(SPK_OP_LINK_SEND, bytes);
    cmd.tx_ports = mask(port);
    cmd.tx_channel = static_cast<std::uint8_t>(channel);
    return cmd;
}
inline command recv(unsigned port, std::uint64_t bytes, unsigned channel = 0)
{
    command cmd = work(SPK_OP_LINK_RECV, bytes);
    cmd.rx_ports = mask(port);
    cmd.rx_channel = static_cast<std::uint8_t>(channel);
    return cmd;
}
inline command through(unsigned opcode, unsigned rx, unsigned tx, std::uint64_t bytes)
{
    command cmd = work(opcode, bytes);
    cmd.rx_ports = mask(rx);
    cmd.tx_ports = mask(tx);
    return cmd;
}
inline command gang(std::uint32_t id, std::uint32_t members, std::uint32_t section,
                    std::uint32_t domain = 0)
{
    command cmd = work(SPK_OP_GANG, 0);
    cmd.args[0] = domain;
    cmd.args[1] = id;
    cmd.args[2] = members;
    cmd.args[3] = section;
    return cmd;
}
inline command signal_set(std::uint32_t first, std::uint32_t count, std::uint32_t value)
{
    command cmd = work(SPK_OP_SIGNAL_SET, 0);
    cmd.args[0] = first;
    cmd.args[1] = count;
    cmd.args[2] = value;
    return cmd;
}
inline command abort_of(std::uint32_t queue, std::uint32_t id)
{
    command cmd = work(SPK_OP_ABORT, 0);
    cmd.args[0] = queue;
    cmd.args[1] = id;
    return cmd;
}

inline std::uint64_t origin(unsigned card, unsigned queue, unsigned id, unsigned status,
                            unsigned port = SPK_NO_PORT)
{
    return SPK_ORIGIN(card, queue, id, status, port);
}

// Cards in a row: port 1 of card i goes to port 0 of card i + 1.
inline std::vector<cable> row(unsigned cards)
{
    std::vector<cable> list;
    for (unsigned i = 0; i + 1 < cards; ++i)
        list.push_back({i, 1, i + 1, 0, 4});
    return list;
}

}  // namespace spanker::timing
