// SPDX-License-Identifier: Apache-2.0
#include "sim/control/line_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

namespace spanker::sim::control {
namespace {

constexpr std::size_t clients_max = 64;
constexpr int pause_ms = 100;
constexpr std::size_t unread_bytes_max = 1 << 20;  // answers that wait before we read on

bool is_behind(const std::string& out) { return out.size() >= unread_bytes_max; }

}  // namespace

line_server::line_server(unique_fd listener, answer_function answer)
    : listener_(std::move(listener)), ended_(::eventfd(0, EFD_CLOEXEC)), answer_(std::move(answer))
{
    if (!ended_ ||
        ::fcntl(listener_.get(), F_SETFL, ::fcntl(listener_.get(), F_GETFL) | O_NONBLOCK) != 0)
        throw std::system_error(errno, std::generic_category(), "control socket");
    thread_ = std::thread([this] { work(); });
}

line_server::~line_server()
{
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(ended_.get(), &one, sizeof one);
    thread_.join();
}

void line_server::work()
{
    for (;;) {
        const bool room = clients_.size() < clients_max && !no_descriptors_;
        std::vector<pollfd> waits = {
            {.fd = ended_.get(), .events = POLLIN, .revents = 0},
            {.fd = room ? listener_.get() : -1, .events = POLLIN, .revents = 0}};
        for (const client& one : clients_) {
            const bool reads = !one.finished && !is_behind(one.out);
            const int events = (reads ? POLLIN : 0) | (one.out.empty() ? 0 : POLLOUT);
            waits.push_back(
                {.fd = one.socket.get(), .events = static_cast<short>(events), .revents = 0});
        }
        ::poll(waits.data(), waits.size(), no_descriptors_ ? pause_ms : -1);
        no_descriptors_ = false;
        if (waits[0].revents != 0)
            return;
        std::size_t at = 2;
        for (auto one = clients_.begin(); one != clients_.end(); at++)
            one = waits[at].revents == 0 || attend(*one, waits[at].revents) ? std::next(one)
                                                                            : clients_.erase(one);
        if (waits[1].revents != 0)
            let_in();
    }
}

void line_server::let_in()
{
    unique_fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket)
        clients_.push_back({.socket = std::move(socket)});
    else
        no_descriptors_ = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
}

// What a client asked before it left is answered as far as it takes the answers.
bool line_server::attend(client& one, short events)
{
    const bool reads = !one.finished && !is_behind(one.out);
    if (reads && (events & (POLLIN | POLLHUP | POLLERR)) != 0 && !read_from(one))
        return false;
    if (!answer_and_write(one))
        return false;
    if (one.finished && (events & (POLLHUP | POLLERR)) != 0)
        return false;
    return !one.finished || !one.out.empty();
}

bool line_server::read_from(client& one)
{
    std::array<char, line_bytes_max> fresh;
    const ssize_t got = ::recv(one.socket.get(), fresh.data(), fresh.size(), MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    one.in.append(fresh.data(), static_cast<std::size_t>(got));
    if (got == 0) {
        one.finished = true;
        one.in.push_back('\n');  // the last line need not have one
    }
    return true;
}

bool line_server::answer_and_write(client& one)
{
    do {
        while (!is_behind(one.out) && answer_next_line(one))
            ;
        if (!write_to(one))
            return false;
    } while (one.out.empty() && one.in.find('\n') != std::string::npos);
    return true;
}

// False: there is no whole line.
bool line_server::answer_next_line(client& one)
{
    const std::size_t end = one.in.find('\n');
    if (end < line_bytes_max) {  // and npos is not
        const std::string line = one.in.substr(0, end);
        one.in.erase(0, end + 1);
        if (std::exchange(one.skipping, false))
            return true;
        const std::string text = answer_(line);
        if (!text.empty())
            one.out += text + "\n";
        return true;
    }
    if (one.in.size() < line_bytes_max)
        return false;
    if (!std::exchange(one.skipping, true))
        one.out += "{\"ok\":false,\"error\":\"a request has at most " +
                   std::to_string(line_bytes_max - 1) + " characters\"}\n";
    one.in.erase(0, std::min(end, one.in.size()));
    return true;
}

bool line_server::write_to(client& one)
{
    while (!one.out.empty()) {
        const ssize_t sent =
            ::send(one.socket.get(), one.out.data(), one.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        one.out.erase(0, static_cast<std::size_t>(sent));
    }
    return true;
}

}  // namespace spanker::sim::control
