// SPDX-License-Identifier: Apache-2.0
//
// What the daemon says to people who look later. Goes to the journal with
// fields (SPANKER_CARD=, SPANKER_LINK=, SPANKER_SESSION=, SPANKER_CLIENT_UID=)
// when standard error is the journal, else to standard error.
//
// The same sentence is written once in 30 s; what was held back is counted in
// the next one ("repeated 17 times"), so a dead card does not fill the disk.
// Any thread may log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace spanker::daemon {

enum class log_level { error = 3, warning = 4, notice = 5, info = 6, debug = 7 };

struct log_fields {
    std::optional<std::uint32_t> card;
    std::string_view link;
    std::optional<std::uint64_t> session;
    std::optional<uid_t> client_uid;
};

void log(log_level level, std::string_view message, const log_fields& fields = {});

// Decides whether a sentence is written now; apart from the clock, for tests.
class log_limiter final {
public:
    static constexpr std::uint64_t window_ns = 30'000'000'000;

    // nullopt: hold back. Else how often it was held back since it was last written.
    std::optional<unsigned> admit(std::string_view message, std::uint64_t now_ns);

private:
    struct entry {
        std::uint64_t hash = 0, written_ns = 0;
        unsigned held_back = 0;
    };
    entry entries_[64] = {};
};

}  // namespace spanker::daemon
