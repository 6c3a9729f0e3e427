// SPDX-License-Identifier: Apache-2.0
//
// The capabilities are laid out by hand; their formats are those of the PCI Express base specification.
#include "sim/config_space.hpp"

#include <algorithm>
#include <bit>

namespace spanker::sim {
namespace {

// Where the capabilities stand. The order of the chain is the order here.
constexpr std::uint32_t express = 0x40;
constexpr std::uint32_t msi = 0x80;
constexpr std::uint32_t msix = 0xb0;
constexpr std::uint32_t errors = 0x100;

constexpr std::uint32_t command = 0x04;
constexpr std::uint32_t command_bus_master = 1u << 2;
constexpr std::uint32_t command_writable =
    0x0546;  // memory, bus master, parity, SERR, INTx disable
constexpr std::uint32_t status_cleared_by_1 = 0xf900;
constexpr std::uint32_t status_capability_list = 1u << 4;

constexpr std::uint32_t express_device_capability = 1u << 28 | 1u << 15;  // FLR, role based errors
constexpr std::uint32_t express_control = express + 0x08;
constexpr std::uint32_t express_status = express + 0x0a;
constexpr std::uint32_t express_non_fatal_seen = 1u << 1;
constexpr std::uint32_t express_fatal_seen = 1u << 2;
constexpr std::uint32_t express_start_reset = 1u << 15;
constexpr std::uint32_t express_control_reset_value =
    0x2810;  // 512 byte reads, no snoop, relaxed order

constexpr std::uint32_t msi_control = msi + 2;
constexpr std::uint32_t msi_enable = 1u << 0;
constexpr std::uint32_t msi_64_bit = 1u << 7;
constexpr std::uint32_t msi_maskable = 1u << 8;
constexpr std::uint32_t msi_mask = msi + 0x10;
constexpr std::uint32_t msi_pending = msi + 0x14;

constexpr std::uint32_t msix_control = msix + 2;
constexpr std::uint32_t msix_enable = 1u << 15;
constexpr std::uint32_t msix_mask_all = 1u << 14;

constexpr std::uint32_t internal_error = 1u << 22;
constexpr std::uint32_t uncorrectable_known = internal_error | 0x001ff030;
constexpr std::uint32_t uncorrectable_fatal = internal_error | 0x00062030;
constexpr std::uint32_t correctable_known = 0x000031c1;
constexpr std::uint32_t correctable_masked = 0x00002000;

bool inside(std::uint32_t offset, unsigned bytes)
{
    return (bytes == 1 || bytes == 2 || bytes == 4) && offset <= config_space_bytes - bytes;
}

bool touches(std::uint32_t offset, unsigned bytes, std::uint32_t byte)
{
    return byte >= offset && byte < offset + bytes;
}

}  // namespace

config_space::config_space(unsigned vectors, bool has_msix, std::uint32_t bar_bytes)
    : vectors_(vectors), has_msix_(has_msix), bar_bytes_(bar_bytes)
{
    reset();
}

void config_space::reset()
{
    value_.fill(0);
    writable_.fill(0);
    cleared_by_1_.fill(0);
    build_header();
    build_express();
    build_msi();
    build_msix();
    build_errors();
}

void config_space::put(bytes_of_space& where, std::uint32_t offset, unsigned bytes,
                       std::uint32_t value)
{
    for (unsigned i = 0; i < bytes; i++)
        where[offset + i] = static_cast<std::uint8_t>(value >> 8 * i);
}

std::uint32_t config_space::get(std::uint32_t offset, unsigned bytes) const
{
    std::uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= std::uint32_t{value_[offset + i]} << 8 * i;
    return value;
}

void config_space::build_header()
{
    put(value_, 0x00, 2, SPK_PCI_VENDOR_ID);
    put(value_, 0x02, 2, SPK_PCI_DEVICE_ID);
    put(writable_, command, 2, command_writable);
    put(value_, 0x06, 2, status_capability_list);
    put(cleared_by_1_, 0x06, 2, status_cleared_by_1);
    put(value_, 0x08, 4, SPK_PCI_CLASS << 8);
    put(writable_, 0x0c, 1, 0xff);  // cache line size, of no effect
    if (bar_bytes_ != 0)
        put(writable_, 0x10, 4, ~(bar_bytes_ - 1));  // BAR0: 32 bit memory
    put(value_, 0x2c, 2, SPK_PCI_VENDOR_ID);
    put(value_, 0x2e, 2, SPK_PCI_DEVICE_ID);
    put(value_, 0x34, 1, express);
    put(writable_, 0x3c, 1, 0xff);  // interrupt line; there is no pin
}

void config_space::build_express()
{
    constexpr std::uint32_t gen2_x1 = 1u << 4 | 2;
    put(value_, express, 4, 0x00020000 | msi << 8 | 0x10);  // version 2, endpoint
    put(value_, express + 0x04, 4, express_device_capability);
    put(value_, express_control, 2, express_control_reset_value);
    put(writable_, express_control, 2, 0xffff & ~express_start_reset);
    put(cleared_by_1_, express_status, 2, 0x000f);
    put(value_, express + 0x0c, 4, gen2_x1);
    put(writable_, express + 0x10, 2, 0x00c3);
    put(value_, express + 0x12, 2, gen2_x1);
    put(value_, express + 0x24, 4, 1u << 4);  // completion time-out may be disabled
    put(writable_, express + 0x28, 2, 0x001f);
    put(value_, express + 0x2c, 4, 1u << 1 | 1u << 2);  // 2.5 and 5 GT/s
    put(value_, express + 0x30, 2, 2);
    put(writable_, express + 0x30, 2, 0x000f);
}

void config_space::build_msi()
{
    // Software may be granted a power of two of them.
    const unsigned most = std::bit_floor(std::clamp(vectors_, 1u, unsigned{SPK_MSIX_VECTORS}));
    const auto messages = static_cast<unsigned>(std::countr_zero(most));
    put(value_, msi, 2, (has_msix_ ? msix << 8 : 0) | 0x05);
    put(value_, msi_control, 2, msi_64_bit | msi_maskable | messages << 1);
    put(writable_, msi_control, 2, 0x0071);
    put(writable_, msi + 0x04, 4, 0xfffffffc);
    put(writable_, msi + 0x08, 4, 0xffffffff);
    put(writable_, msi + 0x0c, 2, 0xffff);
    put(writable_, msi_mask, 4, (1u << most) - 1);
}

void config_space::build_msix()
{
    if (!has_msix_)
        return;
    put(value_, msix, 2, 0x11);  // end of the chain
    put(value_, msix_control, 2, vectors_ - 1);
    put(writable_, msix_control, 2, msix_enable | msix_mask_all);
    put(value_, msix + 0x04, 4, SPK_MSIX_TABLE_OFFSET);  // both in BAR 0
    put(value_, msix + 0x08, 4, SPK_MSIX_PBA_OFFSET);
}

void config_space::build_errors()
{
    put(value_, errors, 4, 0x00020001);  // version 2, the only extended capability
    put(cleared_by_1_, errors + 0x04, 4, uncorrectable_known);
    put(value_, errors + 0x08, 4, internal_error);  // masked until software asks for its message
    put(writable_, errors + 0x08, 4, uncorrectable_known);
    put(value_, errors + 0x0c, 4, uncorrectable_fatal);
    put(writable_, errors + 0x0c, 4, uncorrectable_known);
    put(cleared_by_1_, errors + 0x10, 4, correctable_known);
    put(value_, errors + 0x14, 4, correctable_masked);
    put(writable_, errors + 0x14, 4, correctable_known);
}

std::uint32_t config_space::read(std::uint32_t offset, unsigned bytes) const
{
    return inside(offset, bytes) ? get(offset, bytes) : 0;
}

config_space::change config_space::write(std::uint32_t offset, unsigned bytes, std::uint32_t value)
{
    if (!inside(offset, bytes))
        return {};
    for (unsigned i = 0; i < bytes; i++) {
        const auto byte = static_cast<std::uint8_t>(value >> 8 * i);
        std::uint8_t& held = value_[offset + i];
        const std::uint8_t writable = writable_[offset + i];
        held = static_cast<std::uint8_t>((held & ~writable) | (byte & writable));
        held = static_cast<std::uint8_t>(held & ~(byte & cleared_by_1_[offset + i]));
    }
    // The bit sits in the upper byte of device control and reads 0.
    constexpr std::uint32_t reset_byte = express_control + 1;
    const bool asked = touches(offset, bytes, reset_byte) &&
                       (value >> 8 * (reset_byte - offset) & express_start_reset >> 8) != 0;
    return {
        .function_reset = asked,
        .interrupts = touches(offset, bytes, command) || offset + bytes > msi,
    };
}

bool config_space::bus_master() const { return (get(command, 2) & command_bus_master) != 0; }
bool config_space::msix_enabled() const { return (get(msix_control, 2) & msix_enable) != 0; }
bool config_space::msix_all_masked() const { return (get(msix_control, 2) & msix_mask_all) != 0; }
bool config_space::msi_enabled() const { return (get(msi_control, 2) & msi_enable) != 0; }
std::uint32_t config_space::msi_masked() const { return get(msi_mask, 4); }

unsigned config_space::msi_vectors() const
{
    const std::uint32_t control = get(msi_control, 2);
    return 1u << std::min(control >> 4 & 7, control >> 1 & 7);
}

void config_space::note_internal_error()
{
    put(value_, errors + 0x04, 4, get(errors + 0x04, 4) | internal_error);
    const bool is_fatal = (get(errors + 0x0c, 4) & internal_error) != 0;
    put(value_, express_status, 2,
        get(express_status, 2) | (is_fatal ? express_fatal_seen : express_non_fatal_seen));
}

void config_space::set_msi_pending(std::uint32_t vectors) { put(value_, msi_pending, 4, vectors); }

}  // namespace spanker::sim
