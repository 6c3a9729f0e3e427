// SPDX-License-Identifier: Apache-2.0
//
// The library's one error language: functions return 0 or a negative errno, the
// words are kept per handle and thread. `fail` builds both at once. Nothing here
// allocates or throws, and guarded() keeps what else throws from crossing into C.
#pragma once

#include <cerrno>
#include <exception>
#include <string>
#include <string_view>

#include "spankerctl.h"
#include "uapi/spanker_status.h"

namespace spanker::lib {

spanker_kind to_kind(spanker_error_kind kind);
int kind_errno(spanker_kind kind);  // positive
// From a D-Bus error name: its last component decides, whatever the prefix.
spanker_kind kind_of_name(std::string_view dbus_name);

spanker_error make_error(spanker_kind kind, std::string_view message) noexcept;
spanker_error make_error_errno(int err, std::string_view message) noexcept;

// Records the error for the handle in this thread and returns its errno.
int fail(const void* handle, const spanker_error& error) noexcept;
int fail(const void* handle, spanker_kind kind, std::string_view message) noexcept;
// A handle or a place for the answer that the caller left out.
int fail_null(const void* handle, const char* argument) noexcept;

// Same error again for another handle (a session's for its connection...).
int fail_as(const void* handle, const void* source) noexcept;

// Records what was thrown: -ENOMEM, the errno of a std::system_error, else -EIO.
int fail_thrown(const void* handle, std::exception_ptr thrown) noexcept;

// The border to C: runs `body`, whose result is the function's; what it throws becomes an error.
template <typename Body>
int guarded(const void* handle, const Body& body) noexcept
{
    try {
        return body();
    } catch (...) {
        return fail_thrown(handle, std::current_exception());
    }
}

}  // namespace spanker::lib
