// SPDX-License-Identifier: Apache-2.0
//
// What threads share: rings that a hostile client rewrites while they are
// read, and the queue between loop and plane. Run under ThreadSanitizer too.
#include <array>
#include <atomic>
#include <bit>
#include <random>
#include <semaphore>
#include <thread>

#include "daemon/data/bounded_queue.hpp"
#include "daemon/data/rings.hpp"
#include "data_fake_backend.hpp"
#include "data_rig.hpp"

namespace spanker::daemon::test {
namespace {

TEST(data_threads, a_queue_loses_and_doubles_nothing)
{
    data::bounded_queue<std::uint64_t> queue(64);
    constexpr std::uint64_t each = 20'000;
    const auto produce = [&](std::uint64_t base) {
        for (std::uint64_t i = 0; i < each; i++) {
            std::uint64_t value = base + i;
            while (!queue.push(value))
                std::this_thread::yield();
        }
    };
    std::thread a(produce, 1), b(produce, each + 1);
    std::uint64_t sum = 0, value = 0;
    for (std::uint64_t n = 0; n < 2 * each;)
        if (queue.pop(value)) {
            sum += value;
            n++;
        } else {
            std::this_thread::yield();
        }
    a.join();
    b.join();
    EXPECT_EQ(sum, 2 * each * (2 * each + 1) / 2);
}

// Word-wise atomic stores, as a hostile client on another core would make them.
void scribble(void* memory, std::uint64_t bytes, unsigned seed, const std::atomic<bool>& stop)
{
    std::mt19937_64 random(seed);
    auto* words = static_cast<std::uint64_t*>(memory);
    while (!stop.load(std::memory_order_relaxed))
        __atomic_store_n(&words[random() % (bytes / 8)], random(), __ATOMIC_RELAXED);
}

// A word of a torn entry is one that somebody wrote whole; counters stay within the rings whatever stands there.
TEST(data_threads, entries_changed_while_read_are_torn_by_the_word_and_nothing_else)
{
    auto r = *data::rings::make(data::rings_layout::of(8, 4096));
    auto* memory = static_cast<std::byte*>(
        ::mmap(nullptr, r.layout().bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd(), 0));
    const auto* header = reinterpret_cast<const spanker_rings*>(memory);
    auto* words = reinterpret_cast<std::uint64_t*>(memory + header->sq_offset);
    const std::size_t count = 8 * sizeof(spanker_sqe) / sizeof(std::uint64_t);
    constexpr std::uint64_t written[] = {0x1111111111111111, 0xeeeeeeeeeeeeeeee};
    std::fill_n(words, count, written[0]);
    std::atomic<bool> stop{false};
    std::thread hostile([&] {
        for (std::size_t i = 0; !stop.load(std::memory_order_relaxed); i++)
            __atomic_store_n(&words[i % count], written[i / count % 2], __ATOMIC_RELAXED);
    });
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    bool torn = false;  // seen once, at least
    for (int i = 0; i < 20'000 || (!torn && std::chrono::steady_clock::now() < limit); i++) {
        const auto copy =
            std::bit_cast<std::array<std::uint64_t, sizeof(spanker_sqe) / 8>>(r.front());
        for (const std::uint64_t word : copy)
            ASSERT_TRUE(word == written[0] || word == written[1]) << std::hex << word;
        torn |= copy.front() != copy.back();
    }
    stop = true;
    hostile.join();
    ::munmap(memory, r.layout().bytes);
    EXPECT_TRUE(torn);
}

TEST(data_threads, counters_changed_while_read_stay_within_the_rings)
{
    auto r = *data::rings::make(data::rings_layout::of(8, 4096));
    void* memory = ::mmap(nullptr, r.layout().bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd(), 0);
    std::atomic<bool> stop{false};
    std::thread hostile([&] { scribble(memory, r.layout().bytes, 1, stop); });
    for (int i = 0; i < 20'000; i++) {
        ASSERT_LE(r.submitted().value_or(0), 8u);
        ASSERT_LE(r.completion_room().value_or(0), 16u);
        r.complete({});
    }
    stop = true;
    hostile.join();
    ::munmap(memory, r.layout().bytes);
}

// More than the queue takes, while the executor stands: the loop is not woken for nothing, and nothing is lost.
TEST(data_threads, what_waits_for_room_in_the_queue_wakes_the_loop_when_there_is_some)
{
    fake_backend cards(1);
    std::binary_semaphore inside{0}, leave{0};
    std::atomic<bool> hold{false};
    cards.on_drive = [&] {
        if (!hold.exchange(false))
            return;
        inside.release();
        leave.acquire();
    };
    plane_rig rig(cards);
    const auto s = rig.opened();
    cards.card(0).hold = true;  // the plane drives cards that work
    rig.data->submit(s.id, {nop(1)}, [](auto) {});
    ASSERT_TRUE(rig.until([&] { return cards.card(0).count(SPK_OP_NOP) == 1; }));
    hold = true;
    rig.data->kick();
    ASSERT_TRUE(inside.try_acquire_for(std::chrono::milliseconds(patience_ms)));
    int closed = 0;
    for (int i = 0; i < 5000; i++)
        rig.data->card_changed(0, SPANKER_CARD_PROBING);  // no news
    rig.data->destroy_session(s.id, [&] { closed++; });
    rig.data->dispatch();
    pollfd bell = {.fd = rig.data->fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&bell, 1, 0), 0) << "the bell rings although nothing can be done";
    leave.release();
    EXPECT_TRUE(rig.until([&] { return closed == 1; }));
}

TEST(data_threads, a_hostile_session_ends_and_another_goes_on)
{
    fake_backend cards(2);
    plane_rig rig(cards);
    const auto lawful = rig.open(1);
    client_rings good(*lawful);
    for (unsigned round = 0; round < 20; round++) {
        const auto s = rig.open(2);
        ASSERT_TRUE(s);
        client_rings bad(*s);
        std::atomic<bool> stop{false};
        std::thread hostile([&] { scribble(bad.memory, bad.bytes, round, stop); });
        for (std::uint64_t i = 0; i < 20; i++) {
            const std::uint64_t one = 1;
            ASSERT_EQ(::write(bad.sq_bell, &one, sizeof one), 8);
            good.push({nop(i)});
            EXPECT_EQ(rig.next(good)->res, 0);
        }
        stop = true;
        hostile.join();
        rig.close(s->id);
    }
    EXPECT_TRUE(rig.until([&] { return rig.data->sessions().size() == 1; }));
}

TEST(data_threads, a_client_on_its_own_thread_sleeps_and_wakes)
{
    fake_backend cards(1);
    plane_rig rig(cards);
    const auto s = rig.open();
    std::atomic<bool> finished{false};
    std::uint64_t sum = 0;
    std::thread client([&] {
        client_rings rings(*s);
        for (std::uint64_t i = 1; i <= 500; i++) {
            rings.push({nop(i)});
            std::optional<spanker_cqe> got;
            while (!(got = rings.pop())) {
                __atomic_store_n(&rings.header->cq.sleeping, 1u, __ATOMIC_RELAXED);
                __atomic_thread_fence(__ATOMIC_SEQ_CST);
                if ((got = rings.pop()))
                    break;
                pollfd p = {.fd = rings.cq_bell, .events = POLLIN, .revents = 0};
                if (::poll(&p, 1, patience_ms) != 1)
                    return;
                std::uint64_t count;
                [[maybe_unused]] const ssize_t n = ::read(rings.cq_bell, &count, sizeof count);
                __atomic_store_n(&rings.header->cq.sleeping, 0u, __ATOMIC_RELAXED);
            }
            sum += got->user_data;
        }
        finished = true;
    });
    client.join();
    EXPECT_TRUE(finished);
    EXPECT_EQ(sum, 500u * 501 / 2);
}

}  // namespace
}  // namespace spanker::daemon::test
