// SPDX-License-Identifier: Apache-2.0
//
// A card's ports: the simple training policy, domains, and what they report.
#include "daemon/embedded/driven_card.hpp"
#include "daemon/embedded/machine.hpp"
#include "daemon/refusals.hpp"

namespace spanker::daemon::embedded {

std::uint32_t driven_card::port_register(std::uint32_t port, std::uint32_t reg) const
{
    return read(SPK_REG_PORT(port, reg));
}

void driven_card::set_train_request(std::uint32_t port, bool on)
{
    const std::uint32_t reg = SPK_REG_PORT(port, SPK_P_CTRL);
    const std::uint32_t control = read(reg) & ~SPK_PCTRL_TRAIN_REQ;
    write(reg, control | (on ? SPK_PCTRL_TRAIN_REQ : 0));
}

void driven_card::start_ports()
{
    for (std::uint32_t port = 0; port < caps_.ports; port++) {
        links_[port].failures = 0;
        write(SPK_REG_PORT(port, SPK_P_ROLE), SPK_ROLE_AUTO);
        write(SPK_REG_PORT(port, SPK_P_CTRL), links_[port].disabled ? SPK_PCTRL_DISABLE : 0);
        port_event(port);
    }
    // Channels of groups that still live keep their owner.
    for (std::uint32_t port = 0; port < caps_.ports; port++)
        for (std::uint32_t channel = 0; channel < caps_.channels; channel++)
            if (const u32 domain = home_.channels.at[number_][port][channel].domain)
                set_domain(port, channel, domain);
}

void driven_card::take_events()
{
    if (state_ != SPANKER_CARD_READY)
        return;
    const std::uint32_t causes = read(SPK_REG_EVENT_CAUSE);
    if (causes == 0 || causes == ~std::uint32_t{0})
        return;
    write(SPK_REG_EVENT_CAUSE, causes);
    if (causes & SPK_EVENT_TEMP)
        home_.events.add(
            event_temperature{number_, static_cast<std::int32_t>(read(SPK_REG_TEMP_MC))});
    troubled_ |= (causes & SPK_EVENT_FATAL) != 0;
    queue_faulted_ |= (causes & SPK_EVENT_QUEUE_FAULT) != 0;
    for (std::uint32_t port = 0; port < caps_.ports; port++)
        if (causes & SPK_EVENT_PORT(port))
            port_event(port);
}

void driven_card::port_event(std::uint32_t port)
{
    const bool requested = port_register(port, SPK_P_CTRL) & SPK_PCTRL_TRAIN_REQ;
    switch (spk_link_simple_step(&links_[port], port_register(port, SPK_P_STATE),
                                 port_register(port, SPK_P_REASON), requested)) {
    case SPK_LINK_REARM:
        set_train_request(port, false);
        set_train_request(port, true);
        break;
    case SPK_LINK_RAISE:
        set_train_request(port, true);
        break;
    case SPK_LINK_LEAVE:
        break;
    }
    home_.events.add(event_link{number_, port});
}

result<void> driven_card::train(std::uint32_t port_mask, bool retrain)
{
    if (port_mask == 0 || port_mask >> caps_.ports)
        return tl::unexpected(refusals::bad_port_mask(number_, caps_.ports));
    for (std::uint32_t port = 0; port < caps_.ports; port++) {
        if (!(port_mask >> port & 1))
            continue;
        if (links_[port].disabled)
            return tl::unexpected(refusals::port_disabled(number_, port));
        links_[port].failures = 0;
        if (retrain || port_register(port, SPK_P_STATE) == SPK_PORT_FAULT)
            set_train_request(port, false);
        set_train_request(port, true);
    }
    return {};
}

void driven_card::set_admin(std::uint32_t port, bool enable)
{
    links_[port].disabled = !enable;
    write(SPK_REG_PORT(port, SPK_P_CTRL), enable ? 0 : SPK_PCTRL_DISABLE);
    port_event(port);
}

void driven_card::set_domain(std::uint32_t port, std::uint32_t channel, std::uint32_t domain)
{
    write(SPK_REG_PORT(port, SPK_P_DOMAIN(channel)), domain);
}

port_info driven_card::port(std::uint32_t number) const
{
    const auto value = [&](std::uint32_t reg) { return port_register(number, reg); };
    const auto value64 = [&](std::uint32_t lo) { return read64(SPK_REG_PORT(number, lo)); };
    port_info out;
    out.port = number;
    out.state = value(SPK_P_STATE);
    out.phase = value(SPK_P_PHASE);
    out.reason = value(SPK_P_REASON);
    out.width = value(SPK_P_WIDTH);
    out.lanes = caps_.lanes;
    out.rate_mbaud = value(SPK_P_RATE_MBAUD);
    out.partner_serial = value64(SPK_P_PARTNER_LO);
    out.partner_port = value(SPK_P_PARTNER_PORT);
    out.crc_errors = value(SPK_P_CRC_ERRORS);
    out.replays = value(SPK_P_REPLAYS);
    out.retrains = value(SPK_P_RETRAINS);
    out.bytes_tx = value64(SPK_P_BYTES_TX_LO);
    out.bytes_rx = value64(SPK_P_BYTES_RX_LO);
    out.flits_tx = value64(SPK_P_FLITS_TX_LO);
    out.flits_rx = value64(SPK_P_FLITS_RX_LO);
    out.up_ns = value64(SPK_P_UP_NS_LO);
    for (std::uint32_t lane = 0; lane < caps_.lanes; lane++)
        out.lane[lane] = {value(SPK_P_LANE(lane)), value(SPK_P_LANE_ERRORS(lane))};
    return out;
}

}  // namespace spanker::daemon::embedded
