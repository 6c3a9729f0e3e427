// SPDX-License-Identifier: Apache-2.0
//
// Cards that do not do their work: who learns of it, when, and what is done about it (kernel/core/ladder.h).
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <variant>

#include "fabric.hpp"
#include "rig.hpp"
#include "uapi/spanker_netlink.h"

namespace contract {

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t hang_ns = hang_ms * 1'000'000;

}  // namespace

class recovery : public rig {
protected:
    void SetUp() override
    {
        rig::SetUp();
        if (IsSkipped() || HasFatalFailure())
            return;
        card = cards->cards().front();
        if (!can_inject(card))
            GTEST_SKIP() << "faults cannot be injected here";
        forgive(card);
        generation = cards->info(card)->out_reset_generation;
        (void)cards->take_events();
    }
    void TearDown() override
    {
        if (!cards || IsSkipped())
            return;
        for (const char* fault :
             {"queue_hang", "engine_hang", "fatal", "reset_stuck", "standstill"})
            (void)cards->inject(card, std::string("clear ") + fault);
        forgive(card);
    }
    void inject(const std::string& what) { ASSERT_EQ(errno_of(cards->inject(card, what)), 0); }
    std::uint32_t state() { return cards->info(card)->out_state; }
    bool was_reset() { return cards->info(card)->out_reset_generation != generation; }

    void look_at_events()
    {
        for (const auto& event : cards->take_events()) {
            if (const auto* rung = std::get_if<spanker::daemon::event_rung>(&event)) {
                if (rung->card == card)
                    rungs.emplace_back(rung->rung);
            } else if (const auto* hang = std::get_if<spanker::daemon::event_hang>(&event)) {
                if (hang->card == card)
                    hangs.push_back(*hang);
            } else if (const auto* heat = std::get_if<spanker::daemon::event_temperature>(&event)) {
                if (heat->card == card)
                    heats.push_back(heat->millidegrees);
            }
        }
    }
    // Whether it came to that within some seconds.
    bool comes(const std::function<bool()>& what)
    {
        for (int n = 0; n < 1500; n++) {
            settle();
            look_at_events();
            if (what())
                return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return false;
    }
    bool climbed(std::uint32_t rung)
    {
        return std::find(rungs.begin(), rungs.end(), rung) != rungs.end();
    }
    bool comes_to(std::uint32_t rung)
    {
        return comes([&] { return climbed(rung); });
    }
    // Work for the memory engine that no deadline ends soon.
    spanker_work_item work(std::uint32_t tensor)
    {
        auto what = fill(tensor, 0, 4096, 1);
        what.deadline_ns = now_ns() + 100 * second_ns;
        return what;
    }
    static spanker_work_item late_nop()
    {
        auto what = nop();
        what.deadline_ns = now_ns() + 50 * ms;
        return what;
    }
    // A queue that is being restarted takes no work for a moment.
    bool works(card_file& file)
    {
        const auto sent = file.submit(std::vector{nop()}, 99);
        return sent && wait(file)[0].result == 0;
    }
    static std::string hang_of_memory(const char* more = "")
    {
        return "engine_hang lane=" + std::to_string(SPK_ENGINE_MEMORY) + more;
    }
    // The engine zeroes what is free, after a reset all of it. Here it hangs in nothing but this file's work.
    void hang_memory_under(card_file& file, const char* more = "")
    {
        ASSERT_NE(alloc(file, cards->info(card)->out_memory_free_bytes), 0u);
        inject(hang_of_memory(more));
    }

    std::uint32_t card = 0;
    std::uint32_t generation = 0;
    std::vector<std::uint32_t> rungs;
    std::vector<spanker::daemon::event_hang> hangs;
    std::vector<std::int32_t> heats;
};

TEST_F(recovery, a_command_that_runs_without_progress_is_aborted_and_named)
{
    auto file = open(card), other = open(card);
    const auto tensor = alloc(*file, 4096);
    hang_memory_under(*file);
    const auto start_ns = now_ns();
    submit(*file, {work(tensor)});
    const auto ended = wait(*file)[0];
    EXPECT_EQ(ended.result, -EIO);
    EXPECT_EQ(ended.card_status, std::uint32_t{SPANKER_CARD_CANCELLED});
    EXPECT_GE(now_ns() - start_ns, hang_ns);
    ASSERT_TRUE(comes_to(SPANKER_RUNG_ABORT));
    ASSERT_EQ(hangs.size(), 1u);
    EXPECT_EQ(hangs[0].command_id, SPK_ORIGIN_ID(ended.origin));
    EXPECT_EQ(hangs[0].queue, SPK_ORIGIN_QUEUE(ended.origin));
    inject("clear engine_hang");
    EXPECT_EQ(run(*file, {work(tensor)}).result, 0);
    EXPECT_EQ(run(*other, {nop()}).result, 0);
    EXPECT_FALSE(was_reset());
    EXPECT_EQ(rungs.size(), 1u);
}

// A card in software computes as long as its host takes; nothing of it answers then but registers.
TEST_F(recovery, a_card_that_computes_for_long_is_waited_for)
{
    auto busy = open(card), cancels = open(card), closes = open(card);
    const auto tensor = alloc(*busy, 4096);
    submit(*closes, {wait_for_ever()});
    const auto seq = submit(*cancels, {wait_for_ever()});
    settle();
    inject("standstill ms=2500");
    submit(*busy, {work(tensor)});
    std::vector<spanker_record> done;
    std::thread waits([&] { done = wait(*busy); });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it computes by now
    EXPECT_EQ(errno_of(cancels->cancel(seq)), 0);
    closes.reset();
    waits.join();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].result, 0);
    const auto ended = wait(*cancels);
    ASSERT_EQ(ended.size(), 1u);
    EXPECT_EQ(ended[0].result, -ECANCELED);
    settle();
    look_at_events();
    EXPECT_FALSE(was_reset());
    EXPECT_TRUE(rungs.empty());
    EXPECT_TRUE(hangs.empty());
}

// Signals, peers and gangs take what time they take.
TEST_F(recovery, a_command_that_waits_is_no_hang)
{
    auto file = open(card);
    const auto tensor = alloc(*file, 4096);
    submit(*file, {waiting(work(tensor), 9)}, 7);
    settle();
    const auto end_ns = now_ns() + 3 * hang_ns;
    while (now_ns() < end_ns) {
        settle();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    look_at_events();
    EXPECT_TRUE(rungs.empty());
    spanker_record none[2];
    EXPECT_EQ(file->poll(none), 0u);
    submit(*file, {posting(nop(), 9)}, 8);
    for (const auto& record : wait(*file, 2))
        EXPECT_EQ(record.result, 0);
}

TEST_F(recovery, a_queue_that_decodes_nothing_is_started_again_and_disturbs_no_other)
{
    auto file = open(card), other = open(card);
    const auto tensor = alloc(*file, 4096), others = alloc(*other, 4096);
    inject("queue_hang queue=1 starts=1");
    auto first = work(tensor);
    first.deadline_ns = now_ns() + second_ns / 10;
    const auto start_ns = now_ns();
    submit(*file, {first}, 1);
    submit(*file, {work(tensor)}, 2);
    ASSERT_EQ(run(*other, {work(others)}).result, 0);
    auto ended = wait(*file);
    EXPECT_LT(now_ns() - start_ns, second_ns / 10 + second_ns) << "within the time-out and 1 s";
    if (ended.size() == 1)
        ended.push_back(wait(*file)[0]);
    EXPECT_EQ(ended[0].cookie, 1u);
    EXPECT_EQ(ended[0].result, -ETIMEDOUT);
    EXPECT_EQ(ended[1].cookie, 2u);
    EXPECT_EQ(ended[1].result, -EIO);
    ASSERT_TRUE(comes_to(SPANKER_RUNG_QUEUE));
    EXPECT_EQ(hangs.at(0).command_id, SPANKER_NO_COMMAND);
    EXPECT_EQ(hangs.at(0).queue, 1u);
    for (int n = 0; n < 100; n++)
        ASSERT_EQ(run(*file, {work(tensor), nop()}).result, 0) << n;
    EXPECT_EQ(run(*other, {work(others)}).result, 0);
    EXPECT_FALSE(was_reset());
    EXPECT_EQ(rungs.size(), 1u);
}

TEST_F(recovery, signals_of_a_queue_that_was_started_again_are_zero)
{
    auto file = open(card);
    const auto tensor = alloc(*file, 4096);
    ASSERT_EQ(run(*file, {posting(nop(), 5)}).result, 0);
    inject("queue_hang queue=1 starts=1");
    submit(*file, {late_nop()});
    EXPECT_EQ(wait(*file)[0].result, -ETIMEDOUT);
    ASSERT_TRUE(comes_to(SPANKER_RUNG_QUEUE));
    submit(*file, {waiting(work(tensor), 5)}, 7);
    submit(*file, {nop()}, 8);
    EXPECT_EQ(wait(*file)[0].cookie, 8u);
    settle();
    spanker_record none[1];
    EXPECT_EQ(file->poll(none), 0u);
    submit(*file, {posting(nop(), 5)});
    for (const auto& record : wait(*file, 2))
        EXPECT_EQ(record.result, 0);
}

TEST_F(recovery, queues_whose_rings_cannot_be_reached_are_started_again)
{
    auto file = open(card), other = open(card), third = open(card);
    submit(*third, {wait_for_ever()});
    submit(*file, {wait_for_ever()}, 1);
    settle();
    // The access that fails may be one that harms nobody: the report of what the lanes do.
    const auto fault = [&](card_file& victim, std::size_t records) {
        std::vector<spanker_record> ended;
        for (int n = 0; n < 100 && (ended.empty() || ended.back().result == 0); n++) {
            inject("dma_fault");
            submit(victim, {nop()}, 2);
            ended = wait(victim);
        }
        inject("clear dma_fault");
        while (ended.size() < records)
            ended.push_back(wait(victim)[0]);
        EXPECT_EQ(ended.size(), records);
        for (const auto& record : ended) {  // the card had decoded the first, and says so
            EXPECT_EQ(record.result, record.cookie == 1 ? -ECANCELED : -EIO);
            EXPECT_EQ(record.card_status, std::uint32_t{SPANKER_CARD_CANCELLED});
        }
    };
    fault(*file, 2);
    fault(*other, 1);
    ASSERT_TRUE(comes([&] { return hangs.size() == 2 && climbed(SPANKER_RUNG_QUEUE); }));
    EXPECT_TRUE(works(*file) && works(*other));
    spanker_record none[1];
    EXPECT_EQ(third->poll(none), 0u) << "it waits as before";
    EXPECT_FALSE(was_reset());
}

TEST_F(recovery, a_queue_may_close_in_the_middle_of_its_restart)
{
    for (int n = 0; n < 3; n++) {
        forgive(card);
        generation = cards->info(card)->out_reset_generation;
        auto stays = open(card), file = open(card, 8);
        inject("queue_hang queue=2");
        submit(*file, {late_nop()});
        EXPECT_EQ(wait(*file)[0].result, -ETIMEDOUT);
        // The restart comes about a second later.
        const auto end_ns = now_ns() + second_ns - 15 * ms + n * 15 * ms;
        while (now_ns() < end_ns)
            settle();
        file.reset();
        inject("clear queue_hang");
        EXPECT_TRUE(works(*stays)) << n;
        EXPECT_FALSE(was_reset()) << n;
    }
}

TEST_F(recovery, a_queue_that_needs_it_again_at_once_takes_the_card_along)
{
    auto file = open(card), other = open(card);
    inject("queue_hang queue=1 starts=2");
    submit(*file, {late_nop()}, 1);
    EXPECT_EQ(wait(*file)[0].result, -ETIMEDOUT);
    ASSERT_TRUE(comes_to(SPANKER_RUNG_QUEUE));
    submit(*other, {wait_for_ever()});
    submit(*file, {late_nop()}, 2);
    EXPECT_EQ(wait(*file)[0].result, -ETIMEDOUT);
    EXPECT_EQ(wait(*other)[0].result, -ESTALE);
    ASSERT_TRUE(comes_to(SPANKER_RUNG_SOFT));
    EXPECT_TRUE(was_reset());
    EXPECT_EQ(run(*open(card), {nop()}).result, 0);
}

TEST_F(recovery, an_engine_that_stands_still_takes_the_card_along_and_everybody_is_told)
{
    auto file = open(card), other = open(card);
    const auto tensor = alloc(*file, 4096);
    hang_memory_under(*file, " resets=1");
    submit(*other, {wait_for_ever()});
    submit(*file, {work(tensor)});
    EXPECT_EQ(wait(*file)[0].result, -EIO);
    submit(*file, {work(tensor)});
    EXPECT_EQ(wait(*file)[0].result, -ESTALE);
    EXPECT_EQ(wait(*other)[0].result, -ESTALE);
    EXPECT_EQ(errno_of(other->info()), -ESTALE);
    ASSERT_TRUE(comes_to(SPANKER_RUNG_SOFT));
    EXPECT_EQ(rungs, (std::vector<std::uint32_t>{SPANKER_RUNG_ABORT, SPANKER_RUNG_SOFT}));
    auto again = open(card);
    EXPECT_EQ(run(*again, {work(alloc(*again, 4096))}).result, 0);
}

TEST_F(recovery, a_card_that_nothing_helps_is_dead_until_an_administrator_resets_it)
{
    inject("engine_hang lane=" + std::to_string(SPK_ENGINE_HOST_IN));
    bytes memory(4096);
    std::vector<int> results;
    for (int n = 0; n < 6 && state() != SPANKER_CARD_DEAD; n++) {
        auto file = open(card);
        const auto tensor = alloc(*file, 4096);
        submit(*file, {dma_in(tensor, share(*file, memory, read_access), 4096)});
        results.push_back(wait(*file)[0].result);
        ASSERT_TRUE(comes([&] { return state() != SPANKER_CARD_RESETTING; }));
    }
    ASSERT_TRUE(comes_to(SPANKER_RUNG_DEAD));
    EXPECT_EQ(state(), std::uint32_t{SPANKER_CARD_DEAD});
    EXPECT_EQ(rungs, (std::vector<std::uint32_t>{SPANKER_RUNG_ABORT, SPANKER_RUNG_SOFT,
                                                 SPANKER_RUNG_FLR, SPANKER_RUNG_DEAD}));
    EXPECT_EQ(results, (std::vector<int>{-EIO, -ESTALE, -ESTALE, -EIO}));
    EXPECT_EQ(errno_of(cards->open(card, 16)), -EIO);
    inject("clear engine_hang");
    forgive(card);
    auto file = open(card);
    EXPECT_EQ(run(*file, {work(alloc(*file, 4096))}).result, 0);
}

// The driver's own work hangs as well.
TEST_F(recovery, an_engine_that_cannot_zero_memory_is_found_out)
{
    auto file = open(card);
    const auto tensor = alloc(*file, 1 << 20);
    inject(hang_of_memory(" resets=1"));
    ASSERT_EQ(errno_of(file->tensor_free(tensor)), 0);
    ASSERT_TRUE(comes_to(SPANKER_RUNG_SOFT));
    ASSERT_TRUE(comes([&] { return state() == SPANKER_CARD_READY; }));
    ASSERT_FALSE(hangs.empty());
    EXPECT_EQ(hangs[0].queue, 0u);
    auto again = open(card);
    EXPECT_NE(alloc(*again, cards->info(card)->out_memory_free_bytes), 0u);
}

TEST_F(recovery, a_fatal_error_is_reset_away_and_its_return_is_not_for_ever)
{
    auto file = open(card);
    submit(*file, {wait_for_ever()});
    inject("fatal reason=3");
    EXPECT_EQ(wait(*file)[0].result, -ESTALE);
    ASSERT_TRUE(comes([&] { return state() == SPANKER_CARD_READY; }));
    inject("fatal reason=3");
    ASSERT_TRUE(comes_to(SPANKER_RUNG_FLR));
    ASSERT_TRUE(comes([&] { return state() == SPANKER_CARD_READY; }));
    inject("fatal reason=3");
    ASSERT_TRUE(comes_to(SPANKER_RUNG_DEAD));
    EXPECT_EQ(state(), std::uint32_t{SPANKER_CARD_DEAD});
    EXPECT_EQ(rungs,
              (std::vector<std::uint32_t>{SPANKER_RUNG_SOFT, SPANKER_RUNG_FLR, SPANKER_RUNG_DEAD}));
}

TEST_F(recovery, a_soft_reset_that_does_not_end_is_followed_by_one_of_the_function)
{
    auto file = open(card);
    submit(*file, {wait_for_ever()});
    inject("reset_stuck");
    inject("fatal reason=1");
    EXPECT_EQ(wait(*file)[0].result, -ESTALE);
    ASSERT_TRUE(comes_to(SPANKER_RUNG_FLR));
    ASSERT_TRUE(comes([&] { return state() == SPANKER_CARD_READY; }));
    EXPECT_EQ(run(*open(card), {nop()}).result, 0);
}

TEST_F(recovery, a_temperature_that_crosses_the_limit_is_told_both_ways)
{
    const auto told = [&](std::int32_t millidegrees) {
        inject("temperature millidegrees=" + std::to_string(millidegrees));
        return comes([&] { return !heats.empty() && heats.back() == millidegrees; });
    };
    EXPECT_TRUE(told(120'000));
    EXPECT_TRUE(told(30'000));
    inject("clear temperature");
    EXPECT_FALSE(was_reset());
}

// Whatever time the card takes for it: that it computes is progress.
TEST_F(recovery, much_work_is_no_hang)
{
    auto file = open(card);
    const auto tensor = alloc(*file, 4 << 20);
    const auto end_ns = now_ns() + 3 * hang_ns;
    for (int batches = 0; now_ns() < end_ns || batches == 0; batches++) {
        for (int n = 0; n < 10; n++)
            submit(*file, {fill(tensor, 0, 4 << 20, 1), fill(tensor, 0, 4 << 20, 2)});
        for (const auto& record : wait(*file, 10))
            ASSERT_EQ(record.result, 0);
    }
    look_at_events();
    EXPECT_TRUE(rungs.empty());
}

}  // namespace contract
