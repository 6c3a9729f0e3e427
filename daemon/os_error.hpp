// SPDX-License-Identifier: Apache-2.0
//
// What a failed system call of the daemon's own means to a client: which of
// our limits it met. `what` names the step; the system's words are appended.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "daemon/error.hpp"

namespace spanker::daemon {

inline tl::unexpected<error> fail_os(int err, std::string what)
{
    const spanker_error_kind kind = err == EMFILE || err == ENFILE   ? SPANKER_ERR_QUOTA
                                    : err == ENOMEM || err == EAGAIN ? SPANKER_ERR_NO_MEMORY
                                                                     : SPANKER_ERR_HOST_FAULT;
    return fail(kind, std::move(what) + ": " + std::strerror(err));
}

}  // namespace spanker::daemon
