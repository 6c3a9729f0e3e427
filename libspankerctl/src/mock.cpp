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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "error.hpp"
#include "ring.hpp"
#include "unique_fd.hpp"

extern char** environ;

using namespace spanker::lib;

namespace {

// A child, held by pidfd: the number of a process that somebody else reaped may be another's.
struct child {
    pid_t pid = -1;
    unique_fd handle;
};

}  // namespace

struct spanker_mock {
    std::string folder, address;
    child bus, daemon;
};

namespace {

constexpr std::uint64_t start_limit_ns = 30'000'000'000;
constexpr int end_limit_ms = 5'000;
constexpr std::uint32_t max_mesh_cards = SPK_MAX_PORTS + 1;

int fail_system(const std::string& what)
{
    const int err = errno;
    return fail(nullptr, make_error_errno(err, fmt::format("{}: {}", what, std::strerror(err))));
}

std::vector<char*> words(const std::vector<std::string>& strings)
{
    std::vector<char*> out;
    out.reserve(strings.size() + 1);
    for (const auto& word : strings)
        out.push_back(const_cast<char*>(word.c_str()));
    out.push_back(nullptr);
    return out;
}

// In the child, between fork() and exec: nothing here may allocate. Signals as at a program's start,
// no file of ours but 0, 1, 2 and `keep`.
[[noreturn]] void become(char* const* argv, char* const* env, int keep, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int signal = 1; signal < NSIG; ++signal)
        ::signal(signal, SIG_DFL);
    syscall(SYS_close_range, 3U, UINT_MAX, 4U /* CLOSE_RANGE_CLOEXEC */);
    if (keep >= 0)
        fcntl(keep, F_SETFD, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent)  // else it died before it could be watched
        execvpe(argv[0], argv, env);
    _exit(127);
}

// Starts a program that dies with us. `keep` stays open in it (-1: none). All memory is prepared
// before fork(), for other threads may hold locks.
int spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment,
          int keep, child& out)
{
    std::vector<std::string> settings = environment;
    for (char** e = environ; *e != nullptr; ++e) {
        if (std::strncmp(*e, "NOTIFY_SOCKET=", 14) != 0)
            settings.emplace_back(*e);
    }
    const auto argv = words(command), env = words(settings);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0)
        return fail_system("cannot fork");
    if (pid == 0)
        become(argv.data(), env.data(), keep, parent);
    out.pid = pid;
    out.handle = unique_fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!out.handle) {
        const int r = fail_system("cannot watch a child");
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        return r;
    }
    return 0;
}

bool readable(int fd, int limit_ms)
{
    pollfd one = {fd, POLLIN, 0};
    int r = 0;
    while ((r = poll(&one, 1, limit_ms)) < 0 && errno == EINTR) {
    }
    return r == 1;
}

void end(child& c)
{
    if (!c.handle)
        return;
    syscall(SYS_pidfd_send_signal, c.handle.get(), SIGTERM, nullptr, 0);
    if (!readable(c.handle.get(), end_limit_ms))
        syscall(SYS_pidfd_send_signal, c.handle.get(), SIGKILL, nullptr, 0);
    siginfo_t ignored;
    waitid(P_PIDFD, static_cast<id_t>(c.handle.get()), &ignored, WEXITED);
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
        if (const int r =
                spawn({"dbus-daemon", "--nofork", "--nopidfile", "--config-file=" + config,
                       fmt::format("--print-address={}", writer.get())},
                      {}, writer.get(), mock.bus);
            r < 0)
            return r;
    }
    char text[256];
    if (!readable(reader.get(), 10'000) || ::read(reader.get(), text, sizeof text) <= 0)
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
    for (std::uint64_t now = monotonic_ns(); now < deadline; now = monotonic_ns()) {
        pollfd fds[] = {{socket, POLLIN, 0}, {mock.daemon.handle.get(), POLLIN, 0}};
        poll(fds, 2, static_cast<int>((deadline - now) / 1'000'000) + 1);
        if (fds[0].revents != 0) {
            char text[4096];
            const ssize_t n = recv(socket, text, sizeof text, MSG_DONTWAIT);
            if (n > 0 && std::string_view(text, static_cast<std::size_t>(n)).find("READY=1") !=
                             std::string_view::npos)
                return 0;
        } else if (fds[1].revents != 0) {
            return fail(
                nullptr, SPANKER_KIND_NO_DAEMON,
                "spankerd ended at once: set $SPANKERD to its path, and see its message above");
        }
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
    if (const int r =
            spawn({path != nullptr ? path : SPANKER_DAEMON_PATH,
                   fmt::format("--cards=embedded:{}:{}", cards, topology), "--bus=" + mock.address},
                  {"NOTIFY_SOCKET=" + notify}, -1, mock.daemon);
        r < 0)
        return r;
    return wait_ready(mock, socket.get());
}

int check_count(std::uint32_t cards, const char* topology)
{
    if (cards == 0)
        return fail(nullptr, SPANKER_KIND_NO_SAILS, "a mock needs at least one card");
    const bool mesh = std::strcmp(topology, "mesh") == 0;
    if (cards <= SPK_MAX_CARDS && (!mesh || cards <= max_mesh_cards))
        return 0;
    return fail(nullptr, SPANKER_KIND_TOPOLOGY_MISMATCH,
                fmt::format("{} cards in a {}: a card has at most {} ports and a fabric {} cards",
                            cards, topology, SPK_MAX_PORTS, SPK_MAX_CARDS));
}

int with_mock(std::uint32_t cards, const char* topology, spanker_mock** out)
{
    if (const int r = check_count(cards, topology); r < 0)
        return r;
    const char* temporary = std::getenv("TMPDIR");
    std::unique_ptr<spanker_mock, void (*)(spanker_mock*)> owned(new spanker_mock,
                                                                 spanker_mock_stop);
    std::string folder = std::string(temporary != nullptr ? temporary : "/tmp") + "/spanker-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr)
        return fail_system("cannot make a folder in $TMPDIR");
    owned->folder = folder;
    if (const int r = start_bus(*owned); r < 0)
        return r;
    if (const int r = start_daemon(*owned, cards, topology); r < 0)
        return r;
    *out = owned.release();
    return 0;
}

}  // namespace

int spanker_with_mock(std::uint32_t cards, const char* topology, spanker_mock** out)
{
    if (out == nullptr)
        return fail_null(nullptr, "out");
    return guarded(nullptr,
                   [&] { return with_mock(cards, topology != nullptr ? topology : "mesh", out); });
}

const char* spanker_mock_bus(const spanker_mock* mock)
{
    return mock != nullptr ? mock->address.c_str() : nullptr;
}

int spanker_mock_daemon_pid(const spanker_mock* mock)
{
    return mock != nullptr ? mock->daemon.pid : fail_null(nullptr, "mock");
}

void spanker_mock_stop(spanker_mock* mock)
{
    if (mock == nullptr)
        return;
    end(mock->daemon);
    end(mock->bus);
    if (!mock->folder.empty()) {
        guarded(nullptr, [&] {
            for (const char* name : {"/bus", "/bus.conf", "/notify"})
                unlink((mock->folder + name).c_str());
            return rmdir(mock->folder.c_str());
        });
    }
    delete mock;
}
