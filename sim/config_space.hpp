// SPDX-License-Identifier: Apache-2.0
//
// PCI configuration space of one card: type 0 header, PCI Express with function level reset, MSI, MSI-X, AER.
//
// Three byte arrays say everything: the value, which bits software may write, which bits a written 1 clears. What the rest
// of the model wants to know (may it master the bus, which interrupt scheme is on) is read back out of the value.
#pragma once

#include <array>
#include <cstdint>

#include "uapi/spanker_card.h"

namespace spanker::sim {

inline constexpr std::uint32_t config_space_bytes = 4096;

class config_space final {
public:
    // `vectors`: how many of MSI-X and MSI the card has. `bar_bytes`: a power of two, or 0 for no BAR.
    explicit config_space(unsigned vectors, bool has_msix = true,
                          std::uint32_t bar_bytes = SPK_BAR_BYTES);

    // 1, 2 or 4 bytes; what lies outside the space reads 0 and takes no writes.
    std::uint32_t read(std::uint32_t offset, unsigned bytes) const;

    struct change {
        bool function_reset;  // software asked for FLR; the caller resets the card, this space too
        bool interrupts;      // bus master, MSI or MSI-X changed: pending vectors may fire
    };
    change write(std::uint32_t offset, unsigned bytes, std::uint32_t value);

    void reset();  // as after power on

    bool bus_master() const;
    bool msix_enabled() const;
    bool msix_all_masked() const;
    bool msi_enabled() const;
    unsigned msi_vectors() const;  // granted by software, a power of two
    std::uint32_t msi_masked() const;
    void set_msi_pending(std::uint32_t vectors);  // shown to software, no more
    // Logged in advanced error reporting and, by the severity software chose, in device status.
    void note_internal_error();

private:
    using bytes_of_space = std::array<std::uint8_t, config_space_bytes>;

    void put(bytes_of_space& where, std::uint32_t offset, unsigned bytes, std::uint32_t value);
    std::uint32_t get(std::uint32_t offset, unsigned bytes) const;
    void build_header();
    void build_express();
    void build_msi();
    void build_msix();
    void build_errors();

    unsigned vectors_;
    bool has_msix_;
    std::uint32_t bar_bytes_;
    bytes_of_space value_{};
    bytes_of_space writable_{};
    bytes_of_space cleared_by_1_{};
};

}  // namespace spanker::sim
