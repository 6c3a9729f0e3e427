// SPDX-License-Identifier: Apache-2.0
#include "daemon/private_path.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace spanker::daemon {

std::optional<std::uint64_t> private_object_id(const char* path, const char* noun)
{
    const std::string prefix = fmt::format("{}/{}/", private_path, noun);
    std::string_view rest(path);
    if (rest.substr(0, prefix.size()) != prefix)
        return std::nullopt;
    rest.remove_prefix(prefix.size());
    std::uint64_t id = 0;
    auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), id);
    // A number has one spelling, or one object would have many paths.
    if (problem != std::errc{} || end != rest.data() + rest.size() || rest != std::to_string(id))
        return std::nullopt;
    return id;
}

int admit_owner(sd_bus* bus, const std::string& owner, void* object, void** found,
                sd_bus_error* error)
{
    sd_bus_message* message = sd_bus_get_current_message(bus);
    const char* sender = message ? sd_bus_message_get_sender(message) : nullptr;
    if (!sender || owner != sender)
        return set_error(error, {SPANKER_ERR_DENIED, "this object belongs to another client"});
    *found = object;
    return 1;
}

}  // namespace spanker::daemon
