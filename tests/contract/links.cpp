// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <thread>
#include <variant>

#include "rig.hpp"

namespace contract {

class links : public linked {};

TEST_F(links, carry_messages_between_neighbours_both_ways)
{
    constexpr std::uint32_t size = 100'000;
    const auto at_a = alloc(*a, 2 * size), at_b = alloc(*b, 2 * size);
    upload(*a, at_a, pattern(size, 1));
    upload(*b, at_b, pattern(size, 2));
    submit(*a, {send(*group, at_a, joined.port_a, 1, size),
                receive(*group, at_a, joined.port_a, 2, size, size)});
    submit(*b, {send(*group, at_b, joined.port_b, 2, size),
                receive(*group, at_b, joined.port_b, 1, size, size)});
    EXPECT_EQ(wait(*a)[0].result, 0);
    EXPECT_EQ(wait(*b)[0].result, 0);
    const auto half = [](const bytes& all) { return bytes(all.begin() + size, all.end()); };
    EXPECT_EQ(half(download(*a, at_a, 2 * size)), pattern(size, 2));
    EXPECT_EQ(half(download(*b, at_b, 2 * size)), pattern(size, 1));
}

TEST_F(links, count_what_they_carry)
{
    settle();
    const auto sent = [&] { return ports_of(joined.card_a).at(joined.port_a).bytes_tx; };
    const auto before = sent();
    const auto at_a = alloc(*a, 4096), at_b = alloc(*b, 4096);
    submit(*a, {send(*group, at_a, joined.port_a, 1, 4096)});
    EXPECT_EQ(run(*b, {receive(*group, at_b, joined.port_b, 1, 4096)}).result, 0);
    wait(*a);
    settle();
    EXPECT_EQ(sent(), before + 4096);
}

TEST_F(links, reduce_what_arrives_into_memory)
{
    const std::vector<float> mine = {1, 2, 3, 4}, theirs = {10, 20, 30, 40};
    bytes x(16), y(16);
    std::memcpy(x.data(), mine.data(), 16);
    std::memcpy(y.data(), theirs.data(), 16);
    const auto at_a = alloc(*a, 16), at_b = alloc(*b, 16);
    upload(*a, at_a, x);
    upload(*b, at_b, y);
    auto in = receive(*group, at_b, joined.port_b, 1, 16);
    in.opcode = SPK_OP_LINK_RECV_REDUCE;
    submit(*a, {send(*group, at_a, joined.port_a, 1, 16)});
    EXPECT_EQ(run(*b, {in}).result, 0);
    const std::vector<float> sum = {11, 22, 33, 44};
    const auto got = download(*b, at_b, 16);
    EXPECT_EQ(std::memcmp(got.data(), sum.data(), 16), 0);
}

TEST_F(links, ends_that_disagree_both_fail_before_data_moves)
{
    const auto at_a = alloc(*a, 4096), at_b = alloc(*b, 4096);
    EXPECT_EQ(run(*a, {fill(at_a, 0, 4096, ~0u)}).result, 0);
    submit(*b, {receive(*group, at_b, joined.port_b, 1, 4096)});
    const auto sender = run(*a, {send(*group, at_a, joined.port_a, 1, 2048)});
    EXPECT_EQ(sender.result, -EPROTO);
    EXPECT_EQ(sender.detail, joined.port_a);
    EXPECT_EQ(wait(*b)[0].result, -EPROTO);
    EXPECT_EQ(download(*b, at_b, 4096), bytes(4096));
}

TEST_F(links, what_an_administrator_set_outlives_resets)
{
    const auto state = [&] { return ports_of(joined.card_a).at(joined.port_a); };
    ASSERT_EQ(errno_of(cards->link_set_admin(joined.card_a, joined.port_a, false)), 0);
    for (const std::uint32_t mode :
         {std::uint32_t{SPANKER_RESET_SOFT}, std::uint32_t{SPANKER_RESET_FLR}}) {
        ASSERT_EQ(errno_of(cards->card_reset(joined.card_a, mode)), 0);
        settle();
        EXPECT_EQ(state().state, std::uint32_t{SPK_PORT_DOWN}) << "after reset " << mode;
        EXPECT_EQ(state().reason, std::uint32_t{SPK_REASON_ADMIN}) << "after reset " << mode;
    }
    ASSERT_EQ(errno_of(cards->link_set_admin(joined.card_a, joined.port_a, true)), 0);
    for (int n = 0; n < 500 && state().state != SPK_PORT_UP; n++) {
        settle();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(state().state, std::uint32_t{SPK_PORT_UP});
}

TEST_F(links, a_cancelled_end_ends_its_partner)
{
    const auto at_a = alloc(*a, 1 << 20), at_b = alloc(*b, 1 << 20);
    const auto seq = submit(*b, {waiting(receive(*group, at_b, joined.port_b, 1, 1 << 20), 9)});
    submit(*a, {send(*group, at_a, joined.port_a, 1, 1 << 20)});
    settle();
    EXPECT_EQ(errno_of(b->cancel(seq)), 0);
    EXPECT_EQ(wait(*b)[0].result, -ECANCELED);
    const auto sender = wait(*a)[0];
    EXPECT_EQ(sender.result, -ECANCELED);
    EXPECT_EQ(SPK_ORIGIN_CARD(sender.origin), joined.card_b) << "the origin is on the other card";
}

TEST_F(links, a_cut_cable_fails_work_by_name_and_heals)
{
    if (!can_inject(joined.card_a))
        GTEST_SKIP() << "faults cannot be injected here";
    const auto tensor = alloc(*a, 4096);
    submit(*a, {send(*group, tensor, joined.port_a, 1, 4096)});
    settle();
    cards->take_events();
    ASSERT_EQ(
        errno_of(cards->inject(joined.card_a, "cable_cut port=" + std::to_string(joined.port_a))),
        0);
    const auto record = wait(*a)[0];
    EXPECT_EQ(record.result, -ENOLINK);
    EXPECT_EQ(record.card_status, std::uint32_t{SPANKER_CARD_LINK_DOWN});
    EXPECT_EQ(record.detail, joined.port_a);
    EXPECT_EQ(SPK_ORIGIN_PORT(record.origin), joined.port_a);
    EXPECT_EQ(run(*a, {send(*group, tensor, joined.port_a, 2, 4096)}).result, -ENOLINK);
    EXPECT_NE(ports_of(joined.card_a).at(joined.port_a).state, std::uint32_t{SPK_PORT_UP});

    ASSERT_EQ(errno_of(cards->inject(joined.card_a, "clear cable_cut")), 0);
    settle();
    EXPECT_EQ(ports_of(joined.card_a).at(joined.port_a).state, std::uint32_t{SPK_PORT_UP});
    const auto to = alloc(*b, 4096);
    submit(*b, {receive(*group, to, joined.port_b, 3, 4096)});
    EXPECT_EQ(run(*a, {send(*group, tensor, joined.port_a, 3, 4096)}).result, 0);
    EXPECT_EQ(wait(*b)[0].result, 0);
}

TEST_F(links, are_switched_off_and_on_and_tell_it)
{
    cards->take_events();
    ASSERT_EQ(errno_of(cards->link_set_admin(joined.card_a, joined.port_a, false)), 0);
    settle();
    const auto off = ports_of(joined.card_a).at(joined.port_a);
    EXPECT_EQ(off.state, std::uint32_t{SPK_PORT_DOWN});
    EXPECT_EQ(off.reason, std::uint32_t{SPK_REASON_ADMIN});
    EXPECT_EQ(off.width, 0u);
    bool told = false;
    for (const auto& event : cards->take_events())
        if (const auto* link = std::get_if<spanker::daemon::event_link>(&event))
            told |= link->card == joined.card_a && link->port == joined.port_a;
    EXPECT_TRUE(told);
    EXPECT_EQ(errno_of(cards->link_train(joined.card_a, 1u << joined.port_a, false)), -EINVAL)
        << "a port that is off is not trained";
    ASSERT_EQ(errno_of(cards->link_set_admin(joined.card_a, joined.port_a, true)), 0);
    settle();
    EXPECT_EQ(ports_of(joined.card_a).at(joined.port_a).state, std::uint32_t{SPK_PORT_UP});
}

TEST_F(links, retrain_on_request)
{
    settle();
    const auto before = ports_of(joined.card_a).at(joined.port_a).retrains;
    ASSERT_EQ(errno_of(cards->link_train(joined.card_a, 1u << joined.port_a, true)), 0);
    settle();
    const auto after = ports_of(joined.card_a).at(joined.port_a);
    EXPECT_EQ(after.state, std::uint32_t{SPK_PORT_UP});
    EXPECT_GT(after.retrains, before);
}

TEST_F(links, refuse_ports_that_are_not_there)
{
    EXPECT_EQ(errno_of(cards->link_train(joined.card_a, 0, false)), -EINVAL);
    EXPECT_EQ(errno_of(cards->link_train(joined.card_a, 1u << 31, false)), -EINVAL);
    EXPECT_EQ(errno_of(cards->link_set_admin(joined.card_a, 31, false)), -EINVAL);
}

}  // namespace contract
