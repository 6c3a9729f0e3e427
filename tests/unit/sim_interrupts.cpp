// SPDX-License-Identifier: Apache-2.0
//
// When a command interrupts, by which vector, and what holds an interrupt back.
#include <gtest/gtest.h>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

constexpr unsigned vector = 1;

class sim_interrupts : public testing::Test {
protected:
    rig it;

    queue& open(queue_shape shape = {})
    {
        shape.vector = vector;
        return it.open(0, 1, shape);
    }
    unsigned count(unsigned v = vector) const { return it.memory.interrupts(0, v); }
    void mask(unsigned v, bool on)
    {
        it.write(0, SPK_MSIX_TABLE_OFFSET + 16 * v + 12, on ? 1 : 0);
        it.cards.run();
    }
    std::uint32_t pending() { return it.read(0, SPK_MSIX_PBA_OFFSET); }
    static spk_cmd loud() { return flagged(nop(), SPK_CMD_IRQ); }
};

TEST_F(sim_interrupts, only_a_flagged_command_or_a_failed_one_interrupts)
{
    queue& q = open();
    it.execute(q, nop());
    EXPECT_EQ(count(), 0u);
    it.execute(q, loud());
    EXPECT_EQ(count(), 1u);
    it.execute(q, fill(64 << 20, 1, 0));
    EXPECT_EQ(count(), 2u);
}

TEST_F(sim_interrupts, the_completion_is_in_memory_when_the_interrupt_comes)
{
    queue& q = open();
    std::size_t seen = 0;
    it.memory.on_interrupt = [&](unsigned, unsigned) { seen = q.collect().size(); };
    q.put(loud());
    q.ring();
    it.cards.run();
    EXPECT_EQ(seen, 1u);
}

TEST_F(sim_interrupts, coalescing_counts_completions)
{
    queue& q = open({.coalesce_count = 4});
    it.execute(q, std::vector<spk_cmd>(3, loud()));
    EXPECT_EQ(count(), 0u);
    it.execute(q, loud());
    EXPECT_EQ(count(), 1u);
}

TEST_F(sim_interrupts, a_coalescing_timer_ends_the_wait)
{
    queue& q = open({.coalesce_count = 100, .coalesce_ns = 20'000});
    it.execute(q, std::vector<spk_cmd>(2, loud()));
    EXPECT_EQ(count(), 1u);
    EXPECT_GE(it.cards.now_ns(), 20'000u);
    it.execute(q, std::vector<spk_cmd>(50, loud()));
    it.execute(q, std::vector<spk_cmd>(50, loud()));
    EXPECT_EQ(count(), 3u) << "fifty each time, by the timer";
}

TEST_F(sim_interrupts, a_masked_vector_pends_and_fires_once_at_unmask)
{
    queue& q = open();
    mask(vector, true);
    it.execute(q, std::vector<spk_cmd>(3, loud()));
    EXPECT_EQ(count(), 0u);
    EXPECT_EQ(pending(), 1u << vector);
    mask(vector, false);
    EXPECT_EQ(count(), 1u);
    EXPECT_EQ(pending(), 0u);
}

TEST_F(sim_interrupts, the_function_mask_holds_all_vectors)
{
    queue& q = open();
    it.cards.config_write(0, 0xb2, 2, 0xc000);
    it.execute(q, loud());
    EXPECT_EQ(count(), 0u);
    it.cards.config_write(0, 0xb2, 2, 0x8000);
    it.cards.run();
    EXPECT_EQ(count(), 1u);
}

TEST_F(sim_interrupts, a_host_that_keeps_the_table_says_what_it_takes)
{
    queue& q = open();
    it.cards.set_host_vectors(0, ~(1u << vector));
    it.execute(q, std::vector<spk_cmd>(3, loud()));
    EXPECT_EQ(count(), 0u);
    EXPECT_EQ(pending(), 1u << vector);
    it.cards.set_host_vectors(0, 1u << vector);
    it.cards.run();
    EXPECT_EQ(count(), 1u) << "what was pending fires once";
}

TEST_F(sim_interrupts, what_the_host_takes_outlives_resets_and_the_cards_own_table)
{
    it.cards.set_host_vectors(0, 1u << vector);
    it.cards.reset(0, reset_kind::bus);  // masks every vector of the table
    it.wake(0);
    queue& q = open();
    mask(vector, true);
    it.execute(q, loud());
    EXPECT_EQ(count(), 1u);
}

TEST_F(sim_interrupts, with_msi_vectors_wrap_to_those_granted)
{
    queue& q = open();
    it.cards.config_write(0, 0xb2, 2, 0);       // MSI-X off
    it.cards.config_write(0, 0x82, 2, 0x0001);  // MSI on, one message
    it.execute(q, loud());
    EXPECT_EQ(count(0), 1u);
    it.cards.config_write(0, 0x82, 2, 0x0011);  // two messages
    it.execute(q, loud());
    EXPECT_EQ(count(1), 1u);
    EXPECT_EQ(count(0), 1u);
}

TEST_F(sim_interrupts, msi_mask_bits_hold_and_show_what_pends)
{
    queue& q = open();
    it.cards.config_write(0, 0xb2, 2, 0);
    it.cards.config_write(0, 0x82, 2, 0x0011);
    it.cards.config_write(0, 0x90, 4, 1u << vector);
    it.execute(q, loud());
    EXPECT_EQ(count(), 0u);
    EXPECT_EQ(it.cards.config_read(0, 0x94, 4), 1u << vector);
    it.cards.config_write(0, 0x90, 4, 0);
    it.cards.run();
    EXPECT_EQ(count(), 1u);
    EXPECT_EQ(it.cards.config_read(0, 0x94, 4), 0u);
}

TEST_F(sim_interrupts, with_neither_scheme_nothing_comes_and_nothing_pends)
{
    queue& q = open();
    it.cards.config_write(0, 0xb2, 2, 0);
    it.execute(q, loud());
    EXPECT_EQ(count() + count(0), 0u);
    EXPECT_EQ(pending(), 0u);
}

TEST_F(sim_interrupts, bus_master_off_holds_completions_and_interrupts_back)
{
    queue& q = open();
    q.put(loud());
    it.cards.config_write(0, 0x04, 2, 0x0002);
    q.ring();
    EXPECT_TRUE(it.cards.run());
    EXPECT_TRUE(q.collect().empty());
    EXPECT_EQ(count(), 0u);
    it.cards.config_write(0, 0x04, 2, 0x0006);
    it.cards.run();
    EXPECT_EQ(q.collect().size(), 1u);
    EXPECT_EQ(count(), 1u);
}

TEST_F(sim_interrupts, events_share_one_vector_and_raise_it_once_per_new_cause)
{
    it.write(0, SPK_REG_EVENT_MASK, SPK_EVENT_TEMP);
    it.cards.inject({.card = 0, .kind = fault_kind::temperature, .value = 90'000});
    it.cards.run();
    EXPECT_EQ(it.read(0, SPK_REG_EVENT_CAUSE), SPK_EVENT_TEMP);
    EXPECT_EQ(count(rig::event_vector), 1u);
    it.cards.fault_clear(0, fault_kind::temperature);
    it.cards.run();
    EXPECT_EQ(count(rig::event_vector), 1u) << "the cause was still set";
    it.write(0, SPK_REG_EVENT_CAUSE, SPK_EVENT_TEMP);
    EXPECT_EQ(it.read(0, SPK_REG_EVENT_CAUSE), 0u);
    it.cards.inject({.card = 0, .kind = fault_kind::temperature, .value = 90'000});
    it.cards.run();
    EXPECT_EQ(count(rig::event_vector), 2u);
}

TEST_F(sim_interrupts, opening_the_mask_over_a_standing_cause_raises_it)
{
    it.cards.inject({.card = 0, .kind = fault_kind::temperature, .value = 90'000});
    it.cards.run();
    EXPECT_EQ(count(rig::event_vector), 0u);
    it.write(0, SPK_REG_EVENT_MASK, SPK_EVENT_TEMP);
    it.cards.run();
    EXPECT_EQ(count(rig::event_vector), 1u);
}

TEST_F(sim_interrupts, faults_drop_double_and_delay_them)
{
    queue& q = open();
    it.cards.inject({.kind = fault_kind::irq_drop, .a = vector, .count = 2});
    for (unsigned i = 0; i < 3; i++)
        it.execute(q, loud());
    EXPECT_EQ(count(), 1u);
    it.cards.inject({.kind = fault_kind::irq_duplicate, .a = ~0u});
    it.execute(q, loud());
    EXPECT_EQ(count(), 3u);
    it.cards.inject({.kind = fault_kind::irq_duplicate, .a = vector, .value = 100});
    it.execute(q, loud());
    EXPECT_EQ(count(), 104u);
    it.cards.inject({.kind = fault_kind::irq_delay, .a = vector, .value = 5'000'000});
    const std::uint64_t before = it.cards.now_ns();
    std::uint64_t came = 0;
    it.memory.on_interrupt = [&](unsigned, unsigned) { came = it.cards.now_ns(); };
    it.execute(q, loud());
    EXPECT_EQ(count(), 105u);
    EXPECT_GE(came, before + 5'000'000);
}

TEST_F(sim_interrupts, a_fault_for_another_vector_leaves_this_one_alone)
{
    queue& q = open();
    it.cards.inject({.kind = fault_kind::irq_drop, .a = 3, .count = 0});
    it.execute(q, loud());
    EXPECT_EQ(count(), 1u);
}

}  // namespace
}  // namespace spanker::sim::bench
