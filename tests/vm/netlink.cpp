// SPDX-License-Identifier: Apache-2.0
//
// The driver's netlink family as its header promises it (uapi/spanker_netlink.h): single requests and how they are refused,
// dumps in more than one piece, dumps during which a card went; and (netlink_events.cpp) listeners that were too slow, links
// that flap, the module unloaded under those who listen and ask; and who asks from other namespaces (netlink_namespaces.cpp).
// Prints TAP.
//
//   vm_netlink [FLAPS]        pulls a cable so often (100)
#include "netlink.hpp"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "uapi/spanker.h"
#include "uapi/spanker_card.h"

namespace netlink {

using namespace spanker_vm;

checks say;
genl_family family;

constexpr std::size_t many_ports = 16;  // more than the kernel has room for at once

// ---- what sysfs says of the same ----

namespace {

std::string folder_of(unsigned card)
{
    return "/sys/class/spanker/spanker" + std::to_string(card) + "/";
}

std::string name_of_state(std::uint32_t state)
{
    static const std::map<std::uint32_t, std::string> names = {{SPK_PORT_DOWN, "down"},
                                                               {SPK_PORT_TRAINING, "training"},
                                                               {SPK_PORT_UP, "up"},
                                                               {SPK_PORT_FAULT, "fault"}};
    const auto at = names.find(state);
    return at == names.end() ? "unknown" : at->second;
}

}  // namespace

std::string attribute(unsigned card, const std::string& name)
{
    std::string out = read_text(folder_of(card) + name);
    if (!out.empty() && out.back() == '\n')
        out.pop_back();
    return out;
}

std::string bus_id(unsigned card)
{
    char path[PATH_MAX];
    const char* real = ::realpath((folder_of(card) + "device").c_str(), path);
    return real ? std::strrchr(real, '/') + 1 : "";
}

std::uint64_t serial_of(unsigned card)
{
    return std::strtoull(attribute(card, "serial").c_str(), nullptr, 16);
}

unsigned ports_of(unsigned card)
{
    unsigned count = 0;
    while (::access((folder_of(card) + "port" + std::to_string(count)).c_str(), F_OK) == 0)
        count++;
    return count;
}

std::string state_of_port(unsigned card, unsigned port)
{
    return attribute(card, "port" + std::to_string(port) + "/state");
}

bool all_links_are_up()
{
    for (unsigned card = 0; card < count_cards(); card++)
        for (unsigned port = 0; port < ports_of(card); port++)
            if (state_of_port(card, port) != "up")
                return false;
    return true;
}

// ---- what a message must have ----

namespace {

std::vector<std::uint16_t> listed_in(std::uint8_t message)
{
    std::vector<std::uint16_t> out = {SPANKER_A_CARD, SPANKER_A_SEQ, SPANKER_A_TIME};
    const auto add = [&](std::initializer_list<std::uint16_t> more) {
        out.insert(out.end(), more);
    };
    switch (message) {
    case SPANKER_MSG_STATE_CHANGED:
        add({SPANKER_A_OLD_STATE});
        [[fallthrough]];
    case SPANKER_MSG_CARD:
    case SPANKER_MSG_CARD_ADDED:
    case SPANKER_MSG_CARD_REMOVED:
        add({SPANKER_A_SERIAL, SPANKER_A_STATE, SPANKER_A_RESET_GENERATION, SPANKER_A_BUS_ID,
             SPANKER_A_PORTS});
        break;
    case SPANKER_MSG_PORT:
    case SPANKER_MSG_LINK_CHANGED:
        for (std::uint16_t one = SPANKER_A_PORT; one <= SPANKER_A_PORT_LANE; one++)
            out.push_back(one);
        break;
    default:
        return {};
    }
    return out;
}

}  // namespace

bool is_whole(const genl_message& one)
{
    const auto listed = listed_in(one.command);
    bool good = !listed.empty();
    for (const auto attribute : listed)
        if (!one.find(attribute)) {
            std::printf("# message %u lacks attribute %u\n", one.command, attribute);
            good = false;
        }
    const auto lanes = static_cast<std::uint32_t>(
        std::count_if(one.attributes.begin(), one.attributes.end(),
                      [](const auto& at) { return at.first == SPANKER_A_PORT_LANE; }));
    return good && lanes == one.u32(SPANKER_A_PORT_LANES);
}

// ---- one object ----

genl_attributes named(std::uint32_t card) { return {{SPANKER_A_CARD, genl_bytes(card)}}; }
genl_attributes named(std::uint32_t card, std::uint32_t port)
{
    return {{SPANKER_A_CARD, genl_bytes(card)}, {SPANKER_A_PORT, genl_bytes(port)}};
}

genl_answer ask(std::uint8_t command, const genl_attributes& what)
{
    return genl_ask(family.id, command, 0, what);
}

genl_answer dump(std::uint8_t command, const genl_attributes& what)
{
    return genl_ask(family.id, command, NLM_F_DUMP, what);
}

bool is_port(const genl_message& one, std::uint32_t card, std::uint32_t port)
{
    return one.command == SPANKER_MSG_PORT && is_whole(one) && one.u32(SPANKER_A_CARD) == card &&
           one.u32(SPANKER_A_PORT) == port &&
           name_of_state(one.u32(SPANKER_A_PORT_STATE)) == state_of_port(card, port);
}

namespace {

bool is_card(const genl_message& one, std::uint32_t card)
{
    const std::string* bus = one.find(SPANKER_A_BUS_ID);
    return one.command == SPANKER_MSG_CARD && is_whole(one) && one.u32(SPANKER_A_CARD) == card &&
           one.number<std::uint64_t>(SPANKER_A_SERIAL) == serial_of(card) &&
           one.u32(SPANKER_A_STATE) == SPANKER_CARD_READY && attribute(card, "state") == "ready" &&
           std::to_string(one.u32(SPANKER_A_RESET_GENERATION)) ==
               attribute(card, "reset_generation") &&
           bus && *bus == bus_id(card) + '\0' && one.u32(SPANKER_A_PORTS) == ports_of(card);
}

bool each_is_found()
{
    bool good = true;
    for (unsigned card = 0; card < count_cards(); card++) {
        const auto one = ask(SPANKER_CMD_CARD_GET, named(card));
        good = good && one.err == 0 && one.messages.size() == 1 && is_card(one.messages[0], card);
        for (unsigned port = 0; port < ports_of(card); port++) {
            const auto at = ask(SPANKER_CMD_PORT_GET, named(card, port));
            good = good && at.err == 0 && at.messages.size() == 1 &&
                   is_port(at.messages[0], card, port);
        }
    }
    return good;
}

// Where the attribute that the kernel does not like stands in a request; each has four bytes.
constexpr std::uint32_t place(std::uint32_t number)
{
    return NLMSG_HDRLEN + GENL_HDRLEN + number * (NLA_HDRLEN + 4);
}

struct refusal {
    const char* sentence;
    std::uint8_t command;
    genl_attributes request;
    int err;
    std::uint32_t offset, missing;  // 0: of no attribute
};

void check_refusals()
{
    const std::uint32_t ports = ports_of(0), none = ~0u;
    const std::string short_number(2, '\0');
    const refusal table[] = {
        {"a card that is not there", SPANKER_CMD_CARD_GET, named(15), -ENOENT, place(0), 0},
        {"a card far beyond", SPANKER_CMD_CARD_GET, named(none), -ENOENT, place(0), 0},
        {"a port of a card that is not there", SPANKER_CMD_PORT_GET, named(15, 0), -ENOENT,
         place(0), 0},
        {"a port too many", SPANKER_CMD_PORT_GET, named(0, ports), -EINVAL, place(1), 0},
        {"a port far beyond", SPANKER_CMD_PORT_GET, named(0, none), -EINVAL, place(1), 0},
        {"a request that names no card", SPANKER_CMD_CARD_GET, {}, -EINVAL, 0, SPANKER_A_CARD},
        {"one that names no port", SPANKER_CMD_PORT_GET, named(0), -EINVAL, 0, SPANKER_A_PORT},
        {"a port of no card",
         SPANKER_CMD_PORT_GET,
         {{SPANKER_A_PORT, genl_bytes(0u)}},
         -EINVAL,
         0,
         SPANKER_A_CARD},
        {"a number of two bytes",
         SPANKER_CMD_CARD_GET,
         {{SPANKER_A_CARD, short_number}},
         -EINVAL,
         place(0),
         0},
        {"an attribute that is an answer's",
         SPANKER_CMD_CARD_GET,
         {{SPANKER_A_CARD, genl_bytes(0u)}, {SPANKER_A_STATE, genl_bytes(0u)}},
         -EINVAL,
         place(1),
         0},
        {"a request that nobody knows", SPANKER_CMD_REQUEST_MAX + 1, {}, -EOPNOTSUPP, 0, 0},
    };
    for (const auto& one : table) {
        const auto got = ask(one.command, one.request);
        const bool good = got.err == one.err && got.messages.empty() &&
                          got.end.bad_offset == one.offset && got.end.missing == one.missing &&
                          got.end.text.empty() == (one.offset == 0);
        if (!good)
            std::printf("# %d, attribute at %u, missing %u: %s\n", got.err, got.end.bad_offset,
                        got.end.missing, got.end.text.c_str());
        say.check(good, std::string(one.sentence) + " is refused, and why is said");
    }
}

}  // namespace

void test_single_objects()
{
    say.check(each_is_found(), "each card and each port answers as itself, as in sysfs");
    check_refusals();
    const auto one = dump(SPANKER_CMD_PORT_GET, named(0));
    say.check(one.err == 0 && one.messages.size() == ports_of(0) && is_port(one.messages[0], 0, 0),
              "a dump of one card's ports has those and no others");
    say.check(dump(SPANKER_CMD_PORT_GET, named(15)).err == -ENOENT &&
                  dump(SPANKER_CMD_CARD_GET, named(15)).err == -ENOENT,
              "one of a card that is not there is refused");
}

// ---- dumps ----

namespace {

bool all_are_whole(const std::vector<genl_message>& all)
{
    return !all.empty() && std::all_of(all.begin(), all.end(), is_whole);
}

using places = std::multiset<std::pair<std::uint32_t, std::uint32_t>>;

places ports_in(const std::vector<genl_message>& all)
{
    places out;
    for (const auto& one : all)
        out.insert({one.u32(SPANKER_A_CARD), one.u32(SPANKER_A_PORT)});
    return out;
}

places all_ports()
{
    places out;
    for (unsigned card = 0; card < count_cards(); card++)
        for (unsigned port = 0; port < ports_of(card); port++)
            out.insert({card, port});
    return out;
}

}  // namespace

bool is_undisturbed(const genl_answer& ports)
{
    return ports.err == 0 && !ports.interrupted && all_are_whole(ports.messages) &&
           ports_in(ports.messages) == all_ports();
}

void test_dumps()
{
    const auto cards = dump(SPANKER_CMD_CARD_GET), ports = dump(SPANKER_CMD_PORT_GET);
    say.check(cards.err == 0 && !cards.interrupted && cards.messages.size() == count_cards() &&
                  all_are_whole(cards.messages),
              "a dump has every card, and all that is promised of each");
    say.check(is_undisturbed(ports), "and another one every port, once");
    std::printf("# %zu ports in %u pieces\n", ports.messages.size(), ports.pieces);
    if (ports.messages.size() < many_ports)
        say.skip("which come in pieces", "so few ports find room in one");
    else
        say.check(ports.pieces > 1, "which come in pieces");
}

// The first piece is made when it is asked for, the next when that one was read, and the end, which is marked as well, after
// the last.
void test_interruption()
{
    const unsigned last = count_cards() - 1;
    const std::string id = bus_id(last);
    auto wanted = all_ports();
    const genl_socket socket;
    const bool asked = socket.send(family.id, SPANKER_CMD_PORT_GET, NLM_F_DUMP, {});
    const bool unbound = write_text(std::string(driver) + "unbind", id);
    const auto ports = genl_collect(socket);
    say.check(asked && unbound && ports.err == 0 && ports.interrupted,
              "a dump during which a card went is marked");
    auto seen = ports_in(ports.messages);
    for (auto* all : {&wanted, &seen})
        for (auto at = all->begin(); at != all->end();)
            at = at->first == last ? all->erase(at) : std::next(at);
    say.check(seen == wanted, "and has the ports of those that stayed, once");
    say.check(dump(SPANKER_CMD_PORT_GET, named(last)).err == -ENOENT,
              "of the one that went there is none");
    say.check(write_text(std::string(driver) + "bind", id) && eventually(all_links_are_up) &&
                  is_undisturbed(dump(SPANKER_CMD_PORT_GET)),
              "bound again, the next dump is whole and not marked");
}

}  // namespace netlink

int main(int count, char** words)
{
    using namespace netlink;
    const unsigned flaps = count > 1 ? static_cast<unsigned>(std::atoi(words[1])) : 100;
    family = spanker_vm::genl_find(SPANKER_GENL_NAME);
    say.check(family.id && family.groups.size() == 3, "the family and its three groups are found");
    say.check(spanker_vm::eventually(all_links_are_up), "all links are up");
    const auto before = spanker_vm::look_at_machine();
    test_single_objects();
    test_dumps();
    test_namespaces();
    test_interruption();
    test_slow_listener();
    test_flaps(flaps);
    test_unloading();
    spanker_vm::check_machine(say, before);
    return say.finish();
}
