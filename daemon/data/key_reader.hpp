// SPDX-License-Identifier: Apache-2.0
//
// Takes keys out of options for the parsers of the portable form. The first
// thing that is wrong is kept; finish() reports it, or a key nobody took.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/data/portable.hpp"

namespace spanker::daemon::data {

class key_reader final {
public:
    explicit key_reader(const options& from) : from_(from), taken_(from.size()) { refuse_twice(); }

    template <typename T>
    T number(std::string_view key, T fallback)
    {
        return static_cast<T>(integer(key, fallback, std::numeric_limits<T>::max(), false));
    }
    template <typename T>
    T need(std::string_view key)
    {
        return static_cast<T>(integer(key, 0, std::numeric_limits<T>::max(), true));
    }
    bool boolean(std::string_view key);
    // "" when absent.
    std::string_view text(std::string_view key);
    const std::vector<std::uint64_t>* numbers(std::string_view key);

    // A word of an enumeration; `fallback` when absent.
    template <typename T, typename F>
    T word(std::string_view key, T fallback, F parse)
    {
        const std::string_view name = text(key);
        if (name.empty())
            return fallback;
        auto value = parse(name);
        if (!value) {
            refuse(std::string("key '") + std::string(key) + "': " + value.error().message);
            return fallback;
        }
        return static_cast<T>(*value);
    }

    void refuse(std::string why);
    result<void> finish() const;

private:
    const option_value* take(std::string_view key);
    void refuse_twice();
    std::uint64_t integer(std::string_view key, std::uint64_t fallback, std::uint64_t most,
                          bool needed);
    template <typename T>
    const T* typed(std::string_view key, const char* type);

    const options& from_;
    std::vector<bool> taken_;
    std::string refusal_;
};

}  // namespace spanker::daemon::data
