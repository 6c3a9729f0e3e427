// SPDX-License-Identifier: Apache-2.0
//
// Takes keys out of a call's options (an a{sv} as plain data) one by one;
// finish() refuses what nobody took, so a misspelt key is an error that names
// it and the method.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/data/portable.hpp"
#include "daemon/error.hpp"

namespace spanker::daemon {

class option_reader final {
public:
    // `method` names the call in errors: "Reset". Both must outlive the reader.
    option_reader(const options& values, std::string_view method) : values_(values), method_(method)
    {}

    // The value of a key, or `fallback`. A value of another type is remembered as the reader's
    // error and reads as the fallback.
    std::uint64_t u64(std::string_view key, std::uint64_t fallback);
    bool boolean(std::string_view key, bool fallback);

    // The first error met, or a key that nobody took.
    result<void> finish() const;

private:
    template <typename T>
    T take(std::string_view key, T fallback, const char* type);

    const options& values_;
    std::string_view method_;
    std::vector<std::string_view> taken_;
    std::optional<std::string> refusal_;
};

// Moves a boolean key of the bus face's own out of options whose other keys another parser takes.
result<bool> extract_boolean(options& values, std::string_view key, std::string_view method);

// The parser's error with the method's name in front.
tl::unexpected<error> in_method(std::string_view method, error what);

}  // namespace spanker::daemon
