// SPDX-License-Identifier: Apache-2.0
//
// Whole problems through library, bus, daemon and card: the answers, and what the card saw.
#include "tests/daemon/lib_stack.hpp"

namespace {

using namespace stack;
using testing::ElementsAre;
using testing::HasSubstr;
namespace reference = spanker::reference;

class lib_classic : public lib_stack {
protected:
    lib_classic() : session_(must(link_.open_session())) {}
    session session_;
};

TEST_F(lib_classic, matmul_q4_k_is_a_times_b_transposed)
{
    struct {
        std::uint64_t m, k, n;
    } const shapes[] = {{1, 256, 1}, {4, 256, 4}, {3, 512, 7}, {5, 1024, 33}};
    for (const auto& s : shapes) {
        const auto a = random_q4k(s.m, s.k, 1), b = random_q4k(s.n, s.k, 2);
        std::vector<float> out(s.m * s.n + 1, -1.0F);
        must(session_.matmul_q4_k(a, b, out, s.m, s.k, s.n));
        const auto x = reference::dequantize(a);
        const auto expected = reference::matmul(b, x, {s.n, s.k, s.m});
        EXPECT_LE(reference::nmse(expected, std::span(out).first(s.m * s.n)), 1e-9)
            << s.m << ' ' << s.k << ' ' << s.n;
        EXPECT_EQ(out.back(), -1.0F) << "wrote past the result";
    }
}

TEST_F(lib_classic, the_card_sees_exactly_four_steps)
{
    const std::uint64_t m = 4, k = 512, n = 8;
    const auto a = random_q4k(m, k, 1), b = random_q4k(n, k, 2);
    std::vector<float> out(m * n);
    must(session_.matmul_q4_k(a, b, out, m, k, n));
    ASSERT_THAT(opcodes(0), ElementsAre("DMA_IN", "DMA_IN", "MATMUL_Q4_K", "DMA_OUT"));
    const auto trace = commands(0);
    EXPECT_EQ(trace[0].bytes, a.size());
    EXPECT_EQ(trace[1].bytes, b.size());
    EXPECT_THAT(trace[2].dims, ElementsAre(n, k, m));
    EXPECT_EQ(trace[3].bytes, m * n * 4);
    for (const auto& command : trace)
        EXPECT_STREQ(command.status, "OK");
    for (const std::uint32_t other : {1u, 2u, 3u})
        EXPECT_TRUE(opcodes(other).empty()) << other;
}

TEST_F(lib_classic, the_same_problem_again_is_four_steps_again)
{
    const auto a = random_q4k(2, 256, 1), b = random_q4k(2, 256, 2);
    std::vector<float> first(4), second(4);
    must(session_.matmul_q4_k(a, b, first, 2, 256, 2));
    must(session_.matmul_q4_k(a, b, second, 2, 256, 2));
    EXPECT_EQ(first, second);
    EXPECT_THAT(opcodes(0), ElementsAre("DMA_IN", "DMA_IN", "MATMUL_Q4_K", "DMA_OUT", "DMA_IN",
                                        "DMA_IN", "MATMUL_Q4_K", "DMA_OUT"));
}

TEST_F(lib_classic, empty_and_refused_problems_reach_no_card)
{
    const auto a = random_q4k(4, 256, 1);
    std::vector<float> out(16);
    must(session_.matmul_q4_k({}, a, out, 0, 256, 4));
    must(session_.matmul_q4_k(a, {}, out, 4, 256, 0));
    EXPECT_FALSE(session_.matmul_q4_k(a, a, out, 4, 255, 4));
    EXPECT_FALSE(session_.matmul_q4_k(a, std::span(a).first(1), out, 4, 256, 4));
    EXPECT_FALSE(session_.matmul_q4_k(a, a, std::span(out).first(15), 4, 256, 4));
    for (const std::uint32_t card : {0u, 1u, 2u, 3u})
        EXPECT_TRUE(opcodes(card).empty()) << card;
}

TEST_F(lib_classic, all_reduce_f32_combines_in_place_on_all_ranks)
{
    const struct {
        spanker_reduce reduce;
        std::vector<float> expected;
    } rows[] = {
        {SPANKER_SUM, {13, 14, 24}}, {SPANKER_PROD, {42, 60, 864}},   {SPANKER_MIN, {1, 1, 3}},
        {SPANKER_MAX, {7, 6, 9}},    {SPANKER_AVG, {3.25F, 3.5F, 6}},
    };
    for (const auto& row : rows) {
        std::vector<std::vector<float>> ranks = {{1, 5, 9}, {7, 2, 8}, {3, 6, 4}, {2, 1, 3}};
        must(session_.all_reduce_f32(ranks, row.reduce));
        for (const auto& rank : ranks)
            EXPECT_EQ(rank, row.expected) << row.reduce;
    }
}

TEST_F(lib_classic, all_reduce_f32_of_many_elements_is_exact_where_sums_are)
{
    std::vector<std::vector<float>> ranks(4, std::vector<float>(100'001));
    std::vector<float> expected(100'001);
    std::mt19937 random(3);
    for (auto& rank : ranks)
        for (std::size_t i = 0; i < rank.size(); ++i)
            expected[i] += rank[i] = static_cast<float>(static_cast<int>(random() % 2048) - 1024);
    must(session_.all_reduce_f32(ranks));
    for (const auto& rank : ranks)
        EXPECT_EQ(rank, expected);
}

TEST_F(lib_classic, all_gather_f32_concatenates_in_rank_order)
{
    const std::vector<std::vector<float>> ranks = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
    EXPECT_EQ(must(session_.all_gather_f32(ranks)), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(lib_classic, all_gather_f32_gives_every_rank_everything)
{
    std::vector<std::vector<float>> in = {{1}, {2}, {3}, {4}}, out(4, std::vector<float>(4));
    const float* from[4];
    float* to[4];
    for (std::size_t r = 0; r < 4; ++r) {
        from[r] = in[r].data();
        to[r] = out[r].data();
    }
    ASSERT_EQ(spanker_all_gather_f32(session_.get(), from, to, 4, 1), 0);
    for (const auto& rank : out)
        EXPECT_THAT(rank, ElementsAre(1, 2, 3, 4));
}

TEST_F(lib_classic, ranks_and_shapes_that_do_not_fit_have_typed_details)
{
    std::vector<std::vector<float>> three(3, {1.0F});
    const auto count = session_.all_reduce_f32(three);
    ASSERT_FALSE(count);
    EXPECT_EQ(count.error().kind, SPANKER_KIND_TOPOLOGY_MISMATCH);
    EXPECT_EQ(count.error().have, 3u);
    EXPECT_EQ(count.error().need, 4u);
    std::vector<std::vector<float>> uneven = {{1, 2}, {3}, {4, 5}, {6, 7}};
    const auto shape = session_.all_reduce_f32(uneven);
    ASSERT_FALSE(shape);
    EXPECT_EQ(shape.error().kind, SPANKER_KIND_SHAPE_MISMATCH);
    EXPECT_EQ(shape.error().m, 1u);
    EXPECT_EQ(shape.error().have, 1u);
    EXPECT_EQ(shape.error().need, 2u);
    const auto gather = session_.all_gather_f32(uneven);
    ASSERT_FALSE(gather);
    EXPECT_EQ(gather.error().kind, SPANKER_KIND_SHAPE_MISMATCH);
}

TEST_F(lib_classic, work_on_one_card_or_none_needs_no_cable)
{
    const std::uint32_t alone[] = {2};
    session one = must(link_.open_session(alone));
    std::vector<std::vector<float>> rank = {{1, 2, 3}};
    must(one.all_reduce_f32(rank));
    EXPECT_THAT(rank[0], ElementsAre(1, 2, 3));
    EXPECT_THAT(must(one.all_gather_f32(rank)), ElementsAre(1, 2, 3));
}

}  // namespace
