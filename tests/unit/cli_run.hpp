// SPDX-License-Identifier: Apache-2.0
//
// Runs spankerctl as people and scripts do: with pipes, or in a terminal; what it said and how it ended.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace cli {

struct ran {
    int code = -1;  // exit code, or -signal
    std::string out, err;
};

using words = std::vector<std::string>;

// NAME=value; an empty value is set, not unset.
[[noreturn]] inline void become_spankerctl(const words& arguments, const words& environment)
{
    for (const char* name : {"NO_COLOR", "SPANKER_BUS", "TERM"})
        unsetenv(name);
    for (const std::string& setting : environment)
        putenv(const_cast<char*>(setting.c_str()));
    std::string program = std::string(SPANKER_BIN_DIR) + "/spankerctl";
    std::vector<char*> argv = {program.data()};
    for (const std::string& word : arguments)
        argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
}

// Reads until all ends are closed; kills the child when it takes more than `limit`.
inline ran collect(pid_t child, std::vector<std::pair<int, std::string ran::*>> ends,
                   std::chrono::seconds limit = std::chrono::seconds(120))
{
    ran result;
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!ends.empty()) {
        std::vector<pollfd> fds;
        for (const auto& [fd, text] : ends)
            fds.push_back({fd, POLLIN, 0});
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        if (left.count() <= 0 ||
            poll(fds.data(), fds.size(), static_cast<int>(left.count())) == 0) {
            kill(child, SIGKILL);
            ADD_FAILURE() << "spankerctl took too long; it said: " << result.out << result.err;
            break;
        }
        for (std::size_t i = fds.size(); i-- > 0;) {
            if (fds[i].revents == 0)
                continue;
            std::array<char, 65536> part;
            const ssize_t n = read(fds[i].fd, part.data(), part.size());
            if (n > 0)
                (result.*ends[i].second).append(part.data(), static_cast<std::size_t>(n));
            else
                ends.erase(ends.begin() +
                           static_cast<std::ptrdiff_t>(i));  // a terminal ends with EIO
        }
    }
    int status = 0;
    waitpid(child, &status, 0);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return result;
}

inline ran run(const words& arguments, const words& environment = {})
{
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
        throw std::runtime_error("pipe");
    const pid_t child = fork();
    if (child == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        become_spankerctl(arguments, environment);
    }
    close(out[1]);
    close(err[1]);
    ran result = collect(child, {{out[0], &ran::out}, {err[0], &ran::err}});
    close(out[0]);
    close(err[0]);
    return result;
}

// stdout and stderr are one terminal.
inline ran run_in_terminal(const words& arguments, words environment = {})
{
    environment.push_back("TERM=xterm");
    int terminal = -1;
    const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
    if (child == 0)
        become_spankerctl(arguments, environment);
    ran result = collect(child, {{terminal, &ran::out}});
    close(terminal);
    return result;
}

// stdout is that file.
inline ran run_into(const std::string& path, const words& arguments, const words& environment = {})
{
    int err[2];
    if (pipe2(err, O_CLOEXEC) != 0)
        throw std::runtime_error("pipe");
    const pid_t child = fork();
    if (child == 0) {
        dup2(open(path.c_str(), O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        become_spankerctl(arguments, environment);
    }
    close(err[1]);
    ran result = collect(child, {{err[0], &ran::err}});
    close(err[0]);
    return result;
}

inline words operator+(words a, const words& b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

// Every verb with arguments that make sense and cost little.
struct verb_line {
    const char* name;
    words arguments;
};
inline const std::vector<verb_line>& verbs()
{
    static const std::vector<verb_line> all = {
        {"status", {"status"}},
        {"list", {"list"}},
        {"show", {"show", "0"}},
        {"topology", {"topology"}},
        {"links", {"links"}},
        {"matmul", {"matmul", "--rows", "8", "--cols", "256"}},
        {"allreduce", {"allreduce", "--bytes", "1K"}},
        {"selftest", {"selftest"}},
    };
    return all;
}

}  // namespace cli
