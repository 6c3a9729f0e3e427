// SPDX-License-Identifier: Apache-2.0
//
// Matmuls through the plane on simulated cards, cut in every way, alone and in
// a chain.
#include "data_embedded_rig.hpp"

namespace spanker::daemon::test {
namespace {

using collective::sharding;

TEST(data_embedded_matmul, every_cut_gives_the_product)
{
    constexpr std::uint64_t n_out = 300, k = 1280;
    constexpr std::uint32_t n_tok = 3;
    for (const sharding how : {sharding::rows, sharding::k_split, sharding::whole}) {
        embedded_bed b;
        const matrix w(n_out, k, 1);
        client_memory x(1u << 16), y(1u << 16);
        const auto values = gaussian(x.floats(), n_tok * k, 2);
        const auto loaded =
            b.rig.load(b.session.id, w.file(), {.n_out = n_out, .k = k, .how = how});
        ASSERT_TRUE(loaded) << loaded.error().message;
        EXPECT_EQ(b.run(matmul(loaded->handle, n_tok, b.buffer(x), SPANKER_KIND_BUFFER, b.buffer(y),
                               SPANKER_KIND_BUFFER)),
                  "");
        EXPECT_LT(nmse(y.floats(), multiply(values, w.values, k)), 2e-4) << static_cast<int>(how);
        EXPECT_GT(b.last.device_ns, 0u);
        EXPECT_GT(b.last.predicted_ns, 0u);
        EXPECT_LE(b.last.bound_ns, b.last.device_ns);
        EXPECT_NE(b.last.algorithm, std::uint32_t{SPANKER_ALGORITHM_NONE});
    }
}

TEST(data_embedded_matmul, no_tokens_are_done_at_once)
{
    embedded_bed b(2);
    const matrix w(4, 256, 1);
    client_memory x(4096), y(4096);
    const auto loaded = b.rig.load(b.session.id, w.file(), {.n_out = 4, .k = 256});
    ASSERT_TRUE(loaded);
    EXPECT_EQ(b.run(matmul(loaded->handle, 0, b.buffer(x), SPANKER_KIND_BUFFER, b.buffer(y),
                           SPANKER_KIND_BUFFER)),
              "");
}

TEST(data_embedded_matmul, operands_that_do_not_fit_are_refused_and_the_next_request_works)
{
    embedded_bed b(2);
    const matrix w(512, 256, 1);
    client_memory x(4096), y(4096);
    const auto loaded = b.rig.load(b.session.id, w.file(), {.n_out = 512, .k = 256});
    const auto xb = b.buffer(x), yb = b.buffer(y);
    const spanker_sqe bad[] = {
        matmul(loaded->handle, 5, xb, SPANKER_KIND_BUFFER, yb, SPANKER_KIND_BUFFER),
        matmul(loaded->handle, 3, xb, SPANKER_KIND_BUFFER, yb, SPANKER_KIND_BUFFER),
        matmul(loaded->handle, ~0u, xb, SPANKER_KIND_BUFFER, yb, SPANKER_KIND_BUFFER),
    };
    for (const spanker_sqe& e : bad) {
        EXPECT_NE(b.run(e), "");
        EXPECT_TRUE(b.last.res == -ERANGE || b.last.res == -ENOSPC || b.last.res == -EINVAL)
            << b.last.res;
    }
    EXPECT_EQ(b.run(matmul(loaded->handle, 2, xb, SPANKER_KIND_BUFFER, yb, SPANKER_KIND_BUFFER)),
              "");
}

// X -> k cut -> partial sums -> AllReduce -> replicated -> row cut -> Y: the activations cross
// the host link once on their way in and once on their way out.
TEST(data_embedded_matmul, a_linked_chain_stays_on_the_cards)
{
    constexpr std::uint64_t k = 1024, middle = 512, n_out = 320;
    constexpr std::uint32_t n_tok = 2;
    embedded_bed b;
    const matrix w1(middle, k, 1), w2(n_out, middle, 2);
    client_memory x(1u << 16), y(1u << 16);
    const auto values = gaussian(x.floats(), n_tok * k, 3);
    const auto first =
        b.rig.load(b.session.id, w1.file(), {.n_out = middle, .k = k, .how = sharding::k_split});
    const auto second =
        b.rig.load(b.session.id, w2.file(), {.n_out = n_out, .k = middle, .how = sharding::rows});
    ASSERT_TRUE(first && second);
    const auto partial = b.tensor(SPANKER_LAYOUT_PARTIAL, {n_tok, middle});
    const auto full = b.tensor(SPANKER_LAYOUT_REPLICATED, {n_tok, middle});
    const auto xb = b.buffer(x), yb = b.buffer(y);

    std::vector<std::size_t> before;
    for (const std::uint32_t card : b.cards->cards())
        before.push_back(b.cards->trace(card, 4096)->size());
    b.rings.push(
        {matmul(first->handle, n_tok, xb, SPANKER_KIND_BUFFER, partial, SPANKER_KIND_TENSOR,
                SPANKER_SQE_LINKED),
         collective_op(SPANKER_SOP_ALL_REDUCE, partial, SPANKER_KIND_TENSOR, full,
                       SPANKER_KIND_TENSOR, n_tok * middle, SPK_DTYPE_F32, SPANKER_SQE_LINKED),
         matmul(second->handle, n_tok, full, SPANKER_KIND_TENSOR, yb, SPANKER_KIND_BUFFER)});
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(b.rig.next(b.rings)->res, 0);
    EXPECT_LT(nmse(y.floats(), multiply(multiply(values, w1.values, k), w2.values, middle)), 5e-4);
    for (const std::uint32_t card : b.cards->cards()) {
        const auto trace = *b.cards->trace(card, 4096);
        unsigned in = 0, out = 0, products = 0;
        for (std::size_t i = before[card]; i < trace.size(); i++) {
            in += trace[i].opcode == SPK_OP_DMA_IN;
            out += trace[i].opcode == SPK_OP_DMA_OUT;
            products += trace[i].opcode == SPK_OP_MATMUL_Q4_K;
        }
        EXPECT_EQ(in, 1u) << "card " << card;
        EXPECT_EQ(out, 1u) << "card " << card;
        EXPECT_EQ(products, 2u) << "card " << card;
    }
}

TEST(data_embedded_matmul, row_cut_feeds_k_cut_without_the_host)
{
    constexpr std::uint64_t k = 256, middle = 1024, n_out = 64;
    embedded_bed b;
    const matrix w1(middle, k, 1), w2(n_out, middle, 2);
    client_memory x(4096), y(4096);
    const auto values = gaussian(x.floats(), k, 3);
    const auto first =
        b.rig.load(b.session.id, w1.file(), {.n_out = middle, .k = k, .how = sharding::rows});
    const auto second = b.rig.load(b.session.id, w2.file(),
                                   {.n_out = n_out, .k = middle, .how = sharding::k_split});
    const auto shard = b.tensor(SPANKER_LAYOUT_K_SHARD, {1, middle});
    b.rings.push(
        {matmul(first->handle, 1, b.buffer(x), SPANKER_KIND_BUFFER, shard, SPANKER_KIND_TENSOR,
                SPANKER_SQE_LINKED),
         matmul(second->handle, 1, shard, SPANKER_KIND_TENSOR, b.buffer(y), SPANKER_KIND_BUFFER)});
    for (int i = 0; i < 2; i++)
        EXPECT_EQ(b.rig.next(b.rings)->res, 0);
    EXPECT_LT(nmse(y.floats(), multiply(multiply(values, w1.values, k), w2.values, middle)), 5e-4);
}

TEST(data_embedded_matmul, any_bytes_in_a_changing_operand_are_harmless)
{
    embedded_bed b(2);
    const matrix w(64, 256, 1);
    client_memory x(4096), y(4096);
    std::memset(x.data, 0xff, x.bytes);  // NaNs
    const auto loaded = b.rig.load(b.session.id, w.file(), {.n_out = 64, .k = 256});
    const auto xb = b.buffer(x), yb = b.buffer(y);
    EXPECT_EQ(b.run(matmul(loaded->handle, 1, xb, SPANKER_KIND_BUFFER, yb, SPANKER_KIND_BUFFER)),
              "");
    ASSERT_EQ(::fallocate(x.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
    EXPECT_EQ(b.run(matmul(loaded->handle, 1, xb, SPANKER_KIND_BUFFER, yb, SPANKER_KIND_BUFFER)),
              "");
    EXPECT_EQ(y.floats()[0], 0.0f);
}

}  // namespace
}  // namespace spanker::daemon::test
