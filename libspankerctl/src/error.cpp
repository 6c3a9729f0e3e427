// SPDX-License-Identifier: Apache-2.0
//
// Kinds, and the last error of each handle in each thread. A thread keeps the last
// few handles that failed; a handle it no longer knows has no last error.
#include "error.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace spanker::lib {
namespace {

struct slot {
    const void* handle = nullptr;
    bool used = false;
    spanker_error error = {};
};

// The most recently failed handle stands first.
thread_local std::array<slot, 16> slots;

slot& slot_of(const void* handle)
{
    auto found = std::find_if(slots.begin(), slots.end(),
                              [&](const slot& s) { return s.used && s.handle == handle; });
    if (found == slots.end())
        found = slots.end() - 1;
    std::rotate(slots.begin(), found, found + 1);
    slots.front().handle = handle;
    slots.front().used = true;
    return slots.front();
}

void copy_text(char* to, std::size_t size, std::string_view from)
{
    const std::size_t n = std::min(size - 1, from.size());
    std::memcpy(to, from.data(), n);
    to[n] = '\0';
}

// Both enumerations follow the order of the one table.
#define SPANKER_X(symbol, number, name, text) SPANKER_ERR_##symbol,
constexpr spanker_error_kind table[] = {SPANKER_ERR_NONE, SPANKER_ERRORS(SPANKER_X)};
#undef SPANKER_X
static_assert(std::size(table) == SPANKER_KIND_REMOTE,
              "spanker_kind must follow the table of errors");
static_assert(int{SPANKER_KIND_INVALID} == int{SPANKER_ERR_INVALID});
static_assert(int{SPANKER_KIND_SHAPE_MISMATCH} == int{SPANKER_ERR_SHAPE_MISMATCH});

spanker_error_kind to_table(spanker_kind kind)
{
    const auto index = static_cast<std::size_t>(kind);
    return index < std::size(table) ? table[index] : SPANKER_ERR_COUNT;
}

}  // namespace

spanker_kind to_kind(spanker_error_kind kind)
{
    return kind < SPANKER_ERR_COUNT ? static_cast<spanker_kind>(kind) : SPANKER_KIND_REMOTE;
}

int kind_errno(spanker_kind kind)
{
    return kind == SPANKER_KIND_REMOTE ? EREMOTEIO : spanker_error_errno(to_table(kind));
}

spanker_kind kind_of_name(std::string_view dbus_name)
{
    struct alias {
        std::string_view name;
        spanker_kind kind;
    };
    // What the bus itself says, in our words.
    static constexpr alias aliases[] = {
        {"UnknownObject", SPANKER_KIND_NO_OBJECT},
        {"UnknownInterface", SPANKER_KIND_NOT_SUPPORTED},
        {"UnknownMethod", SPANKER_KIND_NOT_SUPPORTED},
        {"ServiceUnknown", SPANKER_KIND_NO_DAEMON},
        {"NameHasNoOwner", SPANKER_KIND_NO_DAEMON},
        {"NoReply", SPANKER_KIND_TIMEOUT},
        {"Disconnected", SPANKER_KIND_DAEMON_RESTARTED},
        {"LimitsExceeded", SPANKER_KIND_QUOTA},
        {"TimedOut", SPANKER_KIND_TIMEOUT},
        {"ChildExited", SPANKER_KIND_NO_DAEMON},
        {"ChildSignaled", SPANKER_KIND_NO_DAEMON},
        {"ExecFailed", SPANKER_KIND_NO_DAEMON},
        {"InteractiveAuthorizationRequired", SPANKER_KIND_DENIED},
    };
    const std::string_view last = dbus_name.substr(dbus_name.rfind('.') + 1);
    for (const auto kind : table) {
        if (kind != SPANKER_ERR_NONE && last == spanker_error_name(kind))
            return to_kind(kind);
    }
    for (const auto& a : aliases) {
        if (last == a.name)
            return a.kind;
    }
    return SPANKER_KIND_REMOTE;
}

spanker_error make_error(spanker_kind kind, std::string_view message)
{
    spanker_error error = {};
    error.negative_errno = -kind_errno(kind);
    error.kind = kind;
    error.card = SPANKER_NONE;
    error.port = SPANKER_NONE;
    copy_text(error.name, sizeof error.name, spanker_kind_name(kind));
    copy_text(error.message, sizeof error.message, message);
    return error;
}

spanker_error make_error_errno(int err, std::string_view message)
{
    spanker_error error = make_error(to_kind(spanker_errno_kind(err)), message);
    error.negative_errno = err < 0 ? err : -err;
    return error;
}

int fail(const void* handle, const spanker_error& error)
{
    slot_of(handle).error = error;
    return error.negative_errno;
}

int fail(const void* handle, spanker_kind kind, std::string_view message)
{
    return fail(handle, make_error(kind, message));
}

int fail_as(const void* handle, const void* source)
{
    return fail(handle, *spanker_last_error(source));
}

}  // namespace spanker::lib

using namespace spanker::lib;

const spanker_error* spanker_last_error(const void* handle)
{
    static const spanker_error none = {};
    for (const auto& s : slots) {
        if (s.used && s.handle == handle)
            return &s.error;
    }
    return &none;
}

const char* spanker_kind_name(spanker_kind kind)
{
    if (kind == SPANKER_KIND_OK)
        return "Ok";
    return kind == SPANKER_KIND_REMOTE ? "Remote" : spanker_error_name(to_table(kind));
}

const char* spanker_kind_text(spanker_kind kind)
{
    return kind == SPANKER_KIND_REMOTE ? "the daemon reported an error this library does not know"
                                       : spanker_error_text(to_table(kind));
}

const char* spanker_version_string(void)
{
    return SPANKER_VERSION;
}
