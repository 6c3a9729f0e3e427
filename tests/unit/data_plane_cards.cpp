// SPDX-License-Identifier: Apache-2.0
//
// Cards that are reset, go away and come back under the plane.
#include "data_fake_backend.hpp"
#include "data_rig.hpp"

namespace spanker::daemon::test {
namespace {

struct bed {
    bed() : rig(cards), session(rig.opened()), rings(session) {}
    fake_backend cards{3};
    plane_rig rig;
    session_fds session;
    client_rings rings;
};

spanker_sqe write_tensor(std::uint64_t tensor, std::uint64_t buffer, std::uint64_t bytes)
{
    spanker_sqe e = {.opcode = SPANKER_SOP_WRITE_TENSOR, .user_data = 1};
    e.transfer = {.tensor = static_cast<std::uint32_t>(tensor),
                  .buffer = static_cast<std::uint32_t>(buffer),
                  .bytes = bytes};
    return e;
}

TEST(data_cards, one_that_goes_in_the_middle_ends_its_requests_by_name)
{
    bed b;
    b.cards.card(0).hold = true;
    b.rings.push({nop(1)});
    ASSERT_TRUE(b.rig.until([&] { return b.cards.card(0).count(SPK_OP_NOP) == 1; }));
    b.cards.card(0).lose(SPANKER_ERR_CARD_LOST);
    b.rig.data->card_changed(0, SPANKER_CARD_GONE);
    const auto cqe = b.rig.next(b.rings);
    ASSERT_TRUE(cqe);
    EXPECT_EQ(cqe->res, -ENODEV);
    EXPECT_EQ(cqe->kind, SPANKER_ERR_CARD_LOST);
    EXPECT_EQ(cqe->card, 0u);
}

TEST(data_cards, the_next_request_uses_what_is_left)
{
    bed b;
    b.cards.card(0).lose(SPANKER_ERR_CARD_LOST);
    b.rig.data->card_changed(0, SPANKER_CARD_GONE);
    b.rings.push({nop(1)});
    EXPECT_EQ(b.rig.next(b.rings)->res, 0);
    EXPECT_EQ(b.cards.card(1).count(SPK_OP_NOP), 1u);
    const auto t = b.rig.add_tensor(b.session.id, {.shape = {256}});
    ASSERT_TRUE(t);
    EXPECT_EQ(b.cards.card(0).used_bytes, 0u);
    EXPECT_EQ(b.cards.card(1).used_bytes, 1024u);
}

TEST(data_cards, a_loss_that_nobody_told_is_learnt_from_the_refusal)
{
    bed b;
    b.rings.push({nop(0)});
    EXPECT_EQ(b.rig.next(b.rings)->res, 0);
    b.cards.card(0).lose(SPANKER_ERR_CARD_LOST);
    b.rings.push({nop(1)});
    EXPECT_EQ(b.rig.next(b.rings)->res, -ENODEV);
    b.rings.push({nop(2)});
    EXPECT_EQ(b.rig.next(b.rings)->res, 0);
}

// It hung and was aborted, or its queue had to be started again: the card is sound, and what is on it stays.
TEST(data_cards, a_command_that_the_driver_gave_up_costs_nobody_his_tensors)
{
    bed b;
    client_memory m(4096);
    const auto buffer = b.rig.add_buffer(b.session.id, m);
    const auto t = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    ASSERT_TRUE(buffer && t);
    b.cards.card(1).failures.push_back({SPK_OP_DMA_IN, -EIO, SPANKER_CARD_CANCELLED, 0, 0});
    const auto failed = b.rig.submit(b.session.id, {write_tensor(*t, *buffer, 4096)});
    EXPECT_EQ(failed[0].cqe.res, -EIO);
    EXPECT_EQ(failed[0].cqe.kind, SPANKER_ERR_CARD_FAILED);
    EXPECT_EQ(failed[0].cqe.card, 1u);
    const auto good = b.rig.submit(b.session.id, {write_tensor(*t, *buffer, 4096)});
    EXPECT_EQ(good[0].cqe.res, 0) << good[0].message;
}

TEST(data_cards, a_command_that_fails_on_a_dead_card_tells_that_it_is_dead)
{
    bed b;
    client_memory m(4096);
    const auto buffer = b.rig.add_buffer(b.session.id, m);
    const auto t = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    ASSERT_TRUE(buffer && t);
    b.cards.card(1).failures.push_back({SPK_OP_DMA_IN, -EIO, SPANKER_CARD_CANCELLED, 0, 0, true});
    const auto failed = b.rig.submit(b.session.id, {write_tensor(*t, *buffer, 4096)});
    EXPECT_EQ(failed[0].cqe.kind, SPANKER_ERR_CARD_FAILED);
    EXPECT_EQ(b.rig.submit(b.session.id, {nop(1)})[0].cqe.res, 0) << "by the card that is left";
    EXPECT_EQ(b.cards.card(0).count(SPK_OP_NOP), 1u);
}

TEST(data_cards, memory_from_before_a_reset_is_stale_for_good)
{
    bed b;
    client_memory m(4096);
    const auto buffer = b.rig.add_buffer(b.session.id, m);
    const auto old = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    b.rig.data->card_changed(1, SPANKER_CARD_RESETTING);
    b.rig.data->card_changed(1, SPANKER_CARD_READY);
    const auto stale = b.rig.submit(b.session.id, {write_tensor(*old, *buffer, 4096)});
    EXPECT_EQ(stale[0].cqe.res, -ESTALE);
    EXPECT_NE(stale[0].message.find("card 1 was reset"), std::string::npos) << stale[0].message;
    const auto fresh = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    const auto good = b.rig.submit(b.session.id, {write_tensor(*fresh, *buffer, 4096)});
    EXPECT_EQ(good[0].cqe.res, 0) << good[0].message;  // the buffer survived
    EXPECT_TRUE(b.rig.drop_tensor(b.session.id, *old));
}

TEST(data_cards, a_reset_that_nobody_told_is_found_when_the_card_says_ready)
{
    bed b;
    const auto old = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    ASSERT_TRUE(old);
    b.cards.card(1).reset();
    b.rig.data->card_changed(1, SPANKER_CARD_READY);
    client_memory m(4096);
    const auto buffer = b.rig.add_buffer(b.session.id, m);
    EXPECT_EQ(b.rig.submit(b.session.id, {write_tensor(*old, *buffer, 4096)})[0].cqe.res, -ESTALE);
    const auto fresh = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    ASSERT_TRUE(fresh) << fresh.error().message;
    EXPECT_EQ(b.rig.submit(b.session.id, {write_tensor(*fresh, *buffer, 4096)})[0].cqe.res, 0);
}

TEST(data_cards, a_reset_without_any_event_costs_one_call)
{
    bed b;
    b.rig.settle(b.session.id);  // the cards are open
    b.cards.card(1).reset();
    EXPECT_EQ(b.rig.add_tensor(b.session.id, {.shape = {1024}}).error().kind,
              SPANKER_ERR_CARD_RESET);
    EXPECT_TRUE(b.rig.add_tensor(b.session.id, {.shape = {1024}}));
    b.cards.card(0).reset();
    EXPECT_EQ(b.rig.submit(b.session.id, {nop(1)})[0].cqe.res, -ESTALE);
    EXPECT_EQ(b.rig.submit(b.session.id, {nop(1)})[0].cqe.res, 0);
}

TEST(data_cards, a_buffer_that_a_reset_card_refuses_costs_one_call)
{
    bed b;
    client_memory m(4096);
    const auto tensor = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    b.rig.data->card_changed(2, SPANKER_CARD_RESETTING);
    const auto buffer = b.rig.add_buffer(b.session.id, m);  // not on card 2
    b.rig.data->card_changed(2, SPANKER_CARD_READY);
    const auto fresh = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    b.cards.card(2).reset();
    EXPECT_EQ(b.rig.submit(b.session.id, {write_tensor(*fresh, *buffer, 4096)})[0].cqe.res,
              -ESTALE);
    EXPECT_TRUE(b.rig.add_tensor(b.session.id, {.shape = {1024}}));
    EXPECT_TRUE(b.rig.drop_tensor(b.session.id, *tensor));
}

TEST(data_cards, memory_of_a_card_that_is_gone_is_lost)
{
    bed b;
    client_memory m(4096);
    const auto buffer = b.rig.add_buffer(b.session.id, m);
    const auto t = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    b.rig.data->card_changed(2, SPANKER_CARD_GONE);
    const auto lost = b.rig.submit(b.session.id, {write_tensor(*t, *buffer, 4096)});
    EXPECT_EQ(lost[0].cqe.res, -ENODEV);
    EXPECT_TRUE(b.rig.drop_tensor(b.session.id, *t));
    EXPECT_TRUE(b.rig.drop_buffer(b.session.id, *buffer));
    for (unsigned c = 0; c < 3; c++) {
        EXPECT_EQ(b.cards.card(c).used_bytes, 0u) << c;
        EXPECT_EQ(b.cards.card(c).buffers, 0u) << c;
    }
}

TEST(data_cards, a_session_outlives_all_its_cards)
{
    bed b;
    for (std::uint32_t c = 0; c < 3; c++)
        b.rig.data->card_changed(c, SPANKER_CARD_DEAD);
    b.rings.push({nop(1)});
    EXPECT_EQ(b.rig.next(b.rings)->res, -ENODEV);
    EXPECT_EQ(b.rig.add_tensor(b.session.id, {.shape = {4}}).error().kind, SPANKER_ERR_NO_SAILS);
    b.rig.data->card_changed(1, SPANKER_CARD_READY);
    b.rings.push({nop(2)});
    EXPECT_EQ(b.rig.next(b.rings)->res, 0);
}

TEST(data_cards, resident_weights_do_not_survive_a_reset)
{
    bed b;
    constexpr std::uint64_t rows = 12;
    const auto file = [] {
        return make_memfd(4096 * 2, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    };
    const weights_options how = {.n_out = rows, .k = 256, .how = collective::sharding::rows};
    ASSERT_TRUE(b.rig.load(b.session.id, file(), how));
    EXPECT_TRUE(b.rig.load(b.session.id, file(), how)->resident);
    b.rig.data->card_changed(0, SPANKER_CARD_RESETTING);
    b.rig.data->card_changed(0, SPANKER_CARD_READY);
    EXPECT_FALSE(b.rig.load(b.session.id, file(), how)->resident);
}

TEST(data_cards, tensors_of_different_cards_cannot_meet_in_a_run)
{
    bed b;
    client_memory m(4096);
    const auto buffer = b.rig.add_buffer(b.session.id, m);
    b.rig.data->card_changed(0, SPANKER_CARD_GONE);
    const auto two = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    b.rig.data->card_changed(0, SPANKER_CARD_READY);
    const auto three = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    ASSERT_TRUE(two && three);
    spanker_sqe first = write_tensor(*two, *buffer, 4096);
    first.flags = SPANKER_SQE_LINKED;
    const auto r = b.rig.submit(b.session.id, {first, write_tensor(*three, *buffer, 4096)});
    EXPECT_EQ(r[0].cqe.res, -ECANCELED);
    EXPECT_EQ(r[1].cqe.res, -EINVAL);
    EXPECT_NE(r[1].message.find("other cards"), std::string::npos) << r[1].message;
}

// What is read from memory by one handle and then written by another stands in two segments: the
// second waits until all cards have done the first, and nothing of it is on any card yet.
struct two_segments : bed {
    two_segments()
    {
        const auto buffer = rig.add_buffer(session.id, memory);
        const auto alias = rig.add_buffer(session.id, memory);
        const auto tensor =
            rig.add_tensor(session.id, {.layout = SPANKER_LAYOUT_ROW_SHARD, .shape = {3 * 1024}});
        spanker_sqe in = write_tensor(*tensor, *buffer, memory.bytes), out = in;
        in.flags = SPANKER_SQE_LINKED;
        out.opcode = SPANKER_SOP_READ_TENSOR;
        out.user_data = 2;
        out.transfer.buffer = static_cast<std::uint32_t>(*alias);  // the same memory
        entries = {in, out};
    }
    client_memory memory{3 * 4096};
    std::vector<spanker_sqe> entries;
};

TEST(data_cards, one_that_goes_between_two_segments_ends_the_request)
{
    two_segments b;
    for (unsigned c = 0; c < 3; c++)
        b.cards.card(c).hold = true;
    b.rings.push({b.entries[0], b.entries[1]});
    ASSERT_TRUE(b.rig.until([&] { return b.cards.card(0).count(SPK_OP_DMA_IN) == 1; }));
    b.cards.release(2);  // card 2 has done its part; card 0 has not
    b.rig.settle(b.session.id);
    ASSERT_EQ(b.cards.card(2).count(SPK_OP_DMA_OUT), 0u);
    b.rig.data->card_changed(2, SPANKER_CARD_RESETTING);
    b.rig.data->card_changed(2, SPANKER_CARD_READY);
    b.rig.settle(b.session.id);
    b.cards.release(0);
    b.cards.release(1);
    for (int i = 0; i < 2; i++) {
        const auto cqe = b.rig.next(b.rings);
        ASSERT_TRUE(cqe);
        EXPECT_TRUE(cqe->res == -ESTALE || cqe->res == -ECANCELED) << cqe->res;
    }
    EXPECT_EQ(b.cards.card(2).count(SPK_OP_DMA_OUT), 0u);
}

TEST(data_cards, a_later_segment_that_is_refused_ends_the_request)
{
    two_segments b;
    {
        std::lock_guard held(b.cards.card(0).lock);
        b.cards.card(0).refuse = SPANKER_ERR_DENIED;
        b.cards.card(0).refuse_opcode = SPK_OP_DMA_OUT;
    }
    b.rings.push({b.entries[0], b.entries[1]});
    for (int i = 0; i < 2; i++) {
        const auto cqe = b.rig.next(b.rings);
        ASSERT_TRUE(cqe);
        EXPECT_NE(cqe->res, 0);
    }
}

}  // namespace
}  // namespace spanker::daemon::test
