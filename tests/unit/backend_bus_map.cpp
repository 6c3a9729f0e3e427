// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "daemon/embedded/bus_map.hpp"
#include "daemon/embedded/handle_table.hpp"
#include "uapi/spanker.h"

namespace {

using namespace spanker::daemon::embedded;

struct bus : testing::Test {
    bus_map map;
    std::vector<std::byte> memory = std::vector<std::byte>(10'000, std::byte{7});
    std::byte data[64]{};

    bool read(unsigned card, std::uint64_t at, std::size_t size = 1)
    {
        return map.dma_read(card, at, {data, size});
    }
    bool write(unsigned card, std::uint64_t at, std::size_t size = 1)
    {
        return map.dma_write(card, at, {data, size});
    }
};

TEST_F(bus, reaches_exactly_what_is_mapped)
{
    const bus_range range(map, 3, memory.data(), memory.size(),
                          SPANKER_BUFFER_READ | SPANKER_BUFFER_WRITE);
    ASSERT_NE(range.bus(), 0u);
    EXPECT_TRUE(read(3, range.bus(), 64));
    EXPECT_EQ(data[63], std::byte{7});
    EXPECT_TRUE(read(3, range.bus() + memory.size() - 64, 64));
    EXPECT_FALSE(read(3, range.bus() + memory.size() - 63, 64));
    EXPECT_FALSE(read(3, range.bus() - 1));
    EXPECT_FALSE(read(3, range.bus() + memory.size()));
    EXPECT_FALSE(read(3, 0));
    EXPECT_FALSE(read(3, ~std::uint64_t{0}, 64));
}

TEST_F(bus, enforces_the_kind_of_access)
{
    const bus_range in(map, 0, memory.data(), 100, SPANKER_BUFFER_READ);
    const bus_range out(map, 0, memory.data() + 200, 100, SPANKER_BUFFER_WRITE);
    EXPECT_TRUE(read(0, in.bus()));
    data[0] = std::byte{9};
    EXPECT_FALSE(write(0, in.bus()));
    EXPECT_TRUE(write(0, out.bus()));
    EXPECT_FALSE(read(0, out.bus()));
    EXPECT_EQ(memory[0], std::byte{7});
    EXPECT_EQ(memory[200], std::byte{9});
}

TEST_F(bus, is_a_space_per_card)
{
    const bus_range range(map, 1, memory.data(), 100, SPANKER_BUFFER_READ);
    EXPECT_TRUE(read(1, range.bus()));
    EXPECT_FALSE(read(2, range.bus()));
}

TEST_F(bus, faults_after_unmap_and_never_gives_an_address_twice)
{
    std::uint64_t first = 0;
    {
        const bus_range range(map, 0, memory.data(), 100, SPANKER_BUFFER_READ);
        first = range.bus();
    }
    const bus_range next(map, 0, memory.data(), 100, SPANKER_BUFFER_READ);
    EXPECT_NE(next.bus(), first);
    EXPECT_FALSE(read(0, first));
}

TEST_F(bus, leaves_a_gap_between_ranges)
{
    const bus_range a(map, 0, memory.data(), 100, SPANKER_BUFFER_READ);
    const bus_range b(map, 0, memory.data() + 100, 100, SPANKER_BUFFER_READ);
    EXPECT_FALSE(read(0, b.bus() - 1));
    EXPECT_FALSE(read(0, a.bus() + 90, 20));
}

TEST_F(bus, keeps_the_place_in_the_page)
{
    const bus_range range(map, 0, memory.data() + 5, 100, SPANKER_BUFFER_READ);
    EXPECT_EQ(range.bus() % 4096, reinterpret_cast<std::uintptr_t>(memory.data() + 5) % 4096);
}

TEST_F(bus, refuses_what_is_larger_than_the_space)
{
    EXPECT_EQ(map.map(0, memory.data(), ~std::uint64_t{0}, SPANKER_BUFFER_READ), 0u);
}

TEST_F(bus, a_range_that_moved_is_unmapped_once)
{
    bus_range outer;
    {
        bus_range inner(map, 0, memory.data(), 100, SPANKER_BUFFER_READ);
        outer = std::move(inner);
    }
    EXPECT_TRUE(read(0, outer.bus()));
    const std::uint64_t at = outer.bus();
    outer = bus_range();
    EXPECT_FALSE(read(0, at));
}

TEST_F(bus, notes_interrupts_until_they_are_taken)
{
    map.interrupt(4, 0);
    map.interrupt(4, 5);
    map.interrupt(4, 5);
    EXPECT_EQ(map.take_vectors(3), 0u);
    EXPECT_EQ(map.take_vectors(4, 1), 1u);
    EXPECT_EQ(map.vectors(4), 1u << 5);
    EXPECT_EQ(map.take_vectors(4), 1u << 5);
    EXPECT_EQ(map.take_vectors(4), 0u);
}

TEST(handles, are_never_zero_and_do_not_outlive_their_object)
{
    handle_table<int> table;
    int one = 1, two = 2;
    const auto first = table.add(&one);
    EXPECT_NE(first, 0u);
    EXPECT_EQ(table.find(first), &one);
    EXPECT_EQ(table.remove(first), &one);
    EXPECT_EQ(table.remove(first), nullptr);
    const auto second = table.add(&two);
    EXPECT_NE(second, first);
    EXPECT_EQ(table.find(first), nullptr);
    EXPECT_EQ(table.find(second), &two);
    for (const std::uint32_t wrong : {0u, ~0u, second + 1, second ^ 0x10000, 0xffffu})
        EXPECT_EQ(table.find(wrong), nullptr) << wrong;
}

TEST(handles, run_out_at_the_capacity_of_the_table)
{
    handle_table<int> table;
    int it = 0;
    for (std::uint32_t n = 0; n < handle_table<int>::capacity; n++)
        ASSERT_NE(table.add(&it), 0u);
    EXPECT_EQ(table.add(&it), 0u);
    std::uint32_t cleared = 0;
    table.clear([&](int*) { cleared++; });
    EXPECT_EQ(cleared, handle_table<int>::capacity);
}

}  // namespace
