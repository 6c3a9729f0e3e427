// SPDX-License-Identifier: Apache-2.0
//
// The portable form of requests: options as plain keys and values, as they
// come from D-Bus a{sv}, turned into ring entries and back. Knows no bus, so
// it can be fuzzed. Unknown keys, wrong types, keys given twice and missing
// ones are INVALID and named.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/data/plane.hpp"

namespace spanker::daemon {

// D-Bus y q u t (and non-negative n i x) arrive as uint64, au and at as vector.
using option_value =
    std::variant<std::uint64_t, bool, double, std::string, std::vector<std::uint64_t>>;

struct option {
    std::string key;
    option_value value;
};
using options = std::vector<option>;

// SPANKER_SOP_* by name: "nop", "matmul", "all_reduce", "all_gather",
// "broadcast", "write_tensor", "read_tensor", "cancel".
result<std::uint8_t> parse_op(std::string_view name);
const char* op_name(std::uint8_t op);

// Names of enumerations as D-Bus and the tools write them.
result<std::uint32_t> parse_layout(std::string_view name);
result<std::uint32_t> parse_dtype(std::string_view name);
result<std::uint32_t> parse_access(std::string_view name);  // "r", "w", "rw"
// "auto" is nothing, "rows", "k", "whole".
result<std::optional<collective::sharding>> parse_sharding(std::string_view name);
const char* sharding_name(collective::sharding how);
const char* algorithm_name(std::uint32_t algorithm);

// One entry. Without `op` the key "op" names it (Submit); with it the key is
// refused (MatMul, AllReduce, ...).
//   all:      user_data t, deadline_ns t (relative, from now; 0 default), linked b, barrier b
//   matmul:   weights t, n_tok t, x t, x_kind s, x_offset t, y t, y_kind s, y_offset t,
//             x_format s "f32"|"q8_k"|"q4_k", exact b, accumulate b
//   all_reduce, all_gather, broadcast: group t, dtype s, reduce s (all_reduce), root t
//             (broadcast), src t, src_kind s, src_offset t, dst t, dst_kind s, dst_offset t, count t
//   write_tensor, read_tensor: tensor t, buffer t, tensor_offset t, buffer_offset t, bytes t, rank t
//   cancel:   target t (user_data of the entries to cancel)
// *_kind is "buffer" (default) or "tensor".
result<spanker_sqe> parse_request(const options& from, std::uint64_t now_ns);
result<spanker_sqe> parse_request(std::uint8_t op, const options& from, std::uint64_t now_ns);

// LoadWeights: format s "q4_k", n_out t, k t, offset t, sharding s, chainable b, seal b, job b.
result<weights_options> parse_weights(const options& from);
// OpenSession: cards au, sq_entries u, arena_bytes t.
result<session_options> parse_session(const options& from);
// For calls that take no options yet.
result<void> parse_none(const options& from);

// What a reply says: on success algorithm s, device_ns t, predicted_ns t, bound_ns t, user_data t;
// with an error also errno t (positive), error s, message s, card t, link s, card_status s.
options describe_result(const entry_result& result);
// resident b, sharding s, bytes t, hash s, cards at.
options describe_weights(const weights_info& info);

}  // namespace spanker::daemon
