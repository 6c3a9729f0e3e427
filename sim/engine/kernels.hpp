// SPDX-License-Identifier: Apache-2.0
//
// The seam for tuned kernels: one table, a row per instruction set, best first. matmul() checks its
// arguments, picks the first row this machine supports, and hands it a range of rows of W. A kernel
// may tile, repack and split as it likes; its duties are those of matmul.hpp. Integer parts must
// agree between kernels exactly, f32 sums within tolerance.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/engine/matmul.hpp"

namespace spanker::engine {

struct matmul_kernel {
    std::string_view name;
    bool (*supported)() noexcept;
    // X is quantised to 8 bits, or comes so.
    void (*integer_rows)(const matmul_args& args, std::uint32_t first_row, std::uint32_t n_rows);
    // Weights and activations dequantised, f64 sums.
    void (*exact_rows)(const matmul_args& args, std::uint32_t first_row, std::uint32_t n_rows);
};

std::span<const matmul_kernel> matmul_kernels() noexcept;

// The kernel of that name if this machine supports it, else nullptr. An empty name asks for the
// best.
const matmul_kernel* find_matmul_kernel(std::string_view name) noexcept;

// What matmul() uses: chosen once, at first use.
const matmul_kernel& active_matmul_kernel() noexcept;

// portable.cpp: plain C++, on every machine.
void portable_integer_rows(const matmul_args& args, std::uint32_t first_row, std::uint32_t n_rows);
void portable_exact_rows(const matmul_args& args, std::uint32_t first_row, std::uint32_t n_rows);

}  // namespace spanker::engine
