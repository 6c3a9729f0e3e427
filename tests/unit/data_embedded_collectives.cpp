// SPDX-License-Identifier: Apache-2.0
//
// Collectives through the plane on simulated cards, and what happens to them
// when cables and cards go.
#include "data_embedded_rig.hpp"

namespace spanker::daemon::test {
namespace {

std::int32_t* ints(const client_memory& m) { return reinterpret_cast<std::int32_t*>(m.data); }

spanker_sqe all_reduce_i32(std::uint64_t src, std::uint64_t dst, std::uint64_t count)
{
    return collective_op(SPANKER_SOP_ALL_REDUCE, src, SPANKER_KIND_BUFFER, dst, SPANKER_KIND_BUFFER,
                         count, SPK_DTYPE_I32);
}

void number(const client_memory& m, std::uint64_t n)
{
    for (std::uint64_t i = 0; i < n; i++)
        ints(m)[i] = static_cast<std::int32_t>(i * 2654435761u);
}

// Every rank's part of dst holds the sum over the ranks of src.
void expect_sums(const client_memory& src, const client_memory& dst, unsigned ranks,
                 std::uint64_t count)
{
    for (std::uint64_t i = 0; i < count; i++) {
        std::uint32_t sum = 0;
        for (unsigned r = 0; r < ranks; r++)
            sum += static_cast<std::uint32_t>(ints(src)[r * count + i]);
        for (unsigned r = 0; r < ranks; r++)
            ASSERT_EQ(static_cast<std::uint32_t>(ints(dst)[r * count + i]), sum)
                << "element " << i << " of rank " << r;
    }
}

TEST(data_embedded_collectives, all_reduce_sums_on_every_rank)
{
    embedded_bed b;
    client_memory src(4u << 20), dst(4u << 20);
    const auto from = b.buffer(src), to = b.buffer(dst);
    for (const std::uint64_t count : {1ull, 3ull, 1000ull, 65536ull, 262144ull}) {
        number(src, 4 * count);
        EXPECT_EQ(b.run(all_reduce_i32(from, to, count)), "") << count;
        expect_sums(src, dst, 4, count);
    }
}

TEST(data_embedded_collectives, sixteen_mebibytes_go_in_segments)
{
    embedded_bed b;
    constexpr std::uint64_t count = 4u << 20;
    client_memory m(4 * count * 4);
    const auto buffer = b.buffer(m);
    for (std::uint64_t i = 0; i < 4 * count; i++)
        ints(m)[i] = static_cast<std::int32_t>(i % 1000);
    EXPECT_EQ(b.run(all_reduce_i32(buffer, buffer, count)), "");
    for (std::uint64_t i = 0; i < count; i += 997) {
        std::int32_t sum = 0;
        for (unsigned r = 0; r < 4; r++)
            sum += static_cast<std::int32_t>((r * count + i) % 1000);
        for (unsigned r = 0; r < 4; r++)
            ASSERT_EQ(ints(m)[r * count + i], sum);
    }
}

TEST(data_embedded_collectives, all_gather_and_broadcast_hand_everything_to_everybody)
{
    embedded_bed b;
    constexpr std::uint64_t count = 5000;
    client_memory src(1u << 17), dst(1u << 19);
    const auto from = b.buffer(src), to = b.buffer(dst);
    number(src, 4 * count);
    EXPECT_EQ(b.run(collective_op(SPANKER_SOP_ALL_GATHER, from, SPANKER_KIND_BUFFER, to,
                                  SPANKER_KIND_BUFFER, count, SPK_DTYPE_I32)),
              "");
    for (unsigned r = 0; r < 4; r++)
        EXPECT_EQ(std::memcmp(dst.data + r * 4 * count * 4, src.data, 4 * count * 4), 0) << r;
    spanker_sqe broadcast = collective_op(SPANKER_SOP_BROADCAST, from, SPANKER_KIND_BUFFER, to,
                                          SPANKER_KIND_BUFFER, count, SPK_DTYPE_I32);
    broadcast.root = 2;
    EXPECT_EQ(b.run(broadcast), "");
    for (unsigned r = 0; r < 4; r++)
        EXPECT_EQ(std::memcmp(dst.data + r * count * 4, src.data + 2 * count * 4, count * 4), 0);
}

TEST(data_embedded_collectives, many_run_one_after_the_other_and_at_once)
{
    embedded_bed b;
    constexpr std::uint64_t count = 777;
    const auto other = b.rig.opened(2000);
    client_rings other_rings(other);
    client_memory src(1u << 14), dst(1u << 14), dst2(1u << 14);
    number(src, 4 * count);
    const auto from = b.buffer(src), to = b.buffer(dst);
    const auto from2 = b.rig.add_buffer(other.id, src), to2 = b.rig.add_buffer(other.id, dst2);
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 4; i++) {
            b.rings.push({all_reduce_i32(from, to, count)});
            other_rings.push({all_reduce_i32(*from2, *to2, count)});
        }
        for (int i = 0; i < 4; i++) {
            ASSERT_EQ(b.rig.next(b.rings)->res, 0);
            ASSERT_EQ(b.rig.next(other_rings)->res, 0);
        }
    }
    expect_sums(src, dst, 4, count);
    expect_sums(src, dst2, 4, count);
}

TEST(data_embedded_collectives, a_cut_cable_is_named_and_the_next_request_goes_round)
{
    embedded_bed b;
    constexpr std::uint64_t count = 100'000;
    client_memory src(1u << 21), dst(1u << 21);
    const auto from = b.buffer(src), to = b.buffer(dst);
    number(src, 4 * count);
    ASSERT_EQ(b.run(all_reduce_i32(from, to, count)), "");
    ASSERT_TRUE(b.cards->inject(1, "cable_cut port=1"));
    EXPECT_NE(b.run(all_reduce_i32(from, to, count)), "");
    EXPECT_EQ(b.last.res, -ENOLINK);
    const unsigned card = b.last.link >> 8, port = b.last.link & 0xff;
    EXPECT_TRUE((card == 1 && port == 1) || (card == 2 && port == 0)) << card << "." << port;

    b.rig.announce_without(1, 1);
    EXPECT_EQ(b.run(all_reduce_i32(from, to, count)), "");
    expect_sums(src, dst, 4, count);
}

TEST(data_embedded_collectives, a_lost_card_is_named_and_the_others_go_on)
{
    embedded_bed b;
    constexpr std::uint64_t count = 10'000;
    client_memory src(1u << 19), dst(1u << 19);
    const auto from = b.buffer(src), to = b.buffer(dst);
    number(src, 4 * count);
    ASSERT_EQ(b.run(all_reduce_i32(from, to, count)), "");
    ASSERT_TRUE(b.cards->inject(2, "gone"));
    EXPECT_NE(b.run(all_reduce_i32(from, to, count)), "");
    EXPECT_NE(b.last.res, 0);
    b.rig.data->card_changed(2, SPANKER_CARD_GONE);
    b.rig.announce_without_card(2);
    EXPECT_EQ(b.run(all_reduce_i32(from, to, count)), "");
    expect_sums(src, dst, 3, count);
    EXPECT_EQ(b.run(nop(1)), "");
}

TEST(data_embedded_collectives, a_killed_session_leaves_the_cards_as_they_were)
{
    embedded_bed b;
    b.run(nop(1));
    const std::uint64_t before = b.free_bytes();
    for (int round = 0; round < 5; round++) {
        const auto s = b.rig.opened(3000);
        client_rings rings(s);
        client_memory m(4u << 20);
        const auto buffer = b.rig.add_buffer(s.id, m);
        ASSERT_TRUE(b.rig.add_tensor(s.id, {.shape = {1u << 20}}));
        for (int i = 0; i < 6; i++)
            rings.push({all_reduce_i32(*buffer, *buffer, 200'000)});
        b.rig.close(s.id);  // in the middle of it
    }
    EXPECT_TRUE(b.rig.until([&] { return b.rig.data->idle(); }));
    EXPECT_TRUE(
        b.rig.data->stop(patience_ms));  // scratch memory is kept for the next plan until then
    EXPECT_GE(b.free_bytes(), before);
}

}  // namespace
}  // namespace spanker::daemon::test
