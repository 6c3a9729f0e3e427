// SPDX-License-Identifier: Apache-2.0
//
// The cards of one fabric, each behind a socket of its own that speaks vfio-user.
//
// Threads: one for each socket, which answers its client; one that lets the fabric work. An access is answered before the
// fabric starts on what it asks for, so a virtual machine that waits for the answer is not held up by it.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sim/card.hpp"
#include "sim/fabric_thread.hpp"
#include "sim/vfio_user/device.hpp"
#include "sim/vfio_user/doorman.hpp"
#include "sim/vfio_user/guest_bus.hpp"

namespace spanker::sim::vfio_user {

// One card's socket, listening already, and what is wrong with the card.
struct card_outlet {
    unique_fd listener;
    std::vector<register_lie> lies;
};

class server final {
public:
    // As many outlets as cards. `log` may be called from any thread.
    server(const fabric_config& config, std::vector<card_outlet> outlets,
           guest_bus::log_function log);
    ~server();  // ends all conversations
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    fabric& cards() { return cards_; }
    const guest& guest_of(unsigned card) { return bus_.of(card); }
    // To be called after any access to cards() from outside.
    void wake() { worker_.wake(); }

private:
    struct post {
        post(unsigned number, card_outlet outlet, server& home);
        ~post();
        const unsigned card;
        doorman door;
        device served;
        std::thread thread;
    };
    void serve(post& at);

    const guest_bus::log_function log_;
    guest_bus bus_;
    fabric cards_;
    fabric_thread worker_;
    std::vector<std::unique_ptr<post>> posts_;
};

}  // namespace spanker::sim::vfio_user
