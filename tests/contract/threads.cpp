// SPDX-License-Identifier: Apache-2.0
//
// Verbs come from any thread while one polls and drives.
#include <atomic>
#include <thread>

#include "rig.hpp"

namespace contract {

class threads : public rig {};

TEST_F(threads, verbs_of_others_go_on_beside_the_one_that_polls)
{
    const auto card = cards->cards().front();
    auto busy = open(card), other = open(card);
    const auto tensor = alloc(*busy, 1 << 16);
    std::atomic<bool> done{false};
    std::thread control([&] {
        bytes memory(8192);
        for (int n = 0; n < 50; n++) {
            EXPECT_TRUE(cards->info(card));
            EXPECT_TRUE(cards->ports(card));
            EXPECT_TRUE(cards->read_telemetry(card));
            const auto mine = other->tensor_alloc(4096);
            EXPECT_TRUE(mine) << text_of(mine);
            const auto buffer = other->buffer_register({.memfd = -1,
                                                        .address = memory.data(),
                                                        .offset = 0,
                                                        .bytes = 8192,
                                                        .access = read_access});
            EXPECT_TRUE(buffer) << text_of(buffer);
            EXPECT_EQ(errno_of(other->buffer_unregister(buffer.value_or(0))), 0);
            EXPECT_EQ(errno_of(other->tensor_free(mine.value_or(0))), 0);
            cards->take_events();
        }
        done = true;
    });
    std::uint64_t batches = 0;
    while (!done || batches < 100) {
        EXPECT_EQ(run(*busy, {fill(tensor, 0, 1 << 16, 1), posting(nop(), 1)}).result, 0);
        batches++;
    }
    control.join();
}

TEST_F(threads, work_submitted_by_one_is_polled_by_another)
{
    auto file = open(cards->cards().front(), 16);
    constexpr std::uint64_t count = 2000;
    std::thread submitter([&] {
        for (std::uint64_t n = 0; n < count;) {
            const auto seq = file->submit(std::vector{nop()}, n);
            if (seq)
                n++;
            else
                std::this_thread::yield();
            EXPECT_TRUE(seq || errno_of(seq) == -EAGAIN) << text_of(seq);
        }
    });
    std::uint64_t seen = 0;
    while (seen < count) {
        spanker_record got[8];
        const std::size_t n = file->poll(got);
        for (std::size_t at = 0; at < n; at++)
            ASSERT_EQ(got[at].cookie, seen++);
        if (n == 0)
            cards->drive();
    }
    submitter.join();
}

TEST_F(threads, files_open_and_close_beside_running_work)
{
    const auto card = cards->cards().front();
    auto busy = open(card);
    std::atomic<bool> done{false};
    std::thread opener([&] {
        for (int n = 0; n < 30; n++) {
            auto file = cards->open(card, 16);
            EXPECT_TRUE(file) << text_of(file);
            EXPECT_TRUE((*file)->submit(std::vector{wait_for_ever()}, 0));
        }
        done = true;
    });
    while (!done)
        EXPECT_EQ(run(*busy, {nop()}).result, 0);
    opener.join();
}

}  // namespace contract
