// SPDX-License-Identifier: Apache-2.0
//
// Faults at will: each does what it says, as often as it says, from when it says.
#include <gtest/gtest.h>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

class sim_faults : public testing::Test {
protected:
    rig it{small_config(2)};
    queue& q = it.open(0, 1);

    std::vector<spk_completion> nops(unsigned count)
    {
        return it.execute(q, std::vector<spk_cmd>(count, nop()));
    }
};

TEST_F(sim_faults, a_dropped_completion_never_comes_and_the_next_does)
{
    it.cards.inject({.kind = fault_kind::completion_drop, .a = 1});
    EXPECT_EQ(nops(3).size(), 2u);
    EXPECT_EQ(nops(60).size(), 60u) << "its slot is not lost";
}

TEST_F(sim_faults, a_doubled_completion_comes_twice_with_one_id)
{
    it.cards.inject({.kind = fault_kind::completion_duplicate, .a = 1, .count = 0});
    const auto done = nops(2);
    ASSERT_EQ(done.size(), 4u);
    EXPECT_EQ(done[0].id, done[1].id);
    EXPECT_EQ(done[2].id, done[3].id);
    it.cards.fault_clear(0, fault_kind::completion_duplicate);
    EXPECT_EQ(nops(2).size(), 2u);
}

TEST_F(sim_faults, a_corrupted_id_is_none_of_those_in_flight)
{
    it.cards.inject({.kind = fault_kind::completion_corrupt_id, .a = 1, .count = 1});
    const std::uint16_t id = q.put(nop());
    q.ring();
    it.cards.run();
    const auto done = q.collect();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_NE(done[0].id, id);
    EXPECT_EQ(nops(1).size(), 1u);
}

TEST_F(sim_faults, a_completion_can_be_made_an_error)
{
    it.cards.inject({.kind = fault_kind::completion_error,
                     .a = 1,
                     .count = 2,
                     .value = SPANKER_CARD_LINK_ERROR});
    EXPECT_EQ(statuses(nops(3)), (std::vector<int>{SPANKER_CARD_LINK_ERROR, SPANKER_CARD_LINK_ERROR,
                                                   SPANKER_CARD_OK}));
    EXPECT_EQ(it.memory.interrupts(0, 1), 2u) << "a failure interrupts";
}

TEST_F(sim_faults, faults_of_a_queue_leave_others_alone)
{
    queue& other = it.open(0, 2);
    it.cards.inject({.kind = fault_kind::completion_drop, .a = 1, .count = 0});
    EXPECT_EQ(it.execute(other, std::vector<spk_cmd>(3, nop())).size(), 3u);
}

TEST_F(sim_faults, a_hung_queue_decodes_nothing_until_cleared)
{
    queue& other = it.open(0, 2);
    it.cards.inject({.kind = fault_kind::queue_hang, .a = 1});
    EXPECT_TRUE(nops(2).empty());
    EXPECT_EQ(q.read(SPK_Q_SQ_HEAD), 0u);
    EXPECT_EQ(it.execute(other, nop()).status, SPANKER_CARD_OK);
    it.cards.fault_clear(0, fault_kind::queue_hang);
    it.cards.run();
    EXPECT_EQ(q.collect().size(), 2u);
}

TEST_F(sim_faults, a_hung_engine_ends_no_command_but_abort_still_does)
{
    queue& kernel = it.open(0, 0);
    it.cards.inject({.kind = fault_kind::engine_hang, .a = SPK_ENGINE_MEMORY});
    const std::uint16_t id = q.put(fill(0, 4096, 1));
    q.put(nop());
    q.ring();
    EXPECT_TRUE(it.cards.run());
    EXPECT_EQ(q.collect().size(), 1u) << "the other lane goes on";
    it.execute(kernel, abort_of(1, id));
    EXPECT_EQ(statuses(q.collect()), (std::vector<int>{SPANKER_CARD_CANCELLED}));
    q.put(fill(0, 4096, 1));
    q.ring();
    it.cards.run();
    EXPECT_TRUE(q.collect().empty());
    it.cards.fault_clear(0, fault_kind::engine_hang);
    it.cards.run();
    EXPECT_EQ(statuses(q.collect()), (std::vector<int>{SPANKER_CARD_OK}));
}

TEST_F(sim_faults, a_hung_queue_may_heal_by_starts)
{
    it.cards.inject({.kind = fault_kind::queue_hang, .a = 1, .value = 2});
    EXPECT_TRUE(nops(1).empty());
    const auto start_again = [&] {
        q.write(SPK_Q_CTRL, 0);
        it.cards.run();
        q.open();
        return nops(1).size();
    };
    EXPECT_EQ(start_again(), 0u) << "not by the first";
    EXPECT_EQ(start_again(), 1u);
}

TEST_F(sim_faults, a_hung_engine_may_heal_by_a_reset)
{
    it.cards.inject({.kind = fault_kind::engine_hang, .a = SPK_ENGINE_MEMORY, .value = 1});
    it.cards.inject({.kind = fault_kind::queue_hang, .a = 1, .value = 1});
    it.write(0, SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
    it.cards.run();
    it.wake(0);
    EXPECT_EQ(it.execute(it.open(0, 1), fill(0, 4096, 1)).status, SPANKER_CARD_OK);
}

// An idle clock stands still; the blocks tell all the same that the card is there.
TEST_F(sim_faults, a_card_that_stands_still_goes_on_reporting)
{
    queue& told = it.open(0, 2, {.status_block = true});
    EXPECT_FALSE(it.cards.refresh_status()) << "nothing to tell";
    it.cards.inject({.kind = fault_kind::engine_hang, .a = SPK_ENGINE_MEMORY});
    const std::uint16_t id = told.put(fill(0, 4096, 1));
    told.ring();
    EXPECT_TRUE(it.cards.run());
    const auto now_ns = it.cards.now_ns();
    const spk_status_block first = told.status();
    EXPECT_EQ(first.lane[SPK_ENGINE_MEMORY].state, SPK_LANE_RUNNING);
    EXPECT_EQ(first.lane[SPK_ENGINE_MEMORY].id, id);
    EXPECT_TRUE(it.cards.refresh_status());
    EXPECT_EQ(told.status().sequence, first.sequence + 1);
    EXPECT_EQ(it.cards.now_ns(), now_ns);
}

TEST_F(sim_faults, faults_of_what_does_not_exist_do_nothing)
{
    it.cards.inject({.kind = fault_kind::engine_hang, .a = SPK_LANES});
    it.cards.inject({.kind = fault_kind::engine_hang, .a = SPK_LANE_TX(7, 0)});
    it.cards.inject({.kind = fault_kind::cable_cut, .a = SPK_MAX_PORTS});
    it.cards.inject({.kind = fault_kind::queue_hang, .a = SPK_MAX_QUEUES});
    EXPECT_EQ(nops(3).size(), 3u);
}

TEST_F(sim_faults, a_dma_fault_skips_some_accesses_and_hits_the_next)
{
    const std::uint64_t buffer = it.memory.allocate(256 << 10);
    const auto transfer = [&] {
        return it.execute(q, dma(SPK_OP_DMA_IN, 0, it.list_of(buffer, 256 << 10, 64 << 10),
                                 {.count = 1, .bytes = 256 << 10}));
    };
    // Fetch, list page, three pieces pass; the fourth piece does not.
    it.cards.inject({.kind = fault_kind::dma_fault, .a = 5, .count = 1});
    const spk_completion done = transfer();
    EXPECT_EQ(done.status, SPANKER_CARD_HOST_FAULT);
    EXPECT_EQ(done.detail, 3u * (64 << 10));
    EXPECT_EQ(transfer().status, SPANKER_CARD_OK);
}

TEST_F(sim_faults, a_dma_fault_in_the_ring_is_a_queue_fault)
{
    it.cards.inject({.kind = fault_kind::dma_fault});
    nops(1);
    EXPECT_EQ(q.state(), SPK_QSTATE_FAULT);
}

TEST_F(sim_faults, a_gone_card_is_silent_and_comes_back_as_after_power_on)
{
    it.train();
    const std::uint64_t serial = it.cards.config(0).serial;
    q.put(fill(0, 1 << 20, 1));
    q.ring();
    it.cards.run(1);
    it.cards.inject({.card = 0, .kind = fault_kind::gone});
    const pin_counters before = it.cards.counters(0);
    EXPECT_TRUE(it.cards.run());
    EXPECT_EQ(it.read(0, SPK_REG_STATUS), 0xffffffffu);
    it.write(0, SPK_REG_CTRL, SPK_CTRL_ENABLE);
    EXPECT_TRUE(q.collect().empty());
    EXPECT_EQ(it.cards.counters(0).dma_writes, before.dma_writes);
    EXPECT_EQ(it.port(1, 0, SPK_P_STATE), SPK_PORT_FAULT);
    EXPECT_EQ(it.port(1, 0, SPK_P_REASON), SPK_REASON_REMOTE_LOST);
    it.cards.fault_clear(0, fault_kind::gone);
    EXPECT_EQ(it.read(0, SPK_REG_MAGIC), SPK_MAGIC);
    EXPECT_EQ(it.read(0, SPK_REG_SERIAL_LO), static_cast<std::uint32_t>(serial));
    EXPECT_EQ(it.read(0, SPK_REG_RESET_GEN), 1u);
    EXPECT_EQ(it.read(0, SPK_REG_CTRL), 0u);
    EXPECT_EQ(it.cards.config_read(0, 0x04, 2), 0u);
    it.wake(0);
    EXPECT_EQ(it.execute(it.open(0, 1), nop()).status, SPANKER_CARD_OK);
}

TEST_F(sim_faults, a_stuck_reset_holds_the_card_until_cleared)
{
    it.cards.inject({.card = 0, .kind = fault_kind::reset_stuck});
    EXPECT_EQ(it.read(0, SPK_REG_MAGIC), SPK_MAGIC) << "not before a reset";
    it.write(0, SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
    it.cards.run();
    EXPECT_EQ(it.read(0, SPK_REG_STATUS), 0xffffffffu);
    EXPECT_EQ(it.cards.config_read(0, 0, 4), 0xbeefdeadu) << "its configuration space answers";
    it.cards.fault_clear(0, fault_kind::reset_stuck);
    EXPECT_NE(it.read(0, SPK_REG_STATUS) & SPK_STATUS_READY, 0u);
    it.write(0, SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
    EXPECT_NE(it.read(0, SPK_REG_STATUS) & SPK_STATUS_READY, 0u) << "only the next one stuck";
}

TEST_F(sim_faults, a_reset_of_the_function_frees_a_card_from_a_soft_one_that_stuck)
{
    it.cards.inject({.card = 0, .kind = fault_kind::reset_stuck});
    it.write(0, SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
    it.cards.run();
    EXPECT_EQ(it.read(0, SPK_REG_STATUS), 0xffffffffu);
    it.cards.reset(0, reset_kind::flr);
    it.cards.run();
    EXPECT_NE(it.read(0, SPK_REG_STATUS) & SPK_STATUS_READY, 0u);
}

TEST_F(sim_faults, uncalibrated_memory_stops_fetching)
{
    EXPECT_NE(it.read(0, SPK_REG_STATUS) & SPK_STATUS_DDR_OK, 0u);
    it.cards.inject({.card = 0, .kind = fault_kind::ddr_uncalibrated});
    EXPECT_EQ(it.read(0, SPK_REG_STATUS) & SPK_STATUS_DDR_OK, 0u);
    EXPECT_TRUE(nops(1).empty());
    it.cards.fault_clear(0, fault_kind::ddr_uncalibrated);
    it.cards.run();
    EXPECT_EQ(q.collect().size(), 1u);
}

TEST_F(sim_faults, a_flipped_bit_flips)
{
    it.store(q, 100, bytes_of<std::uint8_t>({0x0f}));
    it.cards.inject({.card = 0, .kind = fault_kind::ddr_bit_flip, .a = 7, .value = 100});
    it.cards.run();
    EXPECT_EQ(it.load(0, 100, 1), bytes_of<std::uint8_t>({0x8f}));
    it.cards.inject({.card = 0, .kind = fault_kind::ddr_bit_flip, .a = 7, .value = ~0ull});
    EXPECT_TRUE(it.cards.run()) << "outside memory there is nothing to flip";
}

TEST_F(sim_faults, a_fault_of_the_future_sets_in_at_its_time)
{
    it.cards.inject(
        {.card = 0, .kind = fault_kind::temperature, .value = 99'000, .at_ns = 1'000'000});
    it.cards.inject({.card = 0, .kind = fault_kind::completion_drop, .a = 1, .at_ns = 2'000'000});
    EXPECT_EQ(it.read(0, SPK_REG_TEMP_MC), 45'000u);
    EXPECT_EQ(nops(1).size(), 1u);
    EXPECT_LT(it.cards.now_ns(), 1'000'000u) << "a fault is no reason for time to pass";
    EXPECT_TRUE(it.cards.idle());
    EXPECT_EQ(it.read(0, SPK_REG_TEMP_MC), 45'000u);
    it.cards.advance_to(999'999);
    EXPECT_EQ(it.read(0, SPK_REG_TEMP_MC), 45'000u);
    it.cards.advance_to(1'000'000);
    EXPECT_EQ(it.read(0, SPK_REG_TEMP_MC), 99'000u);
    EXPECT_EQ(nops(1).size(), 1u);
    it.cards.advance_to(2'000'000);
    EXPECT_TRUE(nops(1).empty());
}

TEST_F(sim_faults, a_cleared_fault_of_the_future_never_sets_in)
{
    it.cards.inject({.card = 0, .kind = fault_kind::gone, .at_ns = 1'000'000});
    it.cards.fault_clear(0, fault_kind::gone);
    it.cards.advance_to(2'000'000);
    EXPECT_EQ(it.read(0, SPK_REG_MAGIC), SPK_MAGIC);
}

TEST_F(sim_faults, faults_fire_the_same_way_every_time)
{
    std::vector<std::vector<int>> seen;
    for (unsigned round = 0; round < 2; round++) {
        rig fresh(small_config(1));
        queue& own = fresh.open(0, 1);
        fresh.cards.inject({.kind = fault_kind::completion_error,
                            .a = 1,
                            .count = 3,
                            .value = SPANKER_CARD_HOST_FAULT,
                            .at_ns = 5000});
        std::vector<int> all;
        for (unsigned i = 0; i < 20; i++)
            all.push_back(fresh.execute(own, fill(0, 1000, i)).status);
        seen.push_back(all);
    }
    EXPECT_EQ(seen[0], seen[1]);
    EXPECT_EQ(std::count(seen[0].begin(), seen[0].end(), SPANKER_CARD_HOST_FAULT), 3);
}

TEST_F(sim_faults, a_fatal_error_is_seen_everywhere_and_a_reset_alone_heals_it)
{
    it.write(0, SPK_REG_EVENT_MASK, SPK_EVENT_FATAL);
    it.cards.inject({.card = 0, .kind = fault_kind::fatal, .value = 42});
    it.cards.run();
    EXPECT_NE(it.read(0, SPK_REG_STATUS) & SPK_STATUS_FATAL, 0u);
    EXPECT_EQ(it.read(0, SPK_REG_FATAL_REASON), 42u);
    EXPECT_EQ(it.read(0, SPK_REG_EVENT_CAUSE), SPK_EVENT_FATAL);
    EXPECT_EQ(it.memory.interrupts(0, rig::event_vector), 1u);
    EXPECT_TRUE(nops(1).empty()) << "nothing is fetched any more";
    it.cards.fault_clear(0, fault_kind::fatal);
    EXPECT_NE(it.read(0, SPK_REG_STATUS) & SPK_STATUS_FATAL, 0u);
    it.write(0, SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
    EXPECT_EQ(it.read(0, SPK_REG_STATUS) & SPK_STATUS_FATAL, 0u);
    EXPECT_EQ(it.read(0, SPK_REG_FATAL_REASON), 0u);
    it.wake(0);
    EXPECT_EQ(it.execute(it.open(0, 1), nop()).status, SPANKER_CARD_OK);
}

TEST_F(sim_faults, a_fatal_error_is_logged_as_an_internal_one_by_the_severity_asked_for)
{
    constexpr unsigned uncorrectable = 0x104, severity = 0x10c, device_status = 0x4a;
    constexpr std::uint32_t internal = 1u << 22, non_fatal = 1u << 1, fatal = 1u << 2;
    it.cards.inject({.card = 0, .kind = fault_kind::fatal, .value = 1});
    EXPECT_EQ(it.cards.config_read(0, uncorrectable, 4), internal);
    EXPECT_EQ(it.cards.config_read(0, device_status, 2), fatal);
    it.cards.config_write(0, uncorrectable, 4, internal);
    EXPECT_EQ(it.cards.config_read(0, uncorrectable, 4), 0u) << "cleared by writing 1";
    it.cards.reset(0, reset_kind::flr);
    it.cards.config_write(0, severity, 4, 0);
    it.cards.inject({.card = 0, .kind = fault_kind::fatal, .value = 1});
    EXPECT_EQ(it.cards.config_read(0, device_status, 2), non_fatal);
}

}  // namespace
}  // namespace spanker::sim::bench
