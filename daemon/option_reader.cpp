// SPDX-License-Identifier: Apache-2.0
#include "daemon/option_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace spanker::daemon {

template <typename T>
T option_reader::take(std::string_view key, T fallback, const char* type)
{
    taken_.push_back(key);
    auto found = std::find_if(values_.begin(), values_.end(),
                              [&](const option& option) { return option.key == key; });
    if (found == values_.end())
        return fallback;
    if (auto* value = std::get_if<T>(&found->value))
        return *value;
    if (!refusal_)
        refusal_ = fmt::format("{}: key '{}' must be {}", method_, key, type);
    return fallback;
}

std::uint64_t option_reader::u64(std::string_view key, std::uint64_t fallback)
{
    return take<std::uint64_t>(key, fallback, "an unsigned integer");
}

bool option_reader::boolean(std::string_view key, bool fallback)
{
    return take<bool>(key, fallback, "a boolean");
}

result<void> option_reader::finish() const
{
    if (refusal_)
        return fail(SPANKER_ERR_INVALID, *refusal_);
    for (const option& option : values_)
        if (std::find(taken_.begin(), taken_.end(), option.key) == taken_.end())
            return fail(SPANKER_ERR_INVALID,
                        fmt::format("{}: unknown key '{}'", method_, option.key));
    return {};
}

result<bool> extract_boolean(options& values, std::string_view key, std::string_view method)
{
    auto found = std::find_if(values.begin(), values.end(),
                              [&](const option& option) { return option.key == key; });
    if (found == values.end())
        return false;
    auto* value = std::get_if<bool>(&found->value);
    if (!value)
        return fail(SPANKER_ERR_INVALID,
                    fmt::format("{}: key '{}' must be a boolean", method, key));
    const bool taken = *value;
    values.erase(found);
    return taken;
}

tl::unexpected<error> in_method(std::string_view method, error what)
{
    if (what.message.rfind(method, 0) != 0)
        what.message = fmt::format("{}: {}", method, what.message);
    return tl::unexpected<error>(std::move(what));
}

}  // namespace spanker::daemon
