// SPDX-License-Identifier: Apache-2.0
//
// Work that waits for what never comes ends by cancel or deadline, and only so.
#include <algorithm>

#include "rig.hpp"

namespace contract {

class ending : public rig {
protected:
    void SetUp() override
    {
        rig::SetUp();
        if (!IsSkipped() && !HasFatalFailure())
            file = open(cards->cards().front(), 32);
    }
    spanker_work_item until(spanker_work_item what, std::uint64_t from_now_ns)
    {
        what.deadline_ns = now_ns() + from_now_ns;
        return what;
    }
    std::unique_ptr<card_file> file;
};

TEST_F(ending, one_batch_is_cancelled_and_no_other)
{
    const auto tensor = alloc(*file, 4);
    const auto first = submit(*file, {wait_for_ever(250), waiting(fill(tensor, 0, 4, 1), 250)});
    const auto second = submit(*file, {waiting(fill(tensor, 0, 4, 2), 7)});
    EXPECT_EQ(errno_of(file->cancel(first)), 0);
    const auto record = wait(*file)[0];
    EXPECT_EQ(record.seq, first);
    EXPECT_EQ(record.result, -ECANCELED);
    EXPECT_EQ(record.card_status, std::uint32_t{SPANKER_CARD_CANCELLED});
    submit(*file, {posting(nop(), 7)});
    bool done = false;
    for (const auto& one : wait(*file, 2))
        done |= one.seq == second && one.result == 0;
    EXPECT_TRUE(done);
    EXPECT_EQ(download(*file, tensor, 4), (bytes{2, 0, 0, 0}));
}

TEST_F(ending, everything_is_cancelled)
{
    for (std::uint16_t n = 0; n < 10; n++)
        submit(*file, {wait_for_ever(static_cast<std::uint16_t>(200 + n))});
    EXPECT_EQ(errno_of(file->cancel_all()), 0);
    for (const auto& record : wait(*file, 10))
        EXPECT_EQ(record.result, -ECANCELED);
    EXPECT_EQ(run(*file, {nop()}).result, 0);
    EXPECT_EQ(errno_of(file->cancel_all()), 0);
}

// Each needs an ABORT of its own, and the driver's queue holds 64 commands.
TEST_F(ending, more_is_cancelled_than_the_driver_can_ask_for_at_once)
{
    constexpr std::size_t count = 150;
    auto deep = open(cards->cards().front(), 256);
    for (std::size_t n = 0; n < count; n++)
        submit(*deep, {wait_for_ever(static_cast<std::uint16_t>(n))}, n + 1);
    const std::uint64_t start = now_ns();
    EXPECT_EQ(errno_of(deep->cancel_all()), 0);
    std::vector<bool> ended(count);
    for (const auto& record : wait(*deep, count)) {
        EXPECT_EQ(record.result, -ECANCELED);
        ASSERT_TRUE(record.cookie != 0 && record.cookie <= count);
        EXPECT_FALSE(ended[record.cookie - 1]) << "twice";
        ended[record.cookie - 1] = true;
    }
    EXPECT_EQ(std::count(ended.begin(), ended.end(), true), std::ptrdiff_t{count});
    EXPECT_LT(now_ns() - start, 10'000'000'000u) << "none of them by its deadline";
    EXPECT_EQ(run(*deep, {nop()}).result, 0);
}

TEST_F(ending, what_is_not_in_flight_cannot_be_cancelled)
{
    const auto seq = submit(*file, {nop()});
    wait(*file);
    EXPECT_EQ(errno_of(file->cancel(seq)), -ENOENT);
    EXPECT_EQ(errno_of(file->cancel(0)), -ENOENT);
    EXPECT_EQ(errno_of(file->cancel(seq + 1)), -ENOENT);
}

TEST_F(ending, dependents_of_a_cancelled_item_end_as_cancelled)
{
    const auto seq = submit(*file, {posting(wait_for_ever(), 1)});
    const auto tensor = alloc(*file, 4);
    submit(*file, {waiting(fill(tensor, 0, 4, 1), 1)});
    EXPECT_EQ(errno_of(file->cancel(seq)), 0);
    for (const auto& record : wait(*file, 2))
        EXPECT_EQ(record.result, -ECANCELED);
    EXPECT_EQ(download(*file, tensor, 4), bytes(4));
}

TEST_F(ending, a_deadline_ends_what_waits)
{
    const std::uint64_t start = now_ns();
    submit(*file, {until(wait_for_ever(), 20'000'000)});
    const auto record = wait(*file)[0];
    EXPECT_EQ(record.result, -ETIMEDOUT);
    EXPECT_GE(now_ns() - start, 20'000'000u) << "not before its time";
}

TEST_F(ending, a_deadline_of_one_item_poisons_what_waits_for_it_as_a_timeout)
{
    const auto tensor = alloc(*file, 4);
    submit(*file,
           {posting(until(wait_for_ever(), 5'000'000), 1), waiting(fill(tensor, 0, 4, 1), 1)});
    const auto record = wait(*file)[0];
    EXPECT_EQ(record.result, -ETIMEDOUT);
    EXPECT_EQ(record.item, 0u);
}

TEST_F(ending, a_deadline_in_the_past_ends_at_once)
{
    auto what = wait_for_ever();
    what.deadline_ns = 1;
    EXPECT_EQ(run(*file, {what}).result, -ETIMEDOUT);
}

TEST_F(ending, the_earlier_deadline_comes_first_whatever_the_order_of_submission)
{
    const auto tensor = alloc(*file, 4);
    auto second = waiting(fill(tensor, 0, 4, 1), 100), first = wait_for_ever(101);
    first.deadline_ns = now_ns() + 10'000'000;
    second.deadline_ns = first.deadline_ns + 50'000'000;
    const auto late = submit(*file, {second});
    const auto early = submit(*file, {first});
    const auto got = wait(*file, 2);
    EXPECT_EQ(got[0].seq, early);
    EXPECT_EQ(got[1].seq, late);
}

TEST_F(ending, a_deadline_that_is_met_leaves_no_trace)
{
    EXPECT_EQ(run(*file, {until(nop(), 10'000'000'000)}).result, 0);
}

}  // namespace contract
