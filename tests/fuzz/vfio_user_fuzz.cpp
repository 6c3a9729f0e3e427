// SPDX-License-Identifier: Apache-2.0
//
// Any messages from a client, with any descriptors beside them, as the connection hands them to the device. The card works
// in between. Afterwards a new client finds a card that was reset and works.
//
// The input is a sequence of messages as they stand on the wire; the id of each says what comes beside it.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sim/vfio_user/device.hpp"

namespace {

using namespace spanker::sim;
using namespace spanker::sim::vfio_user;

constexpr std::size_t ram_bytes = 1 << 20;

[[noreturn]] void broken(const char* what)
{
    std::fprintf(stderr, "invariant broken: %s\n", what);
    std::abort();
}

fabric_config one_card()
{
    card_config card;
    card.ddr_bytes = 1 << 20;
    return make_fabric_config(1, "0.0-0.1", card);
}

struct table_top {
    guest_bus bus;
    fabric cards;
    device it;
    unique_fd ram;

    table_top()
        : bus(one_card().cards, [](unsigned, const std::string&) {}), cards(one_card(), bus),
          it(cards, 0, bus.of(0), {{SPK_REG_MAGIC, 1}}), ram(::memfd_create("ram", MFD_CLOEXEC))
    {
        make_whole();
    }

    // An input may have cut it.
    void make_whole() const
    {
        if (::ftruncate(ram.get(), ram_bytes) != 0)
            broken("no memory");
    }

    // By the id: none, some eventfds, the guest's memory (which may be cut), or what belongs nowhere.
    std::vector<unique_fd> beside(std::uint16_t id) const
    {
        std::vector<unique_fd> out;
        const unsigned count = id >> 3 & 15;
        switch (id & 7) {
        case 0:
        case 1:
            for (unsigned n = 0; n < count; n++)
                out.emplace_back(::eventfd(0, EFD_CLOEXEC));
            break;
        case 2:
        case 3:
        case 4:
            out.emplace_back(::dup(ram.get()));
            break;
        case 5:
            out.emplace_back(::dup(2));
            break;
        default:
            break;
        }
        if (id >> 8 == 0xff)
            static_cast<void>(::ftruncate(ram.get(), ram_bytes / 2));
        return out;
    }

    int call(command what, const buffer& payload)
    {
        buffer reply;
        std::vector<unique_fd> none;
        return it.handle(static_cast<std::uint16_t>(what), payload, none, reply);
    }

    void one_message(const header& head, std::span<const std::byte> payload)
    {
        buffer reply;
        std::vector<unique_fd> fds = beside(head.id);
        const int error = it.handle(head.command, payload, fds, reply);
        if (error < 0 || (error != 0 && error != EINVAL && !reply.empty()))
            broken("an error is an errno without a payload");
        if (error == 0 && reply.size() > sizeof(region_access) + max_data_bytes)
            broken("a reply is larger than offered");
        if (reply_header(head, reply.size()).size != sizeof head + reply.size())
            broken("a reply's header does not say its size");
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    auto input = std::as_bytes(std::span(data, size));
    static table_top at;  // one client after the other, as a server has them
    at.make_whole();
    // Most inputs would never get past this by chance.
    buffer agree;
    append(agree, version{.major = version_major, .minor = version_minor});
    if ((size & 1) != 0 && at.call(command::version, agree) != 0)
        broken("a version without capabilities is refused");
    for (header head; take(input, head);) {
        if (why_not(head))
            break;
        const std::size_t payload = std::min<std::size_t>(head.size - sizeof head, input.size());
        at.one_message(head, input.first(payload));
        input = input.subspan(payload);
        at.cards.run(64);
    }
    at.it.forget_client();
    if (!at.cards.run(1'000'000))
        broken("the fabric never comes to rest");
    if (at.bus.of(0).irqs.armed() != 0 || at.bus.of(0).dma.counters().ranges != 0)
        broken("something of a client outlives it");
    if (at.call(command::version, agree) != 0)
        broken("the next client is refused");
    if (at.cards.bar_read(0, SPK_REG_STATUS) != (SPK_STATUS_READY | SPK_STATUS_DDR_OK))
        broken("the card is not ready for the next client");
    at.it.forget_client();
    return 0;
}
