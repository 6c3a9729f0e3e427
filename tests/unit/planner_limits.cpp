// SPDX-License-Identifier: Apache-2.0
//
// Queue depth, receive buffers, dead-lock: plans fit what they run on, and
// schedules that cannot end are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/collective/collective_job.hpp"
#include "daemon/collective/proof.hpp"
#include "planner_machine.hpp"

namespace spanker::daemon::collective {
namespace {

card_costs depth(std::uint32_t queue_depth)
{
    card_costs made;
    made.queue_depth = queue_depth;
    return made;
}

std::uint32_t largest_batch(const plan& of)
{
    std::uint32_t most = 0;
    for (const block& one : of.blocks)
        for (const item_range& range : one.of_rank)
            most = std::max(most, range.count);
    return most;
}

std::string sum_outcome(const graph& fabric, const request& of, const plan& made)
{
    machine run(fabric, of, made);
    const std::uint64_t count = std::get<collective_stage>(of.stages[0]).count;
    for (std::uint32_t r = 0; r < of.ranks(); ++r)
        for (std::uint64_t i = 0; i < count; ++i)
            run.memory(r, 0)[i] = contribution(r, i);
    if (std::string wrong = run.execute(); !wrong.empty())
        return wrong;
    for (std::uint64_t i = 0; i < count; ++i) {
        std::uint64_t sum = 0;
        for (std::uint32_t r = 0; r < of.ranks(); ++r)
            sum += contribution(r, i);
        for (std::uint32_t r = 0; r < of.ranks(); ++r)
            if (run.memory(r, 0)[i] != sum)
                return "rank " + std::to_string(r) + " element " + std::to_string(i);
    }
    return "";
}

TEST(queue_depth, is_never_exceeded_and_two_batches_fit_when_there_are_several)
{
    for (const std::uint32_t queue_depth : {32, 64, 128, 512})
        for (const std::uint64_t count : {100, 5000, 70000, 300001}) {
            const graph fabric = ring_of(4, depth(queue_depth));
            const request of = collective_request(4, SPANKER_SOP_ALL_REDUCE, count);
            const auto made = plan_of(fabric, of);
            ASSERT_TRUE(made) << made.error().message;
            const std::uint32_t most = largest_batch(*made);
            EXPECT_LE(most, queue_depth - 1);
            if (made->segments.size() > 1 && queue_depth > 32) {
                EXPECT_LE(most, queue_depth / 2);
            }
            EXPECT_EQ(sum_outcome(fabric, of, *made), "") << queue_depth << " " << count;
        }
}

TEST(queue_depth, too_small_for_one_slice_is_an_error_that_says_what_is_needed)
{
    const auto made =
        plan_of(ring_of(8, depth(16)), collective_request(8, SPANKER_SOP_ALL_REDUCE, 100000));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, SPANKER_ERR_NOT_SUPPORTED);
    EXPECT_THAT(made.error().message, testing::HasSubstr("a queue of depth 16 is too short"));
}

TEST(long_plans, repeat_one_block_with_growing_offsets)
{
    const graph fabric = ring_of(4, depth(64));
    const request of = collective_request(4, SPANKER_SOP_ALL_REDUCE, 500000);
    const auto made = plan_of(fabric, of);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_GT(made->segments.size(), 5u);
    EXPECT_LE(made->blocks.size(), 3u);
    EXPECT_GT(made->segments[2].shift_bytes, made->segments[1].shift_bytes);
    EXPECT_EQ(sum_outcome(fabric, of, *made), "");
    EXPECT_EQ(made->item_count(0) > made->cards[0].items.size(), true);
}

TEST(long_plans, of_a_gigabyte_stay_small)
{
    const auto made = plan_of(ring_of(4), collective_request(4, SPANKER_SOP_ALL_REDUCE, 1 << 28));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_LT(made->cards[0].items.size(), 8192u);
    EXPECT_GT(made->item_count(0), 200'000u);
}

TEST(long_plans, staged_over_the_host_link_are_right)
{
    const graph fabric = ring_of(3, depth(64));
    const request of =
        collective_request(3, SPANKER_SOP_ALL_REDUCE, 200000, side::host, side::host, true);
    const auto made = plan_of(fabric, of);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_GT(made->segments.size(), made->blocks.size());
    machine run(fabric, of, *made);
    for (std::uint64_t i = 0; i < 3 * 200000; ++i)
        run.memory(0, 0)[i] = contribution(i / 200000, i % 200000);
    ASSERT_EQ(run.execute(), "");
    for (std::uint64_t i = 0; i < 3 * 200000; ++i)
        ASSERT_EQ(run.memory(0, 0)[i], contribution(0, i % 200000) + contribution(1, i % 200000) +
                                           contribution(2, i % 200000))
            << i;
}

TEST(long_plans, after_another_stage_wait_for_it_once)
{
    const graph fabric = ring_of(4, depth(64));
    request of = collective_request(4, SPANKER_SOP_ALL_REDUCE, 200000);
    of.stages.push_back(of.stages[0]);
    const auto made = plan_of(fabric, of);
    ASSERT_TRUE(made) << made.error().message;
    machine run(fabric, of, *made);
    for (std::uint32_t r = 0; r < 4; ++r)
        run.memory(r, 0).assign(200000, r + 1);
    ASSERT_EQ(run.execute(), "");
    EXPECT_THAT(run.memory(2, 0), testing::Each(40u));
}

TEST(slices, are_at_most_half_the_smallest_receive_buffer)
{
    card_costs small;
    small.rx_buffer_bytes = 3000;
    graph fabric = ring_of(4);
    fabric.cards[2].costs = small;
    const auto made = plan_of(fabric, collective_request(4, SPANKER_SOP_ALL_REDUCE, 100003));
    ASSERT_TRUE(made) << made.error().message;
    for (const card_plan& card : made->cards)
        for (const spanker_work_item& item : card.items) {
            if (item.opcode == SPK_OP_LINK_SEND) {
                EXPECT_LE(item.link.row_bytes, 1500u);
            }
        }
}

// ---- the proof ----

// A fused ring of four with slices of that many bytes.
plan ring_plan(const cabling& cables, std::uint64_t slice_bytes)
{
    collective_job job;
    job.tracks = all_reduce_schedule(find_ring(cables).value(), 2);
    job.count = 256 * 1024;
    job.piece_elements = job.count;
    job.slice_elements = slice_bytes / 4;
    for (auto& part : job.part)
        part.src = part.dst = {1, 0};
    const auto cards = first_cards(cables.size());
    plan_builder to(cards, 1, 1, UINT32_MAX);
    to.begin_stage(0);
    emit(to, job);
    return to.finish();
}

cabling ring_cables(std::uint32_t cards)
{
    return cabling::of(ring_of(cards), first_cards(cards)).value();
}

TEST(proof, accepts_slices_of_half_the_receive_buffer)
{
    EXPECT_TRUE(prove_progress(ring_cables(4), ring_plan(ring_cables(4), 8192)));
}

TEST(proof, refuses_slices_of_the_whole_receive_buffer)
{
    const auto refused = prove_progress(ring_cables(4), ring_plan(ring_cables(4), 16384));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("dead-locks"));
}

// All sends, then all RECV_REDUCE_SENDs, then ...: step-major.
TEST(proof, refuses_step_major_order)
{
    plan made = ring_plan(ring_cables(4), 4096);
    const auto step = [](const spanker_work_item& item) { return item.opcode; };
    for (card_plan& card : made.cards) {
        const auto first = card.items.begin() + 1;  // behind the GANG
        constexpr std::uint8_t order[] = {SPK_OP_LINK_SEND, SPK_OP_LINK_RECV_REDUCE_SEND,
                                          SPK_OP_LINK_RECV_REDUCE_COPY, SPK_OP_LINK_RECV_COPY_SEND,
                                          SPK_OP_LINK_RECV};
        const auto place = [&](const spanker_work_item& item) {
            return std::find(std::begin(order), std::end(order), step(item));
        };
        std::stable_sort(first, card.items.end(),
                         [&](const auto& a, const auto& b) { return place(a) < place(b); });
    }
    const auto refused = prove_progress(ring_cables(4), made);
    ASSERT_FALSE(refused);
}

TEST(proof, refuses_a_receive_that_nobody_sends)
{
    plan made = ring_plan(ring_cables(3), 4096);
    auto& items = made.cards[1].items;
    for (auto at = items.begin(); at != items.end(); ++at)
        if (at->opcode == SPK_OP_LINK_SEND) {
            items.erase(at);
            break;
        }
    --made.blocks[0].of_rank[1].count;
    --items[0].gang.section;
    const auto refused = prove_progress(ring_cables(3), made);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, SPANKER_ERR_MISMATCH);
}

TEST(proof, refuses_messages_whose_ends_differ)
{
    for (const int which : {0, 1, 2}) {
        plan made = ring_plan(ring_cables(3), 4096);
        spanker_work_item& last = made.cards[2].items.back();
        ASSERT_EQ(last.opcode, SPK_OP_LINK_RECV);
        if (which == 0)
            last.link.rx_tag += 1;
        if (which == 1)
            last.link.row_bytes -= 4;
        if (which == 2)
            last.dtype = SPK_DTYPE_I32;
        const auto refused = prove_progress(ring_cables(3), made);
        ASSERT_FALSE(refused) << which;
        EXPECT_EQ(refused.error().kind, SPANKER_ERR_MISMATCH);
    }
}

TEST(proof, refuses_a_signal_that_nobody_posts)
{
    const request of{{nop_stage{}}, {}, {0}};
    plan made = make_plan(ring_of(1), of.as_run()).value();
    made.cards[0].items[0].wait_signal = 0;
    made.cards[0].items[0].wait_value = 1;
    EXPECT_FALSE(prove_progress(cabling::of(ring_of(1), of.cards).value(), made));
}

TEST(proof, refuses_a_gang_that_is_never_complete)
{
    plan made = ring_plan(ring_cables(3), 4096);
    made.cards[0].items[0].gang.members = 4;
    EXPECT_FALSE(prove_progress(ring_cables(3), made));
}

TEST(proof, refuses_ports_without_a_cable)
{
    const plan made = ring_plan(ring_cables(4), 4096);
    graph cut = ring_of(4);
    cut.links[0].up = false;
    const auto refused = prove_progress(cabling::of(cut, first_cards(4)).value(), made);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, SPANKER_ERR_LINK_DOWN);
}

TEST(proof, refuses_operands_outside_their_objects)
{
    const request of = collective_request(4, SPANKER_SOP_ALL_REDUCE, 1000);
    plan made = plan_of(ring_of(4), of).value();
    EXPECT_TRUE(check_operands(of.as_run(), made));
    made.segments[0].shift_bytes = 4;
    const auto refused = check_operands(of.as_run(), made);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, SPANKER_ERR_RANGE);
}

}  // namespace
}  // namespace spanker::daemon::collective
