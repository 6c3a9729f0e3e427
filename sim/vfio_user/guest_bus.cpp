// SPDX-License-Identifier: Apache-2.0
#include "sim/vfio_user/guest_bus.hpp"

#include <bit>
#include <utility>

namespace spanker::sim::vfio_user {

guest::guest(const card_config& card, dma_map::log_function log)
    : dma(std::move(log)), irqs(std::bit_floor(card.vectors), card.msix ? card.vectors : 0)
{}

guest_bus::guest_bus(const std::vector<card_config>& cards, const log_function& log)
{
    for (unsigned card = 0; card < cards.size(); card++)
        guests_.push_back(std::make_unique<guest>(
            cards[card], [log, card](const std::string& line) { log(card, line); }));
}

}  // namespace spanker::sim::vfio_user
