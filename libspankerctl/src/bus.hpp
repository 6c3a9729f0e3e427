// SPDX-License-Identifier: Apache-2.0
//
// One connection to the bus, and method calls on the daemon as C++ expressions.
//
// Any thread may call; calls on one `bus` go one after the other (each session has
// its own, so a slow call of one delays no other). A failed call is recorded as the
// last error of `who`. Replies must go before the bus they came from.
#pragma once

#include <systemd/sd-bus.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "error.hpp"

namespace spanker::lib {

inline constexpr const char* service = "org.popsolutions.Spanker1";
inline constexpr const char* root_path = "/org/popsolutions/Spanker1";

// A message counts as a reference to its bus, and sd-bus counts without locks: replies are
// given back under the mutex of the bus.
struct message_unref {
    std::mutex* mutex = nullptr;
    void operator()(sd_bus_message* m) const
    {
        const std::lock_guard lock(*mutex);
        sd_bus_message_unref(m);
    }
};
using message_ptr = std::unique_ptr<sd_bus_message, message_unref>;

// The name of errors that say nobody answered, unlike a time-out that spankerd reports itself.
inline constexpr const char* no_reply = "NoReply";

class bus final {
public:
    // address: "system", "session" or a D-Bus address. 0 or negative errno, recorded for `who`.
    // A connection that broke is made again by the next call.
    static int open(const void* who, const std::string& address, std::uint64_t timeout_ns,
                    std::shared_ptr<bus>& out);
    ~bus();
    bus(const bus&) = delete;
    bus& operator=(const bus&) = delete;

    // Calls `interface`.`method` at `path`; interface without the common prefix
    // ("Manager"). `append` fills the arguments, returning a negative errno on failure.
    using append_fn = std::function<int(sd_bus_message*)>;
    int call(const void* who, const std::string& path, const char* interface, const char* method,
             const append_fn& append, message_ptr& reply, std::uint64_t timeout_ns = 0);
    // Properties.GetAll of one interface, positioned at the a{sv}.
    int get_all(const void* who, const std::string& path, const char* interface,
                message_ptr& reply);
    // Calls of any interface by its whole name (ObjectManager).
    int call_raw(const void* who, const std::string& path, const char* interface,
                 const char* method, const append_fn& append, message_ptr& reply,
                 std::uint64_t timeout_ns = 0);

private:
    bus(std::string address, std::uint64_t timeout_ns)
        : address_(std::move(address)), timeout_ns_(timeout_ns)
    {}
    int connect(const void* who);  // if it is not; under mutex_

    std::mutex mutex_;  // sd_bus is not thread safe
    const std::string address_;
    const std::uint64_t timeout_ns_;
    sd_bus* connection_ = nullptr;
};

std::string interface_name(const char* short_name);

// Walks an a{sv}: `visit` gets each key with the message inside the variant of the
// given type and reads it, or returns 0 having read nothing (it is skipped then) and 1 if it read.
int for_each_option(sd_bus_message* m,
                    const std::function<int(const char* key, const char* type)>& visit);

// A reply that does not have the promised form.
int malformed(const void* who, const char* what);

}  // namespace spanker::lib
