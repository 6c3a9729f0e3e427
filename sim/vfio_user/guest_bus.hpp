// SPDX-License-Identifier: Apache-2.0
//
// The host as the cards of a vfio-user server see it: per card the memory that its client mapped, and where its messages go.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "sim/card.hpp"
#include "sim/vfio_user/dma_map.hpp"
#include "sim/vfio_user/irq_table.hpp"

namespace spanker::sim::vfio_user {

// One card's side of it.
struct guest {
    guest(const card_config& card, dma_map::log_function log);

    dma_map dma;
    irq_table irqs;
    std::atomic<bool> connected{false};
};

class guest_bus final : public host {
public:
    using log_function = std::function<void(unsigned card, const std::string& line)>;
    guest_bus(const std::vector<card_config>& cards, const log_function& log);

    guest& of(unsigned card) { return *guests_[card]; }

    bool dma_read(unsigned card, std::uint64_t address, std::span<std::byte> to) override
    {
        return of(card).dma.read(address, to);
    }
    bool dma_write(unsigned card, std::uint64_t address, std::span<const std::byte> from) override
    {
        return of(card).dma.write(address, from);
    }
    void interrupt(unsigned card, unsigned vector) override { of(card).irqs.signal(vector); }

private:
    std::vector<std::unique_ptr<guest>> guests_;
};

}  // namespace spanker::sim::vfio_user
