// SPDX-License-Identifier: Apache-2.0
//
// The card memory allocator against a model that keeps a kind for every granule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "kernel/core/heap.h"

namespace {

constexpr u64 granule = SPK_HEAP_GRANULE;

struct heap_rig {
    std::vector<spk_region> nodes;
    spk_heap heap;

    heap_rig(u64 bytes, std::uint32_t count, bool clean = true) : nodes(count)
    {
        EXPECT_EQ(spk_heap_init(&heap, bytes, nodes.data(), count), 0);
        if (clean)
            clean_all();
    }
    void clean_all()
    {
        spk_block block;
        while (spk_heap_clean_begin(&heap, ~0ull, &block))
            EXPECT_EQ(spk_heap_clean_end(&heap, &block, true), 0);
    }
    int alloc(u64 bytes, spk_block* block) { return spk_heap_alloc(&heap, bytes, block); }
};

TEST(heap, hands_out_nothing_before_it_was_zeroed)
{
    heap_rig rig(1 << 20, 64, false);
    spk_block block;
    EXPECT_EQ(rig.alloc(256, &block), -EAGAIN);
    EXPECT_EQ(spk_heap_largest_bytes(&rig.heap), 0u);
    spk_block dirty;
    ASSERT_TRUE(spk_heap_clean_begin(&rig.heap, 1 << 16, &dirty));
    EXPECT_EQ(dirty.bytes, 1u << 16);
    EXPECT_EQ(rig.alloc(256, &block), -EAGAIN);
    EXPECT_EQ(spk_heap_clean_end(&rig.heap, &dirty, true), 0);
    EXPECT_EQ(rig.alloc(1 << 16, &block), 0);
    EXPECT_EQ(block.address, dirty.address);
    EXPECT_EQ(rig.alloc(256, &block), -EAGAIN);
}

TEST(heap, freed_memory_is_dirty_and_failed_cleaning_leaves_it_so)
{
    heap_rig rig(4096, 64);
    spk_block block, dirty;
    ASSERT_EQ(rig.alloc(4096, &block), 0);
    ASSERT_EQ(spk_heap_free(&rig.heap, &block), 0);
    ASSERT_TRUE(spk_heap_clean_begin(&rig.heap, 4096, &dirty));
    EXPECT_EQ(spk_heap_clean_end(&rig.heap, &dirty, false), 0);
    EXPECT_EQ(spk_heap_bytes(&rig.heap, SPK_REGION_DIRTY), 4096u);
    EXPECT_EQ(rig.alloc(256, &block), -EAGAIN);
}

TEST(heap, rounds_up_to_the_granule)
{
    heap_rig rig(1 << 20, 64);
    spk_block block;
    for (u64 bytes : {1u, 255u, 256u, 257u, 1000u}) {
        ASSERT_EQ(rig.alloc(bytes, &block), 0);
        EXPECT_EQ(block.bytes, (bytes + 255) / 256 * 256);
        EXPECT_EQ(block.address % 256, 0u);
    }
}

TEST(heap, gives_all_of_its_memory_in_one_block)
{
    for (u64 bytes : {u64{256}, u64{4096 + 512}, (u64{1} << 32) - 256, u64{1} << 48}) {
        heap_rig rig(bytes, 4);
        spk_block block;
        EXPECT_EQ(spk_heap_largest_bytes(&rig.heap), bytes);
        EXPECT_EQ(rig.alloc(bytes + 1, &block), -ENOMEM);
        ASSERT_EQ(rig.alloc(bytes, &block), 0) << bytes;
        EXPECT_EQ(rig.alloc(1, &block), -ENOMEM);
        EXPECT_EQ(spk_heap_free_bytes(&rig.heap), 0u);
    }
}

TEST(heap, detects_double_free_and_forged_blocks)
{
    heap_rig rig(1 << 20, 64);
    spk_block block;
    ASSERT_EQ(rig.alloc(1024, &block), 0);
    const spk_block good = block;
    for (auto forge : {+[](spk_block& b) { b.address += 256; }, +[](spk_block& b) { b.node = 63; },
                       +[](spk_block& b) { b.node = ~0u; }, +[](spk_block& b) { b.serial++; }}) {
        spk_block bad = good;
        forge(bad);
        EXPECT_EQ(spk_heap_free(&rig.heap, &bad), -EINVAL);
    }
    EXPECT_EQ(spk_heap_clean_end(&rig.heap, &good, true), -EINVAL);
    EXPECT_EQ(spk_heap_free(&rig.heap, &good), 0);
    EXPECT_EQ(spk_heap_free(&rig.heap, &good), -EINVAL);
    // The same node at the same address, in another life.
    rig.clean_all();
    ASSERT_EQ(rig.alloc(1024, &block), 0);
    EXPECT_EQ(block.address, good.address);
    EXPECT_EQ(spk_heap_free(&rig.heap, &good), -EINVAL);
}

TEST(heap, refuses_nonsense)
{
    std::vector<spk_region> nodes(2);
    spk_heap heap;
    EXPECT_EQ(spk_heap_init(&heap, 0, nodes.data(), 2), -EINVAL);
    EXPECT_EQ(spk_heap_init(&heap, 255, nodes.data(), 2), -EINVAL);
    EXPECT_EQ(spk_heap_init(&heap, (1ull << 48) + 1, nodes.data(), 2), -EINVAL);
    EXPECT_EQ(spk_heap_init(&heap, 4096, nodes.data(), 0), -EINVAL);
    heap_rig rig(4096, 2);
    spk_block block;
    EXPECT_EQ(rig.alloc(0, &block), -EINVAL);
    EXPECT_EQ(rig.alloc(~0ull, &block), -ENOMEM);
}

TEST(heap, without_a_node_for_the_rest_nothing_is_handed_out)
{
    heap_rig rig(1 << 20, 2);
    spk_block first, second;
    ASSERT_EQ(rig.alloc(256, &first), 0);
    EXPECT_EQ(rig.alloc(256, &second), -ENOMEM);
    EXPECT_EQ(rig.alloc((1 << 20) - 256, &second), 0);
    EXPECT_EQ(spk_heap_free(&rig.heap, &first), 0);
}

// What each granule is, and a check of the whole heap against it.
struct model {
    std::vector<spk_region_kind> kind;

    explicit model(std::size_t granules) : kind(granules, SPK_REGION_CLEAN) {}

    bool paint(const spk_block& block, spk_region_kind from, spk_region_kind to)
    {
        const auto first = kind.begin() + static_cast<std::ptrdiff_t>(block.address / granule);
        const auto last = first + static_cast<std::ptrdiff_t>(block.bytes / granule);
        const bool right = std::all_of(first, last, [&](auto k) { return k == from; });
        std::fill(first, last, to);
        return right;
    }
    u64 amount(spk_region_kind which) const
    {
        return static_cast<u64>(std::count(kind.begin(), kind.end(), which)) * granule;
    }
    u64 largest() const
    {
        u64 best = 0, run = 0;
        for (auto k : kind)
            best = std::max(best, run = k == SPK_REGION_CLEAN ? run + 1 : 0);
        return best * granule;
    }
    bool unclean() const { return amount(SPK_REGION_DIRTY) + amount(SPK_REGION_CLEANING) != 0; }
};

class heap_model : public testing::TestWithParam<unsigned> {};

TEST_P(heap_model, random_use_agrees_with_the_model)
{
    constexpr u64 granules = 700;
    std::mt19937_64 random(GetParam());
    heap_rig rig(granules * granule, granules);
    model truth(granules);
    std::vector<spk_block> used, cleaning;
    const auto take = [&](std::vector<spk_block>& from) {
        std::swap(from[random() % from.size()], from.back());
        const spk_block block = from.back();
        from.pop_back();
        return block;
    };
    for (int step = 0; step < 8000; step++) {
        spk_block block;
        switch (random() % 4) {
        case 0: {
            const u64 bytes = 1 + random() % (random() % 8 ? 8 * granule : 300 * granule);
            const int err = rig.alloc(bytes, &block);
            const bool fits = truth.largest() >= (bytes + granule - 1) / granule * granule;
            ASSERT_EQ(err, fits ? 0 : truth.unclean() ? -EAGAIN : -ENOMEM);
            if (err)
                break;
            ASSERT_GE(block.bytes, bytes);
            ASSERT_TRUE(truth.paint(block, SPK_REGION_CLEAN, SPK_REGION_USED));
            used.push_back(block);
            break;
        }
        case 1:
            if (used.empty())
                break;
            block = take(used);
            ASSERT_EQ(spk_heap_free(&rig.heap, &block), 0);
            ASSERT_TRUE(truth.paint(block, SPK_REGION_USED, SPK_REGION_DIRTY));
            break;
        case 2:
            if (!spk_heap_clean_begin(&rig.heap, (1 + random() % 64) * granule, &block)) {
                ASSERT_EQ(truth.amount(SPK_REGION_DIRTY), 0u);
                break;
            }
            ASSERT_TRUE(truth.paint(block, SPK_REGION_DIRTY, SPK_REGION_CLEANING));
            cleaning.push_back(block);
            break;
        default:
            if (cleaning.empty())
                break;
            block = take(cleaning);
            const bool zero = random() % 8;
            ASSERT_EQ(spk_heap_clean_end(&rig.heap, &block, zero), 0);
            ASSERT_TRUE(truth.paint(block, SPK_REGION_CLEANING,
                                    zero ? SPK_REGION_CLEAN : SPK_REGION_DIRTY));
        }
        ASSERT_EQ(spk_heap_largest_bytes(&rig.heap), truth.largest());
        for (auto kind : {SPK_REGION_CLEAN, SPK_REGION_USED, SPK_REGION_DIRTY, SPK_REGION_CLEANING})
            ASSERT_EQ(spk_heap_bytes(&rig.heap, kind), truth.amount(kind));
    }
    for (const auto& block : used)
        EXPECT_EQ(spk_heap_free(&rig.heap, &block), 0);
    for (const auto& block : cleaning)
        EXPECT_EQ(spk_heap_clean_end(&rig.heap, &block, true), 0);
    rig.clean_all();
    EXPECT_EQ(spk_heap_largest_bytes(&rig.heap), granules * granule);  // all joined again
}

INSTANTIATE_TEST_SUITE_P(seeds, heap_model, testing::Range(1u, 7u));

}  // namespace
