// SPDX-License-Identifier: Apache-2.0
//
// A thin layer over sd-bus: ownership, errors and the way from a vtable to a
// member function. The bus belongs to the loop's thread.
//
// Errors on the bus. Every error reply is one row of SPANKER_ERRORS. Its name is
// SPANKER_ERROR_PREFIX and the row's name, except for the rows whose meaning
// the bus itself has a name for and which sd-bus and the bus use for what they
// refuse before us; these take the bus's own:
//   INVALID      org.freedesktop.DBus.Error.InvalidArgs
//   DENIED       org.freedesktop.DBus.Error.AccessDenied
//   NO_MEMORY    org.freedesktop.DBus.Error.NoMemory
// So the last component alone names the row. A path with no object at it answers
// org.freedesktop.DBus.Error.UnknownObject.
#pragma once

#include <systemd/sd-bus.h>

#include <exception>
#include <memory>
#include <string>

#include "daemon/data/portable.hpp"
#include "daemon/error.hpp"

namespace spanker::daemon {

inline constexpr const char* bus_name = "org.popsolutions.Spanker1";
inline constexpr const char* root_path = "/org/popsolutions/Spanker1";
inline constexpr const char* private_path = "/org/popsolutions/Spanker1_private";
#define SPANKER_INTERFACE(noun) "org.popsolutions.Spanker1." noun

struct bus_deleter {
    void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
    void operator()(sd_bus_slot* slot) const { sd_bus_slot_unref(slot); }
    void operator()(sd_bus_track* track) const { sd_bus_track_unref(track); }
    void operator()(sd_bus_creds* creds) const { sd_bus_creds_unref(creds); }
};
using bus_ptr = std::unique_ptr<sd_bus, bus_deleter>;
using bus_slot = std::unique_ptr<sd_bus_slot, bus_deleter>;
using bus_track = std::unique_ptr<sd_bus_track, bus_deleter>;
using bus_creds = std::unique_ptr<sd_bus_creds, bus_deleter>;

// `where`: "system", "session" or an address. Connected, name not yet owned.
result<bus_ptr> open_bus(const std::string& where);

// A call that is answered later. Copies share the message and answer it once; a call that nobody answered is answered
// CANCELLED when the last copy goes, so no client waits for its time-out.
class pending_call final {
public:
    explicit pending_call(sd_bus_message* message);

    sd_bus_message* message() const;
    void fail(const error& what) const;
    // A reply message to fill, then send(); nullptr when memory is out.
    sd_bus_message* reply() const;
    void send(sd_bus_message* reply) const;  // takes it
    // The short forms.
    void succeed() const;
    void succeed(const char* signature, ...) const;

private:
    struct state;
    std::shared_ptr<state> state_;
};

std::string bus_error_name(spanker_error_kind kind);
int set_error(sd_bus_error* to, const error& what);  // negative errno, as vtable callbacks return

// a{sv} <-> options. Reading refuses other value types, keys given twice and more than max_options keys: whatever a
// client sends, reading it is short.
inline constexpr std::size_t max_options = 64;
result<options> read_options(sd_bus_message* message);
int append_options(sd_bus_message* message, const options& values);

// Watches a client: `gone` runs once, when its connection leaves the bus. The sender of `message` is the client. The
// track is never empty, for an empty one keeps a blocking call of libsystemd busy for ever.
result<bus_track> watch_sender(sd_bus_message* message, sd_bus_track_handler_t gone,
                               void* userdata);

struct client {
    std::string sender;  // unique bus name
    uid_t uid = 0;
    pid_t pid = 0;
    std::string comm;  // empty when it cannot be seen
};
result<client> identify(sd_bus_message* message);
// Only the uid: no look into /proc.
result<uid_t> sender_uid(sd_bus_message* message);

// ---- vtables ----

int run_method(sd_bus_message* message, sd_bus_error* to,
               result<void> (*call)(void*, sd_bus_message*), void* object);

template <typename T>
struct method_of;
template <typename T>
struct method_of<result<void> (T::*)(sd_bus_message*)> {
    using type = T;
};

// The vtable entry of `result<void> T::f(sd_bus_message*)`, which has answered, keeps a pending_call, or fails.
template <auto Method>
int bus_method(sd_bus_message* message, void* userdata, sd_bus_error* to)
{
    using object = typename method_of<decltype(Method)>::type;
    return run_method(
        message, to,
        [](void* self, sd_bus_message* m) { return (static_cast<object*>(self)->*Method)(m); },
        userdata);
}

template <typename T>
struct getter_of;
template <typename T>
struct getter_of<int (*)(const T&, sd_bus_message*)> {
    using type = T;
};

// The vtable entry of a property: `int get(const T&, sd_bus_message* reply)` appends the value.
template <auto Getter>
int bus_property(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply,
                 void* userdata, sd_bus_error*)
{
    using object = typename getter_of<decltype(Getter)>::type;
    try {
        return Getter(*static_cast<const object*>(userdata), reply);
    } catch (const std::exception&) {
        return -ENOMEM;
    }
}

result<void> check(int r,
                   const char* doing);  // of a libsystemd call that cannot fail but for memory

}  // namespace spanker::daemon
