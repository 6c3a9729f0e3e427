// SPDX-License-Identifier: Apache-2.0
//
// The library's one error language: functions return 0 or a negative errno, the
// words are kept per handle and thread. `fail` builds both at once.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "spankerctl.h"
#include "uapi/spanker_status.h"

namespace spanker::lib {

spanker_kind to_kind(spanker_error_kind kind);
int kind_errno(spanker_kind kind);  // positive
// From a D-Bus error name: its last component decides, whatever the prefix.
spanker_kind kind_of_name(std::string_view dbus_name);

spanker_error make_error(spanker_kind kind, std::string_view message);
spanker_error make_error_errno(int err, std::string_view message);

// Records the error for the handle in this thread and returns its errno.
int fail(const void* handle, const spanker_error& error);
int fail(const void* handle, spanker_kind kind, std::string_view message);

// Same error again for another handle (a session's for its connection...).
int fail_as(const void* handle, const void* source);

}  // namespace spanker::lib
