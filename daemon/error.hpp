// SPDX-License-Identifier: Apache-2.0
//
// The daemon's one error language: a kind of the table in spanker_status.h,
// the card status if a command was the cause, and one sentence that names the
// object and the cure. result<T> carries it; nothing throws across a border.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "uapi/spanker_card.h"
#include "uapi/spanker_status.h"

namespace spanker::daemon {

struct error {
    spanker_error_kind kind = SPANKER_ERR_NONE;
    std::string message;  // no trailing newline
    std::uint32_t card_status = SPANKER_CARD_OK;
    std::uint64_t detail = 0;  // as spk_completion.detail

    int negative_errno() const { return -spanker_error_errno(kind); }
};

template <typename T>
using result = tl::expected<T, error>;

inline tl::unexpected<error> fail(spanker_error_kind kind, std::string message)
{
    return tl::unexpected<error>(error{kind, std::move(message)});
}

// From a negative (or positive) errno of a call that says no more.
inline tl::unexpected<error> fail_errno(int err, std::string message)
{
    return fail(spanker_errno_kind(err), std::move(message));
}

}  // namespace spanker::daemon
