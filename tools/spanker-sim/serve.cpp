// SPDX-License-Identifier: Apache-2.0
//
// Sockets first, then cards, then qemu.args: who sees that file finds everything in place.
#include "tools/spanker-sim/serve.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "sim/control/desk.hpp"
#include "sim/control/line_server.hpp"
#include "sim/vfio_user/server.hpp"
#include "tools/spanker-sim/directory.hpp"
#include "tools/spanker-sim/qemu_args.hpp"

namespace spanker::sim_tool {
namespace {

// Blocked before any thread starts, so that none of them is interrupted.
class ending_signals final {
public:
    ending_signals()
    {
        sigemptyset(&set_);
        for (const int one : {SIGTERM, SIGINT, SIGHUP})
            sigaddset(&set_, one);
        ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    }
    void wait() const
    {
        int came = 0;
        while (::sigwait(&set_, &came) != 0)
            ;
    }

private:
    sigset_t set_ = {};
};

void log(unsigned card, const std::string& line)
{
    const std::string whole = "spanker-sim: card " + std::to_string(card) + ": " + line + "\n";
    std::fputs(whole.c_str(), stderr);
}

}  // namespace

void serve(const options& what)
{
    const ending_signals ending;
    ::umask(S_IRWXG | S_IRWXO);
    ::signal(SIGPIPE, SIG_IGN);  // nobody need read what is printed
    directory home(what.directory);

    std::vector<sim::vfio_user::card_outlet> outlets;
    std::vector<std::string> sockets;
    for (unsigned card = 0; card < what.fabric.cards.size(); card++) {
        sockets.push_back(home.card_socket(card));
        outlets.push_back({.listener = home.listen(sockets.back()), .lies = what.lies[card]});
    }
    sim::unique_fd control = home.listen(home.control_socket());

    sim::vfio_user::server server(what.fabric, std::move(outlets), log);
    for (const sim::fault& one : what.faults)
        server.cards().inject(one);
    sim::control::desk desk(server, what.fabric, sockets);
    const sim::control::line_server answers(
        std::move(control), [&](std::string_view line) { return desk.answer(line); });

    const std::string args = qemu_args(what, sockets, home.control_socket());
    home.publish(args);
    std::fputs(args.c_str(), stdout);
    std::fflush(stdout);
    std::fprintf(stderr, "spanker-sim: serves %zu cards in %s; ctrl-C or SIGTERM ends it\n",
                 sockets.size(), what.directory.c_str());
    ending.wait();
}

}  // namespace spanker::sim_tool
