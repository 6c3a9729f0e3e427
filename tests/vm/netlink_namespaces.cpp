// SPDX-License-Identifier: Apache-2.0
//
// Those of vm_netlink who live in namespaces of their own. Root of a user namespace may look as everybody may, and changes no
// card: its rights are over what it made itself. In another network namespace there is no family, and no event comes.
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "netlink.hpp"
#include "uapi/spanker.h"
#include "uapi/spanker_card.h"

namespace netlink {

using namespace spanker_vm;

namespace {

constexpr unsigned some_user = 12345;
constexpr int settle_ms = 1000;
// How a child ends that could not have its namespace, beside the number of things that were wrong.
constexpr int lacks_namespaces = 100;

// ---- in the child ----

unsigned wrong;

void must(bool good, const std::string& what)
{
    if (good)
        return;
    wrong++;
    std::printf("# not so: %s\n", what.c_str());
}

// Root of a namespace of its own and, by more, of others; outside it is nobody.
void become_root(int more)
{
    const std::string user = "0 " + std::to_string(some_user) + " 1";
    const bool nobody = ::setgroups(0, nullptr) == 0 && ::setgid(some_user) == 0 &&
                        ::setuid(some_user) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0;
    if (::unshare(CLONE_NEWUSER | more) != 0)
        ::_exit(errno == EINVAL ? lacks_namespaces : 1);
    must(nobody && write_text("/proc/self/setgroups", "deny") &&
             write_text("/proc/self/uid_map", user) && write_text("/proc/self/gid_map", user) &&
             ::getuid() == 0 && ::getgid() == 0,
         "it is root of its namespace");
}

template <typename T>
int change(int ctl, unsigned long request, T what)
{
    what.size = sizeof(T);
    return ::ioctl(ctl, request, &what) == 0 ? 0 : -errno;
}

void must_not_change_cards()
{
    const int ctl = ::open("/dev/spankerctl", O_RDONLY | O_CLOEXEC);
    spanker_link_train train{};
    train.port_mask = 1;
    train.flags = SPANKER_TRAIN_RETRAIN;
    spanker_link_set_admin admin{};
    admin.flags = SPANKER_LINK_DISABLE;
    must(ctl >= 0, "it may look at the control node");
    must(change(ctl, SPANKER_IOC_LINK_TRAIN, train) == -EPERM, "LINK_TRAIN is refused");
    must(change(ctl, SPANKER_IOC_LINK_SET_ADMIN, admin) == -EPERM, "LINK_SET_ADMIN is refused");
    for (std::uint32_t mode = 0; mode < SPANKER_RESET_MODES; mode++) {
        spanker_card_reset reset{};
        reset.mode = mode;
        must(change(ctl, SPANKER_IOC_CARD_RESET, reset) == -EPERM, "CARD_RESET is refused");
    }
    ::close(ctl);
    const std::string card = "/sys/class/spanker/spanker0/";
    for (const std::string& file :
         {std::string("/dev/spankerctl"), node_of(0), card + "reset", card + "device/reset",
          card + "device/reset_method", card + "device/remove", card + "device/config",
          std::string(driver) + "bind", std::string(driver) + "unbind",
          std::string("/sys/module/spanker/parameters/hang_ms"),
          std::string("/sys/module/spanker/parameters/default_deadline_ms")})
        must(::open(file.c_str(), O_WRONLY | O_CLOEXEC) < 0 && errno == EACCES,
             file + " is not to be written");
}

bool join_all(const genl_socket& socket)
{
    bool good = true;
    for (const auto& group : family.groups)
        good = socket.join(group.second) && good;
    return good;
}

// Changes of port 0 of card 0 that came in, until nothing did for so long.
unsigned count_changes(const genl_socket& socket, int quiet_ms)
{
    unsigned count = 0;
    std::vector<genl_message> part;
    for (int err = 0; err == 0; part.clear()) {
        err = socket.receive(part, quiet_ms);
        for (const auto& one : part)
            count += one.type == family.id && one.command == SPANKER_MSG_LINK_CHANGED &&
                     one.u32(SPANKER_A_CARD) == 0 && one.u32(SPANKER_A_PORT) == 0;
    }
    return count;
}

// The link changes when this is called, and has when it comes back.
void let_it_change(int parent)
{
    char byte = 'c';
    must(::write(parent, &byte, 1) == 1 && ::read(parent, &byte, 1) == 1, "the link changes");
}

void look_as_root(int parent)
{
    become_root(0);
    const auto cards = dump(SPANKER_CMD_CARD_GET);
    must(genl_find(SPANKER_GENL_NAME).id == family.id, "the family is found");
    must(cards.err == 0 && cards.messages.size() == count_cards(), "it may see all cards");
    must(is_undisturbed(dump(SPANKER_CMD_PORT_GET)), "and all ports");
    must(ask(SPANKER_CMD_PORT_GET, named(0, 0)).err == 0, "and one of them");
    const genl_socket socket;
    must(join_all(socket), "it may listen");
    let_it_change(parent);
    must(count_changes(socket, settle_ms) > 0, "and hears");
    must_not_change_cards();
}

// A socket stays in the namespace that it was made in.
void listen_elsewhere(int parent, void (*leave)())
{
    const genl_socket before;
    must(join_all(before), "it may listen before it goes");
    leave();
    must(genl_find(SPANKER_GENL_NAME).id == 0, "there is no such family");
    must(ask(SPANKER_CMD_CARD_GET, named(0)).err == -ENOENT, "nor by its number");
    must(dump(SPANKER_CMD_CARD_GET).err == -ENOENT, "cards are not to be had");
    must(dump(SPANKER_CMD_PORT_GET).err == -ENOENT, "nor ports");
    const genl_socket after;
    join_all(after);  // whether a number that means nothing here can be joined is the kernel's
    let_it_change(parent);
    must(count_changes(before, settle_ms) > 0, "who listened before hears");
    must(count_changes(after, 0) == 0, "who listens here hears nothing");
}

void leave_as_root()
{
    if (::unshare(CLONE_NEWNET) != 0)
        ::_exit(errno == EINVAL ? lacks_namespaces : 1);
}

void look_from_elsewhere(int parent) { listen_elsewhere(parent, leave_as_root); }

void look_as_root_from_elsewhere(int parent)
{
    listen_elsewhere(parent, [] { become_root(CLONE_NEWNET); });
    must_not_change_cards();
}

// ---- in the parent ----

bool change_link()
{
    return set_disabled(true) && set_disabled(false) && eventually(all_links_are_up);
}

void check_in_child(void (*look)(int parent), const char* sentence)
{
    const std::string generation = attribute(0, "reset_generation");
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return say.check(false, sentence);
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ends[0]);
        look(ends[1]);
        std::fflush(stdout);
        ::_exit(wrong != 0);
    }
    ::close(ends[1]);
    char byte;
    bool good = true;
    while (::read(ends[0], &byte, 1) == 1)
        good = change_link() && ::write(ends[0], &byte, 1) == 1 && good;
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == lacks_namespaces)
        return say.skip(sentence, "this kernel has no such namespaces");
    say.check(good && WIFEXITED(status) && WEXITSTATUS(status) == 0 && all_links_are_up() &&
                  attribute(0, "reset_generation") == generation,
              sentence);
}

}  // namespace

void test_namespaces()
{
    check_in_child(look_as_root, "root of a user namespace looks and listens, and changes nothing");
    check_in_child(look_from_elsewhere,
                   "another network namespace has no family, and hears nothing");
    check_in_child(look_as_root_from_elsewhere, "nor has root of both, who changes nothing either");
}

}  // namespace netlink
