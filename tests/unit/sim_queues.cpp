// SPDX-License-Identifier: Apache-2.0
//
// The queue protocol: creation, doorbells, phases, credits, stop, faults, status block.
#include <gtest/gtest.h>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

class sim_queues : public testing::Test {
protected:
    // A command is rung on a queue whose completions nothing can take.
    queue& unwritable_completion()
    {
        queue& q = it.open(0, 1);
        q.write(SPK_Q_CTRL, 0);
        it.cards.run();
        q.write64(SPK_Q_CQ_BASE_LO, it.memory.end());
        q.write(SPK_Q_CTRL, SPK_QCTRL_ENABLE);
        q.put(nop());
        it.write(0, SPK_REG_SQ_TAIL(1), 1);
        return q;
    }

    rig it{small_config(2)};
};

struct bad_register {
    const char* what;
    std::uint32_t reg, value;
};

TEST_F(sim_queues, a_queue_with_a_bad_register_goes_to_fault_and_can_be_made_good)
{
    const bad_register table[] = {
        {"unaligned submission ring", SPK_Q_SQ_BASE_LO, 0x1020},
        {"unaligned completion ring", SPK_Q_CQ_BASE_LO, 0x1020},
        {"ring beyond the DMA address bits", SPK_Q_SQ_BASE_HI, 1u << 16},
        {"unaligned status block", SPK_Q_STATUS_BASE_LO, 0x800},
        {"depth 0", SPK_Q_SQ_DEPTH, 0},
        {"depth 1", SPK_Q_SQ_DEPTH, 1},
        {"depth not a power of two", SPK_Q_SQ_DEPTH, 48},
        {"depth over the limit", SPK_Q_CQ_DEPTH, 2 * SPK_MAX_QUEUE_DEPTH},
        {"completion ring shallower than the other", SPK_Q_CQ_DEPTH, 32},
        {"vector that does not exist", SPK_Q_VECTOR, SPK_MSIX_VECTORS},
    };
    queue q(it.cards, it.memory, 0, 3);
    for (const bad_register& row : table) {
        q.open();
        ASSERT_EQ(q.state(), SPK_QSTATE_RUNNING) << row.what;
        q.write(SPK_Q_CTRL, 0);
        it.cards.run();
        ASSERT_EQ(q.state(), SPK_QSTATE_OFF) << row.what;
        q.write(row.reg, row.value);
        q.write(SPK_Q_CTRL, SPK_QCTRL_ENABLE);
        EXPECT_EQ(q.state(), SPK_QSTATE_FAULT) << row.what;
        EXPECT_NE(it.read(0, SPK_REG_EVENT_CAUSE) & SPK_EVENT_QUEUE_FAULT, 0u) << row.what;
        q.write(SPK_Q_CTRL, 0);
        it.cards.run();
        EXPECT_EQ(q.state(), SPK_QSTATE_OFF) << row.what;
    }
}

TEST_F(sim_queues, rings_wrap_and_phases_alternate)
{
    queue& q = it.open(0, 1, {.sq_depth = 4, .cq_depth = 8});
    std::uint16_t expected = 0x100;
    for (unsigned round = 0; round < 50; round++) {
        const auto done = it.execute(q, std::vector<spk_cmd>(3, nop()));
        ASSERT_EQ(done.size(), 3u) << "round " << round;
        for (const spk_completion& one : done)
            EXPECT_EQ(one.id, expected++);
        EXPECT_EQ(done.back().sq_head, static_cast<std::uint16_t>(q.tail()));
    }
    EXPECT_EQ(q.read(SPK_Q_CQ_TAIL), 150u);
}

TEST_F(sim_queues, a_full_ring_of_commands_is_taken_at_once)
{
    queue& q = it.open(0, 1, {.sq_depth = 64, .cq_depth = 64});
    EXPECT_EQ(it.execute(q, std::vector<spk_cmd>(64, nop())).size(), 64u);
}

TEST_F(sim_queues, commands_wait_in_the_ring_while_there_is_no_room_for_their_completions)
{
    queue& q = it.open(0, 1, {.sq_depth = 4, .cq_depth = 4});
    for (unsigned i = 0; i < 4; i++)
        q.put(nop());
    q.ring();
    it.cards.run();
    for (unsigned i = 0; i < 4; i++)
        q.put(nop());
    q.ring();
    it.cards.run();
    EXPECT_EQ(q.read(SPK_Q_SQ_HEAD), 4u);
    EXPECT_EQ(q.collect().size(), 4u);  // frees the slots
    it.cards.run();
    EXPECT_EQ(q.read(SPK_Q_SQ_HEAD), 8u);
    EXPECT_EQ(q.collect().size(), 4u);
}

TEST_F(sim_queues, a_tail_beyond_the_ring_is_a_fault_that_ends_its_commands_and_no_others)
{
    queue& bad = it.open(0, 1);
    queue& good = it.open(0, 2);
    bad.put(waits(nop(), 0));  // waits for ever
    bad.ring();
    it.cards.run();
    it.write(0, SPK_REG_SQ_TAIL(1), bad.tail() + 65);
    EXPECT_EQ(bad.state(), SPK_QSTATE_FAULT);
    it.cards.run();
    EXPECT_EQ(statuses(bad.collect()), (std::vector<int>{SPANKER_CARD_CANCELLED}));
    EXPECT_EQ(it.execute(good, nop()).status, SPANKER_CARD_OK);
    EXPECT_EQ(good.state(), SPK_QSTATE_RUNNING);
}

TEST_F(sim_queues, a_tail_that_goes_back_is_a_fault)
{
    queue& q = it.open(0, 1);
    it.execute(q, std::vector<spk_cmd>(3, nop()));
    it.write(0, SPK_REG_SQ_TAIL(1), 1);
    EXPECT_EQ(q.state(), SPK_QSTATE_FAULT);
}

TEST_F(sim_queues, a_completion_head_ahead_of_what_was_written_is_a_fault)
{
    queue& q = it.open(0, 1);
    it.execute(q, nop());
    it.write(0, SPK_REG_CQ_HEAD(1), 2);
    EXPECT_EQ(q.state(), SPK_QSTATE_FAULT);
}

TEST_F(sim_queues, scrambled_doorbells_never_hurt_another_queue)
{
    queue& good = it.open(0, 15);
    std::uint32_t random = 12345;
    for (unsigned round = 0; round < 2000; round++) {
        random = random * 1664525 + 1013904223;
        const unsigned q = random >> 8 & 7;
        if ((random >> 16 & 15) == 0) {
            queue fresh(it.cards, it.memory, 0, q, {.sq_depth = 2, .cq_depth = 2});
            it.write(0, SPK_REG_Q(q, SPK_Q_CTRL), 0);
            it.cards.run();
            fresh.open();
        }
        it.write(0, (random & 1) != 0 ? SPK_REG_SQ_TAIL(q) : SPK_REG_CQ_HEAD(q), random >> 4 & 3);
    }
    EXPECT_EQ(it.execute(good, nop()).status, SPANKER_CARD_OK);
}

TEST_F(sim_queues, a_submission_ring_that_cannot_be_read_is_a_fault)
{
    queue& q = it.open(0, 1);
    q.write(SPK_Q_CTRL, 0);
    it.cards.run();
    q.write64(SPK_Q_SQ_BASE_LO, it.memory.end());
    q.write(SPK_Q_CTRL, SPK_QCTRL_ENABLE);
    ASSERT_EQ(q.state(), SPK_QSTATE_RUNNING);
    it.write(0, SPK_REG_SQ_TAIL(1), 1);
    it.cards.run();
    EXPECT_EQ(q.state(), SPK_QSTATE_FAULT);
}

TEST_F(sim_queues, a_completion_ring_that_cannot_be_written_is_a_fault)
{
    queue& q = unwritable_completion();
    EXPECT_TRUE(it.cards.run());
    EXPECT_EQ(q.state(), SPK_QSTATE_FAULT);
}

TEST_F(sim_queues, stop_cancels_what_waits_and_promises_no_more_dma)
{
    queue& q = it.open(0, 1);
    const auto big = rows{.count = 1, .bytes = 8 << 20};
    q.put(dma(SPK_OP_DMA_IN, 0, it.list_of(it.memory.allocate(big.bytes), big.bytes), big));
    q.put(waits(nop(), 4));
    q.ring();
    it.cards.run(1);
    EXPECT_GE(it.cards.now_ns(), 500u) << "the transfer runs";
    q.write(SPK_Q_CTRL, SPK_QCTRL_ENABLE | SPK_QCTRL_STOP);
    EXPECT_EQ(q.state(), SPK_QSTATE_STOPPING);
    const std::uint64_t before = it.cards.now_ns();
    it.cards.run();
    EXPECT_EQ(q.state(), SPK_QSTATE_STOPPED);
    EXPECT_LE(it.cards.now_ns() - before, 100'000u);
    EXPECT_EQ(statuses(q.collect()),
              (std::vector<int>{SPANKER_CARD_CANCELLED, SPANKER_CARD_CANCELLED}));
    const pin_counters settled = it.cards.counters(0);
    q.put(nop());
    q.ring();
    it.cards.run();
    EXPECT_EQ(it.cards.counters(0).dma_reads, settled.dma_reads);
    EXPECT_EQ(it.cards.counters(0).dma_writes, settled.dma_writes);
}

TEST_F(sim_queues, a_stopped_queue_is_created_anew_with_its_signals_zero)
{
    queue& q = it.open(0, 1);
    it.execute(q, posts(nop(), 7));
    EXPECT_EQ(it.execute(q, waits(nop(), 7)).status, SPANKER_CARD_OK);
    q.write(SPK_Q_CTRL, SPK_QCTRL_ENABLE | SPK_QCTRL_STOP);
    it.cards.run();
    q.write(SPK_Q_CTRL, 0);
    EXPECT_EQ(q.state(), SPK_QSTATE_OFF);
    q.open();
    q.put(waits(nop(), 7));
    q.ring();
    it.cards.run();
    EXPECT_TRUE(q.collect().empty()) << "signal 7 is zero again";
}

TEST_F(sim_queues, ring_registers_are_locked_while_the_queue_runs)
{
    queue& q = it.open(0, 1);
    q.write(SPK_Q_SQ_DEPTH, 2);
    q.write(SPK_Q_SQ_BASE_LO, 0);
    EXPECT_EQ(q.read(SPK_Q_SQ_DEPTH), 64u);
    EXPECT_EQ(it.execute(q, nop()).status, SPANKER_CARD_OK);
}

TEST_F(sim_queues, abort_cancels_a_waiting_command_and_only_from_queue_0)
{
    queue& kernel = it.open(0, 0);
    queue& q = it.open(0, 1);
    const std::uint16_t id = q.put(waits(nop(), 1));
    q.ring();
    it.cards.run();
    EXPECT_EQ(it.execute(q, abort_of(1, id)).status, SPANKER_CARD_INVALID);
    EXPECT_EQ(it.execute(kernel, abort_of(1, id)).status, SPANKER_CARD_OK);
    const auto done = q.collect();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].id, id);
    EXPECT_EQ(done[0].status, SPANKER_CARD_CANCELLED);
}

TEST_F(sim_queues, abort_ends_a_running_command_within_100_us)
{
    queue& kernel = it.open(0, 0);
    queue& q = it.open(0, 1);
    const std::uint16_t id = q.put(fill(0, 32 << 20, 1));  // 16 ms
    q.ring();
    it.cards.run(1);
    const std::uint64_t before = it.cards.now_ns();
    EXPECT_GE(before, 500u) << "it has been issued";
    EXPECT_EQ(it.execute(kernel, abort_of(1, id)).status, SPANKER_CARD_OK);
    const auto done = q.collect();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, SPANKER_CARD_CANCELLED);
    EXPECT_LE(done[0].end_ns - before, 100'000u);
}

TEST_F(sim_queues, abort_of_what_is_not_there_is_done)
{
    EXPECT_EQ(it.execute(it.open(0, 0), abort_of(1, 77)).status, SPANKER_CARD_OK);
}

TEST_F(sim_queues, signals_in_use_cannot_be_set)
{
    queue& q = it.open(0, 1);
    q.put(waits(fill(0, 4, 1), 5));
    q.ring();
    it.cards.run();
    EXPECT_EQ(it.execute(q, signal_set(0, 6, 9)).status, SPANKER_CARD_INVALID);
    EXPECT_EQ(it.execute(q, signal_set(0, 5, 9)).status, SPANKER_CARD_OK);
    EXPECT_EQ(it.execute(q, waits(nop(), 4, 9)).status, SPANKER_CARD_OK);
}

TEST_F(sim_queues, fence_waits_for_all_earlier_and_holds_all_later)
{
    queue& q = it.open(0, 1);
    const auto done = it.execute(q, {fill(0, 1 << 20, 1), flagged(nop(), SPK_CMD_FENCE), nop()});
    EXPECT_GE(done[1].start_ns, done[0].end_ns);
    EXPECT_GE(done[2].start_ns, done[1].end_ns);
}

TEST_F(sim_queues, the_status_block_tells_what_each_lane_waits_for)
{
    it.train();
    queue& q = it.open(0, 1, {.status_block = true});
    const std::uint16_t waiting = q.put(waits(fill(0, 4, 1), 3));
    q.put(waits(fill(0, 4, 1), 3));
    const std::uint16_t receiving = q.put(recv(0, {.count = 1, .bytes = 64}, {.ports = 2}));
    q.ring();
    it.cards.run();
    const spk_status_block block = q.status();
    const spk_lane_status& memory = block.lane[SPK_ENGINE_MEMORY];
    EXPECT_EQ(memory.state, SPK_LANE_WAIT_SIGNAL);
    EXPECT_EQ(memory.id, waiting);
    EXPECT_EQ(memory.opcode, SPK_OP_FILL);
    EXPECT_EQ(memory.queued, 2u);
    const spk_lane_status& rx = block.lane[SPK_LANE_RX(1, 0)];
    EXPECT_EQ(rx.state, SPK_LANE_WAIT_PEER);
    EXPECT_EQ(rx.id, receiving);
    EXPECT_EQ(block.lane[SPK_ENGINE_COMPUTE].state, SPK_LANE_EMPTY);
    EXPECT_GT(block.sequence, 0u);
}

TEST_F(sim_queues, the_status_block_follows_a_long_command_and_shows_its_end)
{
    queue& q = it.open(0, 1, {.status_block = true});
    std::vector<std::uint64_t> moved;
    std::uint64_t sequence = 0;
    q.put(fill(0, 20 << 20, 1));  // 10 ms
    q.ring();
    while (!it.cards.run(1)) {
        const spk_status_block block = q.status();
        if (block.sequence != sequence && block.lane[SPK_ENGINE_MEMORY].state == SPK_LANE_RUNNING)
            moved.push_back(block.lane[SPK_ENGINE_MEMORY].bytes);
        sequence = block.sequence;
    }
    EXPECT_EQ(q.status().lane[SPK_ENGINE_MEMORY].state, SPK_LANE_EMPTY);
    EXPECT_FALSE(moved.empty());
    EXPECT_GE(q.status().sequence, 10u) << "about one a millisecond";
    for (std::size_t i = 1; i < moved.size(); i++)
        EXPECT_GE(moved[i], moved[i - 1]);
}

TEST_F(sim_queues, a_waiting_queue_lets_the_clock_stand)
{
    queue& q = it.open(0, 1, {.status_block = true});
    q.put(waits(nop(), 3));
    q.ring();
    EXPECT_TRUE(it.cards.run());
    const std::uint64_t now = it.cards.now_ns();
    EXPECT_TRUE(it.cards.run());
    EXPECT_TRUE(it.cards.idle());
    EXPECT_EQ(it.cards.now_ns(), now);
    EXPECT_FALSE(it.cards.next_event_ns().has_value());
}

TEST_F(sim_queues, a_queue_stopped_without_bus_master_writes_nothing_once_it_has_stopped)
{
    queue& q = it.open(0, 1);
    for (unsigned i = 0; i < 3; i++)
        q.put(waits(nop(), 0));
    q.ring();
    it.cards.run();
    it.cards.config_write(0, 0x04, 2, 0x0002);
    q.write(SPK_Q_CTRL, SPK_QCTRL_ENABLE | SPK_QCTRL_STOP);
    it.cards.run();
    EXPECT_EQ(q.state(), SPK_QSTATE_STOPPED);
    const std::uint64_t writes = it.cards.counters(0).dma_writes;
    it.wake(0);
    it.cards.run();
    EXPECT_EQ(it.cards.counters(0).dma_writes, writes);
    EXPECT_EQ(q.read(SPK_Q_CQ_TAIL), 0u);
    q.write(SPK_Q_CTRL, 0);
    q.open();
    EXPECT_EQ(it.execute(q, nop()).status, SPANKER_CARD_OK);
}

TEST_F(sim_queues, a_stopped_queue_runs_again_only_after_enable_was_cleared)
{
    queue& q = it.open(0, 1);
    q.write(SPK_Q_CTRL, SPK_QCTRL_ENABLE | SPK_QCTRL_STOP);
    it.cards.run();
    q.write(SPK_Q_CTRL, SPK_QCTRL_ENABLE);
    EXPECT_EQ(q.state(), SPK_QSTATE_STOPPED) << "no rising edge";
    q.write(SPK_Q_CTRL, 0);
    q.write(SPK_Q_CTRL, SPK_QCTRL_ENABLE);
    EXPECT_EQ(q.state(), SPK_QSTATE_RUNNING);
}

TEST_F(sim_queues, a_completion_that_faults_after_a_reset_leaves_the_new_queue_alone)
{
    queue& q = unwritable_completion();
    bool reset = false;
    it.memory.on_dma = [&](unsigned, std::uint64_t address, std::size_t) {
        if (address != it.memory.end() || reset)
            return;
        reset = true;
        it.write(0, SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
        it.wake(0);
        q.open();
    };
    it.cards.run();
    ASSERT_TRUE(reset);
    EXPECT_EQ(q.state(), SPK_QSTATE_RUNNING);
    EXPECT_EQ(it.execute(q, nop()).status, SPANKER_CARD_OK);
}

TEST_F(sim_queues, a_completion_that_lands_while_the_card_is_reset_interrupts_nobody)
{
    queue& q = it.open(0, 1);
    q.put(flagged(nop(), SPK_CMD_IRQ));
    q.ring();
    unsigned pieces = 0;
    it.memory.on_dma = [&](unsigned, std::uint64_t, std::size_t bytes) {
        if (bytes == sizeof(spk_cmd) || ++pieces != 2)
            return;
        it.write(0, SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
        it.wake(0);
    };
    it.cards.run();
    ASSERT_EQ(pieces, 2u);
    EXPECT_EQ(it.memory.interrupts(0, 1), 0u);
}

}  // namespace
}  // namespace spanker::sim::bench
