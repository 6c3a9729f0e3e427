// SPDX-License-Identifier: Apache-2.0
//
// The backend of real cards: device nodes of the kernel module. It starts and
// runs with no module and no card, and looks at the nodes anew on each call of
// cards().
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string>

#include "daemon/backend.hpp"
#include "daemon/kernel/kernel_file.hpp"
#include "daemon/os_error.hpp"

namespace spanker::daemon {

namespace {

constexpr const char* control_node = "/dev/spankerctl";
constexpr std::string_view card_prefix = "spanker";

std::string node_of(std::uint32_t card) { return "/dev/spanker" + std::to_string(card); }

// N of a file name spankerN with nothing before, between or after.
std::optional<std::uint32_t> card_of(std::string_view name)
{
    if (name.substr(0, card_prefix.size()) != card_prefix)
        return std::nullopt;
    name.remove_prefix(card_prefix.size());
    std::uint32_t number = 0;
    const auto [stop, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool whole = !name.empty() && problem == std::errc{} && stop == name.data() + name.size();
    return whole ? std::optional(number) : std::nullopt;
}

class kernel_group final : public channel_group {
public:
    kernel_group(unique_fd fd, std::uint32_t id) : fd_(std::move(fd)), id_(id) {}
    std::uint32_t id() const override { return id_; }

private:
    unique_fd fd_;
    std::uint32_t id_;
};

class kernel_backend final : public backend {
public:
    explicit kernel_backend(unique_fd event_fd) : event_fd_(std::move(event_fd)) {}

    std::string name() const override { return "hardware"; }
    std::vector<std::uint32_t> cards() override;
    result<spanker_get_info> info(std::uint32_t card) override
    {
        return kernel_file::read_info(node_of(card));
    }
    result<std::vector<port_info>> ports(std::uint32_t card) override
    {
        return not_yet(card, "its ports");
    }
    result<telemetry> read_telemetry(std::uint32_t card) override
    {
        return not_yet(card, "telemetry");
    }
    result<std::unique_ptr<card_file>> open(std::uint32_t card, std::uint32_t depth) override
    {
        return kernel_file::open(node_of(card), depth);
    }
    result<std::unique_ptr<channel_group>>
    group_create(std::span<const group_member> members) override;
    result<void> link_train(std::uint32_t card, std::uint32_t port_mask, bool retrain) override;
    result<void> link_set_admin(std::uint32_t card, std::uint32_t port, bool enable) override;
    result<void> card_reset(std::uint32_t card, std::uint32_t mode) override;
    int event_fd() const override { return event_fd_.get(); }
    std::vector<event> take_events() override { return {}; }
    bool drive() override { return false; }
    std::optional<std::uint64_t> next_work_ns() const override { return std::nullopt; }
    result<std::vector<trace_record>> trace(std::uint32_t card, std::size_t) override
    {
        return fail(SPANKER_ERR_NOT_SUPPORTED,
                    node_of(card) + ": only simulated cards of this daemon keep a trace");
    }
    result<void> inject(std::uint32_t card, const std::string&) override
    {
        return fail(SPANKER_ERR_NOT_SUPPORTED,
                    node_of(card) + ": only simulated cards of this daemon take faults");
    }

private:
    static tl::unexpected<error> not_yet(std::uint32_t card, const std::string& what)
    {
        return fail(SPANKER_ERR_NOT_SUPPORTED,
                    node_of(card) + ": this driver version does not report " + what);
    }
    template <typename T>
    result<T> control(unsigned long request, T argument, const std::string& what) const
    {
        const unique_fd fd(::open(control_node, O_RDWR | O_CLOEXEC));
        if (!fd)
            return device_error(control_node, -errno, what);
        if (const int err = device_call(fd.get(), request, &argument))
            return device_error(control_node, err, what);
        return argument;
    }

    unique_fd event_fd_;
};

std::vector<std::uint32_t> kernel_backend::cards()
{
    std::vector<std::uint32_t> out;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator("/dev", none))
        if (const auto card = card_of(entry.path().filename().string()))
            if (std::error_code odd; entry.is_character_file(odd))
                out.push_back(*card);
    std::sort(out.begin(), out.end());
    return out;
}

result<std::unique_ptr<channel_group>>
kernel_backend::group_create(std::span<const group_member> members)
{
    std::vector<spanker_group_member> list;
    for (const group_member& member : members) {
        if (!member.file)
            return fail(SPANKER_ERR_INVALID, "a member of a group is an open card");
        list.push_back({.card_fd = member.file->fd(),
                        .port_mask = member.port_mask,
                        .channel = member.channel,
                        .reserved = 0});
    }
    spanker_group_create ask{};
    ask.size = sizeof(ask);
    ask.members = reinterpret_cast<std::uintptr_t>(list.data());
    ask.count = static_cast<std::uint32_t>(list.size());
    ask.member_bytes = sizeof(spanker_group_member);
    return control(SPANKER_IOC_GROUP_CREATE, ask, "cannot create the group")
        .map([](const auto& done) -> std::unique_ptr<channel_group> {
            return std::make_unique<kernel_group>(unique_fd(done.out_fd), done.out_group);
        });
}

result<void> kernel_backend::link_train(std::uint32_t card, std::uint32_t port_mask, bool retrain)
{
    const spanker_link_train ask{.size = sizeof(ask),
                                 .flags = retrain ? SPANKER_TRAIN_RETRAIN : 0,
                                 .card = card,
                                 .port_mask = port_mask};
    return control(SPANKER_IOC_LINK_TRAIN, ask,
                   "cannot train ports of card " + std::to_string(card))
        .map([](const auto&) {});
}

result<void> kernel_backend::link_set_admin(std::uint32_t card, std::uint32_t port, bool enable)
{
    spanker_link_set_admin ask{};
    ask.size = sizeof(ask);
    ask.flags = enable ? 0 : SPANKER_LINK_DISABLE;
    ask.card = card;
    ask.port = port;
    return control(SPANKER_IOC_LINK_SET_ADMIN, ask,
                   "cannot switch port " + std::to_string(port) + " of card " +
                       std::to_string(card))
        .map([](const auto&) {});
}

result<void> kernel_backend::card_reset(std::uint32_t card, std::uint32_t mode)
{
    const spanker_card_reset ask{.size = sizeof(ask), .flags = 0, .card = card, .mode = mode};
    return control(SPANKER_IOC_CARD_RESET, ask, "cannot reset card " + std::to_string(card))
        .map([](const auto&) {});
}

// A module that is there must speak our interface; none at all is fine.
result<void> check_module()
{
    const unique_fd fd(::open(control_node, O_RDONLY | O_CLOEXEC));
    if (!fd && (errno == ENOENT || errno == ENXIO || errno == ENODEV))
        return {};
    if (!fd)
        return device_error(control_node, -errno,
                            "cannot open it; is this user in the group of the node?");
    spanker_version version{};
    if (const int err = device_call(fd.get(), SPANKER_IOC_GET_VERSION, &version))
        return device_error(control_node, err, "it does not answer GET_VERSION");
    return {};
}

}  // namespace

result<std::unique_ptr<backend>> make_kernel_backend()
{
    if (auto module = check_module(); !module)
        return tl::unexpected(module.error());
    unique_fd event_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event_fd)
        return fail_os(errno, "no descriptor left for events");
    return std::make_unique<kernel_backend>(std::move(event_fd));
}

}  // namespace spanker::daemon
