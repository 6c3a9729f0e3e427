// SPDX-License-Identifier: Apache-2.0
#include "bus.hpp"

#include <fmt/format.h>

#include <cstring>

namespace spanker::lib {
namespace {

struct bus_error {
    sd_bus_error e = {};
    ~bus_error() { sd_bus_error_free(&e); }
};

bool daemon_is_away(spanker_kind kind)
{
    return kind == SPANKER_KIND_NO_DAEMON;
}

int fail_call(const void* who, const sd_bus_error& e, int r, const std::string& what)
{
    if (e.name == nullptr) {
        if (r == -ETIMEDOUT)
            return fail(who, SPANKER_KIND_TIMEOUT,
                        fmt::format("{}: spankerd did not answer in time", what));
        if (r == -ECONNRESET || r == -ENOTCONN || r == -EPIPE)
            return fail(who, SPANKER_KIND_DAEMON_RESTARTED,
                        fmt::format("{}: the connection to the bus broke", what));
        return fail(who, make_error_errno(r, fmt::format("{}: {}", what, std::strerror(-r))));
    }
    const spanker_kind kind = kind_of_name(e.name);
    spanker_error error = {};
    if (daemon_is_away(kind))
        error = make_error(kind, "spankerd is not running and could not be started: see "
                                 "`systemctl status spankerd`, or start it by hand");
    else
        error = make_error(
            kind, e.message != nullptr && *e.message != '\0' ? e.message : spanker_kind_text(kind));
    if (kind == SPANKER_KIND_REMOTE)  // keep the name that we do not know
        fmt::format_to_n(error.name, sizeof error.name - 1, "{}", e.name).out[0] = '\0';
    return fail(who, error);
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
              std::unique_ptr<bus>& out)
{
    sd_bus* connection = nullptr;
    const int r = connect_to(address, &connection);
    if (r < 0)
        return fail(who, SPANKER_KIND_NO_DAEMON,
                    fmt::format("no bus at '{}': {}", address, std::strerror(-r)));
    out.reset(new bus(connection, timeout_ns));
    return 0;
}

bus::~bus()
{
    sd_bus_flush_close_unref(connection_);
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
    sd_bus_message* request = nullptr;
    int r = sd_bus_message_new_method_call(connection_, &request, service, path.c_str(), interface,
                                           method);
    const message_ptr owned(request);
    if (r >= 0 && append)
        r = append(request);
    if (r < 0)
        return fail(who, make_error_errno(r, fmt::format("{}: cannot build the call: {}", method,
                                                         std::strerror(-r))));
    bus_error error;
    sd_bus_message* answer = nullptr;
    const std::uint64_t limit = timeout_ns != 0 ? timeout_ns : timeout_ns_;
    r = sd_bus_call(connection_, request, limit / 1000, &error.e, &answer);
    if (r < 0)
        return fail_call(who, error.e, r, method);
    reply.reset(answer);
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
        if ((r = sd_bus_message_exit_container(m)) < 0 ||
            (r = sd_bus_message_exit_container(m)) < 0)
            return r;
    }
    return r < 0 ? r : sd_bus_message_exit_container(m);
}

}  // namespace spanker::lib
