// SPDX-License-Identifier: Apache-2.0
//
// A queue with a card that is played by the test: it looks at the published commands and writes completions.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core_item_rig.hpp"
#include "kernel/core/queue.h"

namespace {

using namespace core_test;

constexpr std::uint32_t depth = 8, records = 8;

struct queue_rig : testing::Test {
    item_rig file;
    std::vector<spk_cmd> sq = std::vector<spk_cmd>(depth);
    std::vector<spk_completion> cq = std::vector<spk_completion>(depth);
    std::vector<spk_id_slot> ids = std::vector<spk_id_slot>(depth);
    std::vector<spk_item_uses> uses = std::vector<spk_item_uses>(depth);
    std::vector<spk_flight> flights = std::vector<spk_flight>(depth);
    std::vector<spk_batch> batches = std::vector<spk_batch>(depth);
    std::vector<spk_deadline> deadlines = std::vector<spk_deadline>(depth);
    std::vector<spanker_record> unread = std::vector<spanker_record>(records);
    spk_queue queue{};
    spk_submission last{};
    int puts = 0;
    std::uint32_t fetched = 0, written = 0;

    void SetUp() override
    {
        static const spk_queue_ops ops = {
            .put = [](void* self, void*) { static_cast<queue_rig*>(self)->puts++; },
            .sq_head =
                [](void* self) {
                    return static_cast<s32>(static_cast<queue_rig*>(self)->fetched & 0xffff);
                },
            .stands = [](void*) { return false; },
            .batch_ended = [](void*, u64) {},
        };
        const spk_queue_memory memory = this->memory();
        ASSERT_EQ(spk_queue_init(&queue, &memory, depth, &ops, this, 0, 1), 0);
    }
    spk_queue_memory memory()
    {
        return {.sq = sq.data(),
                .cq = cq.data(),
                .cq_depth = depth,
                .ids = ids.data(),
                .uses = uses.data(),
                .batches = {flights.data(), batches.data(), deadlines.data(), unread.data()},
                .records = records};
    }
    int submit(const std::vector<spanker_work_item>& items)
    {
        last = {.items = items.data(), .count = static_cast<std::uint32_t>(items.size())};
        return spk_queue_submit(&queue, &file.env, &last);
    }
    const spk_cmd& fetch() { return sq[fetched++ & (depth - 1)]; }
    void complete(std::uint16_t id, std::uint8_t status = SPANKER_CARD_OK)
    {
        auto& entry = cq[written & (depth - 1)];
        entry = {.id = id,
                 .sq_head = static_cast<std::uint16_t>(fetched),
                 .status = status,
                 .phase = entry.phase};
        entry.phase = (written++ / depth) % 2 ? 0 : 1;
    }
    std::vector<spanker_record> read()
    {
        std::vector<spanker_record> out(records);
        out.resize(spk_batch_read(&queue.batches, out.data(), records));
        return out;
    }
};

TEST_F(queue_rig, refuses_depths_that_cannot_work)
{
    auto m = memory();
    EXPECT_EQ(spk_queue_init(&queue, &m, 6, queue.ops, this, 0, 1), -EINVAL);
    m.cq_depth = 4;
    EXPECT_EQ(spk_queue_init(&queue, &m, depth, queue.ops, this, 0, 1), -EINVAL);
    m = memory();
    m.records = 6;
    EXPECT_EQ(spk_queue_init(&queue, &m, depth, queue.ops, this, 0, 1), -EINVAL);
    m.records = 0;
    EXPECT_EQ(spk_queue_init(&queue, &m, depth, queue.ops, this, 0, 1), -EINVAL);
}

TEST_F(queue_rig, a_batch_is_one_doorbell_and_one_record)
{
    ASSERT_EQ(submit({good(SPK_OP_FILL), good(SPK_OP_DMA_IN), good(SPK_OP_MATMUL_Q4_K)}), 0);
    EXPECT_EQ(last.out_doorbell, 3u);
    EXPECT_EQ(last.out_seq, 1u);
    std::vector<std::uint16_t> in_flight;
    for (int n = 0; n < 3; n++)
        in_flight.push_back(fetch().id);
    for (const auto id : {in_flight[2], in_flight[0], in_flight[1]})
        complete(id);
    EXPECT_EQ(spk_queue_reap(&queue, 100), 3u);
    EXPECT_EQ(read().size(), 1u);
    EXPECT_EQ(puts, 1 + 2 + 3);
    EXPECT_EQ(spk_queue_reap(&queue, 100), 0u);
}

TEST_F(queue_rig, the_time_of_commands_is_charged_to_their_engines_and_kept_over_init)
{
    spk_engine_time time{};
    auto m = memory();
    m.time = &time;
    ASSERT_EQ(spk_queue_init(&queue, &m, depth, queue.ops, this, 0, 1), 0);
    ASSERT_EQ(submit({good(SPK_OP_FILL), good(SPK_OP_DMA_IN), good(SPK_OP_MATMUL_Q4_K)}), 0);
    for (u64 n = 1; n <= 3; n++) {
        complete(fetch().id, n == 3 ? SPANKER_CARD_CANCELLED : SPANKER_CARD_OK);
        cq[n - 1].start_ns = 1000;
        cq[n - 1].end_ns = 1000 + n;
    }
    complete(0xfff);  // of no command
    cq[3].end_ns = 77;
    EXPECT_EQ(spk_queue_reap(&queue, 100), 4u);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_MEMORY], 1u);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_HOST_IN], 2u);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_COMPUTE], 3u) << "also a cancelled command took its time";
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_CONTROL], 0u);
    ASSERT_EQ(spk_queue_init(&queue, &m, depth, queue.ops, this, 0, 1), 0);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_COMPUTE], 3u);
}

TEST_F(queue_rig, a_batch_with_a_bad_item_leaves_nothing_behind)
{
    auto bad = good(SPK_OP_MATMUL_Q4_K);
    bad.aux.handle = 1;
    EXPECT_EQ(submit({good(SPK_OP_FILL), good(SPK_OP_NOP), bad, good(SPK_OP_NOP)}), -ENOENT);
    EXPECT_EQ(last.out_fault.item, 2u);
    EXPECT_STREQ(last.out_fault.field, "aux.handle");
    EXPECT_EQ(puts, 1 + 2);
    EXPECT_EQ(file.holds, puts);
    EXPECT_EQ(queue.sq.tail, 0u);
    EXPECT_EQ(queue.ids.idle, depth);
    ASSERT_EQ(submit({good(SPK_OP_NOP)}), 0);
    EXPECT_EQ(last.out_seq, 1u);
    EXPECT_EQ(last.out_doorbell, 1u);
}

TEST_F(queue_rig, takes_one_to_depth_minus_one_items)
{
    EXPECT_EQ(submit({}), -EINVAL);
    EXPECT_EQ(submit(std::vector<spanker_work_item>(depth, good(SPK_OP_NOP))), -EINVAL);
    EXPECT_EQ(last.out_fault.item, SPANKER_NO_ITEM);
    EXPECT_EQ(submit(std::vector<spanker_work_item>(depth - 1, good(SPK_OP_NOP))), 0);
}

TEST_F(queue_rig, says_again_when_full_and_goes_on_after_completions)
{
    ASSERT_EQ(submit(std::vector<spanker_work_item>(depth - 1, good(SPK_OP_NOP))), 0);
    EXPECT_EQ(submit({good(SPK_OP_NOP), good(SPK_OP_NOP)}), -EAGAIN);
    for (std::uint32_t n = 0; n < depth - 1; n++)
        complete(fetch().id);
    spk_queue_reap(&queue, 100);
    EXPECT_EQ(submit({good(SPK_OP_NOP), good(SPK_OP_NOP)}), 0);
}

TEST_F(queue_rig, only_the_last_of_a_lane_interrupts)
{
    ASSERT_EQ(submit({good(SPK_OP_FILL), good(SPK_OP_FILL), good(SPK_OP_DMA_OUT)}), 0);
    EXPECT_FALSE(fetch().flags & SPK_CMD_IRQ);
    EXPECT_TRUE(fetch().flags & SPK_CMD_IRQ);
    EXPECT_TRUE(fetch().flags & SPK_CMD_IRQ);
}

TEST_F(queue_rig, survives_a_card_that_lies_about_ids_and_heads)
{
    ASSERT_EQ(submit({good(SPK_OP_NOP)}), 0);
    const auto id = fetch().id;
    complete(0xffff);
    complete(static_cast<std::uint16_t>(id ^ 0x1000));
    fetched = 77;
    complete(id);
    complete(id);
    EXPECT_EQ(spk_queue_reap(&queue, 100), 4u);
    EXPECT_EQ(queue.ids.unknown, 1u);
    EXPECT_EQ(queue.ids.stale, 1u);
    EXPECT_EQ(queue.ids.duplicate, 1u);
    EXPECT_EQ(queue.bad_heads, 2u);
    EXPECT_EQ(read().size(), 1u);
}

TEST_F(queue_rig, starts_again_empty_and_keeps_what_its_owner_has)
{
    ASSERT_EQ(submit({good(SPK_OP_FILL), good(SPK_OP_FILL)}), 0);
    const std::uint16_t done = fetch().id, old = fetch().id;
    complete(done);
    complete(old);
    EXPECT_EQ(spk_queue_reap(&queue, 8), 2u);
    ASSERT_EQ(submit({good(SPK_OP_FILL), good(SPK_OP_FILL)}), 0);
    const std::uint16_t lost = fetch().id;
    complete(lost);
    EXPECT_EQ(spk_queue_reap(&queue, 8), 1u);

    spk_queue_restart(&queue, -EIO);
    EXPECT_EQ(puts, 4) << "all objects are given back";
    auto got = read();
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].result, 0);
    EXPECT_EQ(got[1].result, -EIO);
    EXPECT_EQ(got[1].item, 1u) << "the first item had ended well";

    std::fill(sq.begin(), sq.end(), spk_cmd{});
    std::fill(cq.begin(), cq.end(), spk_completion{});
    fetched = written = 0;
    for (std::uint32_t n = 0; n < 3 * depth; n++) {
        ASSERT_EQ(submit({good(SPK_OP_FILL)}), 0) << n;
        EXPECT_EQ(last.out_seq, n + 3u);
        EXPECT_EQ(last.out_doorbell, n + 1u);
        const std::uint16_t id = fetch().id;
        EXPECT_NE(id, lost) << "a late completion of before finds nothing";
        complete(lost);
        complete(id);
        EXPECT_EQ(spk_queue_reap(&queue, 8), 2u);
        got = read();
        ASSERT_EQ(got.size(), 1u);
        EXPECT_EQ(got[0].result, 0);
    }
}

TEST_F(queue_rig, reaps_no_more_than_its_budget)
{
    ASSERT_EQ(submit(std::vector<spanker_work_item>(5, good(SPK_OP_NOP))), 0);
    for (int n = 0; n < 5; n++)
        complete(fetch().id);
    EXPECT_EQ(spk_queue_reap(&queue, 3), 3u);
    EXPECT_EQ(queue.cq.head, 3u);
    EXPECT_EQ(spk_queue_reap(&queue, 3), 2u);
}

TEST_F(queue_rig, an_item_without_a_deadline_gets_the_default)
{
    auto item = good(SPK_OP_NOP);
    item.deadline_ns = 50;
    const std::vector<spanker_work_item> items = {good(SPK_OP_NOP), item};
    last = {.items = items.data(), .count = 2, .default_deadline_ns = 70};
    ASSERT_EQ(spk_queue_submit(&queue, &file.env, &last), 0);
    u64 next;
    EXPECT_EQ(spk_batch_step(&queue.batches, 0, &next), 0u);
    EXPECT_EQ(next, 50u);
    EXPECT_EQ(spk_batch_step(&queue.batches, 60, &next), SPK_STEP_ABORT);
    EXPECT_EQ(next, 70u);
}

TEST_F(queue_rig, random_traffic_ends_every_batch_once_and_gives_back_every_object)
{
    std::mt19937 random(4);
    std::vector<std::uint16_t> in_flight;
    u64 submitted = 0, ended = 0;
    for (int step = 0; step < 30000; step++) {
        if (random() % 2) {
            std::vector<spanker_work_item> items(1 + random() % 4, good(SPK_OP_DMA_IN));
            if (random() % 5 == 0)
                items.back().src.handle = 0;
            const int err = submit(items);
            ASSERT_EQ(queue.sq.tail, queue.sq.published);
            if (err)
                continue;
            submitted++;
            while (fetched != queue.sq.published)
                in_flight.push_back(fetch().id);
        } else {
            for (auto n = random() % 4; n && !in_flight.empty(); n--) {
                std::swap(in_flight[random() % in_flight.size()], in_flight.back());
                complete(in_flight.back());
                in_flight.pop_back();
            }
            spk_queue_reap(&queue, 1 + random() % 8);
            ended += read().size();
        }
    }
    for (const auto id : in_flight) {
        complete(id);
        spk_queue_reap(&queue, 1);
    }
    while (spk_queue_reap(&queue, 100))
        ;
    ended += read().size();
    EXPECT_EQ(ended, submitted);
    EXPECT_GT(submitted, 3000u);
    EXPECT_EQ(queue.ids.idle, depth);
    EXPECT_EQ(puts, file.holds);
    EXPECT_EQ(queue.ids.unknown + queue.ids.stale + queue.ids.duplicate + queue.bad_heads, 0u);
}

}  // namespace
