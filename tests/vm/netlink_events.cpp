// SPDX-License-Identifier: Apache-2.0
//
// Those of vm_netlink that listen.
#include <fcntl.h>
#include <linux/genetlink.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "netlink.hpp"
#include "sim_line.hpp"
#include "uapi/spanker.h"
#include "uapi/spanker_card.h"

namespace netlink {

using namespace spanker_vm;

namespace {

constexpr int settle_ms = 1000;
constexpr unsigned quick_ms = 1000, reloads = 3;

std::uint64_t now_ms()
{
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
           static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

unsigned slower()
{
    const char* factor = std::getenv("SLOWER");  // of a kernel with checkers
    return factor ? static_cast<unsigned>(std::strtoul(factor, nullptr, 10)) : 1;
}

// Its number in the card model.
std::string model_of(unsigned card) { return std::to_string((serial_of(card) & 0xffff) - 1); }

// ---- events ----

bool joined(const genl_socket& socket, std::initializer_list<const char*> groups)
{
    bool good = true;
    for (const char* group : groups)
        good = socket.join(family.group(group)) && good;
    return good;
}

struct heard {
    std::vector<genl_message> all;
    bool whole = true, in_order = true, lost = false;
    std::map<std::uint32_t, std::uint32_t> last;  // number of each card's

    // Until nothing came for so long.
    void listen(const genl_socket& socket, int quiet_ms)
    {
        std::vector<genl_message> part;
        for (int err = 0; err != -EAGAIN;) {
            part.clear();
            err = socket.receive(part, quiet_ms);
            lost = lost || err == -ENOBUFS;
            for (const auto& one : part)
                take(one);
        }
    }
    void take(const genl_message& one)
    {
        if (one.type != family.id)
            return;
        const std::uint32_t card = one.u32(SPANKER_A_CARD), seq = one.u32(SPANKER_A_SEQ);
        const auto [at, first] = last.try_emplace(card, seq);
        in_order = in_order && (first || static_cast<std::int32_t>(seq - at->second) > 0);
        at->second = seq;
        whole = is_whole(one) && whole;
        all.push_back(one);
    }
    std::vector<genl_message> of(std::uint32_t card, std::uint32_t port) const
    {
        std::vector<genl_message> out;
        for (const auto& one : all)
            if (one.command == SPANKER_MSG_LINK_CHANGED && one.u32(SPANKER_A_CARD) == card &&
                one.u32(SPANKER_A_PORT) == port)
                out.push_back(one);
        return out;
    }
};

}  // namespace

bool set_disabled(bool disabled)
{
    const int ctl = ::open("/dev/spankerctl", O_RDWR | O_CLOEXEC);
    spanker_link_set_admin what{};
    what.size = sizeof(what);
    what.flags = disabled ? SPANKER_LINK_DISABLE : 0;
    const bool good = ::ioctl(ctl, SPANKER_IOC_LINK_SET_ADMIN, &what) == 0;
    ::close(ctl);
    return good;
}

namespace {

bool agrees_with_sysfs(const std::vector<genl_message>& ports)
{
    return !ports.empty() && std::all_of(ports.begin(), ports.end(), [](const genl_message& one) {
        return is_port(one, one.u32(SPANKER_A_CARD), one.u32(SPANKER_A_PORT));
    });
}

}  // namespace

void test_slow_listener()
{
    const genl_socket socket;
    bool good = socket.shrink() && joined(socket, {SPANKER_GENL_GROUP_LINK});
    for (int n = 0; n < 100; n++)
        good = set_disabled(n % 2 == 0) && good;
    good = eventually(all_links_are_up) && good;
    ::usleep(settle_ms * 1000);
    std::vector<genl_message> none;
    say.check(good && socket.receive(none, 0) == -ENOBUFS, "who does not listen in time is told");
    const auto ports = dump(SPANKER_CMD_PORT_GET);
    say.check(is_undisturbed(ports) && agrees_with_sysfs(ports.messages),
              "a dump then says how it is");
    heard rest;
    rest.listen(socket, 0);
    bool older = !rest.all.empty();
    for (const auto& event : rest.all)
        for (const auto& port : ports.messages)
            older = older && (port.u32(SPANKER_A_CARD) != event.u32(SPANKER_A_CARD) ||
                              port.u32(SPANKER_A_SEQ) >= event.u32(SPANKER_A_SEQ));
    say.check(older && rest.whole && rest.in_order,
              "and what he reads afterwards is older by its number");
    say.check(set_disabled(true) && set_disabled(false) && eventually(all_links_are_up),
              "the link is as it was");
    rest.all.clear();
    rest.listen(socket, settle_ms);
    say.check(!rest.all.empty(), "he hears again");
}

// ---- flaps ----

namespace {

std::uint64_t interrupts(const std::string& model)
{
    return number_in(ask_sim("counters " + model), "interrupts");
}

std::size_t moments_of(unsigned port)
{
    const std::string all = read_text("/sys/kernel/debug/spanker/spanker0/links");
    const std::string line = "\n" + std::to_string(port) + " ";
    std::size_t count = 0;
    for (auto at = all.find(line); at != std::string::npos; at = all.find(line, at + 1))
        count++;
    return count;
}

}  // namespace

void test_flaps(unsigned flaps)
{
    const std::string model = model_of(0), card = "card " + model + " ";
    const genl_socket socket;
    heard events;
    bool good = joined(socket, {SPANKER_GENL_GROUP_LINK});
    const std::uint64_t interrupts_before = interrupts(model);
    std::uint64_t slowest_ms = 0;
    for (unsigned n = 0; good && n < flaps; n++) {
        good = !ask_sim(card + "cable_cut port=0").empty();
        ::usleep(n % 8 * 1000);
        good = good && !ask_sim(card + "clear cable_cut").empty();
        const std::uint64_t start_ms = now_ms();
        good = !state_of_port(0, 0).empty() && good;
        slowest_ms = std::max(slowest_ms, now_ms() - start_ms);
        events.listen(socket, 0);
    }
    good = eventually(all_links_are_up) && good;
    events.listen(socket, settle_ms);
    const auto of_port = events.of(0, 0);
    const std::uint64_t told = interrupts(model) - interrupts_before;
    std::printf("# %u flaps, %zu events of the port, %llu interrupts of the card, %llu ms\n", flaps,
                of_port.size(), static_cast<unsigned long long>(told),
                static_cast<unsigned long long>(slowest_ms));
    say.check(good && !of_port.empty(),
              "a cable is pulled and plugged " + std::to_string(flaps) + " times");
    say.check(events.whole && events.in_order && !events.lost,
              "its events are whole and in the order of their numbers");
    const auto port = ask(SPANKER_CMD_PORT_GET, named(0, 0));
    say.check(!of_port.empty() && port.messages.size() == 1 &&
                  of_port.back().u32(SPANKER_A_PORT_STATE) == SPK_PORT_UP &&
                  is_port(port.messages[0], 0, 0) &&
                  port.messages[0].u32(SPANKER_A_PORT_STATE) == SPK_PORT_UP,
              "the last one says that it is up, as does who asks");
    say.check(of_port.size() <= told, "no more of them than the card interrupted");
    const auto kept = moments_of(0);
    say.check(kept > 0 && kept <= 32, "of what it went through the last part is kept");
    say.check(slowest_ms < quick_ms * slower(), "others are not held up");
}

// ---- unloading ----

namespace {

bool unload()
{
    return eventually([] { return ::syscall(SYS_delete_module, "spanker", O_NONBLOCK) == 0; });
}

bool load()
{
    const int file = ::open("/modules/spanker.ko", O_RDONLY | O_CLOEXEC);
    const bool good = ::syscall(SYS_finit_module, file, "", 0) == 0;
    ::close(file);
    return good;
}

// Seen by the process that asks for ever.
struct shared {
    std::atomic<std::uint64_t> dumps;
};

[[noreturn]] void ask_for_ever(shared& common)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        const auto here = genl_find(SPANKER_GENL_NAME);
        if (!here.id)
            continue;
        common.dumps += genl_ask(here.id, SPANKER_CMD_PORT_GET, NLM_F_DUMP, {}).err == 0;
        common.dumps += genl_ask(here.id, SPANKER_CMD_CARD_GET, NLM_F_DUMP, {}).err == 0;
    }
}

bool is_farewell(const genl_message& one)
{
    const std::string* name = one.find(CTRL_ATTR_FAMILY_NAME);
    return one.type == GENL_ID_CTRL && one.command == CTRL_CMD_DELFAMILY && name &&
           name->c_str() == std::string(SPANKER_GENL_NAME);
}

// Each card says that it goes, once, and then the family does.
bool said_farewell(const genl_socket& socket, unsigned cards)
{
    std::multiset<std::uint32_t> gone;
    std::vector<genl_message> all;
    bool family_went = false;
    while (!family_went && socket.receive(all, settle_ms * static_cast<int>(slower())) == 0) {
        for (const auto& one : all) {
            if (one.type == family.id && one.command == SPANKER_MSG_CARD_REMOVED && is_whole(one))
                gone.insert(one.u32(SPANKER_A_CARD));
            family_went = family_went || is_farewell(one);
        }
        all.clear();
    }
    bool each = gone.size() == cards;
    for (unsigned card = 0; card < cards; card++)
        each = each && gone.count(card) == 1;
    if (!each || !family_went)
        std::printf("# %zu of %u cards, %s family\n", gone.size(), cards,
                    family_went ? "and the" : "no");
    return each && family_went;
}

}  // namespace

void test_unloading()
{
    const unsigned cards = count_cards();
    auto& common = *static_cast<shared*>(
        ::mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const pid_t child = ::fork();
    if (child == 0)
        ask_for_ever(common);
    bool good = true, told = true;
    for (unsigned n = 0; good && n < reloads; n++) {
        family = genl_find(SPANKER_GENL_NAME);
        const genl_socket socket;
        const std::uint64_t dumps = common.dumps;
        good = joined(socket, {SPANKER_GENL_GROUP_CARD, SPANKER_GENL_GROUP_LINK,
                               SPANKER_GENL_GROUP_HEALTH}) &&
               socket.join(GENL_ID_CTRL) && eventually([&] { return common.dumps > dumps; }) &&
               unload();
        told = good && said_farewell(socket, cards) && told;
        good = load() && eventually([&] { return count_cards() == cards; }) && good;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    say.check(good, "the module is unloaded under who listens and asks, " +
                        std::to_string(reloads) + " times");
    say.check(told, "each time who listens hears that each card went, and then the family");
    family = genl_find(SPANKER_GENL_NAME);
    say.check(eventually(all_links_are_up) && is_undisturbed(dump(SPANKER_CMD_PORT_GET)),
              "loaded again, it answers");
}

}  // namespace netlink
