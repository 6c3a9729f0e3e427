// SPDX-License-Identifier: Apache-2.0
//
// The table of kernels.
#include "sim/engine/kernels.hpp"

#include <algorithm>
#include <array>

namespace spanker::engine {

namespace {

bool always() noexcept { return true; }

constexpr std::array kernels{
    matmul_kernel{
        .name = "portable",
        .supported = always,
        .integer_rows = portable_integer_rows,
        .exact_rows = portable_exact_rows,
    },
};

}  // namespace

std::span<const matmul_kernel> matmul_kernels() noexcept { return kernels; }

const matmul_kernel* find_matmul_kernel(std::string_view name) noexcept
{
    const auto* const found =
        std::find_if(kernels.begin(), kernels.end(), [name](const matmul_kernel& kernel) {
            return (name.empty() || kernel.name == name) && kernel.supported();
        });
    return found == kernels.end() ? nullptr : found;
}

const matmul_kernel& active_matmul_kernel() noexcept
{
    static const matmul_kernel& chosen = *find_matmul_kernel({});
    return chosen;
}

}  // namespace spanker::engine
