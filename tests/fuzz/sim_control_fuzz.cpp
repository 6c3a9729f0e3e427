// SPDX-License-Identifier: Apache-2.0
//
// Any lines on the control socket: each is answered with one line of JSON, or was not a request.
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "sim/control/desk.hpp"

namespace {

using namespace spanker::sim;

[[noreturn]] void broken(const char* what)
{
    std::fprintf(stderr, "invariant broken: %s\n", what);
    std::abort();
}

// Nobody knows the sockets of the cards.
struct office {
    fabric_config config = [] {
        card_config card;
        card.ddr_bytes = 1 << 20;
        return make_fabric_config(2, "ring", card);
    }();
    vfio_user::server served{config, outlets(), [](unsigned, const std::string&) {}};
    control::desk desk{served, config, {"a", "b"}};

    static std::vector<vfio_user::card_outlet> outlets()
    {
        std::vector<vfio_user::card_outlet> out(2);
        for (auto& one : out) {
            one.listener.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
            sockaddr nameless = {};  // the kernel finds a name that is no file
            nameless.sa_family = AF_UNIX;
            if (::bind(one.listener.get(), &nameless, sizeof nameless.sa_family) != 0 ||
                ::listen(one.listener.get(), 1) != 0)
                broken("no socket");
        }
        return out;
    }
};

void check(const std::string& answer)
{
    if (answer.empty())
        return;
    if (answer.find('\n') != std::string::npos)
        broken("an answer has more than one line");
    const auto parsed = nlohmann::json::parse(answer, nullptr, false);
    if (!parsed.is_object() || !parsed.at("ok").is_boolean())
        broken("an answer is no object that says whether it was ok");
    if (!parsed.at("ok").get<bool>() && parsed.at("error").get<std::string>().empty())
        broken("a refusal does not say why");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static office it;
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    while (!rest.empty()) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        check(it.desk.answer(line));
    }
    check(it.desk.answer("clear"));
    return 0;
}
