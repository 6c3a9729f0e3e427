// SPDX-License-Identifier: Apache-2.0
//
// What becomes of batches: records, first failures, limits, deadlines and cancels. Ids are the slots themselves.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernel/core/batch.h"

namespace {

constexpr std::uint32_t depth = 8;
constexpr std::uint32_t card = 3, queue = 5;

struct batch_rig : testing::Test {
    std::vector<spk_flight> flights = std::vector<spk_flight>(depth);
    std::vector<spk_batch> batches = std::vector<spk_batch>(depth);
    std::vector<spk_deadline> deadlines = std::vector<spk_deadline>(depth);
    std::vector<spanker_record> records = std::vector<spanker_record>(depth);
    std::vector<std::uint32_t> ended_slots;
    std::vector<u64> ended_users;
    bool decoded = true;  // what the card says when it is asked
    bool stands = false;
    spk_batches all;

    void SetUp() override
    {
        static const spk_batch_ops ops = {
            .item_ended =
                [](void* self, std::uint32_t slot) {
                    static_cast<batch_rig*>(self)->ended_slots.push_back(slot);
                },
            .is_decoded = [](void* self,
                             std::uint32_t) { return static_cast<batch_rig*>(self)->decoded; },
            .stands = [](void* self) { return static_cast<batch_rig*>(self)->stands; },
            .batch_ended =
                [](void* self, u64 user) {
                    static_cast<batch_rig*>(self)->ended_users.push_back(user);
                },
        };
        const spk_batch_memory memory{flights.data(), batches.data(), deadlines.data(),
                                      records.data()};
        spk_batch_init(&all, &memory, depth, depth);
        all.ops = &ops;
        all.context = this;
        all.card = card;
        all.queue = queue;
    }

    // A batch of commands in the given slots; records[n]: item n has a record of its own.
    u64 submit(const std::vector<std::uint16_t>& ids, u64 deadline_ns = 0,
               std::vector<bool> with_record = {}, std::uint32_t group = 0)
    {
        std::uint32_t extra = 0, batch = 0;
        with_record.resize(ids.size());
        for (const bool one : with_record)
            extra += one;
        EXPECT_EQ(spk_batch_open(&all, 1000 + ids[0], 2000 + ids[0], extra, &batch), 0);
        for (std::uint32_t n = 0; n < ids.size(); n++) {
            spanker_work_item item{};
            item.cookie = 100 + n;
            item.group = group;
            item.flags = with_record[n] ? SPANKER_ITEM_RECORD : 0;
            spk_batch_add(&all, batch, ids[n], n, &item, deadline_ns);
        }
        return spk_batch_commit(&all, batch);
    }
    void complete(std::uint16_t id, std::uint8_t status = SPANKER_CARD_OK, u64 detail = 0)
    {
        const spk_completion done{
            .start_ns = 10u + id, .end_ns = 20u + id, .detail = detail, .id = id, .status = status};
        spk_batch_complete(&all, id & SPK_ID_SLOT_MASK, &done);
    }
    std::vector<spanker_record> read()
    {
        std::vector<spanker_record> out(depth);
        out.resize(spk_batch_read(&all, out.data(), depth));
        return out;
    }
    std::uint32_t step(u64 now_ns)
    {
        u64 next;
        return spk_batch_step(&all, now_ns, &next);
    }
    // At the end of the card's time, and a moment later.
    std::uint32_t step_twice(u64 now_ns)
    {
        EXPECT_EQ(step(now_ns), 0u);
        EXPECT_EQ(step(now_ns + SPK_SECOND_LOOK_NS - 1), 0u);
        return step(now_ns + SPK_SECOND_LOOK_NS);
    }
    // Command 2 is given up at 20 + SPK_ABORT_GRACE_NS, and the card has not decoded it.
    void strand()
    {
        decoded = false;
        submit({2}, 10);
        step(10);
        aborts(10);
        spk_batch_abort_done(&all, 2, 20);
        step(20 + SPK_ABORT_GRACE_NS);
    }
    std::vector<std::uint16_t> aborts(u64 now_ns = 0)
    {
        std::vector<std::uint16_t> out;
        for (std::uint16_t id; spk_batch_next_abort(&all, now_ns, &id);)
            out.push_back(id);
        return out;
    }
};

TEST_F(batch_rig, ends_when_all_its_items_ended_with_the_span_of_their_times)
{
    const auto seq = submit({0, 1, 2});
    complete(2);
    complete(0);
    EXPECT_TRUE(read().empty());
    complete(1);
    const auto got = read();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].seq, seq);
    EXPECT_EQ(got[0].cookie, 1000u);
    EXPECT_EQ(got[0].result, 0);
    EXPECT_EQ(got[0].item, SPANKER_NO_ITEM);
    EXPECT_EQ(got[0].start_ns, 10u);
    EXPECT_EQ(got[0].end_ns, 22u);
    EXPECT_EQ(ended_users, std::vector<u64>{2000});
    EXPECT_EQ(ended_slots, (std::vector<std::uint32_t>{2, 0, 1}));
}

TEST_F(batch_rig, numbers_batches_from_one_and_records_them_in_completion_order)
{
    EXPECT_EQ(submit({0}), 1u);
    EXPECT_EQ(submit({1}), 2u);
    complete(1);
    complete(0);
    const auto got = read();
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].seq, 2u);
    EXPECT_EQ(got[1].seq, 1u);
}

TEST_F(batch_rig, keeps_the_first_failure_in_time)
{
    submit({0, 1, 2});
    complete(1, SPANKER_CARD_RANGE, 0x1234);
    complete(0, SPANKER_CARD_HOST_FAULT, 0x99);
    complete(2);
    const auto got = read();
    EXPECT_EQ(got[0].result, -ERANGE);
    EXPECT_EQ(got[0].card_status, unsigned{SPANKER_CARD_RANGE});
    EXPECT_EQ(got[0].item, 1u);
    EXPECT_EQ(got[0].detail, 0x1234u);
    EXPECT_EQ(got[0].origin, SPK_ORIGIN(card, queue, 1, SPANKER_CARD_RANGE, SPK_NO_PORT));
}

TEST_F(batch_rig, takes_result_and_port_of_every_card_status)
{
    const struct {
        std::uint8_t status;
        int result;
        unsigned port;
    } table[] = {
        {SPANKER_CARD_INVALID, -EINVAL, SPK_NO_PORT},
        {SPANKER_CARD_RANGE, -ERANGE, SPK_NO_PORT},
        {SPANKER_CARD_HOST_FAULT, -EFAULT, SPK_NO_PORT},
        {SPANKER_CARD_LINK_DOWN, -ENOLINK, 6},
        {SPANKER_CARD_LINK_ERROR, -ECOMM, 6},
        {SPANKER_CARD_MISMATCH, -EPROTO, 6},
        {SPANKER_CARD_CANCELLED, -ECANCELED, SPK_NO_PORT},
        {SPANKER_CARD_RESET, -ESTALE, SPK_NO_PORT},
        {200, -EIO, SPK_NO_PORT},
    };
    for (const auto& row : table) {
        submit({4});
        complete(4, row.status, 6);
        const auto got = read();
        ASSERT_EQ(got.size(), 1u);
        EXPECT_EQ(got[0].result, row.result);
        EXPECT_EQ(SPK_ORIGIN_PORT(got[0].origin), row.port);
        EXPECT_EQ(SPK_ORIGIN_STATUS(got[0].origin), row.status);
    }
}

TEST_F(batch_rig, a_poisoned_item_ends_like_its_first_cause)
{
    submit({0, 1});
    const auto origin = SPK_ORIGIN(9, 2, 77, SPANKER_CARD_LINK_DOWN, 1);
    complete(0, SPANKER_CARD_POISONED, origin);
    complete(1, SPANKER_CARD_POISONED, SPK_ORIGIN(9, 2, 78, SPANKER_CARD_OK, 1));
    auto got = read();
    EXPECT_EQ(got[0].result, -ENOLINK);
    EXPECT_EQ(got[0].card_status, unsigned{SPANKER_CARD_POISONED});
    EXPECT_EQ(got[0].origin, origin);
    // A cause that makes no sense is still a failure.
    submit({2});
    complete(2, SPANKER_CARD_POISONED, 0);
    EXPECT_EQ(read()[0].result, -EREMOTEIO);
}

TEST_F(batch_rig, an_item_with_record_has_its_own_beside_the_batch)
{
    const auto seq = submit({0, 1}, 0, {false, true});
    complete(1, SPANKER_CARD_INVALID, 8);
    auto got = read();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].seq, seq);
    EXPECT_EQ(got[0].cookie, 101u);
    EXPECT_EQ(got[0].flags, SPANKER_RECORD_ITEM);
    EXPECT_EQ(got[0].item, 1u);
    EXPECT_EQ(got[0].result, -EINVAL);
    complete(0);
    got = read();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].flags, 0u);
}

TEST_F(batch_rig, in_flight_plus_unread_never_exceeds_the_limit)
{
    std::uint32_t batch;
    submit({0, 1, 2}, 0, {true, true, true});
    submit({3, 4, 5}, 0, {true, true, true});
    EXPECT_EQ(spk_batch_open(&all, 0, 0, 0, &batch), -EAGAIN);
    for (std::uint16_t id = 0; id < 6; id++)
        complete(id);
    EXPECT_EQ(spk_batch_unread(&all), 8u);
    EXPECT_EQ(spk_batch_open(&all, 0, 0, 0, &batch), -EAGAIN);
    spanker_record one[2];
    EXPECT_EQ(spk_batch_read(&all, one, 2), 2u);
    EXPECT_EQ(spk_batch_open(&all, 0, 0, 2, &batch), -EAGAIN);
    EXPECT_EQ(spk_batch_open(&all, 0, 0, 1, &batch), 0);
}

TEST_F(batch_rig, records_may_be_looked_at_and_forgotten_in_two_steps)
{
    std::uint32_t count = 99;
    EXPECT_EQ(spk_batch_peek(&all, 0, &count), nullptr);
    EXPECT_EQ(count, 0u);
    for (std::uint16_t id = 0; id < 6; id++) {
        submit({id});
        complete(id);
    }
    const spanker_record* at = spk_batch_peek(&all, 0, &count);
    ASSERT_EQ(count, 6u);
    EXPECT_EQ(at[5].seq, 6u);
    EXPECT_EQ(spk_batch_unread(&all), 6u) << "a look takes nothing";
    spk_batch_forget(&all, 5);
    EXPECT_EQ(spk_batch_peek(&all, 0, &count)->seq, 6u);

    // Over the end of the ring: up to the end, then the rest.
    for (std::uint16_t id = 0; id < 4; id++) {
        submit({id});
        complete(id);
    }
    EXPECT_EQ(spk_batch_peek(&all, 0, &count)->seq, 6u);
    EXPECT_EQ(count, 3u);
    EXPECT_EQ(spk_batch_peek(&all, 3, &count)->seq, 9u);
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(spk_batch_peek(&all, 4, &count)->seq, 10u);
    EXPECT_EQ(spk_batch_peek(&all, 5, &count), nullptr);
    EXPECT_EQ(spk_batch_peek(&all, ~0u, &count), nullptr);
    EXPECT_EQ(count, 0u);
    spk_batch_forget(&all, 3);
    EXPECT_EQ(spk_batch_peek(&all, 0, &count)->seq, 9u);
    EXPECT_EQ(count, 2u);
    spk_batch_forget(&all, 100);
    EXPECT_EQ(spk_batch_unread(&all), 0u) << "no more than there are";
}

TEST_F(batch_rig, a_batch_flies_from_its_submission_to_its_last_item)
{
    EXPECT_FALSE(spk_batch_is_flying(&all, 0));
    EXPECT_FALSE(spk_batch_is_flying(&all, 1));
    const u64 seq = submit({1, 2});
    EXPECT_TRUE(spk_batch_is_flying(&all, seq));
    complete(2);
    EXPECT_TRUE(spk_batch_is_flying(&all, seq));
    complete(1);
    EXPECT_FALSE(spk_batch_is_flying(&all, seq)) << "its record is there, read or not";
    EXPECT_FALSE(spk_batch_is_flying(&all, seq + 1));
}

TEST_F(batch_rig, a_batch_that_can_never_fit_is_invalid_not_again)
{
    std::uint32_t batch;
    EXPECT_EQ(spk_batch_open(&all, 0, 0, depth - 1, &batch), 0);
    spk_batch_drop(&all, batch, depth - 1);
    EXPECT_EQ(spk_batch_open(&all, 0, 0, depth, &batch), -EINVAL);
    EXPECT_EQ(spk_batch_open(&all, 0, 0, ~0u, &batch), -EINVAL);
}

TEST_F(batch_rig, a_dropped_batch_leaves_no_trace)
{
    std::uint32_t batch;
    const spanker_work_item item{};
    submit({7}, 500);
    ASSERT_EQ(spk_batch_open(&all, 0, 0, 3, &batch), 0);
    spk_batch_add(&all, batch, 1, 0, &item, 100);
    spk_batch_add(&all, batch, 2, 1, &item, 100);
    spk_batch_drop(&all, batch, 3);
    EXPECT_EQ(ended_slots, (std::vector<std::uint32_t>{1, 2}));
    EXPECT_EQ(spk_deadline_next_ns(&all.deadlines), 500u);
    EXPECT_EQ(all.flying, 1u);
    EXPECT_EQ(all.reserved, 1u);
    EXPECT_EQ(submit({1}), 2u);  // no number was used up
}

TEST_F(batch_rig, a_dropped_batch_spares_a_lost_item_of_its_index)
{
    submit({3}, 1000);
    u64 next;
    u16 id;
    spk_batch_step(&all, 1000, &next);
    ASSERT_TRUE(spk_batch_next_abort(&all, 1000, &id));
    spk_batch_abort_done(&all, id, 2000);
    spk_batch_step(&all, 2000 + SPK_ABORT_GRACE_NS, &next);
    ASSERT_EQ(flights[3].state, SPK_FLIGHT_LOST);
    ASSERT_EQ(all.flying, 0u);
    const spanker_work_item item{};
    std::uint32_t batch;
    ASSERT_EQ(spk_batch_open(&all, 0, 0, 0, &batch), 0);
    ASSERT_EQ(batch, flights[3].batch);
    spk_batch_add(&all, batch, 1, 0, &item, 0);
    spk_batch_drop(&all, batch, 0);
    EXPECT_EQ(all.flying, 0u);
    EXPECT_EQ(flights[3].state, SPK_FLIGHT_LOST);
    submit({1});
    complete(3);  // the late one touches nobody
    EXPECT_EQ(all.flying, 1u);
    complete(3);
    EXPECT_EQ(all.flying, 1u);
}

TEST_F(batch_rig, a_deadline_asks_for_an_abort_and_ends_as_timeout)
{
    submit({3}, 1000);
    u64 next;
    EXPECT_EQ(spk_batch_step(&all, 999, &next), 0u);
    EXPECT_EQ(next, 1000u);
    EXPECT_EQ(spk_batch_step(&all, 1000, &next), SPK_STEP_ABORT);
    EXPECT_EQ(aborts(1000), std::vector<std::uint16_t>{3});
    EXPECT_EQ(spk_batch_step(&all, 1001, &next), 0u);
    EXPECT_EQ(next, 1000 + SPK_ABORT_TIMEOUT_NS);
    complete(3, SPANKER_CARD_CANCELLED);
    EXPECT_EQ(read()[0].result, -ETIMEDOUT);
    EXPECT_EQ(step(~0ull - 1), 0u);
}

TEST_F(batch_rig, poison_of_a_timed_out_item_is_a_timeout_too)
{
    submit({3}, 1000);
    submit({4});
    step(1000);
    aborts();
    complete(3, SPANKER_CARD_CANCELLED);
    complete(4, SPANKER_CARD_POISONED,
             SPK_ORIGIN(card, queue, 3, SPANKER_CARD_CANCELLED, SPK_NO_PORT));
    EXPECT_EQ(read()[1].result, -ETIMEDOUT);
}

TEST_F(batch_rig, an_item_that_was_done_before_its_abort_is_done)
{
    submit({3}, 1000);
    step(1000);
    complete(3);  // the completion was under way
    EXPECT_TRUE(aborts().empty());
    EXPECT_EQ(read()[0].result, 0);
}

TEST_F(batch_rig, cancel_aborts_the_commands_of_one_batch)
{
    const auto seq = submit({0, 1, 2});
    submit({3});
    complete(1);
    EXPECT_EQ(spk_batch_cancel(&all, seq), 0);
    EXPECT_EQ(aborts(), (std::vector<std::uint16_t>{0, 2}));
    complete(0, SPANKER_CARD_CANCELLED);
    complete(2, SPANKER_CARD_CANCELLED);
    EXPECT_EQ(read()[0].result, -ECANCELED);
    EXPECT_EQ(spk_batch_cancel(&all, seq), -ENOENT);
    EXPECT_EQ(spk_batch_cancel(&all, 0), -ENOENT);
    EXPECT_EQ(spk_batch_cancel(&all, 99), -ENOENT);
}

TEST_F(batch_rig, cancelling_twice_aborts_once)
{
    const auto seq = submit({0});
    EXPECT_EQ(spk_batch_cancel(&all, seq), 0);
    EXPECT_EQ(spk_batch_cancel(&all, seq), 0);
    EXPECT_EQ(aborts().size(), 1u);
    EXPECT_EQ(spk_batch_cancel(&all, seq), 0);
    EXPECT_TRUE(aborts().empty());
}

TEST_F(batch_rig, a_slot_reused_while_an_abort_is_wanted_does_not_lose_other_aborts)
{
    submit({0});
    submit({1});
    spk_batch_cancel_all(&all);
    complete(0);
    submit({0x1000});  // slot 0 again
    EXPECT_EQ(aborts(), std::vector<std::uint16_t>{1});
    spk_batch_cancel_all(&all);
    EXPECT_EQ(aborts(), std::vector<std::uint16_t>{0x1000});
}

TEST_F(batch_rig, cancel_by_group_spares_the_others)
{
    submit({0, 1}, 0, {}, 7);
    submit({2}, 0, {}, 8);
    submit({3});
    EXPECT_EQ(spk_batch_group_flights(&all, 7), 2u);
    EXPECT_EQ(spk_batch_group_flights(&all, 0), 0u);
    spk_batch_cancel_group(&all, 7);
    EXPECT_EQ(aborts(), (std::vector<std::uint16_t>{0, 1}));
}

TEST_F(batch_rig, a_command_that_hangs_is_aborted_once_and_failed_by_the_card)
{
    submit({2}, 10);
    EXPECT_EQ(spk_batch_abort_hung(&all, 0x1002), -ENOENT) << "an earlier one in this slot";
    EXPECT_EQ(spk_batch_abort_hung(&all, 0xfff), -ENOENT) << "no such slot";
    EXPECT_EQ(spk_batch_abort_hung(&all, 2), 0);
    EXPECT_EQ(spk_batch_abort_hung(&all, 2), -ENOENT) << "it is aborted already";
    EXPECT_EQ(step(10), SPK_STEP_ABORT) << "its deadline changes nothing any more";
    EXPECT_EQ(aborts(10), std::vector<std::uint16_t>{2});
    complete(2, SPANKER_CARD_CANCELLED);
    const auto got = read();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].result, -EIO);
    EXPECT_EQ(got[0].card_status, std::uint32_t{SPANKER_CARD_CANCELLED});
}

TEST_F(batch_rig, a_command_that_hangs_and_survives_its_abort_keeps_its_objects)
{
    submit({2});
    ASSERT_EQ(spk_batch_abort_hung(&all, 2), 0);
    aborts(10);
    spk_batch_abort_done(&all, 2, 20);
    step(20 + SPK_ABORT_GRACE_NS);
    EXPECT_EQ(read().at(0).result, -EIO);
    EXPECT_TRUE(ended_slots.empty()) << "it may be at work";
    EXPECT_EQ(step_twice(20 + SPK_ABORT_GRACE_NS + SPK_ABORT_TIMEOUT_NS), SPK_STEP_STUCK);
}

TEST_F(batch_rig, an_unanswered_abort_is_a_hang_and_said_once)
{
    submit({0}, 10);
    step(10);
    aborts(10);
    EXPECT_EQ(step(10 + SPK_ABORT_TIMEOUT_NS - 1), 0u);
    EXPECT_EQ(step_twice(10 + SPK_ABORT_TIMEOUT_NS), SPK_STEP_HUNG);
    EXPECT_EQ(step(~0ull - 1), 0u);
}

TEST_F(batch_rig, an_answer_that_comes_right_after_the_time_is_no_hang)
{
    submit({0}, 10);
    step(10);
    aborts(10);
    EXPECT_EQ(step(10 + SPK_ABORT_TIMEOUT_NS), 0u);
    spk_batch_abort_done(&all, 0, 11 + SPK_ABORT_TIMEOUT_NS);
    complete(0, SPANKER_CARD_CANCELLED);
    EXPECT_EQ(read().at(0).result, -ETIMEDOUT);
    EXPECT_EQ(step(~0ull - 1), 0u);
}

TEST_F(batch_rig, a_card_that_stands_still_is_given_the_time)
{
    submit({0}, 10);
    step(10);
    aborts(10);
    stands = true;
    std::uint64_t now = 10;
    for (int n = 0; n < 50; n++)
        EXPECT_EQ(step(now += SPK_ABORT_TIMEOUT_NS), 0u) << n;
    stands = false;  // from here on its time counts
    EXPECT_EQ(step(now += SPK_ABORT_TIMEOUT_NS), 0u);
    EXPECT_EQ(step(now + SPK_SECOND_LOOK_NS - 1), 0u);
    EXPECT_EQ(step(now + SPK_SECOND_LOOK_NS), SPK_STEP_HUNG);
}

TEST_F(batch_rig, no_card_stands_still_for_ever)
{
    submit({0}, 10);
    step(10);
    aborts(10);
    stands = true;
    std::uint64_t now = 10;
    for (int n = 0; n < SPK_STANDSTILLS_MAX; n++)
        ASSERT_EQ(step(now += SPK_ABORT_TIMEOUT_NS), 0u) << n;
    EXPECT_EQ(step(now += SPK_ABORT_TIMEOUT_NS), SPK_STEP_HUNG);
}

TEST_F(batch_rig, a_completion_that_never_comes_ends_after_the_answered_abort)
{
    submit({2}, 10);
    step(10);
    aborts(10);
    spk_batch_abort_done(&all, 2, 20);
    EXPECT_EQ(step(20 + SPK_ABORT_GRACE_NS - 1), 0u);
    EXPECT_TRUE(read().empty());
    step(20 + SPK_ABORT_GRACE_NS);
    const auto got = read();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].result, -ETIMEDOUT);
    EXPECT_EQ(all.lost, 1u);
    EXPECT_EQ(ended_slots, std::vector<std::uint32_t>{2});
    complete(2);  // it comes after all: no second record
    EXPECT_TRUE(read().empty());
    EXPECT_EQ(ended_slots.size(), 1u);
    EXPECT_EQ(flights[2].state, SPK_FLIGHT_IDLE);
}

TEST_F(batch_rig, a_command_that_is_still_in_the_ring_ends_but_keeps_its_objects)
{
    strand();
    EXPECT_EQ(read().at(0).result, -ETIMEDOUT);
    EXPECT_EQ(all.flying, 0u);
    EXPECT_TRUE(ended_slots.empty()) << "the card may run it yet";
    EXPECT_EQ(spk_batch_cancel(&all, 1), -ENOENT);
    complete(2);  // it ran
    EXPECT_EQ(ended_slots, std::vector<std::uint32_t>{2});
    EXPECT_TRUE(read().empty());
    EXPECT_EQ(flights[2].state, SPK_FLIGHT_IDLE);
    EXPECT_EQ(spk_deadline_next_ns(&all.deadlines), SPK_NEVER_NS);
}

TEST_F(batch_rig, a_ring_that_stands_still_is_stuck_and_a_reset_gives_the_objects_back)
{
    strand();
    EXPECT_EQ(step(20 + SPK_ABORT_GRACE_NS + SPK_ABORT_TIMEOUT_NS - 1), 0u);
    EXPECT_EQ(step_twice(20 + SPK_ABORT_GRACE_NS + SPK_ABORT_TIMEOUT_NS), SPK_STEP_STUCK);
    EXPECT_EQ(step(~0ull - 1), 0u);
    EXPECT_TRUE(ended_slots.empty());
    spk_batch_fail_all(&all, -ESTALE, SPANKER_CARD_RESET);
    EXPECT_EQ(ended_slots, std::vector<std::uint32_t>{2});
    EXPECT_EQ(read().size(), 1u) << "no second record";
}

TEST_F(batch_rig, a_completion_within_the_grace_counts)
{
    submit({2}, 10);
    step(10);
    aborts(10);
    spk_batch_abort_done(&all, 2, 20);
    spk_batch_abort_done(&all, 0xffff, 20);  // nobody's
    complete(2, SPANKER_CARD_CANCELLED);
    EXPECT_EQ(read()[0].result, -ETIMEDOUT);
    EXPECT_EQ(step(~0ull - 1), 0u);
    EXPECT_EQ(all.lost, 0u);
}

TEST_F(batch_rig, a_reset_ends_everything_in_flight_and_keeps_unread_records)
{
    submit({0});
    complete(0);
    submit({1, 2}, 100, {true, false});
    spk_batch_cancel_all(&all);
    spk_batch_fail_all(&all, -ESTALE, SPANKER_CARD_RESET);
    const auto got = read();
    ASSERT_EQ(got.size(), 3u);
    EXPECT_EQ(got[0].result, 0);
    EXPECT_EQ(got[1].result, -ESTALE);
    EXPECT_EQ(got[1].flags, SPANKER_RECORD_ITEM);
    EXPECT_EQ(got[2].card_status, unsigned{SPANKER_CARD_RESET});
    EXPECT_EQ(got[2].start_ns, 0u);
    EXPECT_EQ(all.flying, 0u);
    EXPECT_EQ(all.reserved, 0u);
    EXPECT_EQ(step(~0ull - 1), 0u);
    EXPECT_TRUE(aborts().empty());
}

TEST_F(batch_rig, record_counters_may_wrap)
{
    all.first_unread = all.end_unread = ~0u - 1;
    for (int n = 0; n < 5; n++) {
        submit({0});
        complete(0);
        ASSERT_EQ(read().size(), 1u);
    }
}

}  // namespace
