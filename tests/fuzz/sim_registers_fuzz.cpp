// SPDX-License-Identifier: Apache-2.0
//
// Any accesses to the pins of two cards, in any order: registers, configuration space, resets, faults, time. Afterwards a
// reset makes the card usable again.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/unit/sim_bench.hpp"

namespace {

using namespace spanker::sim;
using namespace spanker::sim::bench;

[[noreturn]] void broken(const char* what)
{
    std::fprintf(stderr, "invariant broken: %s\n", what);
    std::abort();
}

fabric_config two_cards()
{
    card_config card;
    card.ddr_bytes = 1 << 20;
    return make_fabric_config(2, "0.0-1.0,0.1-0.1", card);
}

struct pin_access {
    std::uint8_t kind;
    std::uint8_t card;
    std::uint16_t where;
    std::uint32_t value;
};

// Offsets that mean something are rare; half of the accesses go to those.
std::uint32_t offset_of(const pin_access& what)
{
    const unsigned index = what.where & 15;
    switch (what.where >> 13 & 7) {
    case 0:
        return SPK_REG_Q(index, (what.where >> 4 & 15) * 4);
    case 1:
        return (what.where & 16) != 0 ? SPK_REG_SQ_TAIL(index) : SPK_REG_CQ_HEAD(index);
    case 2:
        return SPK_REG_PORT(index % 2, (what.where >> 4 & 15) * 4);
    case 3:
        return SPK_REG_CTRL + index * 4;
    default:
        return what.where;
    }
}

std::uint32_t value_of(const pin_access& what)
{
    switch (what.value >> 30) {
    case 0:
        return what.value & 0xff;
    case 1:
        return 1u << (what.value & 31);
    case 2:  // somewhere in host memory
        return what.value & 0xff000;
    default:
        return what.value;
    }
}

void apply(rig& it, const pin_access& what)
{
    const unsigned card = what.card & 1;
    switch (what.kind % 10) {
    case 0:
    case 1:
    case 2:
    case 3:
        it.cards.bar_write(card, offset_of(what), value_of(what));
        break;
    case 4:
        static_cast<void>(it.cards.bar_read(card, offset_of(what)));
        break;
    case 5:
        it.cards.config_write(card, what.where, 1u << (what.kind >> 6 & 3), what.value);
        static_cast<void>(it.cards.config_read(card, what.where, 1u << (what.kind >> 4 & 3)));
        break;
    case 6:
        it.cards.run(what.value & 63);
        break;
    case 7:
        it.cards.inject({.card = card,
                         .kind = static_cast<fault_kind>(what.where % 16),
                         .a = what.value & 255,
                         .count = what.value >> 8 & 3,
                         .value = what.value >> 10,
                         .at_ns = it.cards.now_ns() + (what.value >> 20)});
        break;
    case 8:
        it.cards.fault_clear(card, static_cast<fault_kind>(what.where % 16));
        break;
    default:
        it.cards.reset(card, (what.value & 1) != 0 ? reset_kind::bus : reset_kind::flr);
        break;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    rig it(two_cards(), 2 << 20);
    for (unsigned q = 0; q < 4; q++)
        it.open(q % 2, q);
    for (pin_access what = {}; size >= sizeof what; data += sizeof what, size -= sizeof what) {
        std::memcpy(&what, data, sizeof what);
        apply(it, what);
    }
    if (!it.cards.run(1'000'000))
        broken("the fabric never comes to rest");
    for (unsigned card = 0; card < 2; card++) {
        for (unsigned kind = 0; kind <= static_cast<unsigned>(fault_kind::ddr_bit_flip); kind++)
            it.cards.fault_clear(card, static_cast<fault_kind>(kind));
        it.cards.reset(card, reset_kind::bus);
        it.wake(card);
        const spk_completion done = it.execute(it.open(card, 1), fill(0, 4096, 1));
        if (done.status != SPANKER_CARD_OK)
            broken("a card does not work after a reset");
    }
    return 0;
}
