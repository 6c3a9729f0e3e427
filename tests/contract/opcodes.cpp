// SPDX-License-Identifier: Apache-2.0
//
// Every opcode that stays on one card, with data.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rig.hpp"

namespace contract {

namespace {

template <typename T>
bytes raw(const std::vector<T>& values)
{
    bytes out(values.size() * sizeof(T));
    std::memcpy(out.data(), values.data(), out.size());
    return out;
}

template <typename T>
std::vector<T> typed(const bytes& data)
{
    std::vector<T> out(data.size() / sizeof(T));
    std::memcpy(out.data(), data.data(), out.size() * sizeof(T));
    return out;
}

// A Q4_K block whose 256 weights all are `weight`: d = 1, all scales 1, all minimums 0.
bytes q4k_block(std::uint8_t weight)
{
    bytes block(SPK_Q4_K_BLOCK_BYTES);
    block[1] = 0x3c;  // f16 1.0
    for (unsigned j = 0; j < 4; j++) {
        block[4 + j] = 1;      // sub-blocks 0..3
        block[4 + 8 + j] = 1;  // low nibbles of 4..7
    }
    for (unsigned j = 16; j < SPK_Q4_K_BLOCK_BYTES; j++)
        block[j] = static_cast<std::uint8_t>(weight << 4 | weight);
    return block;
}

}  // namespace

class opcodes : public rig {
protected:
    void SetUp() override
    {
        rig::SetUp();
        if (!IsSkipped() && !HasFatalFailure())
            file = open(cards->cards().front());
    }
    std::uint32_t put(const bytes& data)
    {
        const auto tensor = alloc(*file, data.size());
        upload(*file, tensor, data);
        return tensor;
    }
    std::unique_ptr<card_file> file;
};

TEST_F(opcodes, nop_does_nothing_successfully)
{
    const auto record = run(*file, {nop()});
    EXPECT_EQ(record.result, 0);
    EXPECT_EQ(record.item, SPANKER_NO_ITEM);
    EXPECT_GT(record.end_ns, 0u);
    EXPECT_LE(record.start_ns, record.end_ns);
}

TEST_F(opcodes, fill_repeats_its_pattern_from_any_byte)
{
    const auto tensor = alloc(*file, 4096);
    EXPECT_EQ(run(*file, {fill(tensor, 3, 10, 0x44332211)}).result, 0);
    const auto got = download(*file, tensor, 16);
    EXPECT_EQ(
        got, (bytes{0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x11, 0x22, 0x33, 0x44, 0x11, 0x22, 0, 0, 0}));
}

TEST_F(opcodes, copy_moves_rows_between_pitches)
{
    const auto data = pattern(1000, 1);
    const auto from = put(data);
    const auto to = alloc(*file, 1000);
    auto copy = item(SPK_OP_COPY);
    copy.src = {.handle = from, .pitch = 50, .offset = 7};
    copy.dst = {.handle = to, .pitch = 30, .offset = 1};
    copy.rows = {.rows = 10, .row_bytes = 25, .reserved = {}};
    EXPECT_EQ(run(*file, {copy}).result, 0);
    bytes expected(1000);
    for (unsigned row = 0; row < 10; row++)
        std::copy_n(data.begin() + 7 + 50 * row, 25, expected.begin() + 1 + 30 * row);
    EXPECT_EQ(download(*file, to, 1000), expected);
}

TEST_F(opcodes, dma_moves_rows_between_pitches_both_ways)
{
    bytes host = pattern(100'000, 2), back(100'000);
    const auto tensor = alloc(*file, 100'000);
    const auto from = share(*file, host, read_access), to = share(*file, back, write_access);
    auto in = item(SPK_OP_DMA_IN);
    in.src = {.handle = from, .pitch = 5000, .offset = 11};
    in.dst = {.handle = tensor, .pitch = 1003, .offset = 17};
    in.rows = {.rows = 19, .row_bytes = 1001, .reserved = {}};
    auto out = item(SPK_OP_DMA_OUT);
    out.src = in.dst;
    out.dst = {.handle = to, .pitch = 2002, .offset = 5};
    out.rows = in.rows;
    EXPECT_EQ(run(*file, {posting(in, 0), waiting(out, 0)}).result, 0);
    bytes expected(100'000);
    for (unsigned row = 0; row < 19; row++)
        std::copy_n(host.begin() + 11 + 5000 * row, 1001, expected.begin() + 5 + 2002 * row);
    EXPECT_EQ(back, expected);
}

TEST_F(opcodes, matmul_multiplies_q4k_weights_with_f32_rows)
{
    constexpr unsigned n_out = 5, k = 512, n_tok = 3;
    bytes weights;
    for (unsigned o = 0; o < n_out; o++)
        for (unsigned block = 0; block < k / 256; block++) {
            const auto one = q4k_block(static_cast<std::uint8_t>(o + block));
            weights.insert(weights.end(), one.begin(), one.end());
        }
    std::vector<float> x(n_tok * k);
    for (unsigned n = 0; n < x.size(); n++)
        x[n] = static_cast<float>(static_cast<int>(n * 7 % 11) - 5);
    const auto w = put(weights), in = put(raw(x)), y = alloc(*file, n_tok * 64);
    auto matmul = item(SPK_OP_MATMUL_Q4_K);
    matmul.dst = {.handle = y, .pitch = 64, .offset = 0};
    matmul.src = {.handle = in, .pitch = k * 4, .offset = 0};
    matmul.aux.handle = w;
    matmul.matmul = {.n_out = n_out,
                     .k = k,
                     .n_tok = n_tok,
                     .x_format = SPK_X_F32,
                     .mode = SPK_MATMUL_EXACT,
                     .reserved = {}};
    EXPECT_EQ(run(*file, {matmul}).result, 0);
    const auto got = typed<float>(download(*file, y, n_tok * 64));
    for (unsigned t = 0; t < n_tok; t++)
        for (unsigned o = 0; o < n_out; o++) {
            float sum = 0;
            for (unsigned i = 0; i < k; i++)
                sum += static_cast<float>(o + i / 256) * x[t * k + i];
            EXPECT_EQ(got[t * 16 + o], sum) << t << " " << o;
        }
    // Once more on top.
    matmul.matmul.mode |= SPK_MATMUL_ACCUMULATE;
    EXPECT_EQ(run(*file, {matmul}).result, 0);
    EXPECT_EQ(typed<float>(download(*file, y, 4))[0], 2 * got[0]);
}

TEST_F(opcodes, reduce_folds_elementwise)
{
    const std::vector<float> a = {1, -2, 3.5f, 100}, b = {10, 5, -1, 0.25f};
    const struct {
        spk_reduce_op op;
        std::vector<float> expected;
    } table[] = {{SPK_REDUCE_SUM, {11, 3, 2.5f, 100.25f}},
                 {SPK_REDUCE_PROD, {10, -10, -3.5f, 25}},
                 {SPK_REDUCE_MIN, {1, -2, -1, 0.25f}},
                 {SPK_REDUCE_MAX, {10, 5, 3.5f, 100}}};
    for (const auto& row : table) {
        auto reduce = item(SPK_OP_REDUCE);
        reduce.dst.handle = put(raw(a));
        reduce.src.handle = put(raw(b));
        reduce.reduce = static_cast<std::uint8_t>(row.op);
        reduce.elements.count = 4;
        EXPECT_EQ(run(*file, {reduce}).result, 0);
        EXPECT_EQ(typed<float>(download(*file, reduce.dst.handle, 16)), row.expected) << row.op;
    }
}

TEST_F(opcodes, integers_wrap)
{
    auto reduce = item(SPK_OP_REDUCE);
    reduce.dst.handle =
        put(raw(std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::max(), 5}));
    reduce.src.handle = put(raw(std::vector<std::int32_t>{1, -7}));
    reduce.dtype = SPK_DTYPE_I32;
    reduce.elements.count = 2;
    EXPECT_EQ(run(*file, {reduce}).result, 0);
    EXPECT_EQ(typed<std::int32_t>(download(*file, reduce.dst.handle, 8)),
              (std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(), -2}));
}

TEST_F(opcodes, scale_multiplies_or_divides_with_ties_to_even)
{
    auto scale = item(SPK_OP_SCALE);
    const float half = 0.5f;
    scale.dst.handle = put(raw(std::vector<float>{8, -3}));
    std::memcpy(&scale.elements.factor, &half, 4);
    scale.elements.count = 2;
    EXPECT_EQ(run(*file, {scale}).result, 0);
    EXPECT_EQ(typed<float>(download(*file, scale.dst.handle, 8)), (std::vector<float>{4, -1.5f}));

    scale.dst.handle = put(raw(std::vector<std::int32_t>{5, 7, -5, 9}));
    scale.dtype = SPK_DTYPE_I32;
    scale.elements = {.count = 4, .factor = 0, .divisor = 2, .reserved = {}};
    EXPECT_EQ(run(*file, {scale}).result, 0);
    EXPECT_EQ(typed<std::int32_t>(download(*file, scale.dst.handle, 16)),
              (std::vector<std::int32_t>{2, 4, -2, 4}));
}

TEST_F(opcodes, signals_join_producers_and_can_be_set_anew)
{
    const auto tensor = alloc(*file, 4);
    submit(*file, {waiting(fill(tensor, 0, 4, 7), 20, 2)});
    submit(*file, {posting(nop(), 20)});
    EXPECT_EQ(wait(*file)[0].seq, 2u);
    submit(*file, {posting(nop(), 20)});
    EXPECT_EQ(wait(*file, 2)[0].result, 0);
    auto set = item(SPK_OP_SIGNAL_SET);
    set.signals = {.first = 20, .count = 1, .value = 10, .reserved = {}};
    EXPECT_EQ(run(*file, {set}).result, 0);
    EXPECT_EQ(run(*file, {waiting(nop(), 20, 10)}).result, 0);
}

TEST_F(opcodes, a_fence_orders_what_no_signal_does)
{
    bytes memory = pattern(1 << 20, 3), out(1 << 20);
    const auto tensor = alloc(*file, 1 << 20);
    const auto from = share(*file, memory, read_access), to = share(*file, out, write_access);
    auto back = dma_out(to, tensor, 1 << 20);
    back.flags = SPANKER_ITEM_FENCE;
    EXPECT_EQ(run(*file, {dma_in(tensor, from, 1 << 20), back}).result, 0);
    EXPECT_EQ(out, memory);
}

}  // namespace contract
