// SPDX-License-Identifier: Apache-2.0
//
// Cards that are reset, go and come back; files that share a card or close with work in flight.
#include <algorithm>
#include <chrono>
#include <thread>
#include <variant>

#include "rig.hpp"

namespace contract {

class lifecycle : public rig {
protected:
    void SetUp() override
    {
        rig::SetUp();
        if (!IsSkipped() && !HasFatalFailure())
            card = cards->cards().front();
    }
    // Whether an event told that the card came to this state.
    bool told(spanker_card_state state)
    {
        bool found = false;
        for (const auto& event : cards->take_events())
            if (const auto* change = std::get_if<spanker::daemon::event_card_state>(&event))
                found |= change->card == card && change->state == state;
        return found;
    }
    void expect_all_verbs(card_file& file, int result)
    {
        bytes memory(4096);
        const buffer_spec spec{.memfd = -1,
                               .address = memory.data(),
                               .offset = 0,
                               .bytes = 4096,
                               .access = read_access};
        EXPECT_EQ(errno_of(file.info()), result);
        EXPECT_EQ(errno_of(file.tensor_alloc(4)), result);
        EXPECT_EQ(errno_of(file.tensor_free(1)), result);
        EXPECT_EQ(errno_of(file.tensor_export(1)), result);
        EXPECT_EQ(errno_of(file.tensor_import(0)), result);
        EXPECT_EQ(errno_of(file.buffer_register(spec)), result);
        EXPECT_EQ(errno_of(file.buffer_unregister(77)), result);
        EXPECT_EQ(errno_of(file.submit(std::vector{nop()}, 0)), result);
        EXPECT_EQ(errno_of(file.cancel(1)), result);
        EXPECT_EQ(errno_of(file.cancel_all()), result);
    }
    std::uint32_t card = 0;
};

class resets : public lifecycle, public testing::WithParamInterface<std::uint32_t> {};

TEST_P(resets, end_work_as_stale_and_files_for_good)
{
    auto file = open(card);
    const auto tensor = alloc(*file, 4096);
    bytes memory(4096);
    const auto buffer = share(*file, memory, read_access);
    const auto generation = cards->info(card)->out_reset_generation;
    EXPECT_EQ(run(*file, {fill(tensor, 0, 4096, 7)}).result, 0);
    submit(*file, {nop()}, 1);
    settle();
    submit(*file, {wait_for_ever(), fill(tensor, 0, 4, 1)}, 2);
    cards->take_events();
    ASSERT_EQ(errno_of(cards->card_reset(card, GetParam())), 0);
    EXPECT_TRUE(told(SPANKER_CARD_READY));
    const auto got = wait(*file, 2);
    EXPECT_EQ(got[0].cookie, 1u);
    EXPECT_EQ(got[0].result, 0) << "what was done before stays done";
    EXPECT_EQ(got[1].cookie, 2u);
    EXPECT_EQ(got[1].result, -ESTALE);
    EXPECT_EQ(got[1].card_status, std::uint32_t{SPANKER_CARD_RESET});
    expect_all_verbs(*file, -ESTALE);
    EXPECT_EQ(errno_of(file->buffer_unregister(buffer)), 0) << "host memory can be given back";
    EXPECT_EQ(errno_of(file->buffer_unregister(buffer)), -ESTALE);
    EXPECT_GT(cards->info(card)->out_reset_generation, generation);
    EXPECT_EQ(cards->info(card)->out_state, std::uint32_t{SPANKER_CARD_READY});
}

TEST_P(resets, leave_a_card_that_works_with_clean_memory_and_trained_ports)
{
    auto old = open(card);
    const auto everything = cards->info(card)->out_memory_free_bytes;
    const auto tensor = alloc(*old, 1 << 20);
    EXPECT_EQ(run(*old, {fill(tensor, 0, 1 << 20, ~0u)}).result, 0);
    auto exported = old->tensor_export(tensor);
    ASSERT_EQ(errno_of(cards->card_reset(card, GetParam())), 0);
    settle();
    auto file = open(card);
    EXPECT_EQ(cards->info(card)->out_memory_free_bytes, everything);
    EXPECT_EQ(errno_of(file->tensor_import(exported->get())), -ESTALE);
    const auto fresh = alloc(*file, everything);
    EXPECT_EQ(download(*file, fresh, 1 << 20), bytes(1 << 20));
    for (const auto& port : ports_of(card))
        if (port.partner_serial != 0) {
            EXPECT_EQ(port.state, std::uint32_t{SPK_PORT_UP});
        }
    EXPECT_TRUE(card_count() < 2 || find_cable());
    old.reset();
    EXPECT_EQ(cards->info(card)->out_memory_free_bytes, 0u)
        << "a stale file gave back what is not its own";
}

TEST_P(resets, do_not_disturb_other_cards)
{
    if (card_count() < 2)
        GTEST_SKIP() << "there is one card";
    auto other = open(cards->cards()[1]);
    const auto tensor = alloc(*other, 4096);
    upload(*other, tensor, pattern(4096, 1));
    submit(*other, {waiting(nop(), 1)});
    ASSERT_EQ(errno_of(cards->card_reset(card, GetParam())), 0);
    settle();
    const auto small = alloc(*other, 4);
    submit(*other, {posting(fill(small, 0, 4, 0), 1)});
    for (const auto& record : wait(*other, 2))
        EXPECT_EQ(record.result, 0);
    EXPECT_EQ(download(*other, tensor, 4096), pattern(4096, 1));
}

INSTANTIATE_TEST_SUITE_P(both, resets,
                         testing::Values(std::uint32_t{SPANKER_RESET_SOFT},
                                         std::uint32_t{SPANKER_RESET_FLR}),
                         [](const auto& row) {
                             return row.param == SPANKER_RESET_SOFT ? "soft" : "flr";
                         });

TEST_F(lifecycle, there_is_no_other_kind_of_reset)
{
    EXPECT_EQ(errno_of(cards->card_reset(card, 7)), -EINVAL);
    EXPECT_EQ(cards->info(card)->out_state, std::uint32_t{SPANKER_CARD_READY});
}

TEST_F(lifecycle, a_card_that_goes_takes_its_work_with_it_and_may_come_back)
{
    if (!can_inject(card))
        GTEST_SKIP() << "faults cannot be injected here";
    auto file = open(card);
    alloc(*file, 4096);
    submit(*file, {wait_for_ever()});
    cards->take_events();
    ASSERT_EQ(errno_of(cards->inject(card, "gone")), 0);
    EXPECT_EQ(wait(*file)[0].result, -ENODEV);
    EXPECT_TRUE(told(SPANKER_CARD_GONE));
    expect_all_verbs(*file, -ENODEV);
    EXPECT_EQ(cards->info(card)->out_state, std::uint32_t{SPANKER_CARD_GONE});
    EXPECT_EQ(errno_of(cards->open(card, 16)), -ENODEV);
    EXPECT_EQ(errno_of(cards->ports(card)), -ENODEV);
    EXPECT_EQ(errno_of(cards->card_reset(card, SPANKER_RESET_SOFT)), -ENODEV);

    ASSERT_EQ(errno_of(cards->inject(card, "clear gone")), 0);
    settle();
    EXPECT_TRUE(told(SPANKER_CARD_READY));
    expect_all_verbs(*file, -ESTALE);
    auto again = open(card);
    EXPECT_EQ(run(*again, {nop()}).result, 0);
    file.reset();
    EXPECT_EQ(run(*again, {nop()}).result, 0) << "the old file left the new one alone";
}

TEST_F(lifecycle, a_card_that_goes_in_the_middle_of_work_ends_it)
{
    if (!can_inject(card))
        GTEST_SKIP() << "faults cannot be injected here";
    auto file = open(card);
    const auto tensor = alloc(*file, 4 << 20);
    const auto soon = file->info()->out_device_ns + 100'000;
    ASSERT_EQ(errno_of(cards->inject(card, "gone at_ns=" + std::to_string(soon))), 0);
    submit(*file, std::vector(20, fill(tensor, 0, 4 << 20, 1)));
    EXPECT_EQ(wait(*file)[0].result, -ENODEV);
}

TEST_F(lifecycle, a_card_that_does_not_come_out_of_reset_is_dead_until_it_does)
{
    if (!can_inject(card))
        GTEST_SKIP() << "faults cannot be injected here";
    auto file = open(card);
    ASSERT_EQ(errno_of(cards->inject(card, "reset_stuck")), 0);
    EXPECT_EQ(errno_of(cards->card_reset(card, SPANKER_RESET_SOFT)), -EIO);
    EXPECT_EQ(cards->info(card)->out_state, std::uint32_t{SPANKER_CARD_DEAD});
    expect_all_verbs(*file, -EIO);
    EXPECT_EQ(errno_of(cards->open(card, 16)), -EIO);
    ASSERT_EQ(errno_of(cards->inject(card, "clear reset_stuck")), 0);
    EXPECT_EQ(errno_of(cards->card_reset(card, SPANKER_RESET_FLR)), 0);
    EXPECT_EQ(run(*open(card), {nop()}).result, 0);
}

TEST_F(lifecycle, a_lost_completion_ends_by_its_deadline_and_the_queue_goes_on)
{
    if (!can_inject(card))
        GTEST_SKIP() << "faults cannot be injected here";
    auto file = open(card, 8);
    ASSERT_EQ(errno_of(cards->inject(card, "completion_drop queue=1")), 0);
    auto what = nop();
    what.deadline_ns = now_ns() + 10'000'000;
    EXPECT_EQ(run(*file, {what}).result, -ETIMEDOUT);
    for (int n = 0; n < 30; n++)
        ASSERT_EQ(run(*file, {nop()}).result, 0) << n;
}

// An ABORT does not find what the card has not decoded. The work ends by its deadline all the
// same, but nobody gets the memory back that it may still write to.
TEST_F(lifecycle, work_that_ended_before_the_card_saw_it_keeps_its_memory)
{
    if (!can_inject(card))
        GTEST_SKIP() << "faults cannot be injected here";
    auto file = open(card, 8);
    bytes memory(4096, 0x11);
    const auto tensor = alloc(*file, 4096);
    ASSERT_EQ(run(*file, {fill(tensor, 0, 4096, 0x22222222)}).result, 0);
    const auto buffer = share(*file, memory, write_access);
    ASSERT_EQ(errno_of(cards->inject(card, "queue_hang queue=1")), 0);
    auto late = dma_out(buffer, tensor, 4096);
    late.deadline_ns = now_ns() + 10'000'000;
    EXPECT_EQ(run(*file, {late}).result, -ETIMEDOUT);
    const int given_back = errno_of(file->buffer_unregister(buffer));
    if (given_back == 0)
        std::fill(memory.begin(), memory.end(), std::uint8_t{0x33});
    ASSERT_EQ(errno_of(cards->inject(card, "clear queue_hang")), 0);
    settle();
    EXPECT_EQ(given_back, -EBUSY);
    EXPECT_NE(memory[0], 0x33);
    // It ran, or the card was reset because its queue stood still: then it is given back.
    for (int n = 0; n < 500 && errno_of(file->buffer_unregister(buffer)) == -EBUSY; n++)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(errno_of(file->buffer_unregister(buffer)), -ENOENT);
}

TEST_F(lifecycle, a_card_that_cannot_zero_its_memory_is_given_up)
{
    if (!can_inject(card))
        GTEST_SKIP() << "faults cannot be injected here";
    auto file = open(card);
    const auto tensor = alloc(*file, 4096);
    ASSERT_EQ(errno_of(cards->inject(card, "completion_error queue=0 status=2 count=0")), 0);
    EXPECT_EQ(errno_of(file->tensor_free(tensor)), 0);
    for (int n = 0; n < 1000 && cards->info(card)->out_state != SPANKER_CARD_DEAD; n++) {
        settle();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(cards->info(card)->out_state, std::uint32_t{SPANKER_CARD_DEAD});
    ASSERT_EQ(errno_of(cards->inject(card, "clear completion_error")), 0);
    EXPECT_EQ(errno_of(cards->card_reset(card, SPANKER_RESET_SOFT)), 0);
    auto healed = open(card);
    EXPECT_NE(alloc(*healed, 4096), 0u);
    EXPECT_EQ(run(*healed, {nop()}).result, 0);
}

// Closing a file is no way to reset a card that was given up.
TEST_F(lifecycle, a_dead_card_stays_dead_when_its_files_close)
{
    if (!can_inject(card))
        GTEST_SKIP() << "faults cannot be injected here";
    auto file = open(card);
    ASSERT_EQ(errno_of(cards->inject(card, "reset_stuck")), 0);
    EXPECT_EQ(errno_of(cards->card_reset(card, SPANKER_RESET_SOFT)), -EIO);
    ASSERT_EQ(errno_of(cards->inject(card, "clear reset_stuck")), 0);
    file.reset();
    EXPECT_EQ(cards->info(card)->out_state, std::uint32_t{SPANKER_CARD_DEAD});
    EXPECT_EQ(errno_of(cards->card_reset(card, SPANKER_RESET_SOFT)), 0);
    EXPECT_EQ(run(*open(card), {nop()}).result, 0);
}

TEST_F(lifecycle, lying_completions_are_survived)
{
    if (!can_inject(card))
        GTEST_SKIP() << "faults cannot be injected here";
    auto file = open(card, 8);
    ASSERT_EQ(errno_of(cards->inject(card, "completion_duplicate queue=1 count=3")), 0);
    for (int n = 0; n < 10; n++)
        EXPECT_EQ(run(*file, {nop()}).result, 0);
    ASSERT_EQ(errno_of(cards->inject(card, "completion_error queue=1 status=5")), 0);
    EXPECT_EQ(run(*file, {nop()}).result, -ECOMM);
    EXPECT_EQ(run(*file, {nop()}).result, 0);
}

TEST_F(lifecycle, lost_interrupts_delay_but_lose_nothing)
{
    if (!can_inject(card))
        GTEST_SKIP() << "faults cannot be injected here";
    auto file = open(card);
    ASSERT_EQ(errno_of(cards->inject(card, "irq_drop count=0")), 0);
    for (int n = 0; n < 5; n++)
        EXPECT_EQ(run(*file, {nop()}).result, 0);
    EXPECT_NE(alloc(*file, cards->info(card)->out_memory_free_bytes), 0u);
}

TEST_F(lifecycle, two_files_on_a_card_do_not_disturb_each_other)
{
    auto one = open(card), two = open(card);
    const auto first = alloc(*one, 4096), second = alloc(*two, 4096);
    EXPECT_EQ(errno_of(one->submit(std::vector{fill(second + 0x10000, 0, 4, 1)}, 0)), -ENOENT);
    submit(*one, {wait_for_ever(3)});  // its lanes wait: the other file's do not
    for (std::uint32_t n = 0; n < 50; n++) {
        ASSERT_EQ(run(*two, {fill(second, 0, 4096, n), posting(nop(), 3)}).result, 0);
    }
    spanker_record none[1];
    EXPECT_EQ(one->poll(none), 0u) << "signals of one file are not the other's";
    EXPECT_EQ(run(*one, {fill(first, 0, 4096, 0x55555555)}).result, 0);
    EXPECT_EQ(download(*two, second, 4)[0], 49);
    EXPECT_EQ(errno_of(one->cancel_all()), 0);
    EXPECT_EQ(wait(*one)[0].result, -ECANCELED);
    EXPECT_EQ(run(*two, {nop()}).result, 0);
}

TEST_F(lifecycle, a_file_may_close_with_work_in_flight)
{
    auto stays = open(card);
    const auto before = cards->info(card)->out_memory_free_bytes;
    for (int n = 0; n < 40; n++) {
        auto file = open(card, 16);
        bytes memory(1 << 16);
        const auto tensor = alloc(*file, 1 << 16);
        const auto buffer = share(*file, memory, read_access | write_access);
        submit(*file, {dma_in(tensor, buffer, 1 << 16), wait_for_ever()});
        submit(*file, {waiting(dma_out(buffer, tensor, 1 << 16), 4), fill(tensor, 0, 1 << 16, 1)});
        file.reset();
        memory.assign(memory.size(), 0x77);  // the card must not touch it any more
        settle();
        ASSERT_EQ(memory, bytes(1 << 16, 0x77));
    }
    settle();
    EXPECT_EQ(cards->info(card)->out_memory_free_bytes, before);
    EXPECT_EQ(run(*stays, {nop()}).result, 0);
}

TEST_F(lifecycle, files_and_groups_may_outlive_their_backend)
{
    if (cards->name() != "embedded")
        GTEST_SKIP() << "device nodes live by themselves";
    auto file = open(card);
    const member members[] = {{file.get(), 1, 0}};
    auto group = cards->group_create(members);
    submit(*file, {wait_for_ever()});
    cards.reset();
    spanker_record none[1];
    EXPECT_EQ(file->poll(none), 0u);
    EXPECT_EQ(errno_of(file->cancel_all()), 0);
    EXPECT_EQ(file->poll(none), 1u);
    group->reset();
    file.reset();
}

}  // namespace contract
