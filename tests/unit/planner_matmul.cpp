// SPDX-License-Identifier: Apache-2.0
//
// Matmul stages: the right numbers wherever weights, X and Y lie, and what they
// cost in commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner_machine.hpp"

namespace spanker::daemon::collective {
namespace {

struct shape {
    std::uint32_t cards;
    std::uint64_t n_out, k;
    std::uint32_t n_tok;
};

constexpr shape shapes[] = {{1, 20, 256, 1},  {2, 32, 512, 3}, {4, 30, 1024, 2}, {4, 3, 256, 1},
                            {3, 17, 1280, 5}, {5, 64, 512, 8}, {8, 1, 256, 9}};

constexpr std::uint8_t modes[] = {0, SPK_MATMUL_ACCUMULATE, SPK_MATMUL_EXACT};

object weights(sharding how, const shape& of, bool chainable = false, std::uint32_t owner = 0)
{
    return describe_weights(how, of.n_out, of.k, of.cards, chainable, owner).value();
}

std::uint64_t x_value(std::uint64_t t, std::uint64_t i) { return contribution(t + 7, i) >> 44; }

std::uint64_t y_value(const shape& of, std::uint64_t t, std::uint64_t o)
{
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < of.k; ++i)
        sum += x_value(t, i) * machine::weight(o, i);
    return sum;
}

// weights, X in host memory, Y in host memory.
request host_matmul(sharding how, const shape& of, std::uint8_t mode = 0, std::uint32_t owner = 0)
{
    request made{{}, {}, first_cards(of.cards)};
    made.add(weights(how, of, false, owner));
    made.add(describe_buffer(of.n_tok * of.k * 4));
    made.add(describe_buffer(of.n_tok * of.n_out * 4));
    made.stages.push_back(matmul_stage{{0, 0}, {1, 0}, {2, 0}, of.n_tok, SPK_X_F32, mode});
    return made;
}

void put_x(elements& x, const shape& of)
{
    for (std::uint64_t t = 0; t < of.n_tok; ++t)
        for (std::uint64_t i = 0; i < of.k; ++i)
            x[t * of.k + i] = x_value(t, i);
}

std::string host_outcome(sharding how, const shape& of, std::uint8_t mode, std::uint32_t owner)
{
    const request what = host_matmul(how, of, mode, owner);
    const graph fabric = ring_of(of.cards);
    const auto made = plan_of(fabric, what);
    if (!made)
        return made.error().message;
    machine run(fabric, what, *made);
    put_x(run.memory(0, 1), of);
    run.memory(0, 2).assign(of.n_tok * of.n_out, 1000);
    if (std::string wrong = run.execute(); !wrong.empty())
        return wrong;
    for (std::uint64_t t = 0; t < of.n_tok; ++t)
        for (std::uint64_t o = 0; o < of.n_out; ++o)
            if (run.memory(0, 2)[t * of.n_out + o] !=
                y_value(of, t, o) + (mode & SPK_MATMUL_ACCUMULATE ? 1000 : 0))
                return "token " + std::to_string(t) + " output " + std::to_string(o);
    return "";
}

TEST(matmul, from_and_to_host_memory_is_right_for_every_sharding)
{
    for (const shape& of : shapes)
        for (const sharding how : {sharding::rows, sharding::k_split, sharding::whole})
            for (const std::uint8_t mode : modes)
                EXPECT_EQ(host_outcome(how, of, mode, 0), "")
                    << of.cards << " cards, n_out " << of.n_out << " k " << of.k << " sharding "
                    << static_cast<int>(how) << " mode " << int{mode};
}

TEST(matmul, whole_runs_on_its_owner)
{
    EXPECT_EQ(host_outcome(sharding::whole, {4, 30, 512, 3}, 0, 2), "");
    const auto made = plan_of(ring_of(4), host_matmul(sharding::whole, {4, 30, 512, 3}, 0, 2));
    ASSERT_TRUE(made);
    for (std::uint32_t r = 0; r < 4; ++r)
        EXPECT_EQ(made->cards[r].items.empty(), r != 2) << r;
}

TEST(matmul, of_few_tokens_is_one_dma_in_one_matmul_one_dma_out_per_card)
{
    const auto made = plan_of(ring_of(4), host_matmul(sharding::rows, {4, 4096, 4096, 1}));
    ASSERT_TRUE(made) << made.error().message;
    for (const card_plan& card : made->cards) {
        ASSERT_EQ(card.items.size(), 3u);
        EXPECT_EQ(card.items[0].opcode, SPK_OP_DMA_IN);
        EXPECT_EQ(card.items[1].opcode, SPK_OP_MATMUL_Q4_K);
        EXPECT_EQ(card.items[2].opcode, SPK_OP_DMA_OUT);
        EXPECT_EQ(card.items[2].dst.offset, std::uint64_t{card.card} * 1024 * 4);
    }
    EXPECT_TRUE(made->channel_uses.empty());
}

// 4096 x 4096, 32 tokens: X takes 1.3 ms of host link, the MACs 8.4 ms. Chunks hide most of X.
TEST(matmul, with_many_tokens_goes_in_chunks_when_that_is_faster)
{
    const auto chunked = plan_of(ring_of(4), host_matmul(sharding::rows, {4, 4096, 4096, 32}));
    ASSERT_TRUE(chunked) << chunked.error().message;
    EXPECT_GT(chunked->cards[0].items.size(), 3u);
    EXPECT_LT(chunked->predicted_ns, 9'300'000u);
    EXPECT_GE(chunked->predicted_ns, chunked->bound_ns);
    EXPECT_EQ(chunked->binding, resource::mac);
    EXPECT_EQ(chunked->stages[0].algorithm, SPANKER_ALGORITHM_ROWS);
}

TEST(matmul, bound_is_what_the_busiest_resource_takes)
{
    const auto made = plan_of(ring_of(4), host_matmul(sharding::rows, {4, 4096, 4096, 1}));
    ASSERT_TRUE(made);
    // weights 1024 * 16 * 144, X in and out of DDR, Y in and out of DDR; 2 GB/s
    EXPECT_EQ(made->bound_ns, (1024u * 16 * 144 + 2 * 16384 + 2 * 4096) / 2);
    EXPECT_EQ(made->binding, resource::ddr);
}

// X -> matmul (k_shard out) -> matmul over k -> partial -> AllReduce -> replicated -> matmul -> Y
request chain_of_four(std::uint32_t cards)
{
    request made{{}, {}, first_cards(cards)};
    const std::uint32_t tokens = 2;
    const shape up{cards, 256 * cards, 512, tokens}, down{cards, 256, 256 * cards, tokens},
        last{cards, 40, 256, tokens};
    const std::uint32_t w0 = made.add(weights(sharding::rows, up, true));
    const std::uint32_t w1 = made.add(weights(sharding::k_split, down));
    const std::uint32_t w2 = made.add(weights(sharding::rows, last));
    const std::uint32_t x = made.add(describe_buffer(tokens * 512 * 4));
    const std::uint32_t y = made.add(describe_buffer(tokens * 40 * 4));
    const std::uint32_t h = made.add(tensor(SPANKER_LAYOUT_K_SHARD, tokens, 256 * cards, cards));
    const std::uint32_t p = made.add(tensor(SPANKER_LAYOUT_PARTIAL, tokens, 256, cards));
    const std::uint32_t s = made.add(tensor(SPANKER_LAYOUT_REPLICATED, tokens, 256, cards));
    made.stages.push_back(matmul_stage{{w0, 0}, {x, 0}, {h, 0}, tokens, SPK_X_F32, 0});
    made.stages.push_back(matmul_stage{{w1, 0}, {h, 0}, {p, 0}, tokens, SPK_X_F32, 0});
    collective_stage sum;
    sum.src = {p, 0};
    sum.dst = {s, 0};
    sum.count = tokens * 256;
    made.stages.push_back(sum);
    made.stages.push_back(matmul_stage{{w2, 0}, {s, 0}, {y, 0}, tokens, SPK_X_F32, 0});
    return made;
}

TEST(linked_run, is_one_batch_with_one_dma_in_of_x_and_one_dma_out_of_y_per_card)
{
    const request of = chain_of_four(4);
    const auto made = plan_of(ring_of(4), of);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->segments.size(), 1u);
    machine run(ring_of(4), of, *made);
    ASSERT_EQ(run.execute(), "");
    for (std::uint32_t r = 0; r < 4; ++r) {
        EXPECT_EQ(run.ran(r, SPK_OP_DMA_IN), 1u);
        EXPECT_EQ(run.ran(r, SPK_OP_DMA_OUT), 1u);
        EXPECT_EQ(run.ran(r, SPK_OP_MATMUL_Q4_K), 3u);
        EXPECT_EQ(run.ran(r, SPK_OP_GANG), 1u);
    }
}

TEST(linked_run, computes_what_its_stages_say_in_any_order_of_events)
{
    const request of = chain_of_four(3);
    const auto made = plan_of(ring_of(3), of);
    ASSERT_TRUE(made) << made.error().message;
    std::vector<std::uint64_t> h(768), s(256), y(40);
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        machine run(ring_of(3), of, *made, 4, seed);
        put_x(run.memory(0, 3), {3, 768, 512, 2});
        ASSERT_EQ(run.execute(), "") << seed;
        for (std::uint64_t t = 0; t < 2; ++t) {
            const auto multiply = [](const elements& in, elements& out) {
                for (std::uint64_t o = 0; o < out.size(); ++o) {
                    out[o] = 0;
                    for (std::uint64_t i = 0; i < in.size(); ++i)
                        out[o] += in[i] * machine::weight(o, i);
                }
            };
            elements x(512);
            for (std::uint64_t i = 0; i < 512; ++i)
                x[i] = x_value(t, i);
            multiply(x, h);
            multiply(h, s);
            multiply(s, y);
            for (std::uint64_t o = 0; o < 40; ++o)
                ASSERT_EQ(run.memory(0, 4)[t * 40 + o], y[o]) << "seed " << seed << " o " << o;
        }
    }
}

TEST(linked_run, names_the_stage_of_each_item_and_prices_each_stage)
{
    const auto made = plan_of(ring_of(4), chain_of_four(4));
    ASSERT_TRUE(made);
    const card_plan& card = made->cards[1];
    ASSERT_EQ(card.items.size(), card.stage.size());
    EXPECT_EQ(card.stage.front(), 0u);
    EXPECT_EQ(card.stage.back(), 3u);
    std::uint64_t sum = 0;
    for (const stage_summary& one : made->stages) {
        EXPECT_GT(one.predicted_ns, 0u);
        EXPECT_GE(one.predicted_ns, one.bound_ns);
        sum += one.bound_ns;
    }
    EXPECT_EQ(made->bound_ns, sum);
    EXPECT_EQ(made->stages[2].algorithm, SPANKER_ALGORITHM_FUSED_RING);
}

TEST(linked_run, waits_in_the_gang_so_that_the_section_does_not_depend_on_arrival)
{
    const auto made = plan_of(ring_of(4), chain_of_four(4));
    ASSERT_TRUE(made);
    for (const card_plan& card : made->cards) {
        bool in_section = false;
        std::uint32_t left = 0;
        for (const spanker_work_item& item : card.items) {
            if (item.opcode == SPK_OP_GANG) {
                EXPECT_NE(item.wait_signal, SPK_NO_SIGNAL);
                in_section = true;
                left = item.gang.section;
            } else if (in_section && left > 0) {
                EXPECT_EQ(item.wait_signal, SPK_NO_SIGNAL);
                --left;
            }
        }
        EXPECT_TRUE(in_section);
        EXPECT_EQ(left, 0u);
    }
}

// Y of the first is X of the second, in host memory: other cards must see it whole.
TEST(linked_run, over_host_memory_puts_a_barrier_between_cards)
{
    const shape first{4, 256, 256, 2};
    request of = host_matmul(sharding::rows, first);
    const std::uint32_t y = of.add(describe_buffer(2 * 256 * 4));
    of.stages.push_back(matmul_stage{{0, 0}, {2, 0}, {y, 0}, 2, SPK_X_F32, 0});
    const auto made = plan_of(ring_of(4), of);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_EQ(made->segments.size(), 2u);
    EXPECT_FALSE(made->segments[0].barrier);
    EXPECT_TRUE(made->segments[1].barrier);
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        machine run(ring_of(4), of, *made, 4, seed);
        put_x(run.memory(0, 1), first);
        ASSERT_EQ(run.execute(), "");
        std::uint64_t expected = 0;
        for (std::uint64_t i = 0; i < 256; ++i)
            expected += y_value(first, 1, i) * machine::weight(9, i);
        EXPECT_EQ(run.memory(0, y)[256 + 9], expected) << seed;
    }
}

TEST(linked_run, over_host_memory_of_one_card_needs_no_barrier)
{
    const shape first{1, 256, 256, 1};
    request of = host_matmul(sharding::rows, first);
    const std::uint32_t y = of.add(describe_buffer(256 * 4));
    of.stages.push_back(matmul_stage{{0, 0}, {2, 0}, {y, 0}, 1, SPK_X_F32, 0});
    const auto made = plan_of(ring_of(1), of);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->segments.size(), 1u);
}

TEST(linked_run, of_sixty_stages_takes_few_signals)
{
    request of = collective_request(2, SPANKER_SOP_ALL_REDUCE, 64);
    for (int i = 1; i < 60; ++i)
        of.stages.push_back(of.stages[0]);
    const auto made = plan_of(ring_of(2), of);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_LE(made->signals, 5u);
    machine run(ring_of(2), of, *made);
    for (std::uint32_t r = 0; r < 2; ++r)
        run.memory(r, 0).assign(64, 1);
    ASSERT_EQ(run.execute(), "");
    EXPECT_THAT(run.memory(1, 0), testing::Each(std::uint64_t{1} << 60));  // doubled sixty times
}

TEST(nop, goes_through_the_first_card)
{
    const request of{{nop_stage{}}, {}, {2, 1}};
    const auto made = make_plan(ring_of(4), of.as_run());
    ASSERT_TRUE(made);
    ASSERT_EQ(made->cards[0].items.size(), 1u);
    EXPECT_EQ(made->cards[0].card, 2u);
    EXPECT_EQ(made->cards[0].items[0].opcode, SPK_OP_NOP);
    EXPECT_TRUE(made->cards[1].items.empty());
}

TEST(choose_sharding, prefers_rows_for_decoding_as_the_true_arithmetic_says)
{
    const auto cards = first_cards(4);
    const auto made = choose_sharding(ring_of(4), cards, 5632, 2048, 1);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->best, sharding::rows);
    EXPECT_LT(made->rows_ns * 3, made->whole_ns);
    EXPECT_THAT(made->reason, testing::HasSubstr("n_out=5632 k=2048 n_tok=1 on 4 cards"));
    EXPECT_EQ(made->idle_cards, 0u);
}

TEST(choose_sharding, prefers_k_for_a_wide_and_flat_matrix)
{
    const auto cards = first_cards(4);
    const auto made = choose_sharding(ring_of(4), cards, 256, 65536, 1);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->best, sharding::k_split);
    EXPECT_LT(made->k_split_ns, made->rows_ns);
}

TEST(choose_sharding, keeps_rows_when_another_cut_gains_next_to_nothing)
{
    const auto cards = first_cards(4);
    const auto made = choose_sharding(ring_of(4), cards, 4096, 4096, 1);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->best, sharding::rows);
    EXPECT_LT(made->rows_ns - made->k_split_ns, made->rows_ns / 16);
    EXPECT_LT(made->k_split_ns, made->rows_ns);  // or this test shows nothing
}

TEST(choose_sharding, counts_idle_cards_and_cuts_that_need_cables_that_are_not_there)
{
    const auto cards = first_cards(4);
    const auto made = choose_sharding(cards_only(4), cards, 2, 256, 1);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->k_split_ns, UINT64_MAX);
    EXPECT_THAT(made->reason, testing::HasSubstr("k_split impossible"));
    if (made->best == sharding::rows) {
        EXPECT_EQ(made->idle_cards, 2u);
    }
    EXPECT_THAT(made->reason, testing::HasSubstr("stay idle"));
}

TEST(choose_sharding, refuses_k_off_256)
{
    const auto cards = first_cards(2);
    const auto made = choose_sharding(ring_of(2), cards, 10, 300, 1);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, SPANKER_ERR_BAD_DIMS);
}

}  // namespace
}  // namespace spanker::daemon::collective
