// SPDX-License-Identifier: Apache-2.0
//
// A service on the bus under spankerd's name that answers what a test scripts: cards with gaps in their numbers, cards
// that are failed or denied, errors, silence, replies of a wrong form.
#pragma once

#include <systemd/sd-bus.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/daemon/bed.hpp"

namespace lib_service {

struct card {
    std::uint32_t index;
    std::string state = "ready", reason;
    std::string error;  // of GetAll: a whole D-Bus name
};

struct script {
    std::vector<card> cards;
    std::string open_error;  // of OpenSession: a whole D-Bus name
    bool silent = false;     // nothing but the Manager's properties is answered
    bool malformed = false;  // replies have a wrong form
};

class service {
public:
    service(const bed::private_bus& bus, script s) : script_(std::move(s)), one_(bus)
    {
        if (sd_bus_add_filter(one_.bus(), nullptr, on_message, this) < 0 ||
            sd_bus_request_name(one_.bus(), bed::name, 0) < 0)
            throw std::runtime_error("cannot own the name");
        thread_ = std::thread([this] {
            while (!stopping_)
                one_.process_until([this] { return stopping_.load(); },
                                   std::chrono::milliseconds(20));
        });
    }
    ~service()
    {
        stopping_ = true;
        thread_.join();
    }
    int opened() const { return opened_; }
    int unanswered() const { return unanswered_; }

private:
    static int on_message(sd_bus_message* m, void* self, sd_bus_error*)
    {
        std::uint8_t type = 0;
        sd_bus_message_get_type(m, &type);
        return type == SD_BUS_MESSAGE_METHOD_CALL ? static_cast<service*>(self)->answer(m) : 0;
    }

    int answer(sd_bus_message* m)
    {
        const std::string member = sd_bus_message_get_member(m);
        const std::string path = sd_bus_message_get_path(m);
        if (member == "GetAll")
            return get_all(m, path);
        if (script_.silent) {
            ++unanswered_;
            return 1;
        }
        if (script_.malformed)
            return sd_bus_reply_method_return(m, "s", "what?");
        if (member == "GetTopology")
            return topology(m);
        if (member == "OpenSession") {
            ++opened_;
            return refuse(m, script_.open_error);
        }
        return refuse(m, "org.freedesktop.DBus.Error.UnknownMethod");
    }

    int refuse(sd_bus_message* m, const std::string& name)
    {
        return sd_bus_reply_method_errorf(m, name.c_str(), "scripted");
    }

    int topology(sd_bus_message* m)
    {
        sd_bus_message* reply = nullptr;
        sd_bus_message_new_method_return(m, &reply);
        sd_bus_message_append(reply, "ts", std::uint64_t{7}, "ring");
        sd_bus_message_open_container(reply, 'a', "(uss)");
        for (const auto& c : script_.cards)
            sd_bus_message_append(reply, "(uss)", c.index, "00000000000000ff", c.state.c_str());
        sd_bus_message_close_container(reply);
        sd_bus_message_append(reply, "a(uuuusut)", 0);
        return send(reply);
    }

    int get_all(sd_bus_message* m, const std::string& path)
    {
        sd_bus_message* reply = nullptr;
        if (path == bed::root) {
            sd_bus_message_new_method_return(m, &reply);
            sd_bus_message_append(reply, "a{sv}", 4, "Version", "s", "9.9.9", "Backend", "s",
                                  "hardware", "FabricState", "s", "none", "CardCount", "u",
                                  static_cast<std::uint32_t>(script_.cards.size()));
            return send(reply);
        }
        for (const auto& c : script_.cards) {
            if (path != bed::card_path(c.index))
                continue;
            if (!c.error.empty())
                return refuse(m, c.error);
            sd_bus_message_new_method_return(m, &reply);
            sd_bus_message_append(reply, "a{sv}", 5, "State", "s", c.state.c_str(), "StateReason",
                                  "s", c.reason.c_str(), "MemoryBytes", "t", std::uint64_t{4} << 30,
                                  "Serial", "s", "00000000000000ff", "FromTheFuture", "ai", 2, 1,
                                  2);
            return send(reply);
        }
        return refuse(m, "org.freedesktop.DBus.Error.UnknownObject");
    }

    int send(sd_bus_message* reply)
    {
        const int r = sd_bus_send(one_.bus(), reply, nullptr);
        sd_bus_message_unref(reply);
        return r < 0 ? r : 1;
    }

    const script script_;
    bed::client one_;
    std::atomic<int> opened_ = 0, unanswered_ = 0;
    std::atomic<bool> stopping_ = false;
    std::thread thread_;
};

}  // namespace lib_service
