// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel/control.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/kernel/device.hpp"
#include "daemon/kernel/kernel_file.hpp"
#include "daemon/refusals.hpp"

namespace spanker::daemon::kernel {

namespace {

std::string card_name(std::uint32_t card) { return "card " + std::to_string(card); }

// Calls a verb; says whether the node, or the call, failed.
template <typename T>
result<int> control(unsigned long request, T& argument)
{
    unique_fd fd;
    if (const int err = open_node(control_node, fd))
        return tl::unexpected(open_error(control_node, err));
    return device_call(fd.get(), request, &argument);
}

// The words for what every verb about a card may answer.
error refusal(std::uint32_t card, int err, const std::string& what)
{
    switch (err) {
    case -ENOENT:
        return {SPANKER_ERR_NO_OBJECT, node_of(card) + ": there is no such card"};
    case -ENODEV:
    case -EIO:
    case -EAGAIN:
        return refusals::gate(card, err);
    default:
        return device_error(control_node, err, what);
    }
}

std::uint32_t port_count(std::uint32_t card)
{
    return read_info(card).map([](const auto& info) { return info.out_ports; }).value_or(0);
}

// ---- groups ----

using file_list = std::vector<std::shared_ptr<file_objects>>;

class kernel_group final : public channel_group {
public:
    kernel_group(unique_fd fd, std::uint32_t id, file_list files)
        : fd_(std::move(fd)), id_(id), files_(std::move(files))
    {}
    ~kernel_group() override
    {
        fd_.reset();  // waits for what was in flight
        for (const auto& file : files_)
            file->leave(id_);
    }
    std::uint32_t id() const override { return id_; }

private:
    unique_fd fd_;
    std::uint32_t id_;
    file_list files_;
};

// A member as the driver takes it, and as refusals name it.
struct claim {
    spanker_group_member member;
    spk_channel_claim channel;
    std::shared_ptr<file_objects> objects;
};

result<claim> claim_of(const group_member& member)
{
    const auto* file = dynamic_cast<const kernel_file*>(member.file);
    if (!file)
        return tl::unexpected(refusals::foreign_file());
    return claim{.member = {.card_fd = file->fd(),
                            .port_mask = member.port_mask,
                            .channel = member.channel,
                            .reserved = 0},
                 .channel = {.card = file->objects()->card().out_number,
                             .port_mask = member.port_mask,
                             .channel = member.channel},
                 .objects = file->objects()};
}

error group_refusal(int err, std::uint32_t busy_pid, std::span<const claim> claims)
{
    if (claims.empty())
        return refusals::empty_group();
    for (const claim& one : claims) {
        const spanker_get_info& card = one.objects->card();
        const auto good = refusals::check_claim(one.channel, card.out_ports, card.out_channels);
        if (err == -EINVAL && !good)
            return good.error();
    }
    // Whose channel it is the driver says, which of them it does not: one member is no riddle.
    if (err == -EBUSY)
        return claims.size() == 1
                   ? refusals::channel_taken(claims[0].channel, {}, busy_pid)
                   : error{SPANKER_ERR_BUSY, "a channel of the group belongs to pid " +
                                                 std::to_string(busy_pid) + " already"};
    const std::uint32_t card = claims[0].channel.card;
    if (err == -ESTALE || err == -ENODEV || err == -EIO || err == -EAGAIN)
        return claims.size() == 1 ? refusals::gate(card, err)
                                  : device_error(control_node, err,
                                                 "a card of the group was reset or is gone; open "
                                                 "its file again");
    return device_error(control_node, err, "cannot create the group");
}

// Each file learns what it may name.
file_list tell_files(std::uint32_t group, std::span<const claim> claims)
{
    std::set<std::uint32_t> cards;
    std::map<std::uint32_t, membership> by_card;
    file_list files;
    for (const claim& one : claims) {
        cards.insert(one.channel.card);
        by_card[one.channel.card].ports[one.channel.channel] |=
            static_cast<std::uint8_t>(one.channel.port_mask);
        if (std::find(files.begin(), files.end(), one.objects) == files.end())
            files.push_back(one.objects);
    }
    for (const auto& file : files) {
        membership& as = by_card[file->card().out_number];
        as.cards = static_cast<std::uint32_t>(cards.size());
        file->join(group, as);
    }
    return files;
}

}  // namespace

result<std::unique_ptr<channel_group>> create_group(std::span<const group_member> members)
{
    std::vector<claim> claims;
    std::vector<spanker_group_member> list;
    for (const group_member& member : members) {
        auto one = claim_of(member);
        if (!one)
            return tl::unexpected(one.error());
        list.push_back(one->member);
        claims.push_back(std::move(*one));
    }
    auto ask = request<spanker_group_create>();
    ask.members = reinterpret_cast<std::uintptr_t>(list.data());
    ask.count = static_cast<std::uint32_t>(list.size());
    ask.member_bytes = sizeof(spanker_group_member);
    ask.out_fd = -1;
    const auto called = control(SPANKER_IOC_GROUP_CREATE, ask);
    if (!called)
        return tl::unexpected(called.error());
    if (*called != 0)
        return tl::unexpected(group_refusal(*called, ask.out_busy_pid, claims));
    return std::make_unique<kernel_group>(unique_fd(ask.out_fd), ask.out_group,
                                          tell_files(ask.out_group, claims));
}

// ---- links and cards ----

result<void> train_links(std::uint32_t card, std::uint32_t port_mask, bool retrain)
{
    auto ask = request<spanker_link_train>();
    ask.flags = retrain ? SPANKER_TRAIN_RETRAIN : 0;
    ask.card = card;
    ask.port_mask = port_mask;
    const auto called = control(SPANKER_IOC_LINK_TRAIN, ask);
    if (!called)
        return tl::unexpected(called.error());
    if (*called == -EINVAL) {
        const std::uint32_t ports = port_count(card);
        return tl::unexpected(port_mask == 0 || port_mask >> ports
                                  ? refusals::bad_port_mask(card, ports)
                                  : refusals::port_disabled(card, {}));
    }
    if (*called != 0)
        return tl::unexpected(refusal(card, *called, "cannot train ports of " + card_name(card)));
    return {};
}

result<void> set_link_admin(std::uint32_t card, std::uint32_t port, bool enable)
{
    auto ask = request<spanker_link_set_admin>();
    ask.flags = enable ? 0 : SPANKER_LINK_DISABLE;
    ask.card = card;
    ask.port = port;
    const auto called = control(SPANKER_IOC_LINK_SET_ADMIN, ask);
    if (!called)
        return tl::unexpected(called.error());
    if (*called == -EINVAL)
        return tl::unexpected(refusals::no_such_port(card, port_count(card), port));
    if (*called != 0)
        return tl::unexpected(
            refusal(card, *called,
                    "cannot switch port " + std::to_string(port) + " of " + card_name(card)));
    return {};
}

result<void> reset_card(std::uint32_t card, std::uint32_t mode)
{
    auto ask = request<spanker_card_reset>();
    ask.card = card;
    ask.mode = mode;
    const auto called = control(SPANKER_IOC_CARD_RESET, ask);
    if (!called)
        return tl::unexpected(called.error());
    if (*called == -EINVAL)
        return tl::unexpected(refusals::no_reset_mode(mode));
    if (*called != 0)
        return tl::unexpected(refusal(card, *called, "cannot reset " + card_name(card)));
    return {};
}

// ---- the module ----

result<void> check_module()
{
    const unique_fd fd(::open(control_node, O_RDONLY | O_CLOEXEC));
    const int err = fd ? 0 : -errno;
    if (err == -ENOENT || err == -ENXIO || err == -ENODEV)
        return {};
    if (err)
        return tl::unexpected(open_error(control_node, err));
    spanker_version version{};
    if (const int told = device_call(fd.get(), SPANKER_IOC_GET_VERSION, &version))
        return tl::unexpected(device_error(
            control_node, told, "it does not answer GET_VERSION; is the module another one?"));
    return {};
}

}  // namespace spanker::daemon::kernel
