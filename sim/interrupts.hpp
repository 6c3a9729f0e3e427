// SPDX-License-Identifier: Apache-2.0
//
// The interrupt vectors of one card: MSI-X table and pending bits, and what MSI or a lone vector makes of them.
//
// A raised vector is delivered, or kept pending while it is masked or the card may not master the bus, or lost when no
// scheme is on. A vector that is pending fires once when what held it back goes away.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sim/config_space.hpp"

namespace spanker::sim {

class interrupts final {
public:
    explicit interrupts(unsigned vectors) : vectors_(vectors) { reset(); }

    void reset();  // all vectors masked, none pending

    // What the host takes, where it keeps the table; the table here masks nothing any more.
    void set_host_vectors(std::uint32_t vectors) { host_vectors_ = vectors; }

    // Returns the message that goes out now (with MSI, vectors beyond those granted wrap). Unknown vectors raise nothing.
    std::optional<unsigned> raise(const config_space& config, unsigned vector);
    // The pending messages that may go now, one bit each; they are pending no more.
    std::uint32_t release(const config_space& config);

    std::uint32_t pending() const { return pending_; }

    // The words of the table (four to a vector) and of the pending bits.
    std::uint32_t read_table(unsigned word) const;
    void write_table(unsigned word, std::uint32_t value);
    std::uint32_t read_pending(unsigned word) const { return word == 0 ? pending_ : 0; }

private:
    static constexpr unsigned words_per_vector = 4;
    static constexpr unsigned control_word = 3;
    static constexpr std::uint32_t masked = 1;

    bool is_masked_by_host(unsigned vector) const
    {
        return host_vectors_ && (*host_vectors_ >> vector & 1) == 0;
    }
    bool is_masked_by_table(unsigned vector) const
    {
        return !host_vectors_ && (table_[vector * words_per_vector + control_word] & masked) != 0;
    }
    bool deliverable(const config_space& config, unsigned vector) const;

    unsigned vectors_;
    std::uint32_t pending_ = 0;
    std::optional<std::uint32_t> host_vectors_;
    std::array<std::uint32_t, SPK_MSIX_VECTORS * words_per_vector> table_{};
};

}  // namespace spanker::sim
