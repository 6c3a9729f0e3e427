// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel/netlink_message.hpp"

#include <linux/genetlink.h>
#include <netlink/attr.h>

#include <cstring>
#include <limits>
#include <type_traits>

namespace spanker::daemon::kernel {

namespace {

using lane_values = std::remove_all_extents_t<decltype(port_info::lane)>;

// False when it is too short; longer than expected is a later version's business.
template <typename T>
bool read(const nlattr* attribute, T& out)
{
    if (::nla_len(attribute) < static_cast<int>(sizeof(T)))
        return false;
    std::memcpy(&out, ::nla_data(attribute), sizeof(T));
    return true;
}

template <typename T>
void read(const nlattr* attribute, std::optional<T>& out)
{
    if (T value; read(attribute, value))
        out = value;
}

// Calls visit(attribute) for each that is whole.
template <typename F>
void walk(const void* at, int bytes, F visit)
{
    auto* attribute = static_cast<nlattr*>(const_cast<void*>(at));
    for (int left = bytes; ::nla_ok(attribute, left); attribute = ::nla_next(attribute, &left))
        visit(attribute);
}

// Attributes of a port that are one number each.
struct port_number {
    std::uint32_t port_info::*narrow = nullptr;
    std::uint64_t port_info::*wide = nullptr;
};

port_number port_number_of(int type)
{
    switch (type) {
    case SPANKER_A_PORT_STATE:
        return {.narrow = &port_info::state};
    case SPANKER_A_PORT_PHASE:
        return {.narrow = &port_info::phase};
    case SPANKER_A_PORT_REASON:
        return {.narrow = &port_info::reason};
    case SPANKER_A_PORT_WIDTH:
        return {.narrow = &port_info::width};
    case SPANKER_A_PORT_LANES:
        return {.narrow = &port_info::lanes};
    case SPANKER_A_PORT_RATE_MBAUD:
        return {.narrow = &port_info::rate_mbaud};
    case SPANKER_A_PORT_PARTNER_SERIAL:
        return {.wide = &port_info::partner_serial};
    case SPANKER_A_PORT_PARTNER_PORT:
        return {.narrow = &port_info::partner_port};
    case SPANKER_A_PORT_RETRAINS:
        return {.narrow = &port_info::retrains};
    case SPANKER_A_PORT_CRC_ERRORS:
        return {.narrow = &port_info::crc_errors};
    case SPANKER_A_PORT_REPLAYS:
        return {.narrow = &port_info::replays};
    case SPANKER_A_PORT_BYTES_TX:
        return {.wide = &port_info::bytes_tx};
    case SPANKER_A_PORT_BYTES_RX:
        return {.wide = &port_info::bytes_rx};
    case SPANKER_A_PORT_FLITS_TX:
        return {.wide = &port_info::flits_tx};
    case SPANKER_A_PORT_FLITS_RX:
        return {.wide = &port_info::flits_rx};
    case SPANKER_A_PORT_UP_NS:
        return {.wide = &port_info::up_ns};
    default:
        return {};
    }
}

lane_values read_lane(const nlattr* nest)
{
    lane_values out{};
    walk(::nla_data(nest), ::nla_len(nest), [&](const nlattr* attribute) {
        if (::nla_type(attribute) == SPANKER_A_LANE_STATE)
            read(attribute, out.state);
        else if (::nla_type(attribute) == SPANKER_A_LANE_ERRORS)
            read(attribute, out.errors);
    });
    return out;
}

class reader final {
public:
    void take(const nlattr* attribute)
    {
        switch (const int type = ::nla_type(attribute)) {
        case SPANKER_A_CARD:
            return read(attribute, out.card);
        case SPANKER_A_SEQ:
            return read(attribute, out.seq);
        case SPANKER_A_QUEUE:
            return read(attribute, out.queue);
        case SPANKER_A_COMMAND_ID:
            return read(attribute, out.command_id);
        case SPANKER_A_RUNG:
            return read(attribute, out.rung);
        case SPANKER_A_RESULT:
            return read(attribute, out.result);
        case SPANKER_A_TEMP_MC:
            return read(attribute, out.temperature_mc);
        case SPANKER_A_SERIAL:
            return read(attribute, out.serial);
        case SPANKER_A_STATE:
            return read(attribute, out.state);
        case SPANKER_A_RESET_GENERATION:
            return read(attribute, out.reset_generation);
        case SPANKER_A_PORT:
            return read(attribute, out.port);
        case SPANKER_A_PORT_LANE:
            if (lanes_ < SPK_MAX_LANES)
                out.port_values.lane[lanes_++] = read_lane(attribute);
            return;
        default:
            take_port_number(type, attribute);
        }
    }

    netlink_message out;

private:
    void take_port_number(int type, const nlattr* attribute)
    {
        const port_number which = port_number_of(type);
        if (which.narrow)
            read(attribute, out.port_values.*which.narrow);
        else if (which.wide)
            read(attribute, out.port_values.*which.wide);
    }

    unsigned lanes_ = 0;
};

}  // namespace

std::optional<netlink_message> parse_message(std::span<const std::byte> payload)
{
    genlmsghdr header;
    if (payload.size() < GENL_HDRLEN || payload.size() > std::numeric_limits<int>::max())
        return std::nullopt;
    std::memcpy(&header, payload.data(), sizeof(header));
    reader in;
    in.out.message = header.cmd;
    const auto attributes = payload.subspan(GENL_HDRLEN);
    walk(attributes.data(), static_cast<int>(attributes.size()),
         [&](const nlattr* attribute) { in.take(attribute); });
    in.out.port_values.port = in.out.port.value_or(0);
    return in.out;
}

}  // namespace spanker::daemon::kernel
