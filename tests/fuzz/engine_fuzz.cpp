// SPDX-License-Identifier: Apache-2.0
//
// The engine on arbitrary bytes: any block content, any small shape, any number. Memory is
// allocated to the byte, so a sanitizer catches a read or write past it. Beyond not crashing,
// splits must give the same bits and every NaN must be the canonical one.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "sim/engine/elementwise.hpp"
#include "sim/engine/matmul.hpp"
#include "sim/engine/q4k.hpp"
#include "sim/engine/q8_k.hpp"

namespace {

using namespace spanker::engine;

void require(bool condition)
{
    if (!condition)
        std::abort();
}

// Hands out the input from its start; past the end everything is a repetition of it.
class input {
public:
    input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

    std::uint8_t byte() { return size_ == 0 ? 0 : data_[at_++ % size_]; }

    std::uint32_t word()
    {
        std::uint32_t value = 0;
        for (int i = 0; i < 4; i++)
            value = value << 8 | byte();
        return value;
    }

    std::unique_ptr<std::byte[]> bytes(std::size_t count)
    {
        auto memory = std::make_unique<std::byte[]>(count);
        for (std::size_t i = 0; i < count; i++)
            memory[i] = std::byte{byte()};
        return memory;
    }

private:
    const std::uint8_t* data_;
    std::size_t size_;
    std::size_t at_ = 0;
};

void require_canonical_nans(const std::byte* values, std::size_t count)
{
    for (std::size_t i = 0; i < count; i++) {
        std::uint32_t bits;
        std::memcpy(&bits, values + 4 * i, sizeof bits);
        require((bits & 0x7fffffff) <= 0x7f800000 || bits == 0x7fc00000);
    }
}

void fuzz_matmul(input& in)
{
    matmul_args args;
    args.n_out = in.byte() % 9;
    args.k = 256U * (in.byte() % 4);
    args.n_tok = in.byte() % 5;
    args.format = in.byte() % (SPK_X_COUNT + 1);
    const std::uint8_t mode = in.byte();
    args.exact = (mode & 1) != 0;
    args.accumulate = (mode & 2) != 0;
    const std::size_t x_bytes = args.n_tok * x_row_bytes(args.format, args.k);
    const std::size_t y_bytes = args.n_tok * y_row_bytes(args.n_out);
    args.x_pitch = x_row_bytes(args.format, args.k);
    args.y_pitch = y_row_bytes(args.n_out);
    const auto w = in.bytes(args.n_out * w_row_bytes(args.k));
    const auto x = in.bytes(x_bytes);
    const auto whole = in.bytes(y_bytes);
    auto split = std::make_unique<std::byte[]>(y_bytes);
    std::memcpy(split.get(), whole.get(), y_bytes);
    args.w = w.get();
    args.x = x.get();
    args.y = whole.get();
    if (matmul(args) != 0) {
        require(args.k == 0 || args.format == SPK_X_COUNT);
        return;
    }
    args.y = split.get();
    const std::uint32_t middle = args.n_out == 0 ? 0 : in.byte() % args.n_out;
    require(matmul_rows(args, middle, args.n_out - middle) == 0);
    require(matmul_rows(args, 0, middle) == 0);
    require(std::memcmp(whole.get(), split.get(), y_bytes) == 0);
    require_canonical_nans(whole.get(), args.n_tok * std::size_t{args.n_out});
}

void fuzz_quantisers(input& in)
{
    float values[block_values];
    const auto raw = in.bytes(sizeof values);
    std::memcpy(values, raw.get(), sizeof values);
    auto q4 = std::make_unique<std::byte[]>(sizeof(q4_k_block));
    auto q8 = std::make_unique<std::byte[]>(sizeof(q8_k_block));
    quantize_row_q4_k(values, block_values, q4.get());
    quantize_row_q8_k(values, block_values, q8.get());
    dequantize_row_q4_k(q4.get(), 1, values);
}

void fuzz_elementwise(input& in)
{
    const std::uint8_t dtype = in.byte() % (SPK_DTYPE_COUNT + 1);
    const std::uint8_t op = in.byte() % (SPK_REDUCE_COUNT + 1);
    const std::size_t count = in.byte() * std::size_t{3};
    const std::uint32_t constant = in.word();
    const std::size_t bytes = count * dtype_bytes(dtype);
    const auto a = in.bytes(bytes);
    const auto b = in.bytes(bytes);
    const auto dst = std::make_unique<std::byte[]>(bytes);
    const bool valid = dtype < SPK_DTYPE_COUNT;
    require((reduce(dtype, op, dst.get(), a.get(), b.get(), count) == 0) ==
            (valid && op < SPK_REDUCE_COUNT));
    if (valid && op < SPK_REDUCE_COUNT) {
        require(reduce(dtype, op, a.get(), a.get(), b.get(), count) == 0);
        require(std::memcmp(a.get(), dst.get(), bytes) == 0);
    }
    require((scale(dtype, dst.get(), b.get(), count, constant) == 0) == valid);
    require((divide(dtype, dst.get(), b.get(), count, constant) == 0) == (valid && constant != 0));
    if (dtype == SPK_DTYPE_F32 && constant != 0)
        require_canonical_nans(dst.get(), count);
    fill(dst.get(), bytes, constant);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    input in(data, size);
    constexpr void (*targets[])(input&) = {fuzz_matmul, fuzz_quantisers, fuzz_elementwise};
    targets[in.byte() % 3](in);
    return 0;
}
