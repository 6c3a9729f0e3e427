// SPDX-License-Identifier: Apache-2.0
//
// Batches: whole or not at all, records in completion order, limits.
#include <poll.h>

#include <set>

#include "rig.hpp"

namespace contract {

class batches : public rig {
protected:
    void SetUp() override
    {
        rig::SetUp();
        if (!IsSkipped() && !HasFatalFailure())
            file = open(cards->cards().front(), 16);
    }
    bool readable() const
    {
        pollfd at{.fd = file->fd(), .events = POLLIN, .revents = 0};
        return ::poll(&at, 1, 0) == 1 && (at.revents & POLLIN);
    }
    std::unique_ptr<card_file> file;
};

TEST_F(batches, are_numbered_from_one_and_carry_their_cookie)
{
    EXPECT_EQ(submit(*file, {nop()}, 0xabcdef0123456789), 1u);
    EXPECT_EQ(submit(*file, {nop(), nop()}, 77), 2u);
    const auto got = wait(*file, 2);
    EXPECT_EQ(got[0].seq, 1u);
    EXPECT_EQ(got[0].cookie, 0xabcdef0123456789u);
    EXPECT_EQ(got[1].cookie, 77u);
    EXPECT_EQ(got[1].flags, 0u);
}

TEST_F(batches, a_bad_item_stops_all_of_them)
{
    const auto tensor = alloc(*file, 4096);
    auto bad = fill(tensor, 4000, 97, 1);
    const auto refused =
        file->submit(std::vector{fill(tensor, 0, 100, 0xff), nop(), bad, nop()}, 0);
    EXPECT_EQ(errno_of(refused), -ERANGE);
    EXPECT_EQ(refused.error().detail, 2u);
    EXPECT_EQ(download(*file, tensor, 4096), bytes(4096));
    EXPECT_EQ(submit(*file, {nop()}), 2u);  // the download was 1
}

TEST_F(batches, have_one_to_depth_minus_one_items)
{
    EXPECT_EQ(errno_of(file->submit({}, 0)), -EINVAL);
    EXPECT_EQ(errno_of(file->submit(std::vector(16, nop()), 0)), -EINVAL);
    EXPECT_EQ(run(*file, std::vector(15, nop())).result, 0);
}

TEST_F(batches, records_come_in_completion_order)
{
    const auto tensor = alloc(*file, 4);
    const auto late = submit(*file, {waiting(nop(), 1)});
    const auto early = submit(*file, {posting(fill(tensor, 0, 4, 1), 1)});  // another engine
    const auto got = wait(*file, 2);
    EXPECT_EQ(got[0].seq, early);
    EXPECT_EQ(got[1].seq, late);
}

TEST_F(batches, an_item_with_record_is_told_by_itself)
{
    auto one = nop();
    one.flags = SPANKER_ITEM_RECORD;
    one.cookie = 555;
    const auto seq = submit(*file, {nop(), one, waiting(nop(), 2)}, 9);
    const auto first = wait(*file)[0];
    EXPECT_EQ(first.seq, seq);
    EXPECT_EQ(first.cookie, 555u);
    EXPECT_EQ(first.item, 1u);
    EXPECT_EQ(first.flags, SPANKER_RECORD_ITEM);
    const auto tensor = alloc(*file, 4);
    submit(*file, {posting(fill(tensor, 0, 4, 0), 2)});
    std::set<std::uint64_t> cookies;
    for (const auto& record : wait(*file, 2))
        cookies.insert(record.cookie);
    EXPECT_EQ(cookies, (std::set<std::uint64_t>{0, 9}));
}

TEST_F(batches, poll_gives_no_more_records_than_asked_for_and_keeps_the_rest)
{
    for (int n = 0; n < 5; n++)
        submit(*file, {nop()});
    settle();
    spanker_record got[3];
    EXPECT_EQ(file->poll(got), 3u);
    EXPECT_EQ(file->poll(got), 2u);
    EXPECT_EQ(file->poll(got), 0u);
    EXPECT_EQ(file->poll({}), 0u);
}

TEST_F(batches, in_flight_and_unread_are_limited_and_then_it_is_again)
{
    std::uint64_t accepted = 0;
    for (; accepted < 100; accepted++) {
        const auto seq = file->submit(std::vector{nop()}, 0);
        if (!seq) {
            EXPECT_EQ(errno_of(seq), -EAGAIN);
            break;
        }
    }
    EXPECT_GE(accepted, 15u);
    EXPECT_LE(accepted, 16u);
    settle();
    EXPECT_EQ(errno_of(file->submit(std::vector{nop()}, 0)), -EAGAIN) << "unread records count";
    wait(*file, accepted);
    EXPECT_EQ(run(*file, {nop()}).result, 0);
}

TEST_F(batches, more_records_than_the_queue_can_ever_hold_is_invalid)
{
    auto one = nop();
    one.flags = SPANKER_ITEM_RECORD;
    EXPECT_EQ(errno_of(file->submit(std::vector(15, one), 0)), 0);
    wait(*file, 16);
}

TEST_F(batches, the_descriptor_is_readable_while_records_are_unread)
{
    EXPECT_FALSE(readable());
    submit(*file, {nop()});
    submit(*file, {nop()});
    settle();
    EXPECT_TRUE(readable());
    spanker_record one[1];
    EXPECT_EQ(file->poll(one), 1u);
    EXPECT_TRUE(readable());
    EXPECT_EQ(file->poll(one), 1u);
    EXPECT_FALSE(readable());
}

TEST_F(batches, go_round_the_ring_many_times)
{
    const auto tensor = alloc(*file, 4);
    for (std::uint32_t n = 0; n < 500; n++) {
        const std::vector work(1 + n % 15, fill(tensor, 0, 4, n));
        ASSERT_EQ(run(*file, work).result, 0) << n;
    }
    EXPECT_EQ(download(*file, tensor, 4), (bytes{499 % 256, 499 / 256, 0, 0}));
}

TEST_F(batches, poison_names_its_first_cause)
{
    // A port that is switched off is a failure that every backend can make.
    const auto card = file->info()->out_number;
    const member all[] = {{file.get(), 1, 0}};
    auto group = cards->group_create(all);
    ASSERT_TRUE(group) << text_of(group);
    ASSERT_EQ(errno_of(cards->link_set_admin(card, 0, false)), 0);
    settle();
    const auto tensor = alloc(*file, 4096);
    auto last = waiting(nop(), 2);
    last.flags = SPANKER_ITEM_RECORD;
    submit(*file,
           {posting(send(**group, tensor, 0, 1, 4096), 1),
            posting(waiting(fill(tensor, 0, 4, 0), 1), 2), last},
           1);
    const auto got = wait(*file, 2);
    EXPECT_EQ(got[0].flags, SPANKER_RECORD_ITEM);
    EXPECT_EQ(got[0].result, -ENOLINK) << "poison ends like its first cause";
    EXPECT_EQ(got[0].card_status, std::uint32_t{SPANKER_CARD_POISONED});
    EXPECT_EQ(SPK_ORIGIN_STATUS(got[0].origin), SPANKER_CARD_LINK_DOWN);
    EXPECT_EQ(SPK_ORIGIN_CARD(got[0].origin), card);
    EXPECT_EQ(SPK_ORIGIN_PORT(got[0].origin), 0);
    EXPECT_EQ(got[1].result, -ENOLINK);
    EXPECT_EQ(got[1].item, 0u) << "the batch names the item that failed first";
    EXPECT_EQ(got[1].card_status, std::uint32_t{SPANKER_CARD_LINK_DOWN});
    EXPECT_EQ(errno_of(cards->link_set_admin(card, 0, true)), 0);
}

}  // namespace contract
