// SPDX-License-Identifier: Apache-2.0
//
// What the parts of vm_blocked share: processes that sleep, each in another call, for the card or for a page of their own.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "machine_state.hpp"
#include "uapi/spanker.h"

namespace blocked {

inline constexpr std::size_t page = 4096;
// How a sleeper ends, beside the errno that ended its sleep.
inline constexpr int was_not_ready = 200, came_back = 201;

std::uint64_t now_ms();
// A factor of each limit of time, of a kernel with checkers.
std::uint64_t slower();
bool tell_model(const std::string& what);

// ---- an open card ----

int open_queue();
int open_with_record();
spanker_work_item nop();
int submit(int fd, const spanker_work_item* item);

// ---- who sleeps ----

// Where a sleeper says that it is about to: the descriptor by which its page would be served, -1 without one.
class announcement {
public:
    explicit announcement(int pipe) : pipe_(pipe) {}
    void say(int userfaults = -1) const;

private:
    int pipe_;
};

// Two pages, the second of which never comes.
struct half_there {
    int userfaults = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
    char* first = static_cast<char*>(
        ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char* second = first + page;

    half_there();
};

struct kind {
    const char* where;
    bool for_card;  // it is woken by what becomes of the card; else its page never comes
    void (*body)(const announcement&);
};
// Those that wait for the card.
std::vector<const kind*> card_kinds();

struct sleeper {
    const kind* what;
    pid_t pid;
    bool asleep;
};
sleeper start(const kind& what);
bool sleeps(pid_t pid);

// ---- what signals do to them ----

void test_signals(spanker_vm::checks& say, bool with_pages);

}  // namespace blocked
