// SPDX-License-Identifier: Apache-2.0
//
// What a completion means, in words: the place, the kind, the cure.
#include <fmt/format.h>

#include <algorithm>

#include "look.hpp"
#include "session.hpp"

namespace spanker::lib {
namespace {

std::string where(spanker_connection* c, const spanker_cqe& cqe)
{
    if (cqe.link != SPANKER_NO_LINK)
        return link_at(c, cqe.link >> 8, cqe.link & 0xff) + ": ";
    return cqe.card != SPANKER_NO_CARD ? fmt::format("card {}: ", cqe.card) : std::string();
}

const char* cure(spanker_error_kind kind)
{
    switch (kind) {
    case SPANKER_ERR_LINK_DOWN:
        return "; check the cable (spankerctl links)";
    case SPANKER_ERR_CARD_RESET:
        return "; load the weights and tensors again";
    case SPANKER_ERR_DAEMON_RESTARTED:
        return "; send it again, after loading weights and tensors";
    case SPANKER_ERR_TIMEOUT:
        return "; raise timeout_ns if the work is really that long";
    default:
        return "";
    }
}

const char* algorithm_name(std::uint32_t algorithm)
{
    switch (algorithm) {
#define SPANKER_X(symbol, number, name) \
    case number:                        \
        return name;
        SPANKER_ALGORITHMS(SPANKER_X)
#undef SPANKER_X
    default:
        return "unknown";
    }
}

spanker_error error_of(const spanker_request& request)
{
    const spanker_cqe& cqe = request.cqe;
    const auto told =
        static_cast<spanker_error_kind>(std::min<std::uint32_t>(cqe.kind, SPANKER_ERR_COUNT));
    const auto kind = told != SPANKER_ERR_NONE ? told : spanker_errno_kind(cqe.res);
    std::string text = where(request.connection, cqe) + spanker_error_text(kind);
    if (cqe.card_status != SPANKER_CARD_OK)
        text += fmt::format(" ({})", spanker_card_status_name(cqe.card_status));
    text += request.session == nullptr ? "; its session was closed" : cure(kind);
    spanker_error error = make_error(to_kind(kind), text);
    error.negative_errno = cqe.res < 0 ? cqe.res : -EIO;  // a positive result is no success
    error.card_status = cqe.card_status;
    error.detail = cqe.detail;
    if (cqe.card != SPANKER_NO_CARD)
        error.card = cqe.card;
    if (cqe.link != SPANKER_NO_LINK) {
        error.card = cqe.link >> 8;
        error.port = cqe.link & 0xff;
    }
    return error;
}

}  // namespace

int outcome_of(const void* who, const spanker_request& request, spanker_result* result)
{
    const spanker_cqe& cqe = request.cqe;
    if (result != nullptr) {
        *result = {.device_ns = cqe.device_ns,
                   .predicted_ns = cqe.predicted_ns,
                   .bound_ns = cqe.bound_ns,
                   .algorithm = {}};
        fmt::format_to_n(result->algorithm, sizeof result->algorithm - 1, "{}",
                         algorithm_name(cqe.algorithm));
    }
    if (request.why)
        return fail(who, *request.why);
    return cqe.res == 0 ? 0 : fail(who, error_of(request));
}

}  // namespace spanker::lib
