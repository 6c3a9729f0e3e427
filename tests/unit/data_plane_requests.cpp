// SPDX-License-Identifier: Apache-2.0
//
// Requests through rings and through Submit: one answer each, in which order,
// with which error.
#include <algorithm>

#include "daemon/clock.hpp"
#include "data_fake_backend.hpp"
#include "data_rig.hpp"

namespace spanker::daemon::test {
namespace {

struct bed {
    explicit bed(plane_limits limits = {})
        : rig(cards, limits), session(rig.opened()), rings(session)
    {}
    std::vector<spanker_cqe> take(std::size_t n)
    {
        std::vector<spanker_cqe> all;
        for (std::size_t i = 0; i < n; i++)
            all.push_back(rig.next(rings).value_or(spanker_cqe{.user_data = ~0ull}));
        return all;
    }
    fake_backend cards{2};
    plane_rig rig;
    session_fds session;
    client_rings rings;
};

// Request 1 is on a card that holds it; the answer, 2, will wait for it longer than it may.
spanker_sqe late_behind_a_held_card(bed& b)
{
    b.cards.card(0).hold = true;
    b.rings.push({nop(1)});
    EXPECT_TRUE(b.rig.until([&] { return b.cards.card(0).count(SPK_OP_NOP) == 1; }));
    spanker_sqe late = nop(2, SPANKER_SQE_BARRIER);
    late.deadline_ns = monotonic_ns() + 20'000'000;
    return late;
}

spanker_sqe cancel(std::uint64_t user_data, std::uint64_t target)
{
    spanker_sqe e = {.opcode = SPANKER_SOP_CANCEL, .user_data = user_data};
    e.cancel.user_data = target;
    return e;
}

TEST(data_requests, an_empty_request_goes_through_a_card_and_back)
{
    bed b;
    b.rings.push({nop(42)});
    const auto cqe = b.take(1)[0];
    EXPECT_EQ(cqe.user_data, 42u);
    EXPECT_EQ(cqe.res, 0);
    EXPECT_EQ(cqe.card, SPANKER_NO_CARD);
    EXPECT_EQ(cqe.link, SPANKER_NO_LINK);
    EXPECT_EQ(b.cards.card(0).count(SPK_OP_NOP), 1u);
    EXPECT_EQ(b.cards.card(1).count(SPK_OP_NOP), 0u);
}

TEST(data_requests, thousands_go_around_the_rings)
{
    bed b;
    std::uint64_t sent = 0, got = 0, sum = 0;
    ASSERT_TRUE(b.rig.until([&] {
        while (sent < 5000 &&
               sent - __atomic_load_n(&b.rings.header->sq.head, __ATOMIC_ACQUIRE) < 16)
            b.rings.push({nop(++sent)});
        while (const auto cqe = b.rings.pop()) {
            got++;
            sum += cqe->user_data;
        }
        return got == 5000;
    }));
    EXPECT_EQ(sum, 5000u * 5001 / 2);
}

TEST(data_requests, a_quiet_success_writes_no_completion)
{
    bed b;
    b.rings.push({nop(1, SPANKER_SQE_NO_CQE_ON_SUCCESS), nop(2)});
    EXPECT_EQ(b.take(1)[0].user_data, 2u);
    EXPECT_EQ(b.rings.header->cq.tail, 1u);
    b.rings.push({nop(3, SPANKER_SQE_NO_CQE_ON_SUCCESS | 0x40)});
    EXPECT_EQ(b.take(1)[0].res, -EINVAL);  // failures always speak
}

TEST(data_requests, the_daemon_takes_no_more_than_the_completion_ring_holds)
{
    bed b;
    for (std::uint64_t i = 0; i < 32; i++) {  // cq has 32 entries and nobody reads
        ASSERT_TRUE(b.rig.until(
            [&] { return i - __atomic_load_n(&b.rings.header->sq.head, __ATOMIC_ACQUIRE) < 16; }));
        b.rings.push({nop(i)});
    }
    ASSERT_TRUE(b.rig.until(
        [&] { return __atomic_load_n(&b.rings.header->cq.tail, __ATOMIC_ACQUIRE) == 32; }));
    b.rings.push({nop(32)});
    b.rig.settle(b.session.id);
    EXPECT_EQ(__atomic_load_n(&b.rings.header->sq.head, __ATOMIC_ACQUIRE), 32u);
    EXPECT_EQ(b.rings.pop()->user_data, 0u);  // room for one, and no doorbell is rung
    ASSERT_TRUE(b.rig.until(
        [&] { return __atomic_load_n(&b.rings.header->cq.tail, __ATOMIC_ACQUIRE) == 33; }));
}

TEST(data_requests, a_sleeping_client_is_woken)
{
    bed b;
    b.rings.header->cq.sleeping = 1;
    b.rings.push({nop(1)});
    pollfd p = {.fd = b.rings.cq_bell, .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&p, 1, patience_ms), 1);
}

TEST(data_requests, a_bad_entry_of_a_linked_run_cancels_the_others)
{
    bed b;
    b.rings.push({nop(1, SPANKER_SQE_LINKED), nop(2, SPANKER_SQE_LINKED | 0x80),
                  nop(3, SPANKER_SQE_LINKED), nop(4), nop(5)});
    for (const spanker_cqe& cqe : b.take(5))
        EXPECT_EQ(cqe.res, cqe.user_data == 2   ? -EINVAL
                           : cqe.user_data == 5 ? 0
                                                : -ECANCELED)
            << cqe.user_data;
    EXPECT_EQ(b.cards.card(0).count(SPK_OP_NOP), 1u);
}

TEST(data_requests, a_linked_run_is_one_batch)
{
    bed b;
    b.rings.push({nop(1, SPANKER_SQE_LINKED), nop(2, SPANKER_SQE_LINKED), nop(3)});
    for (const spanker_cqe& cqe : b.take(3))
        EXPECT_EQ(cqe.res, 0);
    EXPECT_EQ(b.cards.card(0).count(SPK_OP_NOP), 3u);
}

TEST(data_requests, a_failure_in_the_middle_is_laid_to_its_entry)
{
    bed b;
    client_memory m(4096);
    const auto buffer = b.rig.add_buffer(b.session.id, m);
    const auto tensor = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    spanker_sqe write = {
        .opcode = SPANKER_SOP_WRITE_TENSOR, .flags = SPANKER_SQE_LINKED, .user_data = 2};
    write.transfer = {.tensor = static_cast<std::uint32_t>(*tensor),
                      .buffer = static_cast<std::uint32_t>(*buffer),
                      .bytes = 4096};
    b.cards.card(0).failures.push_back({SPK_OP_DMA_IN, -EFAULT, SPANKER_CARD_HOST_FAULT, 17, 0});
    b.rings.push({nop(1, SPANKER_SQE_LINKED), write, nop(3)});
    for (const spanker_cqe& cqe : b.take(3)) {
        EXPECT_EQ(cqe.res, cqe.user_data == 1   ? 0
                           : cqe.user_data == 2 ? -EFAULT
                                                : -ECANCELED)
            << cqe.user_data;
        if (cqe.user_data == 2) {
            EXPECT_EQ(cqe.card_status, SPANKER_CARD_HOST_FAULT);
            EXPECT_EQ(cqe.card, 0u);
            EXPECT_EQ(cqe.detail, 17u);
            EXPECT_EQ(cqe.kind, SPANKER_ERR_HOST_FAULT);
        }
    }
}

TEST(data_requests, poisoned_signals_are_cleared_before_they_are_used_again)
{
    bed b;
    for (int i = 0; i < 300; i++) {
        b.cards.card(0).failures.push_back({SPK_OP_NOP, -EFAULT, SPANKER_CARD_HOST_FAULT, 0, 0});
        b.rings.push({nop(1, SPANKER_SQE_LINKED), nop(2)});
        b.take(2);
    }
    b.rings.push({nop(1, SPANKER_SQE_LINKED), nop(2)});
    EXPECT_EQ(b.take(2)[0].res, 0);
}

TEST(data_requests, links_are_named_by_card_and_port)
{
    bed b;
    b.cards.card(0).failures.push_back({SPK_OP_NOP, -ENOLINK, SPANKER_CARD_POISONED, 0,
                                        SPK_ORIGIN(1, 3, 9, SPANKER_CARD_LINK_DOWN, 1)});
    b.rings.push({nop(1)});
    const auto cqe = b.take(1)[0];
    EXPECT_EQ(cqe.res, -ENOLINK);
    EXPECT_EQ(cqe.kind, SPANKER_ERR_LINK_DOWN);
    EXPECT_EQ(cqe.card, 1u);
    EXPECT_EQ(cqe.link, 1u << 8 | 1);
}

TEST(data_requests, an_open_run_waits_for_its_end)
{
    bed b;
    b.rings.push({nop(1, SPANKER_SQE_LINKED)});
    b.rig.settle(b.session.id);
    EXPECT_EQ(b.cards.card(0).count(SPK_OP_NOP), 0u);
    b.rings.push({nop(2)});
    EXPECT_EQ(b.take(2)[1].res, 0);
}

TEST(data_requests, a_run_without_end_is_refused_once)
{
    bed b;
    for (std::uint64_t i = 1; i <= 20; i++) {
        ASSERT_TRUE(b.rig.until(
            [&] { return i - __atomic_load_n(&b.rings.header->sq.head, __ATOMIC_ACQUIRE) <= 16; }));
        b.rings.push({nop(i, i < 20 ? SPANKER_SQE_LINKED : 0)});
    }
    b.rings.push({nop(21)});
    unsigned invalid = 0, cancelled = 0, good = 0;
    for (const spanker_cqe& cqe : b.take(21)) {
        invalid += cqe.res == -EINVAL;
        cancelled += cqe.res == -ECANCELED;
        good += cqe.res == 0;
    }
    EXPECT_EQ(invalid, 1u);
    EXPECT_EQ(cancelled, 19u);
    EXPECT_EQ(good, 1u);
}

// Pushes as the ring takes them.
void push_all(bed& b, const std::vector<spanker_sqe>& entries)
{
    for (const spanker_sqe& e : entries) {
        const auto tail = b.rings.header->sq.tail;
        ASSERT_TRUE(b.rig.until([&] {
            return tail - __atomic_load_n(&b.rings.header->sq.head, __ATOMIC_ACQUIRE) < 16;
        }));
        b.rings.push({e});
    }
}

std::vector<spanker_sqe> linked_run(std::uint64_t first, std::uint64_t length)
{
    std::vector<spanker_sqe> run;
    for (std::uint64_t i = 0; i < length; i++)
        run.push_back(nop(first + i, i + 1 < length ? SPANKER_SQE_LINKED : 0));
    return run;
}

TEST(data_requests, a_long_run_behind_one_that_waits_is_refused_whole)
{
    bed b;
    b.cards.card(0).hold = true;
    push_all(b, {nop(1), nop(2, SPANKER_SQE_BARRIER)});
    ASSERT_TRUE(b.rig.until([&] { return b.cards.card(0).count(SPK_OP_NOP) == 1; }));
    push_all(b, linked_run(100, 25));
    push_all(b, {nop(200)});
    b.rig.settle(b.session.id);
    EXPECT_EQ(b.cards.card(0).count(SPK_OP_NOP), 1u);
    b.cards.release(0);
    for (const spanker_cqe& cqe : b.take(28))
        EXPECT_EQ(cqe.res, cqe.user_data == 100                         ? -EINVAL
                           : cqe.user_data > 100 && cqe.user_data < 200 ? -ECANCELED
                                                                        : 0)
            << cqe.user_data;
    EXPECT_EQ(b.cards.card(0).count(SPK_OP_NOP), 3u);
}

TEST(data_requests, a_barrier_waits_for_all_before_it)
{
    bed b;
    b.cards.card(0).hold = true;
    b.rings.push({nop(1), nop(2), nop(3, SPANKER_SQE_BARRIER)});
    ASSERT_TRUE(b.rig.until([&] { return b.cards.card(0).count(SPK_OP_NOP) == 2; }));
    b.rig.settle(b.session.id);
    EXPECT_EQ(b.cards.card(0).count(SPK_OP_NOP), 2u);
    b.cards.release(0);
    EXPECT_EQ(b.take(3)[2].user_data, 3u);
}

TEST(data_requests, cancel_ends_what_flies_and_what_waits)
{
    bed b;
    b.cards.card(0).hold = true;
    b.rings.push({nop(7), nop(8, SPANKER_SQE_BARRIER)});
    ASSERT_TRUE(b.rig.until([&] { return b.cards.card(0).count(SPK_OP_NOP) == 1; }));
    b.rings.push({cancel(100, 8), cancel(101, 7), cancel(102, 55)});
    for (const spanker_cqe& cqe : b.take(5))
        EXPECT_EQ(cqe.res, cqe.user_data >= 102   ? -ENOENT
                           : cqe.user_data >= 100 ? 0
                                                  : -ECANCELED)
            << cqe.user_data;
}

TEST(data_requests, cancels_use_up_the_room_for_completions)
{
    bed b;
    for (std::uint64_t i = 0; i < 31; i++)
        push_all(b, {nop(i)});
    ASSERT_TRUE(b.rig.until(
        [&] { return __atomic_load_n(&b.rings.header->cq.tail, __ATOMIC_ACQUIRE) == 31; }));
    for (std::uint64_t i = 0; i < 8; i++)
        push_all(b, {cancel(100 + i, 77)});
    b.rig.settle(b.session.id);
    EXPECT_EQ(__atomic_load_n(&b.rings.header->cq.tail, __ATOMIC_ACQUIRE), 32u);
    std::uint64_t sum = 0;
    for (const spanker_cqe& cqe : b.take(39))
        sum += cqe.user_data;
    EXPECT_EQ(sum, 30u * 31 / 2 + 8 * 100 + 28);
    EXPECT_TRUE(b.rig.closed.empty());
}

TEST(data_requests, a_cancelled_entry_does_not_wait_for_those_before_it)
{
    bed b;
    b.cards.card(0).hold = true;
    b.rings.push({nop(1), nop(2, SPANKER_SQE_BARRIER), nop(3), nop(4)});
    ASSERT_TRUE(b.rig.until([&] { return b.cards.card(0).count(SPK_OP_NOP) == 1; }));
    b.rings.push({cancel(100, 3)});
    for (const spanker_cqe& cqe : b.take(2))
        EXPECT_EQ(cqe.res, cqe.user_data == 3 ? -ECANCELED : 0) << cqe.user_data;
    b.cards.release(0);
    EXPECT_EQ(b.take(3)[2].user_data, 4u);
}

TEST(data_requests, a_late_entry_does_not_wait_for_those_before_it)
{
    bed b;
    b.cards.card(0).hold = true;
    spanker_sqe late = nop(3);
    late.deadline_ns = monotonic_ns() + 10'000'000;
    b.rings.push({nop(1), nop(2, SPANKER_SQE_BARRIER), late});
    EXPECT_EQ(b.take(1)[0].res, -ETIMEDOUT);
}

TEST(data_requests, a_linked_cancel_is_refused)
{
    bed b;
    spanker_sqe linked = cancel(1, 5);
    linked.flags = SPANKER_SQE_LINKED;
    b.rings.push({linked, nop(2)});
    for (const spanker_cqe& cqe : b.take(2))
        EXPECT_EQ(cqe.res, cqe.user_data == 1 ? -EINVAL : -ECANCELED);
}

TEST(data_requests, deadlines_end_what_waits)
{
    bed b;
    const spanker_sqe late = late_behind_a_held_card(b);
    b.rings.push({late});
    const auto cqe = b.take(1)[0];
    EXPECT_EQ(cqe.user_data, 2u);
    EXPECT_EQ(cqe.res, -ETIMEDOUT);
    EXPECT_GE(monotonic_ns(), late.deadline_ns);
}

TEST(data_requests, deadlines_end_runs_that_never_came_whole)
{
    bed b;
    spanker_sqe open = nop(1, SPANKER_SQE_LINKED);
    open.deadline_ns = monotonic_ns() + 10'000'000;
    b.rings.push({open});
    EXPECT_EQ(b.take(1)[0].res, -ETIMEDOUT);
    b.rings.push({nop(2), nop(3)});  // 2 is the late end of the run
    EXPECT_EQ(b.take(1)[0].res, -ECANCELED);
    EXPECT_EQ(b.take(1)[0].res, 0);
}

TEST(data_requests, entries_carry_their_deadline_to_the_card)
{
    bed b({.default_deadline_ns = 5'000'000'000});
    const std::uint64_t before = monotonic_ns();
    spanker_sqe own = nop(2);
    own.deadline_ns = before + 9'000'000'000;
    b.rings.push({nop(1), own});
    b.take(2);
    const auto& trace = b.cards.card(0).trace;
    ASSERT_EQ(trace.size(), 2u);
    EXPECT_GE(trace[0].deadline_ns, before + 5'000'000'000);
    EXPECT_EQ(trace[1].deadline_ns, own.deadline_ns);
}

TEST(data_requests, more_than_the_card_takes_waits_its_turn)
{
    fake_backend cards(1, 4);  // three commands at once
    plane_rig rig(cards);
    const auto s = rig.open();
    client_rings rings(*s);
    for (std::uint64_t i = 1; i <= 16; i++)
        rings.push({nop(i)});
    std::uint64_t sum = 0;
    for (int i = 0; i < 16; i++)
        sum += rig.next(rings)->user_data;
    EXPECT_EQ(sum, 136u);
}

TEST(data_requests, one_users_backlog_does_not_hold_up_another)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    const auto greedy = rig.open(1), modest = rig.open(2);
    client_rings many(*greedy), one(*modest);
    cards.card(0).hold = true;
    for (std::uint64_t i = 0; i < 16; i++)
        many.push({nop(i)});
    ASSERT_TRUE(rig.until([&] { return cards.card(0).count(SPK_OP_NOP) == 8; }));
    spanker_sqe marked = nop(99);
    marked.deadline_ns = monotonic_ns() + 77'000'000'000;
    one.push({marked});
    rig.settle(modest->id);
    cards.release(0);
    EXPECT_EQ(rig.next(one)->res, 0);
    ASSERT_TRUE(
        rig.until([&] { return __atomic_load_n(&many.header->cq.tail, __ATOMIC_ACQUIRE) == 16; }));
    // Behind what was on the card already, before the rest of the backlog.
    const auto& trace = cards.card(0).trace;
    ASSERT_EQ(trace.size(), 17u);
    EXPECT_EQ(trace[8].deadline_ns, marked.deadline_ns);
}

// ---- Submit ----

TEST(data_submit, answers_each_entry)
{
    bed b;
    const auto results = b.rig.submit(b.session.id, {nop(5), nop(6, 0x80), nop(7)});
    ASSERT_EQ(results.size(), 3u);
    EXPECT_EQ(results[0].cqe.res, 0);
    EXPECT_EQ(results[0].cqe.user_data, 5u);
    EXPECT_TRUE(results[0].message.empty());
    EXPECT_EQ(results[1].cqe.res, -EINVAL);
    EXPECT_NE(results[1].message.find("unknown flags"), std::string::npos);
    EXPECT_EQ(results[2].cqe.res, 0);
    EXPECT_EQ(b.rings.header->cq.tail, 0u);  // nothing in the rings
}

TEST(data_submit, an_empty_list_is_done)
{
    bed b;
    EXPECT_TRUE(b.rig.submit(b.session.id, {}).empty());
}

result<std::vector<entry_result>> raw_submit(bed& b, std::vector<spanker_sqe> entries)
{
    return b.rig.wait<std::vector<entry_result>>([&](reply<std::vector<entry_result>> done) {
        b.rig.data->submit(b.session.id, std::move(entries), std::move(done));
    });
}

TEST(data_submit, a_list_cannot_end_linked)
{
    bed b;
    EXPECT_EQ(raw_submit(b, {nop(1, SPANKER_SQE_LINKED)}).error().kind, SPANKER_ERR_INVALID);
}

TEST(data_submit, a_run_may_have_64_entries_and_no_more)
{
    bed b;
    EXPECT_EQ(raw_submit(b, linked_run(1, 65)).error().kind, SPANKER_ERR_INVALID);
    EXPECT_EQ(raw_submit(b, linked_run(1, 64))->at(63).cqe.res, 0);
    auto hidden = linked_run(10, 72);
    hidden.insert(hidden.begin(), nop(1));
    EXPECT_EQ(raw_submit(b, hidden).error().kind, SPANKER_ERR_INVALID);
    EXPECT_EQ(b.cards.card(0).count(SPK_OP_NOP), 64u);
}

// Nothing else wakes the loop: the card is held and no entry comes.
TEST(data_submit, a_deadline_that_passes_while_it_waits_is_told)
{
    bed b;
    const spanker_sqe late = late_behind_a_held_card(b);
    const auto results = b.rig.submit(b.session.id, {late});
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].cqe.res, -ETIMEDOUT);
}

// The barrier's end lets the last one start.
TEST(data_submit, what_stood_behind_a_late_entry_starts)
{
    bed b;
    b.cards.card(0).hold = true;
    spanker_sqe late = nop(2, SPANKER_SQE_BARRIER);
    late.deadline_ns = monotonic_ns() + 20'000'000;
    b.rings.push({nop(1), late, nop(3)});
    EXPECT_TRUE(b.rig.until([&] { return b.cards.card(0).count(SPK_OP_NOP) == 2; }));
}

TEST(data_submit, two_handles_of_one_memory_overlap_like_one)
{
    bed b;
    client_memory m(4 * 4096);
    const auto whole = b.rig.add_buffer(b.session.id, m);
    const auto last =
        b.rig.add_buffer(b.session.id, m.share(), {.offset = 8192, .bytes = 8192, .access = 3});
    spanker_sqe e = {.opcode = SPANKER_SOP_ALL_REDUCE};
    e.collective.src_kind = e.collective.dst_kind = SPANKER_KIND_BUFFER;
    e.collective.src_handle = static_cast<std::uint32_t>(*whole);
    e.collective.dst_handle = static_cast<std::uint32_t>(*last);
    e.collective.count = 1024;
    const auto apart = b.rig.submit(b.session.id, {e});
    EXPECT_EQ(apart[0].message.find("overlap"), std::string::npos) << apart[0].message;
    e.collective.src_offset = 4;
    const auto meet = b.rig.submit(b.session.id, {e});
    EXPECT_EQ(meet[0].cqe.res, -EINVAL);
    EXPECT_NE(meet[0].message.find("overlap"), std::string::npos) << meet[0].message;
}

TEST(data_submit, too_many_entries_are_refused_whole)
{
    bed b({.portable_in_flight = 4});
    EXPECT_EQ(raw_submit(b, std::vector<spanker_sqe>(5, nop(1))).error().kind, SPANKER_ERR_AGAIN);
    EXPECT_TRUE(raw_submit(b, std::vector<spanker_sqe>(4, nop(1))));
    EXPECT_TRUE(raw_submit(b, std::vector<spanker_sqe>(4, nop(1))));
}

TEST(data_submit, handles_of_the_wrong_kind_are_named)
{
    bed b;
    const auto t = b.rig.add_tensor(b.session.id, {.shape = {256}});
    spanker_sqe e = {.opcode = SPANKER_SOP_MATMUL};
    e.matmul = {.weights = static_cast<std::uint32_t>(*t),
                .n_tok = 1,
                .x_kind = SPANKER_KIND_BUFFER,
                .y_kind = SPANKER_KIND_BUFFER};
    const auto r = b.rig.submit(b.session.id, {e});
    EXPECT_EQ(r[0].cqe.res, -ENOENT);
    EXPECT_NE(r[0].message.find("names a tensor"), std::string::npos) << r[0].message;
}

}  // namespace
}  // namespace spanker::daemon::test
