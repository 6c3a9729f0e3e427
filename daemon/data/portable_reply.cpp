// SPDX-License-Identifier: Apache-2.0
//
// What replies of the portable form say.
#include "daemon/data/portable.hpp"

namespace spanker::daemon {

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

options describe_result(const entry_result& result)
{
    const spanker_cqe& c = result.cqe;
    options reply = {{"user_data", std::uint64_t{c.user_data}},
                     {"algorithm", std::string(algorithm_name(c.algorithm))},
                     {"device_ns", std::uint64_t{c.device_ns}},
                     {"predicted_ns", std::uint64_t{c.predicted_ns}},
                     {"bound_ns", std::uint64_t{c.bound_ns}}};
    if (c.res == 0)
        return reply;
    const auto kind = static_cast<spanker_error_kind>(c.kind);
    reply.push_back({"errno", static_cast<std::uint64_t>(-static_cast<std::int64_t>(c.res))});
    reply.push_back({"error", std::string(spanker_error_name(kind))});
    reply.push_back({"message", result.message});
    reply.push_back({"card_status", std::string(spanker_card_status_name(c.card_status))});
    if (c.card != SPANKER_NO_CARD)
        reply.push_back({"card", std::uint64_t{c.card}});
    if (c.link != SPANKER_NO_LINK)
        reply.push_back(
            {"link", std::to_string(c.link >> 8) + "." + std::to_string(c.link & 0xff)});
    return reply;
}

options describe_weights(const weights_info& info)
{
    return {{"resident", info.resident},
            {"sharding", std::string(sharding_name(info.how))},
            {"bytes", info.bytes},
            {"hash", info.hash},
            {"cards", std::vector<std::uint64_t>(info.cards.begin(), info.cards.end())}};
}

}  // namespace spanker::daemon
