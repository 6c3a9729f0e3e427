// SPDX-License-Identifier: Apache-2.0
//
// Reading replies into plain structs; shared by the files that look.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "connection.hpp"

namespace spanker::lib {

template <std::size_t N>
void copy_text(char (&to)[N], const char* from)
{
    const std::size_t n = std::min(N - 1, std::strlen(from));
    std::memcpy(to, from, n);
    to[n] = '\0';
}

// One a{sv} member to store: 1, or negative errno.
template <typename T>
int read_basic(sd_bus_message* m, char type, T& to)
{
    const int r = sd_bus_message_read_basic(m, type, &to);
    return r < 0 ? r : 1;
}

template <std::size_t N>
int read_text(sd_bus_message* m, char (&to)[N])
{
    const char* text = nullptr;
    const int r = sd_bus_message_read_basic(m, 's', &text);
    if (r < 0)
        return r;
    copy_text(to, text);
    return 1;
}

std::string card_path(std::uint32_t card);

// GetTopology's generation, kind and cards (index, serial, state); the reply stands before the
// links then.
int get_topology(spanker_connection* c, const void* who, message_ptr& reply,
                 spanker_fabric_info& fabric, std::vector<spanker_card_info>& cards);

// a(st), as far as it fits.
int read_counters(spanker_connection* c, sd_bus_message* m, spanker_counter* counters,
                  std::size_t max, std::size_t* count);

int get_daemon(spanker_connection* c, spanker_daemon_info* out);

}  // namespace spanker::lib
