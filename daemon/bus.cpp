// SPDX-License-Identifier: Apache-2.0
#include "daemon/bus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "daemon/log.hpp"

namespace spanker::daemon {

// ---- connection ----

namespace {

int open_address(const std::string& address, sd_bus** made)
{
    int r = sd_bus_new(made);
    if (r >= 0)
        r = sd_bus_set_address(*made, address.c_str());
    if (r >= 0)
        r = sd_bus_set_bus_client(*made, true);
    if (r >= 0)
        r = sd_bus_negotiate_fds(*made, true);
    if (r >= 0)
        r = sd_bus_start(*made);
    return r;
}

}  // namespace

result<bus_ptr> open_bus(const std::string& where)
{
    sd_bus* made = nullptr;
    int r;
    if (where == "system")
        r = sd_bus_open_system(&made);
    else if (where == "session")
        r = sd_bus_open_user(&made);
    else
        r = open_address(where, &made);
    bus_ptr bus(made);
    if (r < 0)
        return fail_errno(r, fmt::format("cannot connect to the bus '{}': {}; is it running?",
                                         where, std::generic_category().message(-r)));
    return bus;
}

result<void> check(int r, const char* doing)
{
    if (r >= 0)
        return {};
    return fail_errno(r, fmt::format("{}: {}", doing, std::generic_category().message(-r)));
}

// ---- errors ----

std::string bus_error_name(spanker_error_kind kind)
{
    switch (kind) {
    case SPANKER_ERR_INVALID:
        return SD_BUS_ERROR_INVALID_ARGS;
    case SPANKER_ERR_DENIED:
        return SD_BUS_ERROR_ACCESS_DENIED;
    case SPANKER_ERR_NO_MEMORY:
        return SD_BUS_ERROR_NO_MEMORY;
    default:
        return std::string(SPANKER_ERROR_PREFIX) + spanker_error_name(kind);
    }
}

int set_error(sd_bus_error* to, const error& what)
{
    const std::string name = bus_error_name(what.kind);
    const char* message =
        what.message.empty() ? spanker_error_text(what.kind) : what.message.c_str();
    sd_bus_error_set(to, name.c_str(), message);
    return what.negative_errno() < 0 ? what.negative_errno() : -EIO;
}

int run_method(sd_bus_message* message, sd_bus_error* to,
               result<void> (*call)(void*, sd_bus_message*), void* object)
{
    try {
        if (auto done = call(object, message); !done)
            return set_error(to, done.error());
        return 1;
    } catch (const std::bad_alloc&) {
        return set_error(to, {SPANKER_ERR_NO_MEMORY, "the daemon is out of memory"});
    } catch (const std::exception& problem) {
        return set_error(to, {SPANKER_ERR_CARD_FAILED, problem.what()});
    }
}

// ---- answering later ----

struct pending_call::state {
    sd_bus_message* message;
    bool answered = false;

    ~state()
    {
        if (!answered)
            answer(error{SPANKER_ERR_CANCELLED, "the daemon dropped the call"});
        sd_bus_message_unref(message);
    }

    void answer(const error& what)
    {
        answered = true;
        sd_bus_error reply = SD_BUS_ERROR_NULL;
        set_error(&reply, what);
        sd_bus_reply_method_error(message, &reply);
        sd_bus_error_free(&reply);
    }
};

pending_call::pending_call(sd_bus_message* message) : state_(std::make_shared<state>())
{
    state_->message = sd_bus_message_ref(message);
}

sd_bus_message* pending_call::message() const { return state_->message; }

void pending_call::fail(const error& what) const
{
    if (!state_->answered)
        state_->answer(what);
}

sd_bus_message* pending_call::reply() const
{
    sd_bus_message* made = nullptr;
    sd_bus_message_new_method_return(state_->message, &made);
    return made;
}

// A reply that could not be filled (it is poisoned then) or sent is an error, for a client never waits in vain.
void pending_call::send(sd_bus_message* reply) const
{
    if (!state_->answered) {
        state_->answered = true;
        if (!reply || sd_bus_send(sd_bus_message_get_bus(state_->message), reply, nullptr) < 0)
            state_->answer({SPANKER_ERR_NO_MEMORY, "the daemon could not make its reply"});
    }
    sd_bus_message_unref(reply);
}

void pending_call::succeed() const { send(reply()); }

void pending_call::succeed(const char* signature, ...) const
{
    sd_bus_message* made = reply();
    va_list values;
    va_start(values, signature);
    int r = made ? sd_bus_message_appendv(made, signature, values) : -ENOMEM;
    va_end(values);
    if (r < 0) {
        sd_bus_message_unref(made);
        fail({SPANKER_ERR_NO_MEMORY, "the daemon is out of memory"});
        return;
    }
    send(made);
}

// ---- options ----

namespace {

template <typename Wire>
int read_integer(sd_bus_message* m, char type, option_value& to)
{
    Wire value{};
    int r = sd_bus_message_read_basic(m, type, &value);
    if constexpr (std::is_signed_v<Wire>)
        if (r >= 0 && value < 0)
            return -ERANGE;
    to = static_cast<std::uint64_t>(value);
    return r;
}

template <typename Wire>
int read_integers(sd_bus_message* m, char type, option_value& to)
{
    const void* data = nullptr;
    std::size_t bytes = 0;
    int r = sd_bus_message_read_array(m, type, &data, &bytes);
    if (r < 0)
        return r;
    auto* first = static_cast<const Wire*>(data);
    to = std::vector<std::uint64_t>(first, first + bytes / sizeof(Wire));
    return r;
}

int read_boolean(sd_bus_message* m, char type, option_value& to)
{
    int value = 0;
    int r = sd_bus_message_read_basic(m, type, &value);
    to = value != 0;
    return r;
}

int read_double(sd_bus_message* m, char type, option_value& to)
{
    double value = 0;
    int r = sd_bus_message_read_basic(m, type, &value);
    to = value;
    return r;
}

int read_string(sd_bus_message* m, char type, option_value& to)
{
    const char* value = nullptr;
    int r = sd_bus_message_read_basic(m, type, &value);
    to = std::string(value ? value : "");
    return r;
}

// What a value may be: its D-Bus signature and the way to read it.
struct value_type {
    const char* signature;
    int (*read)(sd_bus_message* m, char type, option_value& to);
};

constexpr value_type value_types[] = {
    {"t", read_integer<std::uint64_t>},
    {"u", read_integer<std::uint32_t>},
    {"q", read_integer<std::uint16_t>},
    {"y", read_integer<std::uint8_t>},
    {"x", read_integer<std::int64_t>},
    {"i", read_integer<std::int32_t>},
    {"n", read_integer<std::int16_t>},
    {"b", read_boolean},
    {"d", read_double},
    {"s", read_string},
    {"at", read_integers<std::uint64_t>},
    {"au", read_integers<std::uint32_t>},
};

result<option_value> read_value(sd_bus_message* m, const std::string& key)
{
    const char* signature = nullptr;
    if (auto r = check(sd_bus_message_peek_type(m, nullptr, &signature), "reading options"); !r)
        return tl::unexpected(r.error());
    for (const value_type& type : value_types) {
        if (std::string_view(type.signature) != signature)
            continue;
        option_value value;
        sd_bus_message_enter_container(m, SD_BUS_TYPE_VARIANT, signature);
        const char basic = type.signature[0] == 'a' ? type.signature[1] : type.signature[0];
        int r = type.read(m, basic, value);
        if (r == -ERANGE)
            return fail(SPANKER_ERR_INVALID, fmt::format("key '{}' must not be negative", key));
        sd_bus_message_exit_container(m);
        return value;
    }
    return fail(
        SPANKER_ERR_INVALID,
        fmt::format("key '{}' has a value of type '{}', which no option takes", key, signature));
}

}  // namespace

result<options> read_options(sd_bus_message* m)
{
    options values;
    if (auto r =
            check(sd_bus_message_enter_container(m, SD_BUS_TYPE_ARRAY, "{sv}"), "reading options");
        !r)
        return tl::unexpected(r.error());
    while (sd_bus_message_enter_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv") > 0) {
        if (values.size() >= max_options)
            return fail(SPANKER_ERR_INVALID,
                        fmt::format("too many keys: {} is the most there may be", max_options));
        const char* key = nullptr;
        if (auto r = check(sd_bus_message_read_basic(m, 's', &key), "reading a key"); !r)
            return tl::unexpected(r.error());
        option one{.key = key, .value = {}};
        auto value = read_value(m, one.key);
        if (!value)
            return tl::unexpected(value.error());
        if (std::any_of(values.begin(), values.end(),
                        [&](const option& other) { return other.key == one.key; }))
            return fail(SPANKER_ERR_INVALID, fmt::format("key '{}' is given twice", one.key));
        one.value = std::move(*value);
        values.push_back(std::move(one));
        sd_bus_message_exit_container(m);
    }
    sd_bus_message_exit_container(m);
    return values;
}

namespace {

int append_integers(sd_bus_message* m, const std::vector<std::uint64_t>& values)
{
    int r = sd_bus_message_open_container(m, SD_BUS_TYPE_VARIANT, "at");
    if (r >= 0)
        r = sd_bus_message_append_array(m, 't', values.data(), values.size() * sizeof values[0]);
    return r < 0 ? r : sd_bus_message_close_container(m);
}

struct append_value {
    sd_bus_message* m;

    int operator()(std::uint64_t v) const { return sd_bus_message_append(m, "v", "t", v); }
    int operator()(bool v) const { return sd_bus_message_append(m, "v", "b", int{v}); }
    int operator()(double v) const { return sd_bus_message_append(m, "v", "d", v); }
    int operator()(const std::string& v) const
    {
        return sd_bus_message_append(m, "v", "s", v.c_str());
    }
    int operator()(const std::vector<std::uint64_t>& v) const { return append_integers(m, v); }
};

}  // namespace

int append_options(sd_bus_message* m, const options& values)
{
    int r = sd_bus_message_open_container(m, SD_BUS_TYPE_ARRAY, "{sv}");
    for (const option& one : values) {
        if (r >= 0)
            r = sd_bus_message_open_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv");
        if (r >= 0)
            r = sd_bus_message_append_basic(m, 's', one.key.c_str());
        if (r >= 0)
            r = std::visit(append_value{m}, one.value);
        if (r >= 0)
            r = sd_bus_message_close_container(m);
    }
    return r < 0 ? r : sd_bus_message_close_container(m);
}

// ---- clients ----

result<bus_track> watch_sender(sd_bus_message* message, sd_bus_track_handler_t gone, void* userdata)
{
    sd_bus_track* made = nullptr;
    int r = sd_bus_track_new(sd_bus_message_get_bus(message), &made, gone, userdata);
    bus_track track(made);
    if (r >= 0)
        r = sd_bus_track_add_sender(made, message);
    // -ENXIO: the client left before we looked.
    if (r < 0)
        return fail(SPANKER_ERR_CANCELLED, "the caller has left the bus");
    return track;
}

namespace {

result<bus_creds> query(sd_bus_message* message, std::uint64_t mask)
{
    sd_bus_creds* made = nullptr;
    int r = sd_bus_query_sender_creds(message, mask, &made);
    if (r < 0)
        return fail(SPANKER_ERR_DENIED, "the bus does not tell who calls");
    return bus_creds(made);
}

}  // namespace

result<uid_t> sender_uid(sd_bus_message* message)
{
    auto creds = query(message, SD_BUS_CREDS_EUID);
    if (!creds)
        return tl::unexpected(creds.error());
    uid_t uid;
    if (sd_bus_creds_get_euid(creds->get(), &uid) < 0)
        return fail(SPANKER_ERR_DENIED, "the bus does not tell the caller's user");
    return uid;
}

result<client> identify(sd_bus_message* message)
{
    auto creds = query(message, SD_BUS_CREDS_EUID | SD_BUS_CREDS_PID | SD_BUS_CREDS_COMM |
                                    SD_BUS_CREDS_AUGMENT);
    if (!creds)
        return tl::unexpected(creds.error());
    client who;
    if (sd_bus_creds_get_euid(creds->get(), &who.uid) < 0)
        return fail(SPANKER_ERR_DENIED, "the bus does not tell the caller's user");
    sd_bus_creds_get_pid(creds->get(), &who.pid);
    const char* comm = nullptr;
    if (sd_bus_creds_get_comm(creds->get(), &comm) >= 0 && comm)
        who.comm = comm;
    if (const char* sender = sd_bus_message_get_sender(message))
        who.sender = sender;
    return who;
}

}  // namespace spanker::daemon
