// SPDX-License-Identifier: Apache-2.0
//
// Channels are owned by one group at a time, and nothing crosses between groups.
#include "rig.hpp"

namespace contract {

class groups : public linked {
protected:
    result<std::unique_ptr<channel_group>> make(const std::vector<member>& members)
    {
        return cards->group_create(members);
    }
};

TEST_F(groups, own_their_channels_alone)
{
    auto taken = make({{b.get(), 1u << joined.port_b, 0}});
    ASSERT_FALSE(taken);
    EXPECT_EQ(errno_of(taken), -EBUSY);
    EXPECT_EQ(errno_of(make({{b.get(), 1u << joined.port_b, 1}})), 0) << "another channel is free";
    group.reset();
    EXPECT_EQ(errno_of(make({{b.get(), 1u << joined.port_b, 0}})), 0);
}

TEST_F(groups, are_made_whole_or_not_at_all)
{
    EXPECT_EQ(
        errno_of(make({{a.get(), 1u << joined.port_a, 1}, {b.get(), 1u << joined.port_b, 0}})),
        -EBUSY);
    EXPECT_EQ(errno_of(make({{a.get(), 1u << joined.port_a, 1}})), 0);
}

TEST_F(groups, refuse_ports_and_channels_that_are_not_there)
{
    EXPECT_EQ(errno_of(make({})), -EINVAL);
    EXPECT_EQ(errno_of(make({{a.get(), 0, 1}})), -EINVAL);
    EXPECT_EQ(errno_of(make({{a.get(), 1u << 31, 1}})), -EINVAL);
    EXPECT_EQ(errno_of(make({{a.get(), 1, SPK_MAX_CHANNELS}})), -EINVAL);
    EXPECT_EQ(errno_of(make({{nullptr, 1, 1}})), -EINVAL);
}

TEST_F(groups, have_ids_that_are_never_zero_and_never_come_twice)
{
    std::uint32_t last = 0;
    for (int n = 0; n < 10; n++) {
        auto made = make({{a.get(), 1u << joined.port_a, 2}});
        ASSERT_TRUE(made);
        EXPECT_NE((*made)->id(), 0u);
        EXPECT_NE((*made)->id(), last);
        last = (*made)->id();
    }
}

TEST_F(groups, are_unknown_to_files_that_are_no_member)
{
    auto stranger = open(joined.card_a);
    const auto tensor = alloc(*stranger, 4096);
    EXPECT_EQ(
        errno_of(stranger->submit(std::vector{send(*group, tensor, joined.port_a, 1, 64)}, 0)),
        -ENOENT);
}

TEST_F(groups, do_not_reach_ports_and_channels_of_others)
{
    const auto tensor = alloc(*a, 4096);
    auto other_channel = send(*group, tensor, joined.port_a, 1, 64);
    other_channel.link.tx_channel = 3;
    EXPECT_EQ(errno_of(a->submit(std::vector{other_channel}, 0)), -EPERM);
    const std::uint32_t ports = a->info()->out_ports;
    if (ports > 1) {
        const std::uint32_t other_port = joined.port_a == 0 ? 1 : 0;
        EXPECT_EQ(errno_of(a->submit(std::vector{send(*group, tensor, other_port, 1, 64)}, 0)),
                  -EPERM);
    }
}

TEST_F(groups, that_hold_one_end_each_have_no_link)
{
    auto near = make({{a.get(), 1u << joined.port_a, 4}});
    auto far = make({{b.get(), 1u << joined.port_b, 4}});
    ASSERT_TRUE(near && far);
    const auto from = alloc(*a, 4096), to = alloc(*b, 4096);
    EXPECT_EQ(run(*a, {fill(from, 0, 4096, ~0u)}).result, 0);
    auto out = send(**near, from, joined.port_a, 1, 4096);
    auto in = receive(**far, to, joined.port_b, 1, 4096);
    out.link.tx_channel = in.link.rx_channel = 4;
    out.deadline_ns = in.deadline_ns = now_ns() + 30'000'000;
    submit(*a, {out});
    submit(*b, {in});
    EXPECT_NE(wait(*a)[0].result, 0);
    EXPECT_NE(wait(*b)[0].result, 0);
    EXPECT_EQ(download(*b, to, 4096), bytes(4096));
}

TEST_F(groups, end_their_work_when_they_are_closed)
{
    const auto tensor = alloc(*b, 4096);
    submit(*b, {receive(*group, tensor, joined.port_b, 1, 4096)});
    submit(*b, {wait_for_ever(77)});  // not the group's
    settle();
    group.reset();
    const auto record = wait(*b)[0];
    EXPECT_EQ(record.seq, 1u);
    EXPECT_EQ(record.result, -ECANCELED);
    EXPECT_EQ(errno_of(b->cancel_all()), 0);
    EXPECT_EQ(wait(*b)[0].seq, 2u);
}

TEST_F(groups, leave_nothing_to_those_that_come_after_them)
{
    const auto from = alloc(*a, 4096), to = alloc(*b, 4096);
    // A send of the old group is on its way to nobody.
    submit(*a, {send(*group, from, joined.port_a, 1, 4096)});
    settle();
    group.reset();
    wait(*a);
    auto next = make({{a.get(), 1u << joined.port_a, 0}, {b.get(), 1u << joined.port_b, 0}});
    ASSERT_TRUE(next) << text_of(next);
    upload(*a, from, pattern(4096, 9));
    submit(*b, {receive(**next, to, joined.port_b, 5, 4096)});
    EXPECT_EQ(run(*a, {send(**next, from, joined.port_a, 5, 4096)}).result, 0);
    EXPECT_EQ(wait(*b)[0].result, 0);
    EXPECT_EQ(download(*b, to, 4096), pattern(4096, 9));
}

TEST_F(groups, survive_the_close_of_a_member)
{
    b.reset();
    const auto tensor = alloc(*a, 4096);
    auto out = send(*group, tensor, joined.port_a, 1, 64);
    out.deadline_ns = now_ns() + 10'000'000;
    EXPECT_NE(run(*a, {out}).result, 0);
    group.reset();
    auto again = open(joined.card_b);
    EXPECT_EQ(errno_of(make({{again.get(), 1u << joined.port_b, 0}})), 0);
}

TEST_F(groups, gangs_meet_on_all_members)
{
    auto gang = item(SPK_OP_GANG);
    gang.group = group->id();
    gang.gang = {.id = 5, .members = 2, .section = 1, .reserved = {}};
    const auto tensor = alloc(*a, 4);
    submit(*a, {gang, fill(tensor, 0, 4, 3)});
    settle();
    spanker_record none[1];
    EXPECT_EQ(a->poll(none), 0u) << "one member alone does not meet";
    submit(*b, {gang, nop()});
    const auto one = wait(*a)[0], other = wait(*b)[0];
    EXPECT_EQ(one.result, 0);
    EXPECT_EQ(other.result, 0);
    gang.gang.members = 3;
    EXPECT_EQ(errno_of(a->submit(std::vector{gang, nop()}, 0)), -EINVAL) << "more than there are";
}

}  // namespace contract
