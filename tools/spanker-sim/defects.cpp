// SPDX-License-Identifier: Apache-2.0
#include "tools/spanker-sim/defects.hpp"

#include <charconv>
#include <stdexcept>

namespace spanker::sim_tool {
namespace {

constexpr std::uint32_t other_magic = 0x4f4e4953;  // "SINO"
constexpr std::uint32_t short_bar_bytes = 0x1000;
constexpr std::uint64_t shared_serial = 0x5350'4b00'0000'd000;

[[noreturn]] void refuse(std::string_view text, const std::string& why)
{
    throw std::invalid_argument("'" + std::string(text) + "' " + why);
}

void lie(options& to, unsigned card, std::uint32_t offset, std::uint32_t value)
{
    to.lies[card].push_back({.offset = offset, .value = value});
}

// The vector table lies beyond such a BAR, so the card has MSI alone.
void cut_bar(options& to, unsigned card, std::uint32_t bytes)
{
    to.fabric.cards[card].bar_bytes = bytes;
    to.fabric.cards[card].msix = false;
}

struct defect {
    std::string_view name;
    const char* means;
    void (*add)(options& to, unsigned card);
};

constexpr defect defects[] = {
    {"magic", "the magic number is another",
     [](options& to, unsigned card) { lie(to, card, SPK_REG_MAGIC, other_magic); }},
    {"abi", "the major ABI is one more than this tree's",
     [](options& to, unsigned card) { lie(to, card, SPK_REG_ABI, (SPK_ABI_MAJOR + 1u) << 16); }},
    {"serial-zero", "the serial is 0",
     [](options& to, unsigned card) {
         lie(to, card, SPK_REG_SERIAL_LO, 0);
         lie(to, card, SPK_REG_SERIAL_HI, 0);
     }},
    {"serial-duplicate", "the serial is that of the card before it",
     [](options& to, unsigned card) {
         if (card == 0)
             throw std::invalid_argument("card 0 has no card before it to share a serial with");
         std::uint64_t& other = to.fabric.cards[card - 1].serial;
         if (other == 0)
             other = shared_serial + card;
         to.fabric.cards[card].serial = other;
     }},
    {"uncalibrated", "the memory is not ready, until 'card N clear ddr_uncalibrated'",
     [](options& to, unsigned card) {
         to.faults.push_back({.card = card, .kind = sim::fault_kind::ddr_uncalibrated});
     }},
    {"not-ready", "the card never says that it is out of reset",
     [](options& to, unsigned card) { lie(to, card, SPK_REG_STATUS, 0); }},
    {"no-queues", "the capabilities say that there are no queues",
     [](options& to, unsigned card) { lie(to, card, SPK_REG_CAP_QUEUES, 0); }},
    {"short-bar", "BAR 0 has 4 KiB; such a card has MSI alone",
     [](options& to, unsigned card) { cut_bar(to, card, short_bar_bytes); }},
    {"no-bar", "there is no BAR 0; such a card has MSI alone",
     [](options& to, unsigned card) { cut_bar(to, card, 0); }},
};

}  // namespace

std::string describe_defects()
{
    std::string out;
    for (const defect& one : defects) {
        out += "  " + std::string(one.name);
        out.append(one.name.size() < 18 ? 18 - one.name.size() : 1, ' ');
        out += std::string(one.means) + "\n";
    }
    return out;
}

void add_defect(options& to, std::string_view text)
{
    const auto colon = text.find(':');
    const std::string_view digits = text.substr(0, colon);
    unsigned card = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), card);
    if (colon == std::string_view::npos || error != std::errc() ||
        stop != digits.data() + digits.size())
        refuse(text, "is not of the form CARD:DEFECT, like 1:magic");
    if (card >= to.fabric.cards.size())
        refuse(text, "names card " + std::to_string(card) + "; there are 0 to " +
                         std::to_string(to.fabric.cards.size() - 1));
    std::string names;
    for (const defect& one : defects) {
        if (text.substr(colon + 1) == one.name) {
            one.add(to, card);
            return;
        }
        names += (names.empty() ? "" : ", ") + std::string(one.name);
    }
    refuse(text, "names no defect; there are " + names);
}

}  // namespace spanker::sim_tool
