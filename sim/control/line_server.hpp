// SPDX-License-Identifier: Apache-2.0
//
// Answers lines on a socket: any number of clients, each its own lines, in order.
//
// A client that does not read its answers is not read any further until it does; a line that is too long is refused and
// skipped. What a client sent before it closed its side is still answered.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>

#include "sim/unique_fd.hpp"

namespace spanker::sim::control {

inline constexpr std::size_t line_bytes_max = 4096;

class line_server final {
public:
    // An answer without a newline; an empty one is not sent. Called on the server's own thread.
    using answer_function = std::function<std::string(std::string_view line)>;

    line_server(unique_fd listener, answer_function answer);
    ~line_server();
    line_server(const line_server&) = delete;
    line_server& operator=(const line_server&) = delete;

private:
    struct client {
        unique_fd socket;
        std::string in, out;
        bool skipping = false;  // the rest of a line that was too long
        bool finished = false;  // it sends no more
    };

    void work();
    void let_in();
    bool attend(client& one, short events);  // false: it is gone
    bool read_from(client& one);
    bool answer_and_write(client& one);
    bool write_to(client& one);
    bool answer_next_line(client& one);

    const unique_fd listener_;
    const unique_fd ended_;  // an eventfd
    const answer_function answer_;
    std::list<client> clients_;
    bool no_descriptors_ = false;  // to let another client in with
    std::thread thread_;           // last: it uses the others
};

}  // namespace spanker::sim::control
