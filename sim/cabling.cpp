// SPDX-License-Identifier: Apache-2.0
//
// Cablings by name, and described ones: card.port-card.port[xLANES], joined by commas.
#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string>

#include "sim/card.hpp"

namespace spanker::sim {
namespace {

std::vector<cable> chain(unsigned cards, bool closed)
{
    std::vector<cable> out;
    for (unsigned i = 0; i + 1 < cards; i++)
        out.push_back({i, 1, i + 1, 0});
    if (closed && cards > 1)
        out.push_back({cards - 1, 1, 0, 0});
    return out;
}

std::vector<cable> mesh(unsigned cards)
{
    std::vector<cable> out;
    for (unsigned a = 0; a < cards; a++)
        for (unsigned b = a + 1; b < cards; b++)
            out.push_back({a, b - 1, b, a});
    return out;
}

// Reads the described form piece by piece; every step says whether it fitted.
class reader final {
public:
    explicit reader(std::string_view text) : text_(text) {}

    bool number(unsigned& out)
    {
        const auto [stop, error] = std::from_chars(text_.data(), text_.data() + text_.size(), out);
        if (error != std::errc())
            return false;
        text_.remove_prefix(static_cast<std::size_t>(stop - text_.data()));
        return true;
    }
    bool sign(char expected)
    {
        if (text_.empty() || text_.front() != expected)
            return false;
        text_.remove_prefix(1);
        return true;
    }
    bool end(unsigned& card, unsigned& port) { return number(card) && sign('.') && number(port); }
    bool done() const { return text_.empty(); }

private:
    std::string_view text_;
};

std::optional<std::vector<cable>> described(std::string_view text, unsigned cards)
{
    std::vector<cable> out;
    reader in(text);
    do {
        cable one = {};
        one.lanes = SPK_MAX_LANES;
        if (!in.end(one.card_a, one.port_a) || !in.sign('-') || !in.end(one.card_b, one.port_b))
            return std::nullopt;
        if (in.sign('x') && !in.number(one.lanes))
            return std::nullopt;
        const bool exists = one.card_a < cards && one.card_b < cards &&
                            one.port_a < SPK_MAX_PORTS && one.port_b < SPK_MAX_PORTS;
        if (!exists || one.lanes < 1 || one.lanes > SPK_MAX_LANES)
            return std::nullopt;
        out.push_back(one);
    } while (in.sign(','));
    return in.done() ? std::optional(out) : std::nullopt;
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

unsigned ports_needed(const std::vector<cable>& cables)
{
    unsigned most = 0;
    for (const cable& one : cables)
        most = std::max({most, one.port_a + 1, one.port_b + 1});
    return most;
}

}  // namespace

std::optional<std::vector<cable>> cabling(std::string_view name, unsigned cards)
{
    if (name == "ring" || name == "line")
        return chain(cards, name == "ring");
    if (name == "mesh")
        return mesh(cards);
    if (name == "none")
        return std::vector<cable>();
    return described(name, cards);
}

fabric_config make_fabric_config(unsigned cards, std::string_view topology,
                                 const card_config& pattern)
{
    if (cards == 0 || cards > SPK_MAX_CARDS)
        throw std::invalid_argument("a fabric has 1 to " + std::to_string(SPK_MAX_CARDS) +
                                    " cards, not " + std::to_string(cards));
    const auto cables = cabling(topology, cards);
    if (!cables)
        throw std::invalid_argument("cabling " + quoted(topology) +
                                    " is neither ring, line, mesh nor none, nor a list like"
                                    " 0.1-1.0,1.1-2.0x2 of ports of cards 0 to " +
                                    std::to_string(cards - 1));
    const unsigned ports = std::max(pattern.ports, ports_needed(*cables));
    if (ports > SPK_MAX_PORTS)
        throw std::invalid_argument("cabling " + quoted(topology) + " of " + std::to_string(cards) +
                                    " cards needs " + std::to_string(ports) +
                                    " ports; a card has at most " + std::to_string(SPK_MAX_PORTS));
    fabric_config out;
    out.cards.assign(cards, pattern);
    for (card_config& card : out.cards) {
        card.ports = ports;
        if (cards > 1)
            card.serial = 0;  // one serial cannot be everybody's
    }
    out.cables = *cables;
    return out;
}

}  // namespace spanker::sim
