// SPDX-License-Identifier: Apache-2.0
//
// What each command does to the bytes of one card, against the plain computation.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

class sim_commands : public testing::Test {
protected:
    rig it;
    queue& q = it.open(0, 1);

    spk_completion run(const spk_cmd& cmd) { return it.execute(q, cmd); }
};

TEST_F(sim_commands, a_nop_completes_with_its_id_and_the_head_behind_it)
{
    const std::uint16_t id = q.put(nop());
    q.ring();
    EXPECT_TRUE(it.cards.run());
    const auto done = q.collect();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].id, id);
    EXPECT_EQ(done[0].status, SPANKER_CARD_OK);
    EXPECT_EQ(done[0].sq_head, 1);
    EXPECT_TRUE(it.cards.idle());
}

TEST_F(sim_commands, dma_in_and_out_carry_bytes_through_card_memory)
{
    const bytes data = pattern(100'003, 1);
    it.store(q, 12'345, data);
    EXPECT_EQ(it.load(0, 12'345, data.size()), data);
    const std::uint64_t out = it.memory.allocate(data.size());
    const auto shape = rows{.count = 1, .bytes = static_cast<std::uint32_t>(data.size())};
    EXPECT_EQ(run(dma(SPK_OP_DMA_OUT, 12'345, it.list_of(out, data.size(), 4096), shape)).status,
              SPANKER_CARD_OK);
    EXPECT_EQ(it.memory.get(out, data.size()), data);
}

TEST_F(sim_commands, dma_rows_have_a_pitch_on_either_side)
{
    const bytes data = pattern(10 * 100, 2);
    const std::uint64_t buffer = it.memory.allocate(data.size());
    it.memory.put(buffer, data);
    spk_cmd cmd = dma(SPK_OP_DMA_IN, 5000, it.list_of(buffer, data.size(), 37),
                      {.count = 10, .bytes = 60, .pitch = 100});
    cmd.dma.card_pitch = 71;
    EXPECT_EQ(run(cmd).status, SPANKER_CARD_OK);
    for (unsigned row = 0; row < 10; row++) {
        const bytes expected(data.begin() + row * 100, data.begin() + row * 100 + 60);
        EXPECT_EQ(it.load(0, 5000 + row * 71, 60), expected) << "row " << row;
    }
}

TEST_F(sim_commands, a_list_is_entered_at_any_entry_and_byte_and_goes_on_over_pages)
{
    const bytes data = pattern(600 * 64, 3);
    const std::uint64_t buffer = it.memory.allocate(data.size());
    it.memory.put(buffer, data);
    spk_cmd cmd =
        dma(SPK_OP_DMA_IN, 0, it.list_of(buffer, data.size(), 64), {.count = 1, .bytes = 300 * 64});
    cmd.dma.first = 3;
    cmd.dma.skip = 70;  // more than the entry: the next one
    EXPECT_EQ(run(cmd).status, SPANKER_CARD_OK);
    const std::size_t from = 3 * 64 + 70;
    EXPECT_EQ(it.load(0, 0, 300 * 64), bytes(data.begin() + from, data.begin() + from + 300 * 64));
}

TEST_F(sim_commands, fill_repeats_its_pattern_from_an_odd_address)
{
    EXPECT_EQ(run(fill(3, 10, 0x04030201)).status, SPANKER_CARD_OK);
    const bytes expected = bytes_of<std::uint8_t>({0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 0});
    EXPECT_EQ(it.load(0, 2, 12), expected);
}

TEST_F(sim_commands, fill_with_zeros_clears_whole_pages_and_their_edges)
{
    it.store(q, 0, pattern(5 * 4096, 4));
    EXPECT_EQ(run(fill(100, 4 * 4096, 0)).status, SPANKER_CARD_OK);
    EXPECT_EQ(it.load(0, 100, 4 * 4096), bytes(4 * 4096));
    EXPECT_NE(it.load(0, 0, 100), bytes(100));
    EXPECT_NE(it.load(0, 100 + 4 * 4096, 100), bytes(100));
}

TEST_F(sim_commands, copy_moves_rows_between_pitches)
{
    const bytes data = pattern(4000, 5);
    it.store(q, 0, data);
    spk_cmd cmd = copy(10'000, 0, {.count = 8, .bytes = 100});
    cmd.copy.src_pitch = 333;
    cmd.copy.dst_pitch = 101;
    EXPECT_EQ(run(cmd).status, SPANKER_CARD_OK);
    for (unsigned row = 0; row < 8; row++)
        EXPECT_EQ(it.load(0, 10'000 + row * 101, 100),
                  bytes(data.begin() + row * 333, data.begin() + row * 333 + 100));
}

TEST_F(sim_commands, reduce_combines_two_arrays_by_dtype_and_op)
{
    it.store(q, 0, bytes_of<std::int32_t>({1, -2, INT32_MAX}));
    it.store(q, 64, bytes_of<std::int32_t>({10, 20, 1}));
    EXPECT_EQ(run(reduce(0, 64, 3, SPK_DTYPE_I32, SPK_REDUCE_SUM)).status, SPANKER_CARD_OK);
    EXPECT_EQ(it.load(0, 0, 12), bytes_of<std::int32_t>({11, 18, INT32_MIN}));
    it.store(q, 0, bytes_of<float>({1.5f, -2.0f}));
    it.store(q, 64, bytes_of<float>({3.0f, 0.5f}));
    EXPECT_EQ(run(reduce(0, 64, 2, SPK_DTYPE_F32, SPK_REDUCE_PROD)).status, SPANKER_CARD_OK);
    EXPECT_EQ(it.load(0, 0, 8), bytes_of<float>({4.5f, -1.0f}));
    it.store(q, 0, bytes_of<std::int8_t>({-5, 7}));
    it.store(q, 64, bytes_of<std::int8_t>({5, -7}));
    EXPECT_EQ(run(reduce(0, 64, 2, SPK_DTYPE_I8, SPK_REDUCE_MAX)).status, SPANKER_CARD_OK);
    EXPECT_EQ(it.load(0, 0, 2), bytes_of<std::int8_t>({5, 7}));
}

TEST_F(sim_commands, scale_multiplies_or_divides)
{
    it.store(q, 0, bytes_of<float>({3.0f, -4.0f}));
    EXPECT_EQ(run(scale(0, 2, SPK_DTYPE_F32, {.factor = 0x3f000000})).status, SPANKER_CARD_OK);
    EXPECT_EQ(it.load(0, 0, 8), bytes_of<float>({1.5f, -2.0f}));
    it.store(q, 0, bytes_of<std::int32_t>({10, 14, -10}));
    EXPECT_EQ(run(scale(0, 3, SPK_DTYPE_I32, {.divisor = 4})).status, SPANKER_CARD_OK);
    EXPECT_EQ(it.load(0, 0, 12), bytes_of<std::int32_t>({2, 4, -2}));  // ties to even
}

// A Q4_K block whose weights are scale * nibble, the nibble counting through the block.
bytes counting_block(std::uint16_t d_f16, std::uint8_t scale)
{
    bytes out(SPK_Q4_K_BLOCK_BYTES);
    std::memcpy(out.data(), &d_f16, 2);
    for (unsigned j = 0; j < 8; j++)
        out[4 + j] = static_cast<std::byte>(j < 4 ? scale : 0);
    for (unsigned j = 8; j < 12; j++)
        out[4 + j] = static_cast<std::byte>(scale & 15);
    for (unsigned i = 0; i < 128; i++)
        out[16 + i] = static_cast<std::byte>((i % 16) | (15 - i % 16) << 4);
    return out;
}

TEST_F(sim_commands, matmul_multiplies_q4_k_weights_with_pitched_activations)
{
    const matmul_shape shape = {.n_out = 2, .k = 256, .n_tok = 3, .mode = SPK_MATMUL_EXACT};
    bytes w = counting_block(0x3c00, 1);             // d = 1.0
    const bytes second = counting_block(0x4000, 3);  // d = 2.0
    w.insert(w.end(), second.begin(), second.end());
    it.store(q, 0, w);
    std::vector<float> x(3 * 300);
    for (std::size_t i = 0; i < x.size(); i++)
        x[i] = static_cast<float>(static_cast<int>(i % 7) - 3);
    it.store(q, 4096, bytes_of(x));
    spk_cmd cmd = matmul(0, 4096, 32'768, shape);
    cmd.matmul.x_pitch = 300 * 4;
    cmd.matmul.y_pitch = 64;
    EXPECT_EQ(run(cmd).status, SPANKER_CARD_OK);
    for (unsigned t = 0; t < 3; t++) {
        double sum = 0;
        for (unsigned i = 0; i < 256; i++) {
            const unsigned in_half = (i / 64) * 32 + i % 32;
            const unsigned nibble = i % 64 < 32 ? in_half % 16 : 15 - in_half % 16;
            sum += nibble * static_cast<double>(x[t * 300 + i]);
        }
        const auto y = values_of<float>(it.load(0, 32'768 + t * 64, 8));
        EXPECT_EQ(y[0], static_cast<float>(sum)) << "token " << t;
        EXPECT_EQ(y[1], static_cast<float>(6 * sum)) << "token " << t;
    }
}

TEST_F(sim_commands, matmul_accumulates_when_asked)
{
    const matmul_shape shape = {
        .n_out = 1, .k = 256, .n_tok = 1, .mode = SPK_MATMUL_EXACT | SPK_MATMUL_ACCUMULATE};
    it.store(q, 0, counting_block(0x3c00, 1));
    it.store(q, 4096, bytes_of(std::vector<float>(256, 1.0f)));
    it.store(q, 8192, bytes_of<float>({1000.0f}));
    EXPECT_EQ(run(matmul(0, 4096, 8192, shape)).status, SPANKER_CARD_OK);
    EXPECT_EQ(it.load(0, 8192, 4), bytes_of<float>({1000.0f + 256 * 7.5f}));
}

TEST_F(sim_commands, a_large_matmul_on_several_threads_equals_its_rows_done_alone)
{
    const matmul_shape whole = {.n_out = 512, .k = 2048, .n_tok = 80};
    const matmul_shape part = {.n_out = 64, .k = 2048, .n_tok = 80};
    it.store(q, 0, pattern(512 * 8 * SPK_Q4_K_BLOCK_BYTES, 6));
    std::mt19937 random(7);
    std::vector<float> x(80 * 2048);
    for (float& value : x)
        value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 500.0f;
    it.store(q, 16 << 20, bytes_of(x));
    ASSERT_EQ(run(matmul(0, 16 << 20, 32 << 20, whole)).status, SPANKER_CARD_OK);
    for (unsigned first = 0; first < 512; first += 64) {
        spk_cmd cmd =
            matmul(first * 8 * SPK_Q4_K_BLOCK_BYTES, 16 << 20, (40 << 20) + first * 4, part);
        cmd.matmul.y_pitch = 512 * 4;
        ASSERT_EQ(run(cmd).status, SPANKER_CARD_OK);
    }
    EXPECT_EQ(it.load(0, 32 << 20, 80 * 512 * 4), it.load(0, 40 << 20, 80 * 512 * 4));
}

TEST_F(sim_commands, commands_of_no_size_complete_and_touch_nothing)
{
    it.store(q, 0, pattern(4096, 8));
    const bytes before = it.load(0, 0, 4096);
    const std::uint64_t list = it.list_of(it.memory.allocate(16), 16);
    const matmul_shape nothing = {.n_out = 0, .k = 256, .n_tok = 0};
    for (const spk_cmd& cmd :
         {fill(0, 0, 1), copy(0, 64, {.count = 0, .bytes = 8}),
          copy(0, 64, {.count = 3, .bytes = 0}),
          dma(SPK_OP_DMA_IN, 0, list, {.count = 0, .bytes = 4}), matmul(0, 0, 0, nothing),
          reduce(0, 64, 0, SPK_DTYPE_F32, SPK_REDUCE_SUM), scale(0, 0, SPK_DTYPE_I8, {})})
        EXPECT_EQ(run(cmd).status, SPANKER_CARD_OK) << "opcode " << unsigned{cmd.opcode};
    EXPECT_EQ(it.load(0, 0, 4096), before);
}

TEST_F(sim_commands, signals_order_commands_of_different_engines)
{
    const std::uint64_t buffer = it.memory.allocate(4096);
    const auto done = it.execute(
        q,
        {posts(fill(0, 4096, 0x55aa55aa), 3),
         waits(dma(SPK_OP_DMA_OUT, 0, it.list_of(buffer, 4096), {.count = 1, .bytes = 4096}), 3)});
    EXPECT_EQ(statuses(done), (std::vector<int>{SPANKER_CARD_OK, SPANKER_CARD_OK}));
    EXPECT_GE(done[1].start_ns, done[0].end_ns);
    EXPECT_EQ(it.memory.get(buffer, 4), bytes_of<std::uint32_t>({0x55aa55aa}));
}

TEST_F(sim_commands, a_failure_poisons_its_signal_and_names_the_origin)
{
    it.write(0, SPK_REG_CARD_ID, 5);
    const auto done =
        it.execute(q, {posts(fill(64 << 20, 1, 0), 9), waits(fill(0, 16, 1), 9), fill(0, 16, 2)});
    EXPECT_EQ(statuses(done),
              (std::vector<int>{SPANKER_CARD_RANGE, SPANKER_CARD_POISONED, SPANKER_CARD_OK}));
    EXPECT_EQ(done[1].detail, SPK_ORIGIN(5, 1, done[0].id, SPANKER_CARD_RANGE, SPK_NO_PORT));
    EXPECT_EQ(run(waits(nop(), 9)).status, SPANKER_CARD_POISONED);
    EXPECT_EQ(run(signal_set(9, 1, 1)).status, SPANKER_CARD_OK);
    EXPECT_EQ(run(waits(nop(), 9)).status, SPANKER_CARD_OK);
}

TEST_F(sim_commands, the_trace_remembers_what_was_done)
{
    const spk_completion done = run(fill(0, 4096, 1));
    const auto trace = it.cards.trace(0, 1);
    ASSERT_EQ(trace.size(), 1u);
    EXPECT_EQ(trace[0].opcode, SPK_OP_FILL);
    EXPECT_EQ(trace[0].queue, 1);
    EXPECT_EQ(trace[0].bytes, 4096u);
    EXPECT_EQ(trace[0].status, SPANKER_CARD_OK);
    EXPECT_EQ(trace[0].start_ns, done.start_ns);
    EXPECT_EQ(trace[0].end_ns, done.end_ns);
}

TEST_F(sim_commands, the_trace_keeps_the_last_4096_oldest_first)
{
    for (unsigned round = 0; round < 70; round++)
        ASSERT_EQ(it.execute(q, std::vector<spk_cmd>(60, nop())).size(), 60u);
    const auto trace = it.cards.trace(0);
    ASSERT_EQ(trace.size(), trace_depth);
    for (std::size_t i = 1; i < trace.size(); i++)
        ASSERT_EQ(static_cast<std::uint16_t>(trace[i].id - trace[i - 1].id), 1u);
    EXPECT_EQ(it.cards.trace(0, 3).front().id, trace[trace_depth - 3].id);
}

TEST_F(sim_commands, a_snapshot_outside_card_memory_is_refused)
{
    bytes some(16);
    EXPECT_TRUE(it.cards.snapshot(0, (64 << 20) - 16, some));
    EXPECT_FALSE(it.cards.snapshot(0, (64 << 20) - 15, some));
    EXPECT_FALSE(it.cards.snapshot(0, ~0ull, some));
}

}  // namespace
}  // namespace spanker::sim::bench
