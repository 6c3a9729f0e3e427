// SPDX-License-Identifier: Apache-2.0
#include "tools/spanker-sim/options.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <stdexcept>

#include "tools/spanker-sim/defects.hpp"

namespace spanker::sim_tool {
namespace {

constexpr int exit_usage = 2;
constexpr std::uint64_t mebibyte = 1 << 20;
constexpr std::uint64_t least_guest_bytes = 64 * mebibyte;

// The command line as it stands, before it means anything.
struct raw {
    unsigned cards = 1;
    std::string topology = "ring";
    std::string directory;
    std::uint64_t card_memory = 4096 * mebibyte;
    std::uint64_t guest_memory = 2048 * mebibyte;
    std::string pace = "fast";
    std::string interrupts = "msix";
    unsigned dma_bits = 48;
    unsigned queues = 16;
    std::string accel = "auto";
    std::vector<std::string> defects;
    std::string control;
    std::vector<std::string> request;
};

struct interrupt_form {
    bool msix;
    std::uint32_t vectors;
};
const std::map<std::string, interrupt_form> interrupt_forms = {
    {"msix", {true, SPK_MSIX_VECTORS}},
    {"msix1", {true, 1}},
    {"msi", {false, SPK_MSIX_VECTORS}},
    {"msi1", {false, 1}},
};
const std::map<std::string, sim::pace> paces = {{"fast", sim::pace::fast},
                                                {"real", sim::pace::real}};
const std::map<std::string, acceleration> accelerations = {
    {"auto", acceleration::kvm_or_tcg}, {"kvm", acceleration::kvm}, {"tcg", acceleration::tcg}};

template <typename value>
std::vector<std::string> names_of(const std::map<std::string, value>& forms)
{
    std::vector<std::string> out;
    out.reserve(forms.size());
    for (const auto& [name, form] : forms)
        out.push_back(name);
    return out;
}

CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& to,
                      const std::string& means)
{
    return app.add_option(name, to, means)
        ->transform(CLI::AsSizeValue(false).description(""))
        ->type_name("SIZE");
}

void describe(CLI::App& app, raw& to)
{
    app.add_option("--cards", to.cards, "how many cards: 1 to 16 (1)")->type_name("N");
    app.add_option("--topology", to.topology,
                   "cabling: ring (default), line, mesh, none, or cables like 0.1-1.0,1.1-2.0x2")
        ->type_name("NAME");
    app.add_option("--dir", to.directory, "where the sockets and qemu.args are put")
        ->type_name("DIR");
    add_size(app, "--card-memory", to.card_memory,
             "memory of each card (4G); it costs what is written to it");
    add_size(app, "--guest-memory", to.guest_memory, "memory of the virtual machine (2G)");
    app.add_option("--pace", to.pace, "fast (default), or real: no faster than hardware")
        ->check(CLI::IsMember(names_of(paces)))
        ->type_name("PACE");
    app.add_option("--interrupts", to.interrupts,
                   "msix (default), msi, or with one vector alone msix1, msi1")
        ->check(CLI::IsMember(names_of(interrupt_forms)))
        ->type_name("KIND");
    app.add_option("--dma-bits", to.dma_bits, "bus address bits of the cards: 32 to 64 (48)")
        ->type_name("N");
    app.add_option("--queues", to.queues, "queue pairs of each card: 2 to 16 (16)")->type_name("N");
    app.add_option("--accel", to.accel,
                   "how the virtual machine runs: kvm, tcg, or auto (default): kvm if it can")
        ->check(CLI::IsMember(names_of(accelerations)))
        ->type_name("HOW");
    app.add_option("--defect", to.defects, "a card that is wrong, CARD:DEFECT (below); repeatable")
        ->type_name("CARD:DEFECT");
    app.add_option("--control", to.control,
                   "ask the spanker-sim that serves DIR, instead of serving")
        ->type_name("DIR");
    app.add_option("request", to.request,
                   "with --control: the request; without one, requests come from stdin, one a line")
        ->type_name("WORD...");
    app.footer("Defects:\n" + describe_defects() +
               "\nExample: spanker-sim --cards 4 --topology ring --dir /tmp/sail &\n"
               "         qemu-system-x86_64 $(cat /tmp/sail/qemu.args) -kernel ... -initrd ...\n"
               "         spanker-sim --control /tmp/sail 'card 1 cable_cut port=0'\n"
               "         spanker-sim --control /tmp/sail help");
}

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

void fill_fabric(options& to, const raw& from)
{
    const interrupt_form& form = interrupt_forms.at(from.interrupts);
    sim::card_config card;
    card.ddr_bytes = from.card_memory;
    card.dma_bits = from.dma_bits;
    card.queues = from.queues;
    card.msix = form.msix;
    card.vectors = form.vectors;
    const std::uint64_t most = std::uint64_t{1} << SPK_ADDRESS_BITS;
    if (card.ddr_bytes < mebibyte || card.ddr_bytes > most || card.ddr_bytes % mebibyte != 0)
        refuse("--card-memory: a card has 1M or more, in whole mebibytes, not " +
               std::to_string(card.ddr_bytes) + " bytes");
    if (card.dma_bits < 32 || card.dma_bits > 64)
        refuse("--dma-bits: must be 32 to 64, not " + std::to_string(card.dma_bits));
    if (card.queues < 2 || card.queues > SPK_MAX_QUEUES)
        refuse("--queues: must be 2 to " + std::to_string(SPK_MAX_QUEUES) + ", not " +
               std::to_string(card.queues));
    try {
        to.fabric = sim::make_fabric_config(from.cards, from.topology, card);
    } catch (const std::invalid_argument& wrong) {
        refuse(std::string("--cards, --topology: ") + wrong.what());
    }
    to.fabric.speed = paces.at(from.pace);
    to.lies.resize(to.fabric.cards.size());
    try {
        for (const std::string& one : from.defects)
            add_defect(to, one);
    } catch (const std::invalid_argument& wrong) {
        refuse(std::string("--defect: ") + wrong.what());
    }
}

options meaning_of(const CLI::App& app, const raw& from)
{
    options out;
    if (!from.control.empty()) {
        for (const CLI::Option* one : app.get_options())
            if (one->count() != 0 && one->get_name() != "--control" && !one->get_positional())
                refuse(one->get_name() + ": is for serving; --control asks one that serves");
        out.control = from.control;
        for (const std::string& word : from.request)
            out.request += (out.request.empty() ? "" : " ") + word;
        return out;
    }
    if (!from.request.empty())
        refuse("'" + from.request[0] + "': is a request; say whom to ask with --control DIR");
    if (from.directory.empty())
        refuse("--dir: is missing; name a directory for the sockets, like --dir /tmp/sail");
    if (from.guest_memory < least_guest_bytes || from.guest_memory % mebibyte != 0)
        refuse("--guest-memory: a machine has 64M or more, in whole mebibytes, not " +
               std::to_string(from.guest_memory) + " bytes");
    out.directory = from.directory;
    out.guest_memory_bytes = from.guest_memory;
    out.accel = accelerations.at(from.accel);
    fill_fabric(out, from);
    return out;
}

}  // namespace

parsed parse(int argc, const char* const* argv)
{
    CLI::App app("Serves Sail cards in software to virtual machines, over vfio-user.",
                 "spanker-sim");
    app.set_version_flag("--version", std::string("spanker-sim ") + SPANKER_VERSION);
    raw line;
    describe(app, line);
    try {
        app.parse(argc, argv);
        return {.go_on = true, .what = meaning_of(app, line)};
    } catch (const CLI::ParseError& problem) {
        if (problem.get_exit_code() == 0)  // --help, --version
            return {.exit_code = app.exit(problem)};
        std::fprintf(stderr, "spanker-sim: %s (see spanker-sim --help)\n", problem.what());
    } catch (const std::invalid_argument& wrong) {
        std::fprintf(stderr, "spanker-sim: %s\n", wrong.what());
    }
    return {.exit_code = exit_usage};
}

}  // namespace spanker::sim_tool
