// SPDX-License-Identifier: Apache-2.0
//
// A matmul stage that has been checked: its objects, and which rectangle of W
// each rank multiplies.
#pragma once

#include "daemon/collective/stage_planner.hpp"

namespace spanker::daemon::collective {

inline constexpr std::uint64_t y_bytes = 4;  // f32

// What one rank computes: rows x k of W, all of it one rectangle.
struct matmul_part {
    std::uint64_t first_row = 0, rows = 0;
    std::uint64_t first_k = 0, k = 0;
    bool works() const { return rows != 0 && k != 0; }
};

struct matmul_request {
    matmul_stage one;
    const object *w = nullptr, *x = nullptr, *y = nullptr;
    std::array<matmul_part, SPK_MAX_CARDS> parts{};
    std::uint32_t ranks = 1;

    bool x_on_host() const { return x->kind == SPANKER_KIND_BUFFER; }
    bool y_on_host() const { return y->kind == SPANKER_KIND_BUFFER; }
    bool splits_k() const { return w->split == sharding::k_split && ranks > 1; }
    bool adds() const { return (one.mode & SPK_MATMUL_ACCUMULATE) != 0; }
    // Summands must be combined on the way to host memory.
    bool reduces() const { return splits_k() && y_on_host(); }
    std::uint64_t x_row() const { return x_row_bytes(one.x_format, w->cols); }
    std::uint64_t y_row() const { return w->rows * y_bytes; }
    std::uint64_t x_part(const matmul_part& of) const { return x_row_bytes(one.x_format, of.k); }
};

result<matmul_request> check_matmul(const planning& all, const matmul_stage& one);

}  // namespace spanker::daemon::collective
