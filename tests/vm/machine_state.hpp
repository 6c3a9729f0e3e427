// SPDX-License-Identifier: Apache-2.0
//
// What a machine with cards has given away, to be compared before and after a storm: memory of the cards, queues, channels,
// pinned pages, open files, memory. And the TAP that says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spanker_vm {

class checks {
public:
    void check(bool good, const std::string& sentence);
    void skip(const std::string& sentence, const std::string& why);
    // The plan; 0, or 1 when something failed.
    int finish() const;

private:
    unsigned count_ = 0, failed_ = 0;
};

std::string read_text(const std::string& path);
bool write_text(const std::string& path, const std::string& text);
// A line of /proc/self/status in KiB; -1: there is none.
long status_kib(const char* name);

struct machine_state {
    std::vector<std::uint64_t> card_free_bytes;
    std::int64_t pinned_pages = 0;  // of all processes; 0 where the kernel does not count
    std::int64_t files = 0;
    std::int64_t available_kib = 0;
};

std::string node_of(unsigned card);
unsigned count_cards();
// Polls until it holds, some ten seconds, more on a kernel with checkers.
template <typename F>
bool eventually(F&& holds);
bool sleep_a_little(int tries);

machine_state look_at_machine();
// Once all processes are gone: everything is as it was, and every card works. About six checks.
void check_machine(checks& say, const machine_state& before, const std::string& after = "");

template <typename F>
bool eventually(F&& holds)
{
    for (int tries = 0;; tries++) {
        if (holds())
            return true;
        if (!sleep_a_little(tries))
            return false;
    }
}

}  // namespace spanker_vm
