// SPDX-License-Identifier: Apache-2.0
//
// A private bus and daemon with cards in software, for programs' own tests. Both are
// children of this process, live in a folder of their own under $TMPDIR, die with
// spanker_mock_stop() and with this process.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "error.hpp"
#include "ring.hpp"
#include "unique_fd.hpp"

extern char** environ;

using namespace spanker::lib;

struct spanker_mock {
    std::string folder, address;
    pid_t bus = -1, daemon = -1;
};

namespace {

constexpr std::uint64_t start_limit_ns = 30'000'000'000;
constexpr std::uint32_t max_mesh_cards = SPK_MAX_PORTS + 1;

int fail_system(const std::string& what)
{
    const int err = errno;
    return fail(nullptr, make_error_errno(err, fmt::format("{}: {}", what, std::strerror(err))));
}

// Starts a program that dies with us. `keep` stays open in it (-1: none). All memory is prepared
// before fork(), for other threads may hold locks.
pid_t spawn(const std::vector<std::string>& command,
            const std::vector<std::string>& extra_environment, int keep)
{
    std::vector<char*> argv, env;
    for (const auto& word : command)
        argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    for (char** e = environ; *e != nullptr; ++e) {
        if (std::strncmp(*e, "NOTIFY_SOCKET=", 14) != 0)
            env.push_back(*e);
    }
    for (const auto& e : extra_environment)
        env.push_back(const_cast<char*>(e.c_str()));
    env.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    if (keep >= 0)
        fcntl(keep, F_SETFD, 0);
    execvpe(argv[0], argv.data(), env.data());
    _exit(127);
}

void end(pid_t pid)
{
    if (pid <= 0)
        return;
    kill(pid, SIGTERM);
    const std::uint64_t deadline = monotonic_ns() + 5'000'000'000;
    while (waitpid(pid, nullptr, WNOHANG) == 0) {
        if (monotonic_ns() > deadline) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
            return;
        }
        poll(nullptr, 0, 5);
    }
}

std::string bus_config(const std::string& folder)
{
    return fmt::format(
        R"(<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>custom</type>
  <listen>unix:path={}/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="false"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
)",
        folder);
}

int write_file(const std::string& path, const std::string& text)
{
    const unique_fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return fail_system("cannot write " + path);
    return 0;
}

int start_bus(spanker_mock& mock)
{
    const std::string config = mock.folder + "/bus.conf";
    if (const int r = write_file(config, bus_config(mock.folder)); r < 0)
        return r;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return fail_system("cannot make a pipe");
    const unique_fd reader(ends[0]);
    {
        const unique_fd writer(ends[1]);
        mock.bus = spawn({"dbus-daemon", "--nofork", "--nopidfile", "--config-file=" + config,
                          fmt::format("--print-address={}", writer.get())},
                         {}, writer.get());
    }
    if (mock.bus < 0)
        return fail_system("cannot fork");
    char text[256];
    pollfd wait = {reader.get(), POLLIN, 0};
    const ssize_t n = poll(&wait, 1, 10'000) == 1 ? ::read(reader.get(), text, sizeof text) : -1;
    if (n <= 0)
        return fail(nullptr, SPANKER_KIND_NO_DAEMON, "dbus-daemon did not start: is it installed?");
    mock.address = "unix:path=" + mock.folder + "/bus";
    return 0;
}

int notify_socket(const std::string& path, unique_fd& out)
{
    unique_fd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return fail(nullptr, SPANKER_KIND_INVALID, "TMPDIR is too long a path for a socket");
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    if (!fd || bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0)
        return fail_system("cannot bind " + path);
    out = std::move(fd);
    return 0;
}

// READY=1 from the daemon, or its death.
int wait_ready(const spanker_mock& mock, int socket)
{
    const std::uint64_t deadline = monotonic_ns() + start_limit_ns;
    while (monotonic_ns() < deadline) {
        pollfd wait = {socket, POLLIN, 0};
        if (poll(&wait, 1, 50) == 1) {
            char text[4096];
            const ssize_t n = recv(socket, text, sizeof text - 1, 0);
            if (n > 0 && std::string_view(text, static_cast<std::size_t>(n)).find("READY=1") !=
                             std::string_view::npos)
                return 0;
        }
        siginfo_t ended = {};
        if (waitid(P_PID, static_cast<id_t>(mock.daemon), &ended, WEXITED | WNOHANG | WNOWAIT) ==
                0 &&
            ended.si_pid == mock.daemon)
            return fail(
                nullptr, SPANKER_KIND_NO_DAEMON,
                "spankerd ended at once: set $SPANKERD to its path, and see its message above");
    }
    return fail(nullptr, SPANKER_KIND_TIMEOUT, "spankerd did not become ready in 30 s");
}

int start_daemon(spanker_mock& mock, std::uint32_t cards, const char* topology)
{
    const char* path = std::getenv("SPANKERD");
    const std::string notify = mock.folder + "/notify";
    unique_fd socket;
    if (const int r = notify_socket(notify, socket); r < 0)
        return r;
    mock.daemon =
        spawn({path != nullptr ? path : SPANKER_DAEMON_PATH,
               fmt::format("--cards=embedded:{}:{}", cards, topology), "--bus=" + mock.address},
              {"NOTIFY_SOCKET=" + notify}, -1);
    if (mock.daemon < 0)
        return fail_system("cannot fork");
    return wait_ready(mock, socket.get());
}

}  // namespace

int spanker_with_mock(std::uint32_t cards, const char* topology, spanker_mock** out)
{
    if (topology == nullptr)
        topology = "mesh";
    if (cards == 0)
        return fail(nullptr, SPANKER_KIND_NO_SAILS, "a mock needs at least one card");
    const bool mesh = std::strcmp(topology, "mesh") == 0;
    if (cards > SPK_MAX_CARDS || (mesh && cards > max_mesh_cards))
        return fail(
            nullptr, SPANKER_KIND_TOPOLOGY_MISMATCH,
            fmt::format("{} cards in a {}: a card has at most {} ports and a fabric {} cards",
                        cards, topology, SPK_MAX_PORTS, SPK_MAX_CARDS));
    const char* temporary = std::getenv("TMPDIR");
    std::string folder = std::string(temporary != nullptr ? temporary : "/tmp") + "/spanker-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr)
        return fail_system("cannot make a folder in $TMPDIR");
    auto* mock = new spanker_mock{folder, {}, -1, -1};
    int r = start_bus(*mock);
    if (r == 0)
        r = start_daemon(*mock, cards, topology);
    if (r < 0) {
        spanker_mock_stop(mock);
        return r;
    }
    *out = mock;
    return 0;
}

const char* spanker_mock_bus(const spanker_mock* mock)
{
    return mock->address.c_str();
}

int spanker_mock_daemon_pid(const spanker_mock* mock)
{
    return mock->daemon;
}

void spanker_mock_stop(spanker_mock* mock)
{
    if (mock == nullptr)
        return;
    end(mock->daemon);
    end(mock->bus);
    for (const char* name : {"/bus", "/bus.conf", "/notify"})
        unlink((mock->folder + name).c_str());
    rmdir(mock->folder.c_str());
    delete mock;
}
