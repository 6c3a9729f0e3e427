// SPDX-License-Identifier: Apache-2.0
//
// spankerd: own the name, serve the bus, then bring up the cards.
#include <fmt/format.h>
#include <signal.h>
#include <systemd/sd-daemon.h>

#include <cstdio>
#include <cstdlib>

#include "daemon/log.hpp"
#include "daemon/manager.hpp"
#include "daemon/run.hpp"

using namespace spanker::daemon;

namespace {

// Prints how much memory the simulated cards got, for it was chosen for the user.
result<std::unique_ptr<backend>> make_embedded(const embedded_options& wanted)
{
    auto made = make_embedded_backend(wanted);
    if (!made)
        return made;
    const auto cards = (*made)->cards();
    auto info = (*made)->info(cards.front());
    if (!info)
        return tl::unexpected(info.error());
    log(log_level::info, fmt::format("{} embedded cards, {}, {} MiB of memory each", cards.size(),
                                     wanted.topology, info->out_memory_bytes >> 20));
    return made;
}

}  // namespace

int main(int argc, char** argv)
{
    auto parsed = parse_options(argc, argv);
    if (!parsed) {
        fmt::print(stderr, "spankerd: {}\n", parsed.error().message);
        return 2;
    }
    if (parsed->answer) {
        fmt::print("{}", *parsed->answer);
        return 0;
    }
    const daemon_options& chosen = parsed->values;
    return run_daemon(chosen, [&chosen]() -> result<std::unique_ptr<backend>> {
        return chosen.hardware ? make_kernel_backend() : make_embedded(chosen.embedded);
    });
}
