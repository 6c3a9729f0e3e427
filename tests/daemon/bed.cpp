// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/bed.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace bed {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

milliseconds left_of(steady_clock::time_point end)
{
    return std::max(milliseconds(0),
                    std::chrono::duration_cast<milliseconds>(end - steady_clock::now()));
}

bool readable(int fd, milliseconds limit)
{
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, static_cast<int>(limit.count())) > 0;
}

void require(bool holds, const std::string& what)
{
    if (!holds)
        throw std::runtime_error(what + ": " + std::strerror(errno));
}

}  // namespace

// ---- processes ----

process process::fork(const std::function<int()>& child)
{
    process made;
    const pid_t parent = getpid();
    made.pid_ = ::fork();
    require(made.pid_ >= 0, "fork");
    if (made.pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(127);
        _exit(child());
    }
    return made;
}

process process::run(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment, const std::vector<int>& keep)
{
    return fork([&] {
        for (int fd : keep)
            fcntl(fd, F_SETFD, 0);
        for (const std::string& setting : environment)
            putenv(const_cast<char*>(setting.c_str()));
        std::vector<char*> words;
        for (const std::string& word : arguments)
            words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        execvp(words[0], words.data());
        return 127;
    });
}

process::~process()
{
    if (pid_ <= 0)
        return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
}

void process::signal(int number) const { kill(pid_, number); }

std::optional<int> process::wait(milliseconds limit)
{
    unique_fd handle(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    if (!readable(handle.get(), limit))
        return std::nullopt;
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// ---- places ----

folder::folder()
{
    char pattern[] = "/tmp/spankerd-test-XXXXXX";
    require(mkdtemp(pattern) != nullptr, "mkdtemp");
    path_ = pattern;
    chmod(pattern, 0755);
}

folder::~folder() { std::filesystem::remove_all(path_); }

std::string folder::write(const std::string& file, const std::string& text) const
{
    const std::string path = path_ + "/" + file;
    std::ofstream(path) << text;
    return path;
}

private_bus::private_bus()
{
    const std::string config = home_.write("bus.conf", fmt::format(R"(<!DOCTYPE busconfig PUBLIC
 "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>custom</type>
  <listen>unix:path={}/socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="false"/>
    <allow receive_sender="*"/>
  </policy>
  <limit name="max_connections_per_user">2048</limit>
  <limit name="max_replies_per_connection">4096</limit>
</busconfig>
)",
                                                                   home_.path()));
    int ends[2];
    require(pipe2(ends, O_CLOEXEC) == 0, "pipe");
    unique_fd out(ends[0]), in(ends[1]);
    daemon_ = process::run({"dbus-daemon", "--nofork", "--config-file=" + config,
                            fmt::format("--print-address={}", in.get())},
                           {}, {in.get()});
    in.reset();
    char text[512];
    require(readable(out.get(), patience), "dbus-daemon does not start");
    const ssize_t got = read(out.get(), text, sizeof text);
    require(got > 0, "dbus-daemon ended");
    address_.assign(text, static_cast<std::size_t>(got));
    address_ = address_.substr(0, address_.find_first_of(",\n"));
}

notifications::notifications(const folder& home)
    : path_(home.path() + "/notify"), socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
      stop_(eventfd(0, EFD_CLOEXEC))
{
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    require(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
            "bind");
    reader_ = std::thread([this] { read_all(); });
}

notifications::~notifications()
{
    eventfd_write(stop_.get(), 1);
    reader_.join();
}

void notifications::read_all()
{
    for (;;) {
        pollfd both[] = {{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
        poll(both, 2, -1);
        if (both[1].revents)
            return;
        char text[4096];
        const ssize_t got = recv(socket_.get(), text, sizeof text, 0);
        std::istringstream lines(
            std::string(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))));
        std::lock_guard guard(lock_);
        for (std::string line; std::getline(lines, line);)
            seen_.push_back(line);
        more_.notify_all();
    }
}

std::optional<std::string> notifications::wait_for(const std::string& prefix, milliseconds limit)
{
    std::unique_lock guard(lock_);
    std::optional<std::string> found;
    more_.wait_for(guard, limit, [&] {
        while (!found && passed_ < seen_.size())
            if (const std::string& line = seen_[passed_++]; line.rfind(prefix, 0) == 0)
                found = line;
        return found.has_value();
    });
    return found;
}

std::vector<std::string> notifications::seen() const
{
    std::lock_guard guard(lock_);
    return seen_;
}

// ---- the daemon ----

daemon_setup embedded(const std::string& cards)
{
    return {.arguments = {"--cards=embedded:" + cards, "--card-memory=64M"}, .environment = {}};
}

daemon_setup fake(const std::string& cards)
{
    return {.program = "tests/spankerd-fake",
            .arguments = {},
            .environment = {"SPANKER_FAKE=" + cards}};
}

daemon_setup without_quarantine(daemon_setup setup)
{
    setup.environment.push_back(
        "ASAN_OPTIONS=quarantine_size_mb=0:thread_local_quarantine_size_kb=0");
    return setup;
}

spanker_daemon::spanker_daemon(const private_bus& bus, const daemon_setup& setup) : told_(home_)
{
    std::vector<std::string> words{std::string(SPANKER_BIN_DIR) + "/" + setup.program,
                                   "--bus=" + bus.address()};
    words.insert(words.end(), setup.arguments.begin(), setup.arguments.end());
    std::vector<std::string> environment = setup.environment;
    environment.push_back("NOTIFY_SOCKET=" + told_.path());
    if (setup.descriptors)
        words.insert(words.begin(), {"prlimit", fmt::format("--nofile={}", setup.descriptors)});
    child_ = process::run(words, environment);
    if (setup.wait_ready && !told_.wait_for("READY=1", patience))
        throw std::runtime_error(setup.program + " does not get ready");
}

std::size_t spanker_daemon::descriptors() const
{
    const std::filesystem::directory_iterator all(fmt::format("/proc/{}/fd", child_.pid()));
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t spanker_daemon::resident_bytes() const
{
    std::ifstream file(fmt::format("/proc/{}/statm", child_.pid()));
    std::size_t total = 0, resident = 0;
    file >> total >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// ---- clients ----

client::client(const private_bus& bus)
{
    sd_bus* made = nullptr;
    sd_bus_new(&made);
    bus_.reset(made);
    sd_bus_set_address(made, bus.address().c_str());
    sd_bus_set_bus_client(made, true);
    sd_bus_negotiate_fds(made, true);
    require(sd_bus_start(made) >= 0, "connecting to the bus");
}

answer client::send(const std::string& path, const std::string& interface,
                    const std::string& member, const filler& fill, milliseconds limit)
{
    sd_bus_message *question = nullptr, *reply = nullptr;
    sd_bus_message_new_method_call(bus(), &question, name, path.c_str(), interface.c_str(),
                                   member.c_str());
    if (fill)
        fill(question);
    sd_bus_error problem = SD_BUS_ERROR_NULL;
    const int r = sd_bus_call(bus(), question, static_cast<std::uint64_t>(limit.count()) * 1000,
                              &problem, &reply);
    answer got;
    got.message.reset(reply);
    if (r < 0) {
        got.error = problem.name ? problem.name : std::strerror(-r);
        got.text = problem.message ? problem.message : "";
    }
    sd_bus_error_free(&problem);
    sd_bus_message_unref(question);
    return got;
}

answer client::call(const std::string& path, const std::string& interface,
                    const std::string& member, const char* signature, ...)
{
    va_list values;
    va_start(values, signature);
    auto got = send(path, interface, member, [&](sd_bus_message* question) {
        if (*signature)
            sd_bus_message_appendv(question, signature, values);
    });
    va_end(values);
    return got;
}

namespace {

answer get(client& from, const std::string& path, const std::string& noun, const char* property)
{
    auto got = from.call(path, properties, "Get", "ss", interface(noun).c_str(), property);
    if (!got)
        throw std::runtime_error(got.error + ": " + got.text);
    return got;
}

}  // namespace

std::string client::get_string(const std::string& path, const std::string& noun,
                               const char* property)
{
    auto got = get(*this, path, noun, property);
    const char* value = nullptr;
    require(sd_bus_message_read(*got, "v", "s", &value) > 0, property);
    return value;
}

std::uint64_t client::get_u64(const std::string& path, const std::string& noun,
                              const char* property)
{
    auto got = get(*this, path, noun, property);
    std::uint64_t value = 0;
    require(sd_bus_message_read(*got, "v", "t", &value) > 0, property);
    return value;
}

std::uint32_t client::get_u32(const std::string& path, const std::string& noun,
                              const char* property)
{
    auto got = get(*this, path, noun, property);
    std::uint32_t value = 0;
    require(sd_bus_message_read(*got, "v", "u", &value) > 0, property);
    return value;
}

bool client::process_until(const std::function<bool()>& done, milliseconds limit)
{
    const auto end = steady_clock::now() + limit;
    while (!done()) {
        const int r = sd_bus_process(bus(), nullptr);
        if (r > 0)
            continue;
        const auto left = left_of(end);
        if (r < 0 || left.count() == 0)
            return done();
        sd_bus_wait(bus(), static_cast<std::uint64_t>(left.count()) * 1000);
    }
    return true;
}

opened open_session(client& from, const filler& options)
{
    auto got = from.send(root, interface("Manager"), "OpenSession", [&](sd_bus_message* question) {
        if (options)
            options(question);
        else
            sd_bus_message_append(question, "a{sv}", 0);
    });
    opened made;
    if (!got) {
        made.error = got.kind();
        made.text = got.text;
        return made;
    }
    const char* path = nullptr;
    int fds[4];
    require(sd_bus_message_read(*got, "ohhhh", &path, &fds[0], &fds[1], &fds[2], &fds[3]) > 0,
            "reading OpenSession");
    made.path = path;
    unique_fd* slots[] = {&made.control, &made.rings, &made.sq_eventfd, &made.cq_eventfd};
    for (int i = 0; i < 4; i++)
        slots[i]->reset(fcntl(fds[i], F_DUPFD_CLOEXEC, 3));
    return made;
}

std::size_t count_sessions(client& from)
{
    auto got = from.call(root, interface("Manager"), "ListSessions");
    require(static_cast<bool>(got), "ListSessions");
    std::size_t count = 0;
    sd_bus_message_enter_container(*got, 'a', "(tuusauttta{sv})");
    while (sd_bus_message_skip(*got, "(tuusauttta{sv})") > 0)
        count++;
    return count;
}

bool eventually(const std::function<bool()>& holds, milliseconds limit)
{
    const auto end = steady_clock::now() + limit;
    while (!holds()) {
        if (left_of(end).count() == 0)
            return false;
        poll(nullptr, 0, 5);
    }
    return true;
}

bool at_once(const std::function<bool()>& holds)
{
    const auto end = steady_clock::now() + milliseconds(100);
    for (int looks = 0; looks < 20 || left_of(end).count() > 0; looks++) {
        if (holds())
            return true;
        poll(nullptr, 0, 5);
    }
    return false;
}

std::string card_path(unsigned card) { return fmt::format("{}/cards/{}", root, card); }

std::string inject(client& admin, unsigned card, const std::string& fault)
{
    auto got =
        admin.call(card_path(card), interface("Simulator"), "InjectFault", "s", fault.c_str());
    return got ? "" : got.kind();
}

}  // namespace bed
