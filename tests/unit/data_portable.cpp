// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/portable.hpp"

#include <gtest/gtest.h>

namespace spanker::daemon {
namespace {

const options matmul_request = {{"weights", std::uint64_t{7}},
                                {"n_tok", std::uint64_t{3}},
                                {"x", std::uint64_t{1}},
                                {"y", std::uint64_t{2}},
                                {"y_offset", std::uint64_t{64}},
                                {"y_kind", std::string("tensor")},
                                {"exact", true},
                                {"user_data", std::uint64_t{9}},
                                {"linked", true}};

options with(options from, const std::string& key, option_value value)
{
    for (option& o : from)
        if (o.key == key) {
            o.value = std::move(value);
            return from;
        }
    from.push_back({key, std::move(value)});
    return from;
}

options without(options from, const std::string& key)
{
    std::erase_if(from, [&](const option& o) { return o.key == key; });
    return from;
}

TEST(data_portable, matmul_fills_the_entry)
{
    const auto e = parse_request(SPANKER_SOP_MATMUL, matmul_request, 0);
    ASSERT_TRUE(e) << e.error().message;
    EXPECT_EQ(e->opcode, SPANKER_SOP_MATMUL);
    EXPECT_EQ(e->flags, SPANKER_SQE_LINKED);
    EXPECT_EQ(e->user_data, 9u);
    EXPECT_EQ(e->matmul.weights, 7u);
    EXPECT_EQ(e->matmul.n_tok, 3u);
    EXPECT_EQ(e->matmul.x_kind, SPANKER_KIND_BUFFER);
    EXPECT_EQ(e->matmul.y_kind, SPANKER_KIND_TENSOR);
    EXPECT_EQ(e->matmul.y_offset, 64u);
    EXPECT_EQ(e->matmul.mode, SPK_MATMUL_EXACT);
}

TEST(data_portable, op_names_the_operation_of_a_list_entry)
{
    const auto e = parse_request({{"op", std::string("all_reduce")},
                                  {"src", std::uint64_t{1}},
                                  {"dst", std::uint64_t{1}},
                                  {"count", std::uint64_t{100}},
                                  {"dtype", std::string("bf16")},
                                  {"reduce", std::string("max")}},
                                 0);
    ASSERT_TRUE(e) << e.error().message;
    EXPECT_EQ(e->opcode, SPANKER_SOP_ALL_REDUCE);
    EXPECT_EQ(e->collective.dtype, SPK_DTYPE_BF16);
    EXPECT_EQ(e->collective.reduce, SPK_REDUCE_MAX);
    EXPECT_EQ(e->collective.count, 100u);
}

TEST(data_portable, deadlines_are_relative_and_saturate)
{
    const options nop = {{"deadline_ns", std::uint64_t{50}}};
    EXPECT_EQ(parse_request(SPANKER_SOP_NOP, nop, 1000)->deadline_ns, 1050u);
    EXPECT_EQ(parse_request(SPANKER_SOP_NOP, {}, 1000)->deadline_ns, 0u);
    const options late = {{"deadline_ns", ~std::uint64_t{0}}};
    EXPECT_EQ(parse_request(SPANKER_SOP_NOP, late, 1000)->deadline_ns, ~0ull);
}

struct refused {
    const char* says;
    options request;
};

TEST(data_portable, bad_matmuls_are_refused_by_key)
{
    const refused table[] = {
        {"unknown key 'wights'", with(matmul_request, "wights", std::uint64_t{1})},
        {"key 'weights' is missing", without(matmul_request, "weights")},
        {"key 'n_tok' must be an unsigned integer",
         with(matmul_request, "n_tok", std::string("3"))},
        {"key 'x' is 4294967296, the most is 4294967295",
         with(matmul_request, "x", std::uint64_t{1} << 32)},
        {"key 'exact' must be a boolean", with(matmul_request, "exact", std::uint64_t{1})},
        {"key 'x_kind': unknown kind 'weights'",
         with(matmul_request, "x_kind", std::string("weights"))},
        {"key 'x_format': unknown format of X 'f64'",
         with(matmul_request, "x_format", std::string("f64"))},
        {"key 'y_kind' is empty", with(matmul_request, "y_kind", std::string())},
        {"unknown key 'op'", with(matmul_request, "op", std::string("matmul"))},
        {"unknown key 'count'", with(matmul_request, "count", std::uint64_t{1})},
    };
    for (const refused& row : table) {
        const auto e = parse_request(SPANKER_SOP_MATMUL, row.request, 0);
        ASSERT_FALSE(e) << row.says;
        EXPECT_EQ(e.error().kind, SPANKER_ERR_INVALID);
        EXPECT_NE(e.error().message.find(row.says), std::string::npos) << e.error().message;
    }
}

TEST(data_portable, keys_given_twice_are_refused)
{
    options twice = matmul_request;
    twice.push_back({"weights", std::uint64_t{4}});
    const auto e = parse_request(SPANKER_SOP_MATMUL, twice, 0);
    ASSERT_FALSE(e);
    EXPECT_NE(e.error().message.find("'weights' is given twice"), std::string::npos)
        << e.error().message;
}

TEST(data_portable, list_entries_need_a_known_operation)
{
    EXPECT_FALSE(parse_request({}, 0));
    EXPECT_FALSE(parse_request({{"op", std::uint64_t{1}}}, 0));
    const auto e = parse_request({{"op", std::string("matmull")}}, 0);
    ASSERT_FALSE(e);
    EXPECT_NE(e.error().message.find("say one of nop, matmul"), std::string::npos);
    EXPECT_FALSE(parse_request(SPANKER_SOP_COUNT, {}, 0));
}

TEST(data_portable, all_words_are_known_both_ways)
{
    for (std::uint8_t op = 0; op < SPANKER_SOP_COUNT; op++)
        EXPECT_EQ(parse_op(op_name(op)).value(), op);
    EXPECT_EQ(parse_access("r").value(), std::uint32_t{SPANKER_BUFFER_READ});
    EXPECT_EQ(parse_access("w").value(), std::uint32_t{SPANKER_BUFFER_WRITE});
    EXPECT_EQ(parse_access("rw").value(), std::uint32_t{SPANKER_BUFFER_FLAGS});
    EXPECT_EQ(parse_layout("k_shard").value(), std::uint32_t{SPANKER_LAYOUT_K_SHARD});
    EXPECT_EQ(parse_dtype("i8").value(), std::uint32_t{SPK_DTYPE_I8});
    EXPECT_FALSE(parse_sharding("auto").value().has_value());
    for (auto how :
         {collective::sharding::rows, collective::sharding::k_split, collective::sharding::whole})
        EXPECT_EQ(parse_sharding(sharding_name(how)).value(), how);
    EXPECT_FALSE(parse_sharding("columns"));
    EXPECT_STREQ(algorithm_name(SPANKER_ALGORITHM_FUSED_RING), "fused-ring");
    EXPECT_STREQ(algorithm_name(99), "unknown");
}

TEST(data_portable, weights_and_sessions_parse)
{
    const auto w = parse_weights({{"n_out", std::uint64_t{8}},
                                  {"k", std::uint64_t{256}},
                                  {"format", std::string("q4_k")},
                                  {"sharding", std::string("k")},
                                  {"seal", true}});
    ASSERT_TRUE(w) << w.error().message;
    EXPECT_EQ(w->how, collective::sharding::k_split);
    EXPECT_TRUE(w->seal);
    EXPECT_FALSE(parse_weights({{"k", std::uint64_t{256}}}));
    EXPECT_FALSE(parse_weights(
        {{"n_out", std::uint64_t{8}}, {"k", std::uint64_t{256}}, {"format", std::string("f32")}}));
    const auto s = parse_session({{"cards", std::vector<std::uint64_t>{2, 0}}});
    ASSERT_TRUE(s);
    EXPECT_EQ(s->cards, (std::vector<std::uint32_t>{2, 0}));
    EXPECT_FALSE(parse_session({{"cards", std::vector<std::uint64_t>{}}}));
    EXPECT_FALSE(parse_session({{"cards", std::vector<std::uint64_t>{1ull << 40}}}));
    EXPECT_TRUE(parse_none({}));
    EXPECT_FALSE(parse_none({{"x", true}}));
}

TEST(data_portable, replies_say_what_failed_and_where)
{
    const entry_result bad = {{.res = -ENOLINK,
                               .card_status = SPANKER_CARD_LINK_DOWN,
                               .card = 2,
                               .link = 2 << 8 | 1,
                               .kind = SPANKER_ERR_LINK_DOWN},
                              "a link is down"};
    const options reply = describe_result(bad);
    const auto value = [&](const char* key) {
        for (const option& o : reply)
            if (o.key == key)
                return o.value;
        return option_value();
    };
    EXPECT_EQ(std::get<std::string>(value("error")), "LinkDown");
    EXPECT_EQ(std::get<std::string>(value("card_status")), "LINK_DOWN");
    EXPECT_EQ(std::get<std::string>(value("link")), "2.1");
    EXPECT_EQ(std::get<std::uint64_t>(value("card")), 2u);
    EXPECT_EQ(std::get<std::uint64_t>(value("errno")), std::uint64_t{ENOLINK});
    EXPECT_EQ(describe_result({}).size(), 5u);
}

}  // namespace
}  // namespace spanker::daemon
