// SPDX-License-Identifier: Apache-2.0
//
// Tensors to and from host memory, in logical order whatever the layout.
#include <gtest/gtest.h>

#include <random>

#include "planner_machine.hpp"

namespace spanker::daemon::collective {
namespace {

constexpr spanker_tensor_layout layouts[] = {SPANKER_LAYOUT_REPLICATED, SPANKER_LAYOUT_ROW_SHARD,
                                             SPANKER_LAYOUT_K_SHARD, SPANKER_LAYOUT_PARTIAL};

// Where element (row, column) of the tensor lies: every (rank, index) that holds it.
std::vector<std::pair<std::uint32_t, std::uint64_t>>
homes(const object& of, std::uint64_t row, std::uint64_t column, std::uint32_t cards)
{
    std::vector<std::pair<std::uint32_t, std::uint64_t>> made;
    std::uint64_t first = 0;
    for (std::uint32_t r = 0; r < cards; first += of.extent[r++]) {
        if (of.layout == SPANKER_LAYOUT_REPLICATED || of.layout == SPANKER_LAYOUT_PARTIAL)
            made.emplace_back(r, row * of.cols + column);
        else if (of.layout == SPANKER_LAYOUT_ROW_SHARD && row >= first &&
                 row < first + of.extent[r])
            made.emplace_back(r, (row - first) * of.cols + column);
        else if (of.layout == SPANKER_LAYOUT_K_SHARD && column >= first &&
                 column < first + of.extent[r])
            made.emplace_back(r, row * of.extent[r] + column - first);
    }
    return made;
}

request transfer_request(const object& of, bool write, std::uint64_t first, std::uint64_t count,
                         std::uint32_t cards, std::uint32_t rank)
{
    request made{{}, {}, first_cards(cards)};
    made.add(of);
    made.add(describe_buffer((count + 3) * 4));
    made.stages.push_back(transfer_stage{write, {0, first * 4}, {1, 12}, count * 4, rank});
    return made;
}

std::string write_outcome(const object& of, std::uint64_t first, std::uint64_t count,
                          std::uint32_t cards)
{
    const std::uint32_t rank = cards - 1;
    const request what = transfer_request(of, true, first, count, cards, rank);
    const auto made = plan_of(ring_of(cards), what);
    if (!made)
        return made.error().message;
    machine run(ring_of(cards), what, *made);
    for (std::uint64_t i = 0; i < count; ++i)
        run.memory(0, 1)[3 + i] = contribution(0, i);
    if (std::string wrong = run.execute(); !wrong.empty())
        return wrong;
    for (std::uint64_t e = 0; e < of.rows * of.cols; ++e)
        for (const auto& [r, at] : homes(of, e / of.cols, e % of.cols, cards)) {
            const bool inside = e >= first && e < first + count &&
                                (of.layout != SPANKER_LAYOUT_PARTIAL || r == rank);
            if (run.memory(r, 0)[at] != (inside ? contribution(0, e - first) : 0xbeef))
                return "element " + std::to_string(e) + " on rank " + std::to_string(r);
        }
    return "";
}

std::string read_outcome(const object& of, std::uint64_t first, std::uint64_t count,
                         std::uint32_t cards)
{
    const std::uint32_t rank = cards - 1;
    const request what = transfer_request(of, false, first, count, cards, rank);
    const auto made = plan_of(ring_of(cards), what);
    if (!made)
        return made.error().message;
    machine run(ring_of(cards), what, *made);
    for (std::uint64_t e = 0; e < of.rows * of.cols; ++e)
        for (const auto& [r, at] : homes(of, e / of.cols, e % of.cols, cards))
            run.memory(r, 0)[at] = contribution(of.layout == SPANKER_LAYOUT_PARTIAL ? r : 0, e);
    if (std::string wrong = run.execute(); !wrong.empty())
        return wrong;
    const std::uint32_t from = of.layout == SPANKER_LAYOUT_PARTIAL ? rank : 0;
    for (std::uint64_t i = 0; i < count + 3; ++i)
        if (run.memory(0, 1)[i] != (i < 3 ? 0xfeed : contribution(from, first + i - 3)))
            return "element " + std::to_string(i);
    return "";
}

TEST(transfers, of_random_ranges_are_right_for_every_layout)
{
    std::minstd_rand dice(7);
    for (const spanker_tensor_layout layout : layouts)
        for (std::uint32_t cards = 1; cards <= 5; ++cards)
            for (int i = 0; i < 12; ++i) {
                const object of = tensor(layout, 1 + dice() % 7, 256 * (1 + dice() % 6), cards);
                const std::uint64_t total = of.rows * of.cols;
                const std::uint64_t first = dice() % total, count = dice() % (total - first + 1);
                EXPECT_EQ(write_outcome(of, first, count, cards), "")
                    << "layout " << layout << " cards " << cards << " " << of.rows << " x "
                    << of.cols << " from " << first << " count " << count;
                EXPECT_EQ(read_outcome(of, first, count, cards), "")
                    << "layout " << layout << " cards " << cards << " " << of.rows << " x "
                    << of.cols << " from " << first << " count " << count;
            }
}

TEST(transfers, of_whole_tensors_are_right_for_every_layout)
{
    for (const spanker_tensor_layout layout : layouts)
        for (const std::uint64_t rows : {1, 2, 5}) {
            const object of = tensor(layout, rows, 1280, 4);
            EXPECT_EQ(write_outcome(of, 0, rows * 1280, 4), "") << layout;
            EXPECT_EQ(read_outcome(of, 0, rows * 1280, 4), "") << layout;
        }
}

TEST(transfers, of_a_replicated_tensor_read_a_part_over_every_host_link)
{
    const object of = tensor(SPANKER_LAYOUT_REPLICATED, 1, 1 << 20, 4);
    const auto made = plan_of(ring_of(4), transfer_request(of, false, 0, 1 << 20, 4, 0));
    ASSERT_TRUE(made);
    for (const card_plan& card : made->cards) {
        ASSERT_EQ(card.items.size(), 1u);
        EXPECT_EQ(card.items[0].rows.row_bytes, 1u << 20);
    }
    EXPECT_EQ(made->binding, resource::host);
    EXPECT_EQ(made->bound_ns, 2'621'440u);
}

TEST(transfers, above_a_gigabyte_are_cut_into_items)
{
    const object of = tensor(SPANKER_LAYOUT_PARTIAL, 3, 1 << 28, 1);
    const auto made = plan_of(cards_only(1), transfer_request(of, true, 0, 3ull << 28, 1, 0));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->cards[0].items.size(), 3u);
}

TEST(transfers, of_nothing_are_nothing)
{
    for (const spanker_tensor_layout layout : layouts) {
        const auto made =
            plan_of(ring_of(2), transfer_request(tensor(layout, 2, 512, 2), true, 5, 0, 2, 0));
        ASSERT_TRUE(made);
        EXPECT_TRUE(made->segments.empty());
    }
}

TEST(transfers, of_shards_whose_rows_have_no_32_bit_pitch_are_refused)
{
    const std::uint64_t four_gib_of_floats = 1ull << 30;
    for (const bool write : {true, false}) {
        const object wide = tensor(SPANKER_LAYOUT_K_SHARD, 2, four_gib_of_floats, 2);
        const auto made = plan_of(ring_of(2), transfer_request(wide, write, 0, 512, 2, 0));
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().kind, SPANKER_ERR_BAD_DIMS);
        EXPECT_NE(made.error().message.find("row_shard"), std::string::npos);
    }
    const object one_row = tensor(SPANKER_LAYOUT_K_SHARD, 1, four_gib_of_floats, 2);
    EXPECT_TRUE(plan_of(ring_of(2), transfer_request(one_row, true, 0, 512, 2, 0)))
        << "one row has no pitch";
}

}  // namespace
}  // namespace spanker::daemon::collective
