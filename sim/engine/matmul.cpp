// SPDX-License-Identifier: Apache-2.0
//
// Checks and dispatch; the arithmetic is in the kernels.
#include "sim/engine/matmul.hpp"

#include <array>
#include <cerrno>

#include "sim/engine/kernels.hpp"
#include "sim/engine/q4k.hpp"
#include "sim/engine/q8_k.hpp"

namespace spanker::engine {

std::uint64_t w_row_bytes(std::uint32_t k) noexcept
{
    return k / block_values * sizeof(q4_k_block);
}

std::uint64_t x_row_bytes(std::uint8_t format, std::uint32_t k) noexcept
{
    constexpr std::array<std::uint64_t, SPK_X_COUNT> block_bytes{
        block_values * sizeof(float),  // SPK_X_F32
        sizeof(q8_k_block),            // SPK_X_Q8_K
        sizeof(q4_k_block),            // SPK_X_Q4_K
    };
    return format < SPK_X_COUNT ? k / block_values * block_bytes[format] : 0;
}

std::uint64_t y_row_bytes(std::uint32_t n_out) noexcept
{
    return std::uint64_t{n_out} * sizeof(float);
}

int check(const matmul_args& args) noexcept
{
    if (args.k == 0 || args.k % block_values != 0 || args.format >= SPK_X_COUNT)
        return -EINVAL;
    const bool pitches_fit =
        args.x_pitch >= x_row_bytes(args.format, args.k) && args.y_pitch >= y_row_bytes(args.n_out);
    return args.n_tok < 2 || pitches_fit ? 0 : -EINVAL;
}

int matmul(const matmul_args& args) { return matmul_rows(args, 0, args.n_out); }

int matmul_rows(const matmul_args& args, std::uint32_t first_row, std::uint32_t n_rows)
{
    if (check(args) != 0 || first_row > args.n_out || n_rows > args.n_out - first_row)
        return -EINVAL;
    const matmul_kernel& kernel = active_matmul_kernel();
    const bool exact = args.exact || args.format == SPK_X_Q4_K;
    (exact ? kernel.exact_rows : kernel.integer_rows)(args, first_row, n_rows);
    return 0;
}

}  // namespace spanker::engine
