// SPDX-License-Identifier: Apache-2.0
//
// Who is busy during a storm: processes that never mind what their card answers, for it is taken away from them.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <string>
#include <vector>

namespace storm {

// Seen by all processes.
struct shared {
    std::atomic<unsigned> round;
    std::atomic<std::uint64_t> beside_batches, beside_wrong;
    std::atomic<int> beside_error;
    std::atomic<unsigned> beside_where;  // 0: preparing, 1: submitting, 2: reading, 3: the record
    std::atomic<std::uint64_t> resets_done, resets_refused, resets_wrong;
    std::atomic<int> resets_error;  // the last wrong one
    std::uint64_t stray_bytes;
    std::uint8_t* target;  // of the transfers of who is killed
};

shared& make_shared_state();

inline constexpr unsigned load_works = 1;    // a queue, a buffer, transfers
inline constexpr unsigned load_opens = 2;    // open, ask, poll, read, close
inline constexpr unsigned load_waits = 4;    // for a signal that nobody posts
inline constexpr unsigned load_looks = 8;    // at attributes, sensors
inline constexpr unsigned load_groups = 16;  // that own channels, with work on them
inline constexpr unsigned every_load = 31;
inline constexpr unsigned load_resets = 32;  // the card, in each way, minding what that answers

class loads {
public:
    // beside: another process works on card 1 and minds.
    loads(unsigned which, bool beside, shared& common);
    ~loads();
    loads(const loads&) = delete;
    loads& operator=(const loads&) = delete;

private:
    void start(void (*body)(shared&), shared& common);
    std::vector<pid_t> children_;
};

// A process that transfers to common.target dies in the middle of it. Memory must be as its heirs left it.
bool kill_in_transfer(shared& common);

}  // namespace storm
