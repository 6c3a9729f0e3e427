// SPDX-License-Identifier: Apache-2.0
#include "daemon/rights.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

namespace spanker::daemon {

namespace {

constexpr std::uint64_t quiet_limit_us = 5'000'000;          // polkit alone decides
constexpr std::uint64_t interactive_limit_us = 120'000'000;  // a person types a password
constexpr std::uint32_t allow_interaction = 1;               // of CheckAuthorization's flags

error denied(const std::string& action, const char* why)
{
    return {SPANKER_ERR_DENIED, fmt::format("{} needs an administrator: {}", action, why)};
}

bool nobody_offers_polkit(const sd_bus_error* problem)
{
    return sd_bus_error_has_name(problem, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
           sd_bus_error_has_name(problem, SD_BUS_ERROR_NAME_HAS_NO_OWNER);
}

// CheckAuthorization(subject, action, details, flags, cancellation id)
int make_question(sd_bus* bus, sd_bus_message* caller, const std::string& action, bool interactive,
                  sd_bus_message** made)
{
    int r = sd_bus_message_new_method_call(
        bus, made, "org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority",
        "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization");
    if (r >= 0)
        r = sd_bus_message_append(*made, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                                  sd_bus_message_get_sender(caller), action.c_str(), 0,
                                  interactive ? allow_interaction : 0u, "");
    return r;
}

}  // namespace

void rights::require(const pending_call& call, const char* action, std::function<void()> then)
{
    auto uid = sender_uid(call.message());
    if (!uid)
        return call.fail(uid.error());
    if (*uid == 0 || *uid == geteuid())
        return then();
    ask_polkit(call, action, std::move(then));
}

void rights::ask_polkit(const pending_call& call, const char* action, std::function<void()> then)
{
    const bool interactive = sd_bus_message_get_allow_interactive_authorization(call.message()) > 0;
    const std::string name = fmt::format("org.popsolutions.spanker1.{}", action);
    sd_bus_message* made = nullptr;
    int r = make_question(bus_, call.message(), name, interactive, &made);
    std::unique_ptr<sd_bus_message, decltype(&sd_bus_message_unref)> owned(made,
                                                                           sd_bus_message_unref);
    const std::uint64_t id = ++next_;
    auto* which = new cookie{this, id};
    sd_bus_slot* slot = nullptr;
    if (r >= 0)
        r = sd_bus_call_async(bus_, &slot, made, on_answer, which,
                              interactive ? interactive_limit_us : quiet_limit_us);
    if (r < 0) {
        delete which;
        return call.fail(denied(action, "polkit cannot be asked"));
    }
    sd_bus_slot_set_destroy_callback(slot, [](void* data) { delete static_cast<cookie*>(data); });
    open_.emplace(id, rights::question{call, action, std::move(then), bus_slot(slot)});
}

int rights::on_answer(sd_bus_message* answer, void* userdata, sd_bus_error*)
{
    auto* which = static_cast<cookie*>(userdata);
    which->self->take(which->id, answer);
    return 1;
}

void rights::take(std::uint64_t id, sd_bus_message* answer)
{
    auto node = open_.extract(id);
    const question& asked = node.mapped();
    if (const sd_bus_error* problem = sd_bus_message_get_error(answer)) {
        asked.call.fail(denied(asked.action, nobody_offers_polkit(problem)
                                                 ? "there is no polkit on this bus, so be root"
                                                 : "polkit did not answer"));
        return;
    }
    int authorized = 0, challenge = 0;
    if (sd_bus_message_enter_container(answer, SD_BUS_TYPE_STRUCT, "bba{ss}") < 0 ||
        sd_bus_message_read(answer, "bb", &authorized, &challenge) < 0)
        authorized = challenge = 0;
    if (authorized)
        return asked.then();
    asked.call.fail(denied(asked.action, challenge ? "allow interactive authorization and try again"
                                                   : "polkit refuses"));
}

}  // namespace spanker::daemon
