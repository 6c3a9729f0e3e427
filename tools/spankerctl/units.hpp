// SPDX-License-Identifier: Apache-2.0
//
// Sizes, times and lists of cards as people write and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spanker::cli {

// "4096", "64K", "1M", "1MiB", "2G": binary prefixes. Nothing for other texts and for overflow.
std::optional<std::uint64_t> parse_bytes(const std::string& text);

// "0" or "0,2,3": numbers of cards in the order given. Nothing for other texts and for repeated numbers.
std::optional<std::vector<std::uint32_t>> parse_cards(const std::string& text);

std::string bytes_text(std::uint64_t bytes);       // "4.0 GiB"
std::string time_text(std::uint64_t ns);           // "83.1 us"
std::string rate_text(std::uint64_t bytes_per_s);  // "500 MB/s"; "-" for 0

}  // namespace spanker::cli
