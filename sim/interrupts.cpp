// SPDX-License-Identifier: Apache-2.0
//
// One pending word serves MSI and MSI-X: only one of them is on at a time, and MSI-X wins.
#include "sim/interrupts.hpp"

namespace spanker::sim {

void interrupts::reset()
{
    pending_ = 0;
    table_.fill(0);
    for (unsigned vector = 0; vector < SPK_MSIX_VECTORS; vector++)
        table_[vector * words_per_vector + control_word] = masked;
}

bool interrupts::deliverable(const config_space& config, unsigned vector) const
{
    if (!config.bus_master() || is_masked_by_host(vector))
        return false;
    if (config.msix_enabled())
        return !config.msix_all_masked() && !is_masked_by_table(vector);
    return (config.msi_masked() >> vector & 1) == 0;
}

std::optional<unsigned> interrupts::raise(const config_space& config, unsigned vector)
{
    if (vector >= vectors_)
        return std::nullopt;
    if (!config.msix_enabled()) {
        if (!config.msi_enabled())
            return std::nullopt;
        vector &= config.msi_vectors() - 1;
    }
    if (deliverable(config, vector))
        return vector;
    pending_ |= 1u << vector;
    return std::nullopt;
}

std::uint32_t interrupts::release(const config_space& config)
{
    if (!config.msix_enabled() && !config.msi_enabled()) {
        pending_ = 0;
        return 0;
    }
    std::uint32_t out = 0;
    for (unsigned vector = 0; vector < vectors_; vector++)
        if ((pending_ >> vector & 1) != 0 && deliverable(config, vector))
            out |= 1u << vector;
    pending_ &= ~out;
    return out;
}

std::uint32_t interrupts::read_table(unsigned word) const
{
    return word < vectors_ * words_per_vector ? table_[word] : 0;
}

void interrupts::write_table(unsigned word, std::uint32_t value)
{
    if (word >= vectors_ * words_per_vector)
        return;
    table_[word] = word % words_per_vector == control_word ? value & masked : value;
}

}  // namespace spanker::sim
