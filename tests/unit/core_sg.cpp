// SPDX-License-Identifier: Apache-2.0
//
// Scatter lists against the naive walk that the card does.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "kernel/core/sg.h"

namespace {

struct list_rig {
    std::vector<std::unique_ptr<spk_sg_page>> pages;
    std::vector<spk_sg_slot> slots;
    std::vector<u64> start;
    spk_sg sg;

    explicit list_rig(std::uint32_t count)
    {
        for (std::uint32_t n = 0; n < count; n++) {
            pages.push_back(std::make_unique<spk_sg_page>());
            slots.push_back({pages.back().get(), 0x1000000 + n * u64{8192}});
        }
        start.resize(count * SPK_SG_ENTRIES);
        spk_sg_init(&sg, slots.data(), count, start.data());
    }

    const spk_sg_page* page_at(u64 bus) const
    {
        for (const auto& slot : slots)
            if (slot.bus == bus)
                return slot.page;
        return nullptr;
    }

    // Bus address of a byte as the card finds it: walk entries and pages.
    u64 walk(u64 offset) const
    {
        for (const spk_sg_page* page = slots[0].page; page; page = page_at(page->next))
            for (std::uint32_t n = 0; n < page->used; n++) {
                if (offset < page->entry[n].bytes)
                    return page->entry[n].address + offset;
                offset -= page->entry[n].bytes;
            }
        return 0;
    }

    u64 found(u64 offset) const
    {
        spk_sg_place place{};
        EXPECT_EQ(spk_sg_find(&sg, offset, &place), 0) << offset;
        const spk_sg_page* page = page_at(place.list);
        return page && place.first < page->used ? page->entry[place.first].address + place.skip : 1;
    }
};

TEST(scatter_list, needs_one_page_per_255_entries)
{
    const struct {
        std::uint32_t entries, pages;
    } table[] = {{0, 0}, {1, 1}, {255, 1}, {256, 2}, {510, 2}, {511, 3}, {0xffffffffu, 16843009}};
    for (const auto& row : table)
        EXPECT_EQ(spk_sg_pages_for(row.entries), row.pages) << row.entries;
}

TEST(scatter_list, finds_what_a_walk_finds_for_pages_of_one_size)
{
    list_rig rig(3);
    for (u64 n = 0; n < 600; n++)
        ASSERT_EQ(spk_sg_add(&rig.sg, (n * 7919 % 4096) * 0x10000, n == 599 ? 100 : 4096), 0);
    ASSERT_EQ(spk_sg_seal(&rig.sg), 0);
    EXPECT_EQ(rig.sg.shift, 12);
    for (u64 offset = 0; offset < rig.sg.bytes; offset += 513)
        ASSERT_EQ(rig.found(offset), rig.walk(offset));
    EXPECT_EQ(rig.found(rig.sg.bytes - 1), rig.walk(rig.sg.bytes - 1));
}

TEST(scatter_list, finds_what_a_walk_finds_for_runs_of_any_length)
{
    std::mt19937_64 random(2);
    for (int round = 0; round < 50; round++) {
        list_rig rig(4);
        u64 bus = 4096;
        for (auto runs = 1 + random() % 900; runs; runs--) {
            const u64 bytes = 1 + random() % 9000;
            bus += random() % 3 ? random() % 4096 : 0;
            if (spk_sg_add(&rig.sg, bus, bytes))
                break;
            bus += bytes;
        }
        ASSERT_EQ(spk_sg_seal(&rig.sg), 0);
        for (int probe = 0; probe < 300; probe++) {
            const u64 offset = random() % rig.sg.bytes;
            ASSERT_EQ(rig.found(offset), rig.walk(offset)) << round;
        }
    }
}

TEST(scatter_list, joins_runs_that_follow_each_other_on_the_bus)
{
    list_rig rig(1);
    for (u64 n = 0; n < 1000; n++)
        ASSERT_EQ(spk_sg_add(&rig.sg, 0x100000 + n * 4096, 4096), 0);
    ASSERT_EQ(spk_sg_seal(&rig.sg), 0);
    EXPECT_EQ(rig.sg.used, 1u);
    EXPECT_EQ(rig.found(999 * 4096 + 5), 0x100000u + 999 * 4096 + 5);
}

TEST(scatter_list, splits_long_runs_so_that_a_skip_fits_32_bits)
{
    list_rig rig(1);
    const u64 bytes = (u64{9} << 30) + 12345;
    ASSERT_EQ(spk_sg_entries_for(bytes), 10u);
    ASSERT_EQ(spk_sg_add(&rig.sg, 0x1000, bytes), 0);
    ASSERT_EQ(spk_sg_seal(&rig.sg), 0);
    EXPECT_EQ(rig.sg.used, 10u);
    for (u64 offset : {u64{0}, (u64{1} << 30) - 1, u64{5} << 30, bytes - 1})
        EXPECT_EQ(rig.found(offset), 0x1000 + offset);
}

TEST(scatter_list, refuses_what_it_cannot_hold_and_changes_nothing)
{
    list_rig rig(1);
    EXPECT_EQ(spk_sg_seal(&rig.sg), -EINVAL);
    EXPECT_EQ(spk_sg_add(&rig.sg, 0x1000, 0), -EINVAL);
    EXPECT_EQ(spk_sg_add(&rig.sg, ~u64{0} - 10, 100), -EINVAL);
    for (u64 n = 0; n < SPK_SG_ENTRIES; n++)
        ASSERT_EQ(spk_sg_add(&rig.sg, n * 0x10000, 4096), 0);
    const u64 bytes = rig.sg.bytes;
    EXPECT_EQ(spk_sg_add(&rig.sg, 0x7000000, 1), -ENOSPC);
    // Half of it would join the last entry, the rest has no room.
    EXPECT_EQ(spk_sg_add(&rig.sg, 254 * 0x10000 + 4096, u64{2} << 30), -ENOSPC);
    EXPECT_EQ(rig.sg.bytes, bytes);
    EXPECT_EQ(rig.sg.used, static_cast<unsigned>(SPK_SG_ENTRIES));
}

TEST(scatter_list, says_out_of_range_at_and_past_the_end)
{
    list_rig rig(1);
    ASSERT_EQ(spk_sg_add(&rig.sg, 0x1000, 5000), 0);
    ASSERT_EQ(spk_sg_seal(&rig.sg), 0);
    spk_sg_place place;
    EXPECT_EQ(spk_sg_find(&rig.sg, 4999, &place), 0);
    EXPECT_EQ(spk_sg_find(&rig.sg, 5000, &place), -ERANGE);
    EXPECT_EQ(spk_sg_find(&rig.sg, ~u64{0}, &place), -ERANGE);
}

}  // namespace
