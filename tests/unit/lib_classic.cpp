// SPDX-License-Identifier: Apache-2.0
//
// matmul_q4_k, all_reduce_f32, all_gather_f32: what they check, in which order, with which typed details. The
// session of these tests has no daemon behind it, so whatever reached for one would fail otherwise.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "libspankerctl/src/session.hpp"

namespace {

constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();

struct bed {
    spanker_connection connection;
    spanker_session session{&connection};

    explicit bed(std::vector<std::uint32_t> cards = {0})
    {
        connection.address = "unix:path=/nonexistent/bus";
        session.cards = std::move(cards);
    }
};

struct row {
    const char* name;
    std::uint64_t m, k, n, a_bytes, b_bytes, out_bytes;
    int result;
    spanker_kind kind;
    const char* says;
};
// Where several things are wrong at once, the first in the order of the contract is reported.
const row rows[] = {
    {"k is 0", 1, 0, 1, 0, 0, 0, -EINVAL, SPANKER_KIND_BAD_DIMS, "multiple of 256"},
    {"k is no multiple of 256", 1, 100, 1, 0, 0, 16, -EINVAL, SPANKER_KIND_BAD_DIMS,
     "multiple of 256"},
    {"k before overflow", huge, 255, huge, 0, 0, 0, -EINVAL, SPANKER_KIND_BAD_DIMS,
     "multiple of 256"},
    {"k before m == 0", 0, 1, 4, 0, 0, 0, -EINVAL, SPANKER_KIND_BAD_DIMS, "multiple of 256"},
    {"a overflows", huge, 256, 1, 0, 0, 0, -EINVAL, SPANKER_KIND_BAD_DIMS, "overflows"},
    {"b overflows", 1, 256, huge, 0, 0, 0, -EINVAL, SPANKER_KIND_BAD_DIMS, "overflows"},
    {"two of the longest rows", 2, huge - 255, 1, 0, 0, 0, -EINVAL, SPANKER_KIND_BAD_DIMS,
     "overflows"},
    {"out overflows", 1ull << 40, 256, 1ull << 40, 0, 0, 0, -EINVAL, SPANKER_KIND_BAD_DIMS,
     "overflows"},
    {"overflow before lengths", huge, 256, 1, 7, 7, 0, -EINVAL, SPANKER_KIND_BAD_DIMS, "overflows"},
    {"a too short", 4, 256, 4, 4 * 144 - 1, 4 * 144, 64, -EINVAL, SPANKER_KIND_BAD_DIMS,
     "a has 575"},
    {"a too long", 4, 256, 4, 4 * 144 + 1, 4 * 144, 64, -EINVAL, SPANKER_KIND_BAD_DIMS,
     "a has 577"},
    {"b too short", 4, 256, 4, 4 * 144, 4 * 144 - 1, 64, -EINVAL, SPANKER_KIND_BAD_DIMS,
     "b has 575"},
    {"b too long", 4, 256, 4, 4 * 144, 4 * 144 + 1, 64, -EINVAL, SPANKER_KIND_BAD_DIMS,
     "b has 577"},
    {"a before b", 4, 256, 4, 1, 1, 64, -EINVAL, SPANKER_KIND_BAD_DIMS, "a has 1"},
    {"lengths before out", 4, 256, 4, 4 * 144, 0, 0, -EINVAL, SPANKER_KIND_BAD_DIMS, "b has 0"},
    {"lengths even when m is 0", 0, 256, 4, 144, 4 * 144, 0, -EINVAL, SPANKER_KIND_BAD_DIMS,
     "a has 144"},
    {"lengths even when n is 0", 4, 256, 0, 4 * 144, 144, 0, -EINVAL, SPANKER_KIND_BAD_DIMS,
     "b has 144"},
    {"out too small", 4, 256, 4, 4 * 144, 4 * 144, 4, -ENOSPC, SPANKER_KIND_OUTPUT_TOO_SMALL, "64"},
    {"out one byte too small", 4, 256, 4, 576, 576, 63, -ENOSPC, SPANKER_KIND_OUTPUT_TOO_SMALL,
     "63"},
    {"m is 0", 0, 256, 4, 0, 4 * 144, 0, 0, SPANKER_KIND_OK, ""},
    {"n is 0", 4, 256, 0, 4 * 144, 0, 0, 0, SPANKER_KIND_OK, ""},
    {"both are 0", 0, 512, 0, 0, 0, 0, 0, SPANKER_KIND_OK, ""},
};

TEST(lib_classic, checks_come_in_the_order_of_the_contract)
{
    for (const auto& r : rows) {
        bed b;
        const int result = spanker_matmul_q4_k(&b.session, nullptr, r.a_bytes, nullptr, r.b_bytes,
                                               nullptr, r.out_bytes, r.m, r.k, r.n);
        EXPECT_EQ(result, r.result) << r.name;
        if (result == 0)
            continue;
        const spanker_error& error = *spanker_last_error(&b.session);
        EXPECT_EQ(error.kind, r.kind) << r.name;
        EXPECT_NE(std::string(error.message).find(r.says), std::string::npos)
            << r.name << ": " << error.message;
    }
}

TEST(lib_classic, bad_dims_names_m_k_n_and_256)
{
    for (const auto& r : rows) {
        if (r.kind != SPANKER_KIND_BAD_DIMS)
            continue;
        bed b;
        spanker_matmul_q4_k(&b.session, nullptr, r.a_bytes, nullptr, r.b_bytes, nullptr,
                            r.out_bytes, r.m, r.k, r.n);
        const spanker_error& error = *spanker_last_error(&b.session);
        EXPECT_EQ(error.m, r.m) << r.name;
        EXPECT_EQ(error.k, r.k) << r.name;
        EXPECT_EQ(error.n, r.n) << r.name;
        for (const std::string& part : {"m " + std::to_string(r.m), "k " + std::to_string(r.k),
                                        "n " + std::to_string(r.n), std::string("256")})
            EXPECT_NE(std::string(error.message).find(part), std::string::npos)
                << r.name << ": " << error.message;
    }
}

TEST(lib_classic, output_too_small_has_both_sizes)
{
    bed b;
    EXPECT_EQ(spanker_matmul_q4_k(&b.session, nullptr, 576, nullptr, 576, nullptr, 4, 4, 256, 4),
              -ENOSPC);
    EXPECT_EQ(spanker_last_error(&b.session)->have, 4u);
    EXPECT_EQ(spanker_last_error(&b.session)->need, 64u);
}

TEST(lib_classic, operands_that_are_needed_must_be_there)
{
    bed b;
    const std::vector<char> block(144);
    float out = 0;
    EXPECT_EQ(spanker_matmul_q4_k(&b.session, nullptr, 144, block.data(), 144, &out, 4, 1, 256, 1),
              -EINVAL);
    EXPECT_STREQ(spanker_last_error(&b.session)->message, "a is NULL");
    EXPECT_EQ(spanker_matmul_q4_k(&b.session, block.data(), 144, nullptr, 144, &out, 4, 1, 256, 1),
              -EINVAL);
    EXPECT_EQ(spanker_matmul_q4_k(&b.session, block.data(), 144, block.data(), 144, nullptr, 4, 1,
                                  256, 1),
              -EINVAL);
}

TEST(lib_classic, the_number_of_ranks_is_that_of_the_cards)
{
    bed b({0, 1});
    float values[3] = {};
    float* ranks[3] = {values, values + 1, values + 2};
    EXPECT_EQ(spanker_all_reduce_f32(&b.session, ranks, 3, 1, SPANKER_SUM), -EINVAL);
    EXPECT_EQ(spanker_last_error(&b.session)->kind, SPANKER_KIND_TOPOLOGY_MISMATCH);
    EXPECT_EQ(spanker_last_error(&b.session)->have, 3u);
    EXPECT_EQ(spanker_last_error(&b.session)->need, 2u);
    EXPECT_EQ(spanker_all_gather_f32(&b.session, ranks, ranks, 1, 1), -EINVAL);
    EXPECT_EQ(spanker_last_error(&b.session)->kind, SPANKER_KIND_TOPOLOGY_MISMATCH);
}

TEST(lib_classic, no_elements_need_no_card)
{
    bed b({0, 1});
    EXPECT_EQ(spanker_all_reduce_f32(&b.session, nullptr, 2, 0, SPANKER_SUM), 0);
    EXPECT_EQ(spanker_all_gather_f32(&b.session, nullptr, nullptr, 2, 0), 0);
}

TEST(lib_classic, sizes_that_overflow_are_a_wrong_shape)
{
    bed b({0, 1});
    EXPECT_EQ(spanker_all_reduce_f32(&b.session, nullptr, 2, huge / 4, SPANKER_SUM), -EINVAL);
    EXPECT_EQ(spanker_last_error(&b.session)->kind, SPANKER_KIND_SHAPE_MISMATCH);
    EXPECT_EQ(spanker_last_error(&b.session)->have, huge / 4);
}

TEST(lib_classic, a_rank_without_memory_is_named)
{
    bed b({0, 1});
    float value = 0;
    float* ranks[2] = {&value, nullptr};
    EXPECT_EQ(spanker_all_reduce_f32(&b.session, ranks, 2, 1, SPANKER_SUM), -EINVAL);
    EXPECT_STREQ(spanker_last_error(&b.session)->message, "ranks[1] is NULL");
    float* whole[2] = {&value, &value};
    EXPECT_EQ(spanker_all_gather_f32(&b.session, whole, ranks, 2, 1), -EINVAL);
    EXPECT_STREQ(spanker_last_error(&b.session)->message, "out[1] is NULL");
}

TEST(lib_classic, an_unknown_reduction_is_refused)
{
    bed b;
    EXPECT_EQ(spanker_all_reduce_f32(&b.session, nullptr, 1, 1, static_cast<spanker_reduce>(5)),
              -EINVAL);
}

}  // namespace
