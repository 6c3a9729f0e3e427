// SPDX-License-Identifier: Apache-2.0
//
// Every contribution arrives exactly once at every place, whatever the count,
// the cards, the cabling, the type and where the operands lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "planner_machine.hpp"

namespace spanker::daemon::collective {
namespace {

constexpr spanker_session_op all_ops[] = {SPANKER_SOP_ALL_REDUCE, SPANKER_SOP_ALL_GATHER,
                                          SPANKER_SOP_BROADCAST};

// Fills operands, runs the plan and compares with what the operation means.
class checker {
public:
    checker(const graph& fabric, const request& of, const plan& what)
        : of_(of), one_(std::get<collective_stage>(of.stages[0])),
          element_(dtype_bytes(one_.dtype)), run_(fabric, of, what, element_)
    {}

    std::string result()
    {
        for (std::uint32_t r = 0; r < of_.ranks(); ++r)
            for (std::uint64_t i = 0; i < one_.count; ++i)
                source(r)[i] = contribution(r, i);
        if (std::string wrong = run_.execute(); !wrong.empty())
            return wrong;
        for (std::uint32_t r = 0; r < of_.ranks(); ++r)
            for (std::uint64_t i = 0; i < expected_count(); ++i)
                if (destination(r)[i] != expected(i))
                    return "rank " + std::to_string(r) + " element " + std::to_string(i);
        return "";
    }

private:
    bool gathers() const { return one_.op == SPANKER_SOP_ALL_GATHER; }
    std::uint64_t expected_count() const { return one_.count * (gathers() ? of_.ranks() : 1); }
    bool host(const place& at) const { return of_.objects[at.object].kind == SPANKER_KIND_BUFFER; }
    std::uint64_t* source(std::uint32_t r)
    {
        const bool own_block = gathers() && one_.src == one_.dst;
        return run_.memory(r, one_.src.object).data() + one_.src.offset / element_ +
               (host(one_.src) || own_block ? r * one_.count : 0);
    }
    std::uint64_t* destination(std::uint32_t r)
    {
        return run_.memory(r, one_.dst.object).data() + one_.dst.offset / element_ +
               (host(one_.dst) ? r * expected_count() : 0);
    }
    std::uint64_t expected(std::uint64_t i) const
    {
        if (gathers())
            return contribution(i / one_.count, i % one_.count);
        if (one_.op == SPANKER_SOP_BROADCAST)
            return contribution(one_.root, i);
        std::uint64_t sum = 0;
        for (std::uint32_t r = 0; r < of_.ranks(); ++r)
            sum += contribution(r, i);
        return sum;
    }

    const request& of_;
    const collective_stage& one_;
    std::uint32_t element_;
    machine run_;
};

std::string outcome(const graph& fabric, const request& of)
{
    const auto made = plan_of(fabric, of);
    return made ? checker(fabric, of, *made).result() : made.error().message;
}

class counts : public testing::TestWithParam<std::tuple<spanker_session_op, std::uint32_t>> {};

TEST_P(counts, from_0_to_70_are_right_in_place_on_a_ring)
{
    const auto [op, cards] = GetParam();
    for (std::uint64_t count = 0; count <= 70; ++count)
        EXPECT_EQ(outcome(ring_of(cards), collective_request(cards, op, count)), "")
            << "count " << count;
}

TEST_P(counts, from_0_to_70_are_right_out_of_place_on_a_line)
{
    const auto [op, cards] = GetParam();
    for (std::uint64_t count = 0; count <= 70; ++count)
        EXPECT_EQ(outcome(line_of(cards),
                          collective_request(cards, op, count, side::card, side::card, false)),
                  "")
            << "count " << count;
}

TEST_P(counts, from_0_to_70_are_right_for_every_place_of_the_operands)
{
    const auto [op, cards] = GetParam();
    constexpr std::tuple<side, side, bool> places[] = {{side::host, side::host, false},
                                                       {side::host, side::host, true},
                                                       {side::host, side::card, false},
                                                       {side::card, side::host, false}};
    for (const auto& [src, dst, in_place] : places)
        for (const std::uint64_t count : {0, 1, 2, 3, 7, 8, 9, 31, 33, 64, 70}) {
            if (in_place && op == SPANKER_SOP_ALL_GATHER)
                continue;  // [n][count] and [n][n][count] cannot be the same
            EXPECT_EQ(
                outcome(ring_of(cards), collective_request(cards, op, count, src, dst, in_place)),
                "")
                << "count " << count << " in place " << in_place;
        }
}

TEST_P(counts, are_right_for_every_type_and_large_vectors)
{
    const auto [op, cards] = GetParam();
    for (std::uint8_t dtype = 0; dtype < SPK_DTYPE_COUNT; ++dtype)
        for (const std::uint64_t count : {1013, 20011})
            EXPECT_EQ(outcome(ring_of(cards), collective_request(cards, op, count, side::card,
                                                                 side::card, true, dtype)),
                      "")
                << "count " << count << " dtype " << unsigned{dtype};
}

TEST_P(counts, are_right_for_large_vectors_in_host_memory)
{
    const auto [op, cards] = GetParam();
    for (const std::uint64_t count : {20011, 100003})
        for (const graph& fabric : {ring_of(cards), line_of(cards)})
            EXPECT_EQ(outcome(fabric,
                              collective_request(cards, op, count, side::host, side::host, false)),
                      "")
                << "count " << count;
}

INSTANTIATE_TEST_SUITE_P(all, counts,
                         testing::Combine(testing::ValuesIn(all_ops), testing::Range(1u, 9u)));

TEST(broadcast, comes_from_any_root_on_rings_and_lines)
{
    for (std::uint32_t cards = 1; cards <= 6; ++cards)
        for (std::uint32_t root = 0; root < cards; ++root)
            for (const graph& fabric : {ring_of(cards), line_of(cards)})
                for (const auto& [src, dst] :
                     {std::pair{side::card, side::card}, std::pair{side::host, side::host},
                      std::pair{side::card, side::host}, std::pair{side::host, side::card}})
                    EXPECT_EQ(
                        outcome(fabric, collective_request(cards, SPANKER_SOP_BROADCAST, 5000, src,
                                                           dst, false, SPK_DTYPE_F32, root)),
                        "")
                        << "cards " << cards << " root " << root;
}

TEST(collectives, work_on_sixteen_cards)
{
    for (const spanker_session_op op : all_ops)
        for (const std::uint64_t count : {5, 1000, 40000})
            EXPECT_EQ(outcome(ring_of(16), collective_request(16, op, count)), "");
}

TEST(collectives, with_offsets_touch_nothing_else)
{
    request of = collective_request(4, SPANKER_SOP_ALL_REDUCE, 3000);
    auto& one = std::get<collective_stage>(of.stages[0]);
    of.objects[0] = tensor(SPANKER_LAYOUT_PARTIAL, 1, 3100, 4);
    one.src.offset = one.dst.offset = 40;
    const auto made = plan_of(ring_of(4), of);
    ASSERT_TRUE(made) << made.error().message;
    machine run(ring_of(4), of, *made);
    EXPECT_EQ(run.execute(), "");
    for (std::uint64_t i = 0; i < 3100; ++i)
        EXPECT_EQ(run.memory(2, 0)[i], i < 10 || i >= 3010 ? 0xbeefu : 4 * 0xbeefu) << i;
}

// f(a, b) neither commutes nor associates: equal results mean the same fold everywhere.
TEST(all_reduce, gives_every_card_the_same_bits)
{
    for (std::uint32_t cards = 2; cards <= 8; ++cards)
        for (const graph& fabric : {ring_of(cards), line_of(cards)}) {
            const request of = collective_request(cards, SPANKER_SOP_ALL_REDUCE, 4099);
            const auto made = plan_of(fabric, of);
            ASSERT_TRUE(made) << made.error().message;
            machine run(fabric, of, *made);
            run.reduce = [](std::uint64_t a, std::uint64_t b) { return (a * 31) ^ (b + (a >> 7)); };
            for (std::uint32_t r = 0; r < cards; ++r)
                for (std::uint64_t i = 0; i < 4099; ++i)
                    run.memory(r, 0)[i] = contribution(r, i);
            ASSERT_EQ(run.execute(), "");
            for (std::uint32_t r = 1; r < cards; ++r)
                EXPECT_EQ(run.memory(r, 0), run.memory(0, 0)) << "rank " << r << " of " << cards;
        }
}

TEST(all_reduce, out_of_place_leaves_its_input_alone)
{
    const request of =
        collective_request(4, SPANKER_SOP_ALL_REDUCE, 9001, side::card, side::card, false);
    const auto made = plan_of(ring_of(4), of);
    ASSERT_TRUE(made) << made.error().message;
    machine run(ring_of(4), of, *made);
    ASSERT_EQ(run.execute(), "");
    EXPECT_THAT(run.memory(1, 0), testing::Each(0xbeefu));
}

TEST(collectives, that_move_nothing_need_no_items_and_no_group)
{
    for (const spanker_session_op op : all_ops) {
        const auto empty = plan_of(ring_of(4), collective_request(4, op, 0));
        ASSERT_TRUE(empty) << empty.error().message;
        EXPECT_TRUE(empty->segments.empty());
        EXPECT_TRUE(empty->channel_uses.empty());
        EXPECT_EQ(empty->predicted_ns, 0u);
        const auto alone = plan_of(ring_of(1), collective_request(1, op, 100));
        ASSERT_TRUE(alone) << alone.error().message;
        EXPECT_TRUE(alone->segments.empty());
    }
}

TEST(collectives, of_one_card_out_of_place_are_one_copy)
{
    for (const spanker_session_op op : all_ops) {
        const auto made =
            plan_of(ring_of(1), collective_request(1, op, 100, side::card, side::card, false));
        ASSERT_TRUE(made) << made.error().message;
        ASSERT_EQ(made->cards[0].items.size(), 1u);
        EXPECT_EQ(made->cards[0].items[0].opcode, SPK_OP_COPY);
    }
}

}  // namespace
}  // namespace spanker::daemon::collective
