// SPDX-License-Identifier: Apache-2.0
#include "daemon/log.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "daemon/clock.hpp"

namespace spanker::daemon {

namespace {

// As sd_journal_stream_fd(3) says: standard error is the journal if $JOURNAL_STREAM names its device and inode.
bool stderr_is_journal()
{
    const char* stream = std::getenv("JOURNAL_STREAM");
    struct stat status;
    if (!stream || fstat(STDERR_FILENO, &status) < 0)
        return false;
    return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

void write_journal(log_level level, std::string_view message, const log_fields& fields)
{
    std::vector<std::string> lines{fmt::format("MESSAGE={}", message),
                                   fmt::format("PRIORITY={}", static_cast<int>(level))};
    if (fields.card)
        lines.push_back(fmt::format("SPANKER_CARD={}", *fields.card));
    if (!fields.link.empty())
        lines.push_back(fmt::format("SPANKER_LINK={}", fields.link));
    if (fields.session)
        lines.push_back(fmt::format("SPANKER_SESSION={}", *fields.session));
    if (fields.client_uid)
        lines.push_back(fmt::format("SPANKER_CLIENT_UID={}", *fields.client_uid));
    std::vector<iovec> parts;
    parts.reserve(lines.size());
    for (std::string& line : lines)
        parts.push_back({line.data(), line.size()});
    sd_journal_sendv(parts.data(), static_cast<int>(parts.size()));
}

}  // namespace

// 64 slots chosen by hash: two sentences that share one only lose their limit.
std::optional<unsigned> log_limiter::admit(std::string_view message, std::uint64_t now_ns)
{
    const std::uint64_t hash = std::hash<std::string_view>{}(message) | 1;
    entry& slot = entries_[hash >> 1 & 63];
    if (slot.hash != hash) {
        slot = {.hash = hash, .written_ns = now_ns};
        return 0;
    }
    if (now_ns - slot.written_ns < window_ns) {
        slot.held_back++;
        return std::nullopt;
    }
    slot.written_ns = now_ns;
    return std::exchange(slot.held_back, 0u);
}

void log(log_level level, std::string_view message, const log_fields& fields)
{
    static std::mutex lock;  // of the limiter and of whole lines
    static log_limiter limiter;
    static const bool journal = stderr_is_journal();

    std::lock_guard guard(lock);
    auto held_back = limiter.admit(message, monotonic_ns());
    if (!held_back)
        return;
    std::string text(message);
    if (*held_back)
        text += fmt::format(" (repeated {} times)", *held_back);
    if (journal)
        write_journal(level, text, fields);
    else
        fmt::print(stderr, "spankerd: {}\n", text);
}

}  // namespace spanker::daemon
