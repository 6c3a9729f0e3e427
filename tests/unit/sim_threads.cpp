// SPDX-License-Identifier: Apache-2.0
//
// The pins from several threads while one runs the fabric, callbacks that use the pins, and the real pace.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

// Runs a fabric until told to stop, as the thread of a server would.
class running final {
public:
    explicit running(fabric& cards)
        : thread_([this, &cards] {
              while (!stop_.load())
                  if (cards.run())
                      std::this_thread::yield();
              cards.run();
          })
    {}
    ~running()
    {
        stop_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

template <typename condition>
bool within_seconds(int seconds, const condition& holds)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (!holds()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::yield();
    }
    return true;
}

TEST(sim_threads, while_the_host_computes_the_clock_stands_and_the_status_says_so)
{
    rig it(small_config(2));
    queue& q = it.open(0, 1);
    it.cards.inject({.card = 0, .kind = fault_kind::standstill, .value = 300});
    const running server(it.cards);
    q.put(fill(0, 64, 1));
    q.ring();
    const auto stands = [&] { return (it.read(1, SPK_REG_STATUS) & SPK_STATUS_STANDSTILL) != 0; };
    ASSERT_TRUE(within_seconds(30, stands)) << "the other card's clock is the same";
    const std::uint64_t then = it.cards.now_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::uint64_t now = it.cards.now_ns();
    EXPECT_TRUE(now == then || !stands()) << now << " after " << then;
    ASSERT_TRUE(within_seconds(30, [&] { return !stands(); }));
    ASSERT_TRUE(within_seconds(30, [&] { return q.collect().size() == 1; }));
}

TEST(sim_threads, a_driver_in_another_thread_sees_all_its_commands_complete)
{
    rig it(small_config(2));
    queue& q = it.open(0, 1);
    const running server(it.cards);
    unsigned done = 0;
    for (unsigned round = 0; round < 200; round++) {
        for (unsigned i = 0; i < 10; i++)
            q.put(fill(64 * i, 64, round));
        q.ring();
        ASSERT_TRUE(within_seconds(30, [&] {
            for (const spk_completion& one : q.collect()) {
                EXPECT_EQ(one.status, SPANKER_CARD_OK);
                done++;
            }
            return done == 10 * (round + 1);
        }));
    }
}

TEST(sim_threads, pins_of_all_kinds_may_be_used_while_the_fabric_runs)
{
    rig it(small_config(4));
    it.train();
    std::vector<queue*> queues;
    for (unsigned card = 0; card < 4; card++)
        queues.push_back(&it.open(card, 1));
    const running server(it.cards);
    std::thread reader([&] {
        for (unsigned i = 0; i < 3000; i++) {
            const unsigned card = i % 4;
            it.cards.bar_read(card, (i * 4) % SPK_BAR_BYTES);
            it.cards.config_read(card, (i * 2) % 256, 2);
            it.cards.trace(card, 4);
            static_cast<void>(it.cards.counters(card));
            static_cast<void>(it.cards.now_ns() + it.cards.next_event_ns().value_or(0));
            bytes some(64);
            it.cards.snapshot(card, 0, some);
        }
    });
    std::thread disturber([&] {
        for (unsigned i = 0; i < 300; i++) {
            it.write(3, SPK_REG_PORT(i % 2, SPK_P_CTRL), i % 3 == 0 ? 0 : SPK_PCTRL_TRAIN_REQ);
            it.cards.inject({.card = 3, .kind = fault_kind::temperature, .value = i * 1000});
            if (i % 50 == 0)
                it.cards.reset(3, reset_kind::flr);
        }
    });
    unsigned done = 0, put = 0;
    const std::uint64_t buffer = it.memory.allocate(64 << 10);
    const std::uint64_t list = it.list_of(buffer, 64 << 10, 4096);
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned card = 0; card < 3; card++) {
            queues[card]->put(dma(SPK_OP_DMA_OUT, 0, list, {.count = 1, .bytes = 1024}));
            queues[card]->put(copy(4096, 8192, {.count = 1, .bytes = 4096}));
            queues[card]->ring();
            put += 2;
        }
        ASSERT_TRUE(within_seconds(60, [&] {
            for (unsigned card = 0; card < 3; card++)
                done += static_cast<unsigned>(queues[card]->collect().size());
            return done == put;
        }));
    }
    reader.join();
    disturber.join();
}

TEST(sim_threads, a_reset_in_the_middle_of_a_transfer_takes_effect_at_the_next_piece)
{
    rig it(small_config(1));
    queue& q = it.open(0, 1);
    const rows big = {.count = 1, .bytes = 16 << 20};
    const std::uint64_t buffer = it.memory.allocate(big.bytes);
    std::atomic<unsigned> pieces{0};
    std::atomic<bool> reset_done{false};
    it.memory.on_dma = [&](unsigned, std::uint64_t address, std::size_t) {
        if (address < buffer || address >= buffer + big.bytes)
            return;
        if (++pieces == 5)
            while (!reset_done)  // the piece is in flight until the reset has returned
                std::this_thread::yield();
    };
    q.put(dma(SPK_OP_DMA_IN, 0, it.list_of(buffer, big.bytes), big));
    q.ring();
    const running server(it.cards);
    ASSERT_TRUE(within_seconds(30, [&] { return pieces == 5; }));
    it.cards.reset(0, reset_kind::flr);
    EXPECT_EQ(it.read(0, SPK_REG_RESET_GEN), 1u) << "the reset waits for nobody";
    reset_done = true;
    ASSERT_TRUE(within_seconds(30, [&] { return it.cards.idle(); }));
    EXPECT_EQ(pieces, 5u);
    EXPECT_TRUE(q.collect().empty());
}

TEST(sim_threads, registers_answer_while_a_transfer_blocks_in_the_host)
{
    rig it(small_config(1));
    queue& q = it.open(0, 1);
    const std::uint64_t buffer = it.memory.allocate(4096);
    std::atomic<bool> blocked{false}, go{false};
    it.memory.on_dma = [&](unsigned, std::uint64_t address, std::size_t) {
        if (address != buffer)
            return;
        blocked = true;
        while (!go)
            std::this_thread::yield();
    };
    q.put(dma(SPK_OP_DMA_OUT, 0, it.list_of(buffer, 4096), {.count = 1, .bytes = 4096}));
    q.ring();
    const running server(it.cards);
    ASSERT_TRUE(within_seconds(30, [&] { return blocked.load(); }));
    EXPECT_EQ(it.read(0, SPK_REG_MAGIC), SPK_MAGIC);
    EXPECT_EQ(it.port(0, 0, SPK_P_STATE), SPK_PORT_DOWN);
    it.read(0, SPK_REG_BUSY_LO(SPK_ENGINE_HOST_OUT));
    bytes some(16);
    EXPECT_TRUE(it.cards.snapshot(0, 0, some));
    EXPECT_EQ(it.cards.trace(0).size(), 0u);
    go = true;
}

TEST(sim_threads, a_callback_may_use_every_pin_and_run_from_within_run_does_nothing)
{
    rig it(small_config(2));
    queue& q = it.open(0, 1);
    unsigned calls = 0;
    it.memory.on_interrupt = [&](unsigned card, unsigned) {
        calls++;
        EXPECT_FALSE(it.cards.run());
        it.cards.advance_to(1'000'000'000'000);
        it.read(card, SPK_REG_BUSY_LO(0));
        bytes some(16);
        it.cards.snapshot(card, 0, some);
        if (calls < 10) {
            q.put(flagged(fill(0, 16, calls), SPK_CMD_IRQ));
            q.ring();
        }
    };
    q.put(flagged(nop(), SPK_CMD_IRQ));
    q.ring();
    EXPECT_TRUE(it.cards.run());
    EXPECT_EQ(calls, 10u);
    EXPECT_EQ(q.collect().size(), 10u);
    EXPECT_LT(it.cards.now_ns(), 1'000'000'000u);
}

// A card slow enough that no busy machine can sleep through its commands.
fabric_config slow_config()
{
    fabric_config config = small_config(1);
    config.speed = pace::real;
    config.cards[0].ddr_bytes_per_s = 20'000'000;
    return config;
}

TEST(sim_threads, the_real_pace_lets_the_device_clock_follow_the_wall)
{
    rig it(slow_config());
    queue& q = it.open(0, 1);
    const auto start = std::chrono::steady_clock::now();
    q.put(fill(0, 40'000'000, 1));  // 2 s
    q.ring();
    EXPECT_FALSE(it.cards.run()) << "the end lies in the future";
    EXPECT_TRUE(q.collect().empty());
    ASSERT_TRUE(it.cards.next_event_ns().has_value());
    EXPECT_GT(*it.cards.next_event_ns(), it.cards.now_ns());
    ASSERT_TRUE(within_seconds(60, [&] { return it.cards.run(); }));
    const auto took = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(q.collect().size(), 1u);
    EXPECT_GE(took, std::chrono::seconds(2));
}

TEST(sim_threads, the_real_pace_writes_the_status_block_on_the_way)
{
    fabric_config config = slow_config();
    config.cards[0].ddr_bytes_per_s = 1'000'000;  // a minute; nobody waits for its end
    rig it(config);
    queue& q = it.open(0, 1, {.status_block = true});
    q.put(fill(0, 60'000'000, 1));
    q.ring();
    spk_lane_status lane = {};
    ASSERT_TRUE(within_seconds(30, [&] {
        EXPECT_FALSE(it.cards.run());
        lane = q.status().lane[SPK_ENGINE_MEMORY];
        return lane.bytes > 0;
    }));
    EXPECT_EQ(lane.state, SPK_LANE_RUNNING);
    EXPECT_LT(lane.bytes, 60'000'000u);
}

// Keeps a processor busy while it lives.
class burning final {
public:
    burning()
        : thread_([this] {
              while (!stop_.load(std::memory_order_relaxed))
                  work_.fetch_add(1, std::memory_order_relaxed);
          })
    {}
    ~burning()
    {
        stop_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> work_{0};
    std::thread thread_;
};

class loaded_host : public testing::Test {
protected:
    loaded_host()
    {
        it.train();
        for (unsigned card = 0; card < 2; card++)
            queues.push_back(&it.open(card, 1));
    }

    void put_section(unsigned card, unsigned round)
    {
        queue& q = *queues[card];
        q.put(fill(1 << 20, 64 * (1 + (round * 7 + card * 3) % 100), round));
        q.put(flagged(gang(rig::domain, round + 1, 2, 4), SPK_CMD_FENCE));
        for (unsigned i = 0; i < 2; i++) {
            q.put(send(i * 65536, shape, {.ports = 2, .channel = i}));
            q.put(recv((2 + i) * 65536, shape, {.ports = 1, .channel = i}));
        }
        q.ring();
    }

    // Starts and ends of the last section, from its gang's end on.
    std::vector<std::uint64_t> times(unsigned card)
    {
        std::vector<std::uint64_t> out;
        std::uint64_t zero = 0;
        std::vector<trace_entry> last = it.cards.trace(card, 5);
        std::sort(last.begin(), last.end(),
                  [](const trace_entry& a, const trace_entry& b) { return a.id < b.id; });
        for (const trace_entry& entry : last) {
            EXPECT_EQ(entry.status, SPANKER_CARD_OK);
            if (entry.opcode == SPK_OP_GANG)
                zero = entry.end_ns;
            out.push_back(entry.start_ns - zero);
            out.push_back(entry.end_ns - zero);
        }
        out.erase(out.begin());  // the gang's start: its card's arrival
        return out;
    }

    static constexpr rows shape = {.count = 1, .bytes = 40000};
    rig it{small_config(2)};
    std::vector<queue*> queues;
};

TEST_F(loaded_host, times_inside_a_gang_section_are_the_same_in_100_runs)
{
    const burning one, other;
    const running server(it.cards);
    std::vector<std::uint64_t> first[2];
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < 2; i++)  // the server runs in between, or not
            put_section((round + i) % 2, round);
        std::size_t done = 0;
        ASSERT_TRUE(within_seconds(60, [&] {
            for (queue* q : queues)
                done += q->collect().size();
            return done == 12;
        }));
        for (unsigned card = 0; card < 2; card++) {
            const auto seen = times(card);
            if (round == 0)
                first[card] = seen;
            ASSERT_EQ(seen, first[card]) << "card " << card << " round " << round;
        }
    }
}

}  // namespace
}  // namespace spanker::sim::bench
