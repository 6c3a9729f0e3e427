// SPDX-License-Identifier: Apache-2.0
#include "sim/check_config.hpp"

#include <bit>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace spanker::sim {
namespace {

constexpr std::uint32_t least_bar_bytes = 16;                  // what the bus allows
constexpr std::uint64_t first_serial = 0x5350'4b00'0000'0001;  // "SPK", then a number

[[noreturn]] void refuse(const std::string& who, const std::string& what)
{
    throw std::invalid_argument(who + ": " + what);
}

struct limit {
    const char* name;
    std::uint64_t value, least, most;
};

void check_card(const card_config& card, const std::string& who)
{
    constexpr std::uint64_t rate_max = 500'000'000'000;
    const limit limits[] = {
        {"queues", card.queues, 1, SPK_MAX_QUEUES},
        {"queue_depth", card.queue_depth, SPK_MIN_QUEUE_DEPTH, SPK_MAX_QUEUE_DEPTH},
        {"ports", card.ports, 1, SPK_MAX_PORTS},
        {"lanes", card.lanes, 1, SPK_MAX_LANES},
        {"channels", card.channels, 1, SPK_MAX_CHANNELS},
        {"rx_buffer_bytes", card.rx_buffer_bytes, SPK_FLIT_BYTES, 1u << 30},
        {"dma_bits", card.dma_bits, 32, 64},
        {"vectors", card.vectors, 1, SPK_MSIX_VECTORS},
        {"bar_bytes", card.bar_bytes, 0, SPK_BAR_BYTES},
        {"ddr_bytes", card.ddr_bytes, SPK_SG_PAGE_BYTES, 1ull << SPK_ADDRESS_BITS},
        {"ddr_bytes_per_s", card.ddr_bytes_per_s, 1, rate_max},
        {"link_bytes_per_s", card.link_bytes_per_s, 1, rate_max},
        {"host_bytes_per_s", card.host_bytes_per_s, 1, rate_max},
        {"macs_per_s", card.macs_per_s, 1, UINT64_MAX - 1},
    };
    for (const limit& one : limits)
        if (one.value < one.least || one.value > one.most)
            refuse(who, std::string(one.name) + " is " + std::to_string(one.value) + ", must be " +
                            std::to_string(one.least) + " to " + std::to_string(one.most));
    if (!std::has_single_bit(card.queue_depth))
        refuse(who,
               "queue_depth is " + std::to_string(card.queue_depth) + ", must be a power of two");
    if (card.bar_bytes != 0 &&
        (!std::has_single_bit(card.bar_bytes) || card.bar_bytes < least_bar_bytes))
        refuse(who, "bar_bytes is " + std::to_string(card.bar_bytes) +
                        ", must be 0 or a power of two from " + std::to_string(least_bar_bytes));
    if (card.msix && card.bar_bytes < SPK_BAR_BYTES)
        refuse(who, "the vector table of MSI-X lies beyond a BAR of " +
                        std::to_string(card.bar_bytes) + " bytes; such a card has MSI alone");
}

void check_cable(const fabric_config& config, const cable& one, const std::string& who,
                 std::set<std::pair<unsigned, unsigned>>& taken)
{
    const std::pair<unsigned, unsigned> ends[] = {{one.card_a, one.port_a},
                                                  {one.card_b, one.port_b}};
    for (const auto& [card, port] : ends)
        if (card >= config.cards.size() || port >= config.cards[card].ports)
            refuse(who, "there is no port " + std::to_string(card) + "." + std::to_string(port));
    if (one.lanes < 1 || one.lanes > SPK_MAX_LANES)
        refuse(who, "has " + std::to_string(one.lanes) + " lanes, must have 1 to " +
                        std::to_string(SPK_MAX_LANES));
    const bool to_itself = ends[0] == ends[1];
    for (const auto& end : {ends[0], ends[1]})
        if (!taken.insert(end).second && !to_itself)
            refuse(who, "port " + std::to_string(end.first) + "." + std::to_string(end.second) +
                            " has a cable already");
}

}  // namespace

fabric_config checked(fabric_config config)
{
    if (config.cards.empty() || config.cards.size() > SPK_MAX_CARDS)
        refuse("fabric", "has " + std::to_string(config.cards.size()) + " cards, must have 1 to " +
                             std::to_string(SPK_MAX_CARDS));
    for (std::size_t i = 0; i < config.cards.size(); i++) {
        check_card(config.cards[i], "card " + std::to_string(i));
        if (config.cards[i].serial == 0)
            config.cards[i].serial = first_serial + i;
    }
    std::set<std::pair<unsigned, unsigned>> taken;
    for (std::size_t i = 0; i < config.cables.size(); i++)
        check_cable(config, config.cables[i], "cable " + std::to_string(i), taken);
    return config;
}

}  // namespace spanker::sim
