// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/cabling.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace spanker::daemon::collective {

namespace {

int rank_of(std::span<const std::uint32_t> numbers, std::uint32_t card)
{
    const auto found = std::find(numbers.begin(), numbers.end(), card);
    return found == numbers.end() ? -1 : static_cast<int>(found - numbers.begin());
}

}  // namespace

result<cabling> cabling::of(const graph& fabric, std::span<const std::uint32_t> cards)
{
    if (cards.empty() || cards.size() > SPK_MAX_CARDS)
        return fail(SPANKER_ERR_INVALID, fmt::format("a group of {} cards: it must have 1 to {}",
                                                     cards.size(), SPK_MAX_CARDS));
    cabling made;
    for (const std::uint32_t number : cards) {
        const graph_card* card = fabric.find(number);
        if (card == nullptr)
            return fail(SPANKER_ERR_NO_OBJECT,
                        fmt::format("card {} is not in the fabric or not ready", number));
        if (rank_of(made.numbers_, number) >= 0)
            return fail(SPANKER_ERR_INVALID,
                        fmt::format("card {} appears twice in the group; name it once", number));
        made.numbers_.push_back(number);
        made.costs_.push_back(card->costs);
    }
    made.ends_.resize(cards.size());
    for (const graph_link& link : fabric.links) {
        if (auto added = made.add(link); !added)
            return tl::unexpected(added.error());
    }
    for (auto& ends : made.ends_)
        std::sort(ends.begin(), ends.end(), [](const cable_end& a, const cable_end& b) {
            return a.bytes_per_s != b.bytes_per_s ? a.bytes_per_s > b.bytes_per_s : a.port < b.port;
        });
    return made;
}

result<void> cabling::add(const graph_link& link)
{
    const int a = rank_of(numbers_, link.card_a);
    const int b = rank_of(numbers_, link.card_b);
    if (!link.up || link.bytes_per_s == 0 || a < 0 || b < 0 || a == b)
        return {};
    const auto ra = static_cast<std::uint32_t>(a), rb = static_cast<std::uint32_t>(b);
    if (link.port_a >= std::min<std::uint32_t>(costs_[ra].ports, SPK_MAX_PORTS) ||
        link.port_b >= std::min<std::uint32_t>(costs_[rb].ports, SPK_MAX_PORTS))
        return fail(SPANKER_ERR_INVALID, fmt::format("link {}.{}-{}.{}: no such port", link.card_a,
                                                     link.port_a, link.card_b, link.port_b));
    const auto pa = static_cast<std::uint8_t>(link.port_a);
    const auto pb = static_cast<std::uint8_t>(link.port_b);
    ends_[ra].push_back({static_cast<std::uint8_t>(b), pa, pb, link.bytes_per_s});
    ends_[rb].push_back({static_cast<std::uint8_t>(a), pb, pa, link.bytes_per_s});
    capacity_[ra][rb] += link.bytes_per_s;
    capacity_[rb][ra] += link.bytes_per_s;
    return {};
}

std::uint32_t cabling::neighbours(std::uint32_t rank, std::uint64_t least) const
{
    std::uint32_t mask = 0;
    for (const cable_end& end : ends_[rank])
        if (end.bytes_per_s >= least)
            mask |= 1u << end.to_rank;
    return mask;
}

const cable_end* cabling::widest(std::uint32_t a, std::uint32_t b, int not_port) const
{
    for (const cable_end& end : ends_[a])
        if (end.to_rank == b && end.port != not_port)
            return &end;
    return nullptr;
}

std::uint32_t cabling::reach(std::uint32_t rank) const
{
    std::uint32_t seen = 1u << rank;
    for (std::uint32_t fresh = seen; fresh != 0;) {
        std::uint32_t next = 0;
        for (std::uint32_t r = 0; r < size(); ++r)
            if ((fresh >> r & 1) != 0)
                next |= neighbours(r);
        fresh = next & ~seen;
        seen |= next;
    }
    return seen;
}

bool cabling::connected() const { return reach(0) == (1u << size()) - 1; }

std::string cabling::islands() const
{
    std::string text;
    std::uint32_t named = 0;
    for (std::uint32_t first = 0; first < size(); ++first) {
        if ((named >> first & 1) != 0)
            continue;
        const std::uint32_t part = reach(first);
        std::string list;
        std::uint32_t members = 0;
        for (std::uint32_t r = 0; r < size(); ++r)
            if ((part >> r & 1) != 0)
                list += fmt::format("{}{}", members++ == 0 ? "" : ", ", numbers_[r]);
        text += fmt::format("{}{} {}", text.empty() ? "" : " | ", members == 1 ? "card" : "cards",
                            list);
        named |= part;
    }
    return text;
}

}  // namespace spanker::daemon::collective
