// SPDX-License-Identifier: Apache-2.0
//
// How sessions begin and end.
#include <sys/resource.h>

#include "data_fake_backend.hpp"
#include "data_rig.hpp"

namespace spanker::daemon::test {
namespace {

TEST(data_sessions, a_session_has_rings_and_all_ready_cards)
{
    fake_backend cards(3);
    plane_rig rig(cards);
    const auto s = rig.open();
    ASSERT_TRUE(s);
    EXPECT_EQ(s->cards, (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(s->cq_entries, 2 * s->sq_entries);
    EXPECT_GE(s->sq_eventfd.get(), 0);
    EXPECT_GE(s->cq_eventfd.get(), 0);
    const client_rings rings(*s);
    EXPECT_EQ(rings.header->magic, SPANKER_RINGS_MAGIC);
}

TEST(data_sessions, cards_may_be_chosen_in_any_order)
{
    fake_backend cards(3);
    plane_rig rig(cards);
    const auto s = rig.open(1000, {2, 0});
    ASSERT_TRUE(s);
    EXPECT_EQ(s->cards, (std::vector<std::uint32_t>{2, 0}));
}

struct bad_session {
    session_options options;
    spanker_error_kind kind;
    const char* says;
};

TEST(data_sessions, bad_options_are_refused_by_name)
{
    fake_backend cards(2);
    plane_rig rig(cards);
    const bad_session table[] = {
        {{.sq_entries = 0}, SPANKER_ERR_INVALID, "sq_entries 0"},
        {{.sq_entries = 12}, SPANKER_ERR_INVALID, "power of two"},
        {{.sq_entries = 4}, SPANKER_ERR_INVALID, "from 8"},
        {{.sq_entries = 8192}, SPANKER_ERR_INVALID, "to 4096"},
        {{.arena_bytes = 2u << 20}, SPANKER_ERR_QUOTA, "arena_bytes"},
        {{.cards = {5}}, SPANKER_ERR_NO_OBJECT, "card 5"},
        {{.cards = {1, 1}}, SPANKER_ERR_INVALID, "card 1 is named twice"},
    };
    for (const bad_session& row : table) {
        const auto s = rig.data->create_session(row.options);
        ASSERT_FALSE(s) << row.says;
        EXPECT_EQ(s.error().kind, row.kind) << row.says;
        EXPECT_NE(s.error().message.find(row.says), std::string::npos) << s.error().message;
    }
}

TEST(data_sessions, without_cards_there_is_nothing_to_open)
{
    fake_backend cards(0);
    plane_rig rig(cards);
    EXPECT_EQ(rig.open().error().kind, SPANKER_ERR_NO_SAILS);
}

TEST(data_sessions, cards_that_are_not_ready_cannot_be_chosen)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    rig.announce(SPANKER_CARD_RESETTING);
    EXPECT_EQ(rig.open(1000, {0}).error().kind, SPANKER_ERR_CARD_FAILED);
    EXPECT_EQ(rig.open().error().kind, SPANKER_ERR_NO_SAILS);
}

TEST(data_sessions, without_descriptors_new_sessions_are_refused_and_old_ones_live)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    const auto s = rig.opened();
    client_rings rings(s);
    rings.push({nop(1)});
    EXPECT_EQ(rig.next(rings)->res, 0);
    rlimit before = {};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const unique_fd last(::dup(0));
    for (rlim_t spare = 0; spare < 5; spare++) {  // whichever descriptor is the one too many
        const rlimit tight = {static_cast<rlim_t>(last.get()) + 1 + spare, before.rlim_max};
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
        const auto refused = rig.open();
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
        ASSERT_FALSE(refused) << spare;
        EXPECT_EQ(refused.error().kind, SPANKER_ERR_QUOTA) << refused.error().message;
    }
    rings.push({nop(2)});
    EXPECT_EQ(rig.next(rings)->res, 0);
    EXPECT_TRUE(rig.open());
}

TEST(data_sessions, the_limit_is_per_user_and_comes_back)
{
    fake_backend cards(1);
    plane_rig rig(cards, {.sessions_per_uid = 2});
    const auto a = rig.open(), b = rig.open();
    ASSERT_TRUE(a && b);
    EXPECT_EQ(rig.open().error().kind, SPANKER_ERR_QUOTA);
    EXPECT_TRUE(rig.open(1001));
    EXPECT_TRUE(rig.open(0));
    rig.close(a->id);
    EXPECT_TRUE(rig.until([&] { return rig.data->sessions().size() == 3; }));
    EXPECT_TRUE(rig.open());
}

TEST(data_sessions, closing_twice_and_closing_the_unknown_are_harmless)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    const auto s = rig.open();
    ASSERT_TRUE(s);
    rig.close(s->id);
    rig.close(s->id);
    rig.close(999);
}

TEST(data_sessions, the_end_is_seen_in_the_rings)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    const auto s = rig.open();
    client_rings rings(*s);
    EXPECT_EQ(rings.header->dead, 0u);
    rig.close(s->id);
    EXPECT_EQ(__atomic_load_n(&rings.header->dead, __ATOMIC_ACQUIRE), 1u);
}

TEST(data_sessions, calls_on_an_ended_session_name_it)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    const auto s = rig.open();
    rig.close(s->id);
    const auto t = rig.add_tensor(s->id, {.shape = {4}});
    ASSERT_FALSE(t);
    EXPECT_EQ(t.error().kind, SPANKER_ERR_NO_OBJECT);
}

TEST(data_sessions, hostile_tails_close_the_session_with_a_reason)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    const auto s = rig.open(), other = rig.open();
    client_rings rings(*s), lawful(*other);
    __atomic_store_n(&rings.header->sq.tail, 1000u, __ATOMIC_RELEASE);
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(rings.sq_bell, &one, sizeof one), 8);
    ASSERT_TRUE(rig.until([&] { return !rig.closed.empty(); }));
    EXPECT_EQ(rig.closed[0].first, s->id);
    EXPECT_NE(rig.closed[0].second.message.find("tail 1000"), std::string::npos);
    lawful.push({nop(1)});
    EXPECT_EQ(rig.next(lawful)->res, 0);
}

TEST(data_sessions, hostile_heads_close_the_session_too)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    const auto s = rig.open();
    client_rings rings(*s);
    rings.header->cq.head = 12345;
    rings.push({nop(1)});
    ASSERT_TRUE(rig.until([&] { return !rig.closed.empty(); }));
    EXPECT_NE(rig.closed[0].second.message.find("head 12345"), std::string::npos);
}

TEST(data_sessions, a_killed_client_leaves_nothing)
{
    fake_backend cards(2);
    plane_rig rig(cards);
    const auto s = rig.open();
    client_memory m(1u << 16);
    ASSERT_TRUE(rig.add_buffer(s->id, m));
    ASSERT_TRUE(rig.add_tensor(s->id, {.shape = {64, 256}}));
    cards.card(0).hold = true;
    client_rings rings(*s);
    rings.push({nop(1), nop(2), nop(3)});
    ASSERT_TRUE(rig.until([&] { return cards.card(0).count(SPK_OP_NOP) != 0; }));
    rig.close(s->id);
    for (unsigned c = 0; c < 2; c++) {
        EXPECT_EQ(cards.card(c).used_bytes, 0u);
        EXPECT_EQ(cards.card(c).buffers, 0u);
    }
    EXPECT_TRUE(rig.until([&] { return rig.data->idle() && rig.data->sessions().empty(); }));
}

TEST(data_sessions, teardown_answers_each_accepted_entry_once)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    const auto s = rig.open();
    cards.card(0).hold = true;
    client_rings rings(*s);
    for (std::uint64_t i = 0; i < 12; i++)
        rings.push({nop(i)});
    ASSERT_TRUE(
        rig.until([&] { return __atomic_load_n(&rings.header->sq.head, __ATOMIC_ACQUIRE) == 12; }));
    rig.close(s->id);
    std::uint64_t seen = 0;
    while (const auto cqe = rings.pop()) {
        EXPECT_EQ(cqe->res, -ECANCELED);
        seen |= std::uint64_t{1} << cqe->user_data;
    }
    EXPECT_EQ(seen, 0xfffu);
    EXPECT_EQ(rings.header->cq.tail, 12u);
}

TEST(data_sessions, stop_calls_every_reply)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    const auto s = rig.open();
    cards.card(0).hold = true;
    int replies = 0;
    rig.data->submit(s->id, {nop(1)}, [&](auto r) {
        EXPECT_EQ(r->at(0).cqe.res, -ECANCELED);
        replies++;
    });
    ASSERT_TRUE(rig.until([&] { return cards.card(0).count(SPK_OP_NOP) == 1; }));
    rig.data->alloc_tensor(s->id, {.shape = {4}}, [&](auto) { replies++; });
    EXPECT_TRUE(rig.data->stop(patience_ms));
    rig.data->alloc_tensor(s->id, {.shape = {4}}, [&](auto r) {
        EXPECT_EQ(r.error().kind, SPANKER_ERR_DRAINING);
        replies++;
    });
    rig.data->dispatch();
    EXPECT_EQ(replies, 3);
}

TEST(data_sessions, draining_refuses_new_work_and_lets_go_of_the_old)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    const auto s = rig.open();
    const auto t = rig.add_tensor(s->id, {.shape = {4}});
    rig.data->drain(true);
    EXPECT_EQ(rig.open().error().kind, SPANKER_ERR_DRAINING);
    EXPECT_EQ(rig.add_tensor(s->id, {.shape = {4}}).error().kind, SPANKER_ERR_DRAINING);
    client_rings rings(*s);
    rings.push({nop(1)});
    EXPECT_EQ(rig.next(rings)->res, -ESHUTDOWN);
    EXPECT_TRUE(rig.drop_tensor(s->id, *t));
    rig.data->drain(false);
    rings.push({nop(2)});
    EXPECT_EQ(rig.next(rings)->res, 0);
}

TEST(data_sessions, draining_does_not_wait_for_the_end_of_a_run)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    const auto s = rig.open();
    client_rings rings(*s);
    rings.push({nop(1, SPANKER_SQE_LINKED), nop(2, SPANKER_SQE_LINKED)});
    rig.settle(s->id);
    rig.data->drain(true);
    EXPECT_EQ(rig.next(rings)->res, -ESHUTDOWN);
    EXPECT_EQ(rig.next(rings)->res, -ECANCELED);
    rig.data->drain(false);
    rings.push({nop(3), nop(4)});  // 3 is the late end of the run
    EXPECT_EQ(rig.next(rings)->res, -ECANCELED);
    EXPECT_EQ(rig.next(rings)->res, 0);
}

TEST(data_sessions, statistics_count_what_there_is)
{
    fake_backend cards(2);
    plane_rig rig(cards);
    const auto s = rig.open(77);
    client_memory m(1u << 16);
    ASSERT_TRUE(rig.add_buffer(s->id, m));
    ASSERT_TRUE(rig.add_tensor(s->id, {.shape = {2, 256}}));
    rig.submit(s->id, {nop(1)});
    rig.submit(s->id, {nop(1, 0x80)});
    const auto stats = rig.data->sessions();
    ASSERT_EQ(stats.size(), 1u);
    EXPECT_EQ(stats[0].uid, 77u);
    EXPECT_EQ(stats[0].buffer_bytes, 1u << 16);
    EXPECT_EQ(stats[0].card_bytes, 2u * 2 * 256 * 4);
    EXPECT_EQ(stats[0].buffers, 1u);
    EXPECT_EQ(stats[0].tensors, 1u);
    EXPECT_EQ(stats[0].requests, 2u);
    EXPECT_EQ(stats[0].failures, 1u);
    EXPECT_EQ(stats[0].in_flight, 0u);
}

}  // namespace
}  // namespace spanker::daemon::test
