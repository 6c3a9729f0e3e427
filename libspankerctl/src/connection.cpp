// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace spanker::lib {

int read_options(const void* who, const char* name, const void* options, void* known,
                 std::size_t known_size)
{
    std::size_t size = 0;
    std::memcpy(&size, options, sizeof size);
    if (size < sizeof size)
        return fail(who, SPANKER_KIND_INVALID,
                    fmt::format("{}.size is {}; set it to sizeof({})", name, size, name));
    const auto* bytes = static_cast<const unsigned char*>(options);
    if (size > known_size &&
        std::any_of(bytes + known_size, bytes + size, [](unsigned char b) { return b != 0; })) {
        spanker_error error = make_error(
            SPANKER_KIND_INVALID, fmt::format("{} has members this library (API {}) does not know",
                                              name, SPANKERCTL_API_VERSION));
        error.negative_errno = -E2BIG;
        return fail(who, error);
    }
    std::memcpy(known, options, std::min(size, known_size));
    return 0;
}

}  // namespace spanker::lib

using namespace spanker::lib;

namespace {

int connect(const spanker_connect_options* options, spanker_connection** out)
{
    spanker_connect_options known = {};
    if (const int r = read_options(nullptr, "spanker_connect_options", options, known); r < 0)
        return r;
    auto connection = std::make_unique<spanker_connection>();
    const char* environment = std::getenv("SPANKER_BUS");
    connection->address = known.bus != nullptr     ? known.bus
                          : environment != nullptr ? environment
                                                   : "system";
    connection->timeout_ns = known.timeout_ns != 0 ? known.timeout_ns : 25'000'000'000;
    if (const int r =
            bus::open(nullptr, connection->address, connection->timeout_ns, connection->link);
        r < 0)
        return r;
    // The name has an owner, or the bus can start one: ask now, so that a missing daemon is said
    // here.
    message_ptr reply;
    if (const int r = connection->link->get_all(nullptr, root_path, "Manager", reply); r < 0)
        return r;
    reply.reset();  // before the bus it came from
    *out = connection.release();
    return 0;
}

}  // namespace

int spanker_connect(const spanker_connect_options* options, spanker_connection** out)
{
    if (out == nullptr)
        return fail_null(nullptr, "out");
    return guarded(nullptr, [&] { return connect(options, out); });
}

void spanker_disconnect(spanker_connection* connection) { delete connection; }
