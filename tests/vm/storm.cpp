// SPDX-License-Identifier: Apache-2.0
//
// Storms: something is done to card 0 again and again while processes open, work, wait, read and look as fast as they can,
// and card 1 works on beside it. After each storm everything must have been given back. Prints TAP.
//
//   vm_storm [--rounds N] [STORM...]      all storms, N rounds of each (twice as many kills)
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "machine_state.hpp"
#include "sim_line.hpp"
#include "storm.hpp"

namespace storm {

namespace {

using spanker_vm::ask_sim;
using spanker_vm::eventually;
using spanker_vm::read_text;
using spanker_vm::write_text;

constexpr const char* driver = "/sys/bus/pci/drivers/spanker/";
constexpr const char* module_file = "/modules/spanker.ko";

struct card_at {
    std::string bus_id;
    std::uint64_t model;  // its number in the card model

    std::string device() const { return "/sys/bus/pci/devices/" + bus_id + "/"; }
    bool tell_model(const std::string& what) const
    {
        return !ask_sim("card " + std::to_string(model) + " " + what).empty();
    }
};

std::string state_of_card() { return read_text("/sys/class/spanker/spanker0/state"); }
bool is_ready() { return state_of_card() == "ready\n"; }
bool has_node() { return ::access("/dev/spanker0", F_OK) == 0; }

// ---- a round of each ----

bool kill_one(const card_at&, shared& common) { return kill_in_transfer(common); }

bool unbind_and_bind(const card_at& card, shared&)
{
    return write_text(std::string(driver) + "unbind", card.bus_id) && !has_node() &&
           write_text(std::string(driver) + "bind", card.bus_id) && eventually(is_ready);
}

bool reset_function(const card_at& card, shared&)
{
    return write_text(card.device() + "reset", "1") && eventually(is_ready);
}

bool go_and_return(const card_at& card, shared&)
{
    return card.tell_model("gone") && eventually([] { return state_of_card() == "gone\n"; }) &&
           card.tell_model("clear gone") && eventually(is_ready);
}

// It does not answer, and then its function goes.
bool remove_and_rescan(const card_at& card, shared& common)
{
    const bool silent = common.round % 4 == 3;
    if (silent && !card.tell_model("gone"))
        return false;
    if (!write_text(card.device() + "remove", "1") || has_node())
        return false;
    if (silent && !card.tell_model("clear gone"))
        return false;
    return write_text("/sys/bus/pci/rescan", "1") && eventually(is_ready);
}

// Never of a card that is silent: the bus waits a minute for one that it resets.
bool unbind_or_remove(const card_at& card, shared& common)
{
    if (common.round % 2 == 0)
        return unbind_and_bind(card, common);
    return write_text(card.device() + "remove", "1") && !has_node() &&
           write_text("/sys/bus/pci/rescan", "1") && eventually(is_ready);
}

bool insert()
{
    const int file = ::open(module_file, O_RDONLY | O_CLOEXEC);
    const bool good = ::syscall(SYS_finit_module, file, "", 0) == 0;
    ::close(file);
    return good;
}

// Whoever has a node open keeps the module for that long.
bool reload(const card_at&, shared&)
{
    return eventually([] { return ::syscall(SYS_delete_module, "spanker", O_NONBLOCK) == 0; }) &&
           !has_node() && insert() && eventually(is_ready);
}

struct row {
    const char* name;
    const char* sentence;
    unsigned factor;  // rounds of it in a round of all
    bool (*round)(const card_at&, shared&);
    bool beside_works;  // the other card is not touched
    unsigned loads;     // which, see storm.hpp
};

constexpr row table[] = {
    {"kill", "processes are killed in the middle of transfers", 2, kill_one, true, every_load},
    {"unbind", "the driver is unbound and bound", 1, unbind_and_bind, true, every_load},
    {"reset", "the function is reset through the bus", 1, reset_function, true, every_load},
    {"gone", "the card stops to answer and comes back", 1, go_and_return, true, every_load},
    {"remove", "the function is removed and found again", 1, remove_and_rescan, true, every_load},
    {"reset-away", "the card is reset while it is unbound, and while its function is removed", 2,
     unbind_or_remove, true, every_load | load_resets},
    {"reload", "the module is unloaded and loaded", 1, reload, false, load_opens | load_looks},
};

card_at find_card()
{
    char path[PATH_MAX];
    card_at out;
    if (const char* real = ::realpath("/sys/class/spanker/spanker0/device", path))
        out.bus_id = std::strrchr(real, '/') + 1;
    // Serials count from 1, as the model's cards do from 0.
    const std::string serial = read_text("/sys/class/spanker/spanker0/serial");
    out.model = (std::strtoull(serial.c_str(), nullptr, 16) & 0xffff) - 1;
    return out;
}

struct dma_state {
    std::uint64_t faults, mapped;
};

dma_state dma_of(const card_at& card)
{
    const std::string all = ask_sim("counters " + std::to_string(card.model));
    return {spanker_vm::number_in(all, "dma_faults"),
            spanker_vm::number_in(all, "dma_mapped_bytes")};
}

// It was reset, and was not there to be reset: both have been met.
void check_resets(spanker_vm::checks& say, const row& what, const shared& common)
{
    std::printf("# resets: %llu done, %llu refused, %llu wrong, the last of them %d\n",
                static_cast<unsigned long long>(common.resets_done),
                static_cast<unsigned long long>(common.resets_refused),
                static_cast<unsigned long long>(common.resets_wrong), common.resets_error.load());
    say.check(common.resets_wrong == 0, std::string(what.name) + ": no reset failed");
    say.check(common.resets_done && common.resets_refused,
              std::string(what.name) +
                  ": there were resets of it while it was there and while not");
}

void rage(spanker_vm::checks& say, const row& what, unsigned rounds, shared& common)
{
    const auto card = find_card();
    const auto before = spanker_vm::look_at_machine();
    const auto dma_before = dma_of(card);
    const std::uint64_t beside_before = common.beside_batches;
    bool good = true;
    {
        const loads busy(what.loads, what.beside_works, common);
        good =
            !what.beside_works || eventually([&] { return common.beside_batches > beside_before; });
        for (common.round = 0; good && common.round < rounds; common.round++) {
            ::usleep(1000 * (common.round * 7 % 30));
            good = what.round(card, common);
        }
        if (!good)
            std::printf("# in round %u; the card is %s", common.round.load(),
                        state_of_card().c_str());
    }
    say.check(good, std::string(what.sentence) + ", " + std::to_string(rounds) + " times");
    if (common.beside_wrong)
        std::printf("# the other card: %llu batches, %llu of them wrong, the last one %d at %u\n",
                    static_cast<unsigned long long>(common.beside_batches - beside_before),
                    static_cast<unsigned long long>(common.beside_wrong.load()),
                    common.beside_error.load(), common.beside_where.load());
    if (what.beside_works)
        say.check(common.beside_wrong == 0 && common.beside_batches > beside_before,
                  std::string(what.name) + ": the other card's work went on");
    if (what.loads & load_resets)
        check_resets(say, what, common);
    spanker_vm::check_machine(say, before, what.name);
    dma_state dma{};
    say.check(eventually([&] {
                  dma = dma_of(card);
                  return dma.mapped == dma_before.mapped;
              }) &&
                  dma.faults == dma_before.faults,
              std::string(what.name) +
                  ": the card reaches what it did, and asked for nothing else");
    if (dma.mapped != dma_before.mapped || dma.faults != dma_before.faults)
        std::printf("# mapped %llu bytes, now %llu; faults %llu, now %llu\n",
                    static_cast<unsigned long long>(dma_before.mapped),
                    static_cast<unsigned long long>(dma.mapped),
                    static_cast<unsigned long long>(dma_before.faults),
                    static_cast<unsigned long long>(dma.faults));
    if (common.stray_bytes)
        std::printf("# the card wrote %llu bytes to memory of the dead\n",
                    static_cast<unsigned long long>(common.stray_bytes));
    say.check(common.stray_bytes == 0,
              std::string(what.name) + ": no memory was written after its time");
}

}  // namespace

}  // namespace storm

int main(int count, char** words)
{
    unsigned rounds = 10;
    int first = 1;
    if (count > 2 && !std::strcmp(words[1], "--rounds")) {
        rounds = static_cast<unsigned>(std::strtoul(words[2], nullptr, 10));
        first = 3;
    }
    const auto wanted = [&](const char* name) {
        for (int n = first; n < count; n++)
            if (!std::strcmp(words[n], name))
                return true;
        return count <= first;
    };
    if (rounds == 0 || spanker_vm::count_cards() < 2) {
        std::printf("Bail out! usage: vm_storm [--rounds N] [STORM...], with two cards\n");
        return 2;
    }
    auto& common = storm::make_shared_state();
    spanker_vm::checks say;
    for (const auto& one : storm::table)
        if (wanted(one.name))
            storm::rage(say, one, one.factor * rounds, common);
    return say.finish();
}
