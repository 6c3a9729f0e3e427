// SPDX-License-Identifier: Apache-2.0
//
// Tensors over the cards of a session, and what lies in them in logical order.
#include <numeric>

#include "data_fake_backend.hpp"
#include "data_rig.hpp"

namespace spanker::daemon::test {
namespace {

struct bed {
    explicit bed(unsigned n = 3) : cards(n), rig(cards), session(rig.opened()) {}
    std::uint64_t used()
    {
        return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0},
                               [&](auto sum, auto c) { return sum + cards.card(c).used_bytes; });
    }
    fake_backend cards;
    plane_rig rig;
    session_fds session;
    std::vector<std::uint32_t> numbers = cards.cards();
};

struct bad_tensor {
    tensor_options options;
    spanker_error_kind kind;
};

TEST(data_tensors, bad_shapes_are_refused)
{
    bed b;
    const bad_tensor table[] = {
        {{.group = 9, .shape = {4}}, SPANKER_ERR_NO_OBJECT},
        {{.layout = SPANKER_LAYOUT_COUNT, .shape = {4}}, SPANKER_ERR_INVALID},
        {{.dtype = SPK_DTYPE_COUNT, .shape = {4}}, SPANKER_ERR_INVALID},
        {{.shape = {}}, SPANKER_ERR_BAD_DIMS},
        {{.shape = {1, 2, 3}}, SPANKER_ERR_BAD_DIMS},
        {{.shape = {0}}, SPANKER_ERR_BAD_DIMS},
        {{.shape = {4, 0}}, SPANKER_ERR_BAD_DIMS},
        {{.shape = {1ull << 40, 1ull << 40}}, SPANKER_ERR_BAD_DIMS},
        {{.layout = SPANKER_LAYOUT_K_SHARD, .shape = {4, 100}}, SPANKER_ERR_BAD_DIMS},
        {{.shape = {1ull << 40}}, SPANKER_ERR_NO_MEMORY},
    };
    for (const bad_tensor& row : table) {
        const auto t = b.rig.add_tensor(b.session.id, row.options);
        ASSERT_FALSE(t);
        EXPECT_EQ(t.error().kind, row.kind) << t.error().message;
    }
    EXPECT_EQ(b.used(), 0u);
}

TEST(data_tensors, layouts_decide_what_each_card_holds)
{
    struct row {
        std::uint32_t layout;
        std::uint64_t bytes[3];
    };
    const row table[] = {
        {SPANKER_LAYOUT_REPLICATED, {16384, 16384, 16384}},
        {SPANKER_LAYOUT_PARTIAL, {16384, 16384, 16384}},
        {SPANKER_LAYOUT_ROW_SHARD, {8192, 4096, 4096}},
        {SPANKER_LAYOUT_K_SHARD, {8192, 4096, 4096}},
    };
    for (const row& r : table) {
        bed b;
        const auto t = b.rig.add_tensor(
            b.session.id, {.layout = r.layout, .dtype = SPK_DTYPE_F32, .shape = {4, 1024}});
        ASSERT_TRUE(t) << t.error().message;
        for (unsigned c = 0; c < 3; c++)
            EXPECT_EQ(b.cards.card(c).used_bytes, r.bytes[c]) << r.layout << " on " << c;
        EXPECT_TRUE(b.rig.drop_tensor(b.session.id, *t));
        EXPECT_EQ(b.used(), 0u);
    }
}

TEST(data_tensors, failing_on_one_card_frees_the_others)
{
    bed b;
    b.cards.card(2).memory_bytes = 100;
    EXPECT_EQ(b.rig.add_tensor(b.session.id, {.shape = {1024}}).error().kind,
              SPANKER_ERR_NO_MEMORY);
    EXPECT_EQ(b.used(), 0u);
}

spanker_sqe transfer(std::uint8_t op, std::uint64_t tensor, std::uint64_t buffer,
                     std::uint64_t bytes, std::uint32_t rank = 0, std::uint64_t tensor_offset = 0)
{
    spanker_sqe e = {.opcode = op, .user_data = op};
    e.transfer = {.tensor = static_cast<std::uint32_t>(tensor),
                  .buffer = static_cast<std::uint32_t>(buffer),
                  .tensor_offset = tensor_offset,
                  .bytes = bytes,
                  .card = rank};
    return e;
}

TEST(data_tensors, written_and_read_back_in_logical_order)
{
    for (const std::uint32_t layout : {SPANKER_LAYOUT_REPLICATED, SPANKER_LAYOUT_ROW_SHARD,
                                       SPANKER_LAYOUT_K_SHARD, SPANKER_LAYOUT_PARTIAL}) {
        bed b;
        client_memory in(16384), out(16384);
        for (std::size_t i = 0; i < in.bytes; i++)
            in.data[i] = static_cast<std::byte>(i * 7 + i / 256);
        const auto from = b.rig.add_buffer(b.session.id, in),
                   to = b.rig.add_buffer(b.session.id, out);
        const auto t = b.rig.add_tensor(b.session.id, {.layout = layout, .shape = {4, 1024}});
        ASSERT_TRUE(from && to && t);
        const auto wrote =
            b.rig.submit(b.session.id, {transfer(SPANKER_SOP_WRITE_TENSOR, *t, *from, in.bytes)});
        EXPECT_EQ(wrote[0].cqe.res, 0) << wrote[0].message;
        const auto read =
            b.rig.submit(b.session.id, {transfer(SPANKER_SOP_READ_TENSOR, *t, *to, out.bytes)});
        EXPECT_EQ(read[0].cqe.res, 0) << read[0].message;
        EXPECT_EQ(std::memcmp(in.data, out.data, in.bytes), 0) << "layout " << layout;
    }
}

TEST(data_tensors, ranges_past_the_tensor_or_the_buffer_are_refused)
{
    bed b;
    client_memory m(8192);
    const auto buffer = b.rig.add_buffer(b.session.id, m);
    const auto t = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    const spanker_sqe bad[] = {
        transfer(SPANKER_SOP_READ_TENSOR, *t, *buffer, 4096, 0, 4),
        transfer(SPANKER_SOP_READ_TENSOR, *t, *buffer, 8192),
        transfer(SPANKER_SOP_READ_TENSOR, *t, *buffer, 4, 0, ~0ull - 1),
    };
    for (const spanker_sqe& e : bad)
        EXPECT_EQ(b.rig.submit(b.session.id, {e})[0].cqe.res, -ERANGE);
}

TEST(data_tensors, their_number_is_limited)
{
    fake_backend cards(1);
    plane_rig rig(cards, {.tensors_per_session = 1});
    const auto s = rig.open();
    ASSERT_TRUE(rig.add_tensor(s->id, {.shape = {4}}));
    EXPECT_EQ(rig.add_tensor(s->id, {.shape = {4}}).error().kind, SPANKER_ERR_QUOTA);
}

}  // namespace
}  // namespace spanker::daemon::test
