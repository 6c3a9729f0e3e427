// SPDX-License-Identifier: Apache-2.0
#include "sim/vfio_user/server.hpp"

#include <stdexcept>
#include <utility>

#include "sim/vfio_user/connection.hpp"

namespace spanker::sim::vfio_user {

server::post::post(unsigned number, card_outlet outlet, server& home)
    : card(number),
      door(std::move(outlet.listener),
           [&home, number] { home.log_(number, "has a client already; another was turned away"); }),
      served(home.cards_, number, home.bus_.of(number), std::move(outlet.lies))
{}

server::post::~post()
{
    door.close();
    if (thread.joinable())
        thread.join();
}

server::server(const fabric_config& config, std::vector<card_outlet> outlets,
               guest_bus::log_function log)
    : log_(std::move(log)), bus_(config.cards, log_), cards_(config, bus_),
      worker_(cards_, config.speed)
{
    if (outlets.size() != config.cards.size())
        throw std::invalid_argument("there are " + std::to_string(outlets.size()) +
                                    " sockets for " + std::to_string(config.cards.size()) +
                                    " cards");
    for (unsigned card = 0; card < outlets.size(); card++)
        posts_.push_back(std::make_unique<post>(card, std::move(outlets[card]), *this));
    for (const auto& one : posts_)
        one->thread = std::thread([this, at = one.get()] { serve(*at); });
}

server::~server()
{
    for (const auto& one : posts_)
        one->door.close();
    posts_.clear();
}

void server::serve(post& at)
{
    guest& its_guest = bus_.of(at.card);
    for (;;) {
        unique_fd client = at.door.next_client();
        if (!client)
            return;
        its_guest.connected = true;
        log_(at.card, "a client has come");
        connection talk(std::move(client), at.door, at.served, [this] { wake(); });
        const std::string why = talk.serve();
        at.served.forget_client();
        wake();
        its_guest.connected = false;
        log_(at.card, why + "; the card was reset");
    }
}

}  // namespace spanker::sim::vfio_user
