// SPDX-License-Identifier: Apache-2.0
#include "bus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace spanker::lib {
namespace {

struct bus_error {
    sd_bus_error e = {};
    ~bus_error() { sd_bus_error_free(&e); }
};

// sd-bus reports its own failures in the same struct as the peer's: these are its own.
bool failed_here(const sd_bus_error& e)
{
    static constexpr std::string_view own[] = {"org.freedesktop.DBus.Error.Timeout",
                                               "org.freedesktop.DBus.Error.Disconnected"};
    return e.name == nullptr || std::string_view(e.name).starts_with("System.Error.") ||
           std::find(std::begin(own), std::end(own), e.name) != std::end(own);
}

spanker_error own_error(int r, const std::string& what)
{
    switch (-r) {
    case ETIMEDOUT: {
        spanker_error error = make_error(SPANKER_KIND_TIMEOUT,
                                         fmt::format("{}: spankerd did not answer in time", what));
        *fmt::format_to_n(error.name, sizeof error.name - 1, "{}", no_reply).out = '\0';
        return error;
    }
    case ECONNRESET:
    case ENOTCONN:
    case EPIPE:
        return make_error(SPANKER_KIND_DAEMON_RESTARTED,
                          fmt::format("{}: the connection to the bus broke; call again", what));
    default:
        return make_error_errno(r, fmt::format("{}: {}", what, std::strerror(-r)));
    }
}

spanker_error peer_error(const sd_bus_error& e, const std::string& what)
{
    const std::string_view text = e.message != nullptr ? e.message : "";
    const spanker_kind kind = kind_of_name(e.name);
    if (std::string_view(e.name).ends_with(".NoReply"))  // the bus says why it will not come
        return own_error(text.find("disconnected") != text.npos ? -ECONNRESET : -ETIMEDOUT, what);
    if (kind == SPANKER_KIND_NO_DAEMON)
        return make_error(kind, "spankerd is not running and could not be started: see "
                                "`systemctl status spankerd`, or start it by hand");
    spanker_error error = make_error(kind, text.empty() ? spanker_kind_text(kind) : text);
    if (kind == SPANKER_KIND_REMOTE)  // keep the name that we do not know
        fmt::format_to_n(error.name, sizeof error.name - 1, "{}", e.name).out[0] = '\0';
    return error;
}

int connect_to(const std::string& address, sd_bus** out)
{
    if (address == "system")
        return sd_bus_open_system(out);
    if (address == "session")
        return sd_bus_open_user(out);
    sd_bus* connection = nullptr;
    int r = sd_bus_new(&connection);
    if (r < 0)
        return r;
    r = sd_bus_set_address(connection, address.c_str());
    if (r >= 0)
        r = sd_bus_set_bus_client(connection, 1);
    if (r >= 0)
        r = sd_bus_start(connection);
    if (r < 0) {
        sd_bus_unref(connection);
        return r;
    }
    *out = connection;
    return 0;
}

}  // namespace

std::string interface_name(const char* short_name)
{
    return fmt::format("{}.{}", service, short_name);
}

int malformed(const void* who, const char* what)
{
    return fail(who, SPANKER_KIND_REMOTE,
                fmt::format("{}: the daemon's reply has an unknown form; library and daemon do not "
                            "fit together",
                            what));
}

int bus::open(const void* who, const std::string& address, std::uint64_t timeout_ns,
              std::shared_ptr<bus>& out)
{
    std::shared_ptr<bus> made(new bus(address, timeout_ns));
    if (const int r = made->connect(who); r < 0)
        return r;
    out = std::move(made);
    return 0;
}

bus::~bus() { sd_bus_flush_close_unref(connection_); }

int bus::connect(const void* who)
{
    if (connection_ != nullptr && sd_bus_is_open(connection_) > 0)
        return 0;
    connection_ = sd_bus_flush_close_unref(connection_);
    const int r = connect_to(address_, &connection_);
    return r >= 0 ? 0
                  : fail(who, SPANKER_KIND_NO_DAEMON,
                         fmt::format("no bus at '{}': {}", address_, std::strerror(-r)));
}

int bus::call(const void* who, const std::string& path, const char* interface, const char* method,
              const append_fn& append, message_ptr& reply, std::uint64_t timeout_ns)
{
    return call_raw(who, path, interface_name(interface).c_str(), method, append, reply,
                    timeout_ns);
}

int bus::call_raw(const void* who, const std::string& path, const char* interface,
                  const char* method, const append_fn& append, message_ptr& reply,
                  std::uint64_t timeout_ns)
{
    const std::lock_guard lock(mutex_);
    if (const int r = connect(who); r < 0)
        return r;
    sd_bus_message* request = nullptr;
    int r = sd_bus_message_new_method_call(connection_, &request, service, path.c_str(), interface,
                                           method);
    const std::unique_ptr<sd_bus_message, sd_bus_message* (*)(sd_bus_message*)> owned(
        request, sd_bus_message_unref);
    if (r >= 0 && append)
        r = append(request);
    if (r < 0)
        return fail(who, make_error_errno(r, fmt::format("{}: cannot build the call: {}", method,
                                                         std::strerror(-r))));
    bus_error error;
    sd_bus_message* answer = nullptr;
    const std::uint64_t limit = timeout_ns != 0 ? timeout_ns : timeout_ns_;
    r = sd_bus_call(connection_, request, std::max<std::uint64_t>(limit / 1000, 1), &error.e,
                    &answer);
    if (r < 0)
        return fail(who, failed_here(error.e) ? own_error(r, method) : peer_error(error.e, method));
    reply = message_ptr(answer, {&mutex_});  // it was empty: else this would lock twice
    return 0;
}

int bus::get_all(const void* who, const std::string& path, const char* interface,
                 message_ptr& reply)
{
    const std::string name = interface_name(interface);
    return call_raw(
        who, path, "org.freedesktop.DBus.Properties", "GetAll",
        [&](sd_bus_message* m) { return sd_bus_message_append(m, "s", name.c_str()); }, reply);
}

int for_each_option(sd_bus_message* m,
                    const std::function<int(const char* key, const char* type)>& visit)
{
    int r = sd_bus_message_enter_container(m, 'a', "{sv}");
    if (r < 0)
        return r;
    while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
        const char* key = nullptr;
        const char* type = nullptr;
        if ((r = sd_bus_message_read(m, "s", &key)) < 0 ||
            (r = sd_bus_message_peek_type(m, nullptr, &type)) < 0)
            return r;
        if ((r = sd_bus_message_enter_container(m, 'v', type)) < 0)
            return r;
        const int taken = visit(key, type);
        if (taken < 0)
            return taken;
        if (taken == 0 && (r = sd_bus_message_skip(m, type)) < 0)
            return r;
        for (int level = 0; level < 2; ++level)  // the variant, then the entry
            if ((r = sd_bus_message_exit_container(m)) < 0)
                return r;
    }
    return r < 0 ? r : sd_bus_message_exit_container(m);
}

}  // namespace spanker::lib
