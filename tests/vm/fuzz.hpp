// SPDX-License-Identifier: Apache-2.0
//
// The fuzzer of the module's border. Some processes of some threads do one act after the other, each drawn from the seed,
// the process, the thread and the act's number alone, on descriptors and handles that they share. What an act may answer
// is known, and what it may write; everything else is told.
//
//   fuzz.cpp        processes and threads, and what must hold when they are gone
//   fuzz_verbs.cpp  the grammar of ioctls
//   fuzz_law.cpp    how they are spoiled, and what must come of that
//   fuzz_items.cpp  work items
//   fuzz_acts.cpp   everything else: open, close, dup, fork, read, poll, memory that changes
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <shared_mutex>
#include <span>

#include "uapi/spanker.h"

namespace fuzz {

inline constexpr std::size_t page = 4096;
inline constexpr unsigned slots = 7, own_slots = 5;  // the last ones are the first process's
inline constexpr unsigned processes = 3, threads = 3;
inline constexpr unsigned pool = 8, memfds = 4, arena_pages = 64;

// What an act draws from. (splitmix64)
class chance {
public:
    explicit chance(std::uint64_t seed) : state_(seed) {}
    std::uint64_t word()
    {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    std::uint32_t below(std::uint32_t count)
    {
        return static_cast<std::uint32_t>((word() >> 32) * count >> 32);
    }
    bool percent(std::uint32_t share) { return below(100) < share; }
    template <typename T>
    T of(std::initializer_list<T> what)
    {
        return what.begin()[below(static_cast<std::uint32_t>(what.size()))];
    }

private:
    std::uint64_t state_;
};

// A descriptor of a card and handles that it once had. Whoever exchanges one out of here owns it.
struct slot {
    std::atomic<int> fd{-1};
    std::atomic<std::uint32_t> card{0};
    std::array<std::atomic<std::uint32_t>, pool> tensors{}, buffers{}, groups{};
    std::atomic<std::uint32_t> seq{0};
};

inline constexpr unsigned verb_count = 15;
inline constexpr int old_wait_ms = 20;

// Seen by all processes.
struct tally {
    std::atomic<std::uint32_t> wrong;
    std::atomic<std::uint64_t> acts;
    std::array<std::atomic<std::uint64_t>, verb_count> done, refused;
    std::array<std::array<std::atomic<std::uint32_t>, 256>, verb_count> why;  // by errno
    std::array<std::atomic<std::uint64_t>, SPK_OP_COUNT> items;               // that were taken
    std::atomic<std::uint64_t> records, good_records, ended;
};

// Of one process.
struct process {
    std::uint64_t seed = 0;
    unsigned number = 0, life_ms = 0;
    std::uint64_t end_ns = 0;
    std::array<slot, slots> files;
    std::array<std::atomic<int>, pool> exports, groups;
    std::array<int, memfds> memfd{};
    std::array<int, 2> ctl{}, event{}, socket{};
    std::uint8_t* arena = nullptr;     // what the cards write to; nobody looks at it
    std::uint8_t* constant = nullptr;  // a page that only may be read, and what it holds
    std::uint8_t* shared = nullptr;    // structs that two threads use at the same time
    tally* count = nullptr;
    std::atomic<bool> stop{false};
    std::atomic<bool> ready{false};  // all is mapped that no act may map over
    std::shared_mutex forking;       // a child would keep open what the private sequence closes
};

// Of one thread.
struct thread {
    process& of;
    unsigned number;
    std::uint64_t act = 0;
    chance draw{0};
    bool stranger = false;  // a child: no file here is its own
    std::uint8_t* edge;     // two pages, and nothing behind them
    std::uint8_t* items;    // the same, for what structs point to
    const char* doing = "";
    int own_fd = -1;  // of the private sequence
    std::uint8_t* own_memory = nullptr;
    bool own_given_back = false, own_unregistered = false;
};

[[gnu::format(printf, 2, 3)]] void complain(thread& t, const char* format, ...);
std::uint64_t now_ns();
void* map_pages(std::size_t count, int protection);
// Two pages that may be used, and none behind them.
std::uint8_t* map_edge();

// Answers 0 or a negative errno.
int call(int fd, unsigned long request, void* at);
template <typename T>
T ask()
{
    T out{};
    out.size = sizeof(T);
    return out;
}

// ---- fuzz_law.cpp ----

const char* verb_name(unsigned verb);
void act_verb(thread& t);
// One of the verbs that other than whom opened a file must not do.
void act_stranger(thread& t);
// A pointer for a struct: mostly to `good`, which then holds `bytes` before the end of a page.
std::uint64_t some_pointer(thread& t, std::uint8_t* good);

// ---- fuzz_items.cpp ----

// Items to `to`; how many. limit: what fits there.
std::uint32_t make_items(thread& t, slot& file, spanker_work_item* to, std::uint32_t limit);
std::uint32_t some_handle(thread& t, std::array<std::atomic<std::uint32_t>, pool>& from);

// ---- fuzz_acts.cpp ----

void open_slot(thread& t, slot& file);
// Mostly one of this process's, and open.
slot& some_slot(thread& t);
void act_other(thread& t);
void check_records(thread& t, const spanker_record* records, std::size_t count);
// The private sequence's last look, and its end.
void end_private(thread& t);

}  // namespace fuzz
