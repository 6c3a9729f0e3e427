// SPDX-License-Identifier: Apache-2.0
//
// Kinds, and the last error of each handle in each thread. A thread keeps the last
// few handles that failed; a handle it no longer knows has no last error.
#include "error.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

namespace spanker::lib {
namespace {

struct slot {
    const void* handle = nullptr;
    std::uint64_t used = 0;  // when it failed last, counted in failures; 0: never
    spanker_error error = {};
};

thread_local std::array<slot, 16> slots;
thread_local std::uint64_t failures = 0;

// The handle's own slot, else the one that failed longest ago. Slots do not move, so what
// spanker_last_error() returned for one handle survives failures of others.
slot& slot_of(const void* handle)
{
    slot* oldest = slots.data();
    for (auto& s : slots) {
        if (s.used != 0 && s.handle == handle)
            return s;
        if (s.used < oldest->used)
            oldest = &s;
    }
    oldest->handle = handle;
    return *oldest;
}

// Cuts between characters, not inside one.
void copy_text(char* to, std::size_t size, std::string_view from)
{
    std::size_t n = std::min(size - 1, from.size());
    while (n < from.size() && n > 0 && (static_cast<unsigned char>(from[n]) & 0xc0) == 0x80)
        --n;
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
        {"InteractiveAuthorizationRequired", SPANKER_KIND_DENIED},
        {"AuthFailed", SPANKER_KIND_DENIED},
    };
    for (const std::string_view starter :
         {"org.freedesktop.DBus.Error.Spawn.", "org.freedesktop.systemd1."}) {
        if (dbus_name.starts_with(starter))
            return SPANKER_KIND_NO_DAEMON;  // the bus tried to start it
    }
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

spanker_error make_error(spanker_kind kind, std::string_view message) noexcept
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

spanker_error make_error_errno(int err, std::string_view message) noexcept
{
    const int number = err < 0 ? -err : err;
    // From the system EBADF says that no file is open there, not which seals it lacks.
    spanker_error error = make_error(
        number == EBADF ? SPANKER_KIND_INVALID : to_kind(spanker_errno_kind(number)), message);
    error.negative_errno = -number;
    return error;
}

int fail(const void* handle, const spanker_error& error) noexcept
{
    const spanker_error copy = error;  // it may stand in a slot
    slot& s = slot_of(handle);
    s.used = ++failures;
    s.error = copy;
    return copy.negative_errno;
}

int fail(const void* handle, spanker_kind kind, std::string_view message) noexcept
{
    return fail(handle, make_error(kind, message));
}

int fail_null(const void* handle, const char* argument) noexcept
{
    char text[96];
    std::snprintf(text, sizeof text, "%s is NULL", argument);
    return fail(handle, SPANKER_KIND_INVALID, text);
}

int fail_as(const void* handle, const void* source) noexcept
{
    return fail(handle, *spanker_last_error(source));
}

int fail_thrown(const void* handle, std::exception_ptr thrown) noexcept
{
    try {
        std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
        return fail(handle, SPANKER_KIND_NO_MEMORY, "this process is out of memory");
    } catch (const std::length_error&) {
        return fail(handle, SPANKER_KIND_NO_MEMORY, "this process cannot hold so much");
    } catch (const std::system_error& e) {
        return fail(handle, make_error_errno(e.code().value(), e.what()));
    } catch (const std::exception& e) {
        return fail(handle, SPANKER_KIND_CARD_FAILED, e.what());
    } catch (...) {
        return fail(handle, SPANKER_KIND_CARD_FAILED, "an unknown exception was thrown");
    }
}

}  // namespace spanker::lib

using namespace spanker::lib;

const spanker_error* spanker_last_error(const void* handle)
{
    static const spanker_error none = {};
    for (const auto& s : slots) {
        if (s.used != 0 && s.handle == handle)
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

const char* spanker_version_string(void) { return SPANKER_VERSION; }
