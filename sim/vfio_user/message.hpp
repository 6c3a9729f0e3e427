// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing messages as bytes. Nothing here knows sockets or cards.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/vfio_user/wire.hpp"

namespace spanker::sim::vfio_user {

using buffer = std::vector<std::byte>;

// Takes a structure off the front; false, and nothing taken, when there are too few bytes.
template <typename structure>
bool take(std::span<const std::byte>& from, structure& out)
{
    static_assert(std::is_trivially_copyable_v<structure>);
    if (from.size() < sizeof out)
        return false;
    std::memcpy(&out, from.data(), sizeof out);
    from = from.subspan(sizeof out);
    return true;
}

template <typename structure>
void append(buffer& to, const structure& what)
{
    static_assert(std::is_trivially_copyable_v<structure>);
    const auto raw = std::as_bytes(std::span(&what, 1));
    to.insert(to.end(), raw.begin(), raw.end());
}

// Why no message can follow this header, so that the connection must end; nothing if one can.
std::optional<std::string> why_not(const header& head);

// The header of the reply to `to` with `payload_bytes` behind it, or of an error.
header reply_header(const header& to, std::size_t payload_bytes);
header error_header(const header& to, int error);

// The JSON of a version message, NUL included: what this server offers.
std::string offered_capabilities();
// May this be the rest of a client's version message? It may be empty; else it is a JSON object and a NUL.
bool is_capabilities(std::span<const std::byte> text);

}  // namespace spanker::sim::vfio_user
