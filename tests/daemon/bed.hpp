// SPDX-License-Identifier: Apache-2.0
//
// What a test of the whole daemon stands on: a private bus, a daemon on it, clients. Everything lies in a temporary
// folder and ends with the object that started it.
#pragma once

#include <systemd/sd-bus.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

#include "daemon/unique_fd.hpp"

namespace bed {

using spanker::daemon::unique_fd;

inline constexpr const char* name = "org.popsolutions.Spanker1";
inline constexpr const char* root = "/org/popsolutions/Spanker1";
inline constexpr const char* properties = "org.freedesktop.DBus.Properties";
// How long a test waits for what must come. Only a test that fails waits so long.
inline constexpr std::chrono::seconds patience{30};
inline std::string interface(const std::string& noun) { return std::string(name) + "." + noun; }

// A child process; killed at the end, and when the test dies.
class process final {
public:
    process() = default;
    process(process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
    process& operator=(process&& other) noexcept
    {
        std::swap(pid_, other.pid_);
        return *this;
    }
    ~process();

    // `child` runs in the child, after fork; its return is the exit code.
    static process fork(const std::function<int()>& child);
    static process run(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment = {},
                       const std::vector<int>& keep = {});

    pid_t pid() const { return pid_; }
    void signal(int number) const;
    // The exit code, or -signal; nullopt after the time.
    std::optional<int> wait(std::chrono::milliseconds limit);

private:
    pid_t pid_ = -1;
};

class folder final {
public:
    folder();
    ~folder();
    const std::string& path() const { return path_; }
    std::string write(const std::string& file, const std::string& text) const;

private:
    std::string path_;
};

// A dbus-daemon of our own that anybody may talk to.
class private_bus final {
public:
    private_bus();
    const std::string& address() const { return address_; }

private:
    folder home_;
    std::string address_;
    process daemon_;
};

// The datagrams of a service manager's notification socket, read at once as a service manager does.
class notifications final {
public:
    explicit notifications(const folder& home);
    ~notifications();
    const std::string& path() const { return path_; }
    // The next line, after those that earlier calls passed, that starts with `prefix`; nullopt after the time.
    std::optional<std::string> wait_for(const std::string& prefix, std::chrono::milliseconds limit);
    std::vector<std::string> seen() const;

private:
    void read_all();

    std::string path_;
    unique_fd socket_, stop_;
    mutable std::mutex lock_;  // of seen_
    std::condition_variable more_;
    std::vector<std::string> seen_;
    std::size_t passed_ = 0;
    std::thread reader_;
};

struct daemon_setup {
    std::string program = "spankerd";
    std::vector<std::string> arguments = {"--cards=embedded:4:ring", "--card-memory=64M"};
    std::vector<std::string> environment;
    bool wait_ready = true;
    unsigned descriptors = 0;  // the daemon's limit; 0: as the test's
};

// spankerd over simulated cards, or over fake ones.
daemon_setup embedded(const std::string& cards);
daemon_setup fake(const std::string& cards);
// For tests that measure memory: no sanitizer keeps what was freed.
daemon_setup without_quarantine(daemon_setup setup);

class spanker_daemon final {
public:
    spanker_daemon(const private_bus& bus, const daemon_setup& setup);

    process& child() { return child_; }
    notifications& told() { return told_; }
    std::size_t descriptors() const;
    std::size_t resident_bytes() const;

private:
    folder home_;
    notifications told_;
    process child_;
};

struct reply_deleter {
    void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
// What a call brought: a message, or an error.
struct answer {
    std::unique_ptr<sd_bus_message, reply_deleter> message;
    std::string error, text;  // name and message of an error

    explicit operator bool() const { return error.empty(); }
    // The error's last component: "InvalidArgs".
    std::string kind() const { return error.substr(error.rfind('.') + 1); }
    sd_bus_message* operator*() const { return message.get(); }
};

// A message to fill, then client::send().
using filler = std::function<void(sd_bus_message*)>;

class client final {
public:
    explicit client(const private_bus& bus);
    sd_bus* bus() const { return bus_.get(); }

    answer call(const std::string& path, const std::string& interface, const std::string& member,
                const char* signature = "", ...);
    answer send(const std::string& path, const std::string& interface, const std::string& member,
                const filler& fill, std::chrono::milliseconds limit = 2 * patience);

    std::string get_string(const std::string& path, const std::string& noun, const char* property);
    std::uint64_t get_u64(const std::string& path, const std::string& noun, const char* property);
    std::uint32_t get_u32(const std::string& path, const std::string& noun, const char* property);

    // Handles signals and replies until `done` or the time; whether it was done.
    bool process_until(const std::function<bool()>& done, std::chrono::milliseconds limit);

private:
    struct closer {
        void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
    };
    std::unique_ptr<sd_bus, closer> bus_;
};

// An open session of a client.
struct opened {
    std::string path;
    unique_fd control, rings, sq_eventfd, cq_eventfd;
    std::string error, text;
};
opened open_session(client& from, const filler& options = {});
std::size_t count_sessions(client& from);

// Asks again until it holds; for what happens "soon". The condition decides, not the time.
bool eventually(const std::function<bool()>& holds, std::chrono::milliseconds limit = patience);

// Whether it holds within 100 ms, or within twenty looks of the kind that cost 5 ms on an idle machine: who looks by asking
// the daemon is as slow on a busy machine as the daemon is.
bool at_once(const std::function<bool()>& holds);

std::string card_path(unsigned card);
std::string inject(client& admin, unsigned card,
                   const std::string& fault);  // the error's name, or ""

}  // namespace bed
