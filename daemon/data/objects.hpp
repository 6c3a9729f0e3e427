// SPDX-License-Identifier: Apache-2.0
//
// How the executor answers calls about objects, shared by its parts.
#pragma once

#include "daemon/data/executor.hpp"

namespace spanker::daemon::data {

template <typename T>
result<T> fail_as(spanker_error_kind kind, std::string message)
{
    return result<T>(fail(kind, std::move(message)));
}

template <typename T>
void executor::answer_loop(const reply<T>& done, result<T> value)
{
    if (!done)
        return;
    auto held = std::make_shared<result<T>>(std::move(value));
    to_loop([done, held] { done(std::move(*held)); });
}

// The session if it is open (and, for new work, the daemon does not drain); else the call is
// answered.
template <typename T>
session* executor::open_session(session_id id, const reply<T>& done, work what)
{
    session* s = find(id);
    if (s && !s->closing && (!draining_ || what == work::undoing))
        return s;
    if (s && !s->closing)
        answer_loop(done, fail_as<T>(SPANKER_ERR_DRAINING, "the daemon takes no new work"));
    else
        answer_loop(done, fail_as<T>(SPANKER_ERR_NO_OBJECT,
                                     "session " + std::to_string(id) + " has ended"));
    return nullptr;
}

result<collective::object> tensor_shape(const tensor_options& how, std::uint32_t cards);

}  // namespace spanker::daemon::data
