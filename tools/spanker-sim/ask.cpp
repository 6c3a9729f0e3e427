// SPDX-License-Identifier: Apache-2.0
#include "tools/spanker-sim/ask.hpp"

#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "sim/unix_socket.hpp"
#include "tools/spanker-sim/directory.hpp"

namespace spanker::sim_tool {
namespace {

constexpr timeval patience = {.tv_sec = 10, .tv_usec = 0};

[[noreturn]] void fail(const std::string& path, int error)
{
    throw std::system_error(error, std::generic_category(), path + ": no answer");
}

sim::unique_fd reach(const std::string& path)
{
    try {
        return sim::connect_to(path);
    } catch (const std::system_error& problem) {
        throw std::runtime_error(std::string(problem.what()) +
                                 "; is there a spanker-sim that serves this directory?");
    }
}

class line_client final {
public:
    explicit line_client(const std::string& path) : path_(path), socket_(reach(path))
    {
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }

    std::string ask(const std::string& line)
    {
        const std::string whole = line + "\n";
        for (std::size_t done = 0; done < whole.size();) {
            const ssize_t sent =
                ::send(socket_.get(), whole.data() + done, whole.size() - done, MSG_NOSIGNAL);
            if (sent < 0)
                fail(path_, errno);
            done += static_cast<std::size_t>(sent);
        }
        std::size_t end;
        while ((end = received_.find('\n')) == std::string::npos) {
            std::array<char, 65536> fresh;
            const ssize_t got = ::recv(socket_.get(), fresh.data(), fresh.size(), 0);
            if (got <= 0)
                fail(path_, got == 0 ? ECONNRESET : errno);
            received_.append(fresh.data(), static_cast<std::size_t>(got));
        }
        std::string out = received_.substr(0, end);
        received_.erase(0, end + 1);
        return out;
    }

private:
    const std::string path_;
    const sim::unique_fd socket_;
    std::string received_;
};

bool asks_nothing(const std::string& line)
{
    const auto first = line.find_first_not_of(" \t\r");
    return first == std::string::npos || line[first] == '{';
}

}  // namespace

int ask(const std::string& directory, const std::string& request, std::istream& from)
{
    line_client client(directory::control_socket_of(directory));
    bool all_ok = true;
    const auto one = [&](const std::string& line) {
        if (asks_nothing(line))
            return;
        const std::string answer = client.ask(line);
        std::printf("%s\n", answer.c_str());
        std::fflush(stdout);
        all_ok = all_ok && answer.starts_with("{\"ok\":true");
    };
    if (!request.empty())
        one(request);
    for (std::string line; request.empty() && std::getline(from, line);)
        one(line);
    return all_ok ? 0 : 1;
}

}  // namespace spanker::sim_tool
