// SPDX-License-Identifier: Apache-2.0
//
// The backend of real cards: the kernel module's device nodes for what cards
// do, its netlink family for which there are and what becomes of them, its
// files in /sys for their sensors. It starts and runs with no module and no
// card, and notices both when they come.
#include <cerrno>
#include <string>

#include "daemon/backend.hpp"
#include "daemon/kernel/card_watch.hpp"
#include "daemon/kernel/control.hpp"
#include "daemon/kernel/device.hpp"
#include "daemon/kernel/kernel_file.hpp"
#include "daemon/kernel/telemetry_files.hpp"
#include "daemon/refusals.hpp"

namespace spanker::daemon {

namespace {

using namespace kernel;

constexpr unsigned dump_tries = 4;  // cards that come and go disturb it

class kernel_backend final : public backend {
public:
    result<void> start() { return watch_.start(); }

    std::string name() const override { return "hardware"; }
    std::vector<std::uint32_t> cards() override { return watch_.cards(); }
    result<spanker_get_info> info(std::uint32_t card) override { return read_info(card); }
    result<std::vector<port_info>> ports(std::uint32_t card) override;
    result<telemetry> read_telemetry(std::uint32_t card) override;
    result<std::unique_ptr<card_file>> open(std::uint32_t card, std::uint32_t depth) override
    {
        return kernel_file::open(card, depth);
    }
    result<std::unique_ptr<channel_group>>
    group_create(std::span<const group_member> members) override
    {
        return create_group(members);
    }
    result<void> link_train(std::uint32_t card, std::uint32_t port_mask, bool retrain) override
    {
        return train_links(card, port_mask, retrain);
    }
    result<void> link_set_admin(std::uint32_t card, std::uint32_t port, bool enable) override
    {
        return set_link_admin(card, port, enable);
    }
    result<void> card_reset(std::uint32_t card, std::uint32_t mode) override
    {
        return reset_card(card, mode);
    }
    int event_fd() const override { return watch_.fd(); }
    std::vector<event> take_events() override { return watch_.take_events(); }
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
    card_watch watch_;
};

result<std::vector<port_info>> kernel_backend::ports(std::uint32_t card)
{
    const int family = watch_.family();
    netlink_answer answer{.err = -ENOENT, .interrupted = true, .messages = {}};
    for (unsigned n = 0; family != 0 && answer.interrupted && n < dump_tries; n++)
        answer = dump(family, SPANKER_CMD_PORT_GET, card);
    switch (answer.err) {
    case 0:
        break;
    case -ENOENT:
        return tl::unexpected(open_error(node_of(card), -ENOENT));
    case -ENODEV:
    case -EIO:
    case -EAGAIN:
        return tl::unexpected(refusals::gate(card, answer.err));
    default:
        return tl::unexpected(device_error(node_of(card), answer.err, "cannot read its ports"));
    }
    std::vector<port_info> out;
    for (const netlink_message& told : answer.messages)
        if (told.message == SPANKER_MSG_PORT && told.card == card && told.port == out.size())
            out.push_back(told.port_values);
    return out;
}

result<telemetry> kernel_backend::read_telemetry(std::uint32_t card)
{
    const auto now = info(card);
    if (!now)
        return tl::unexpected(now.error());
    auto out = read_telemetry_files(card);
    if (out)
        out->device_ns = now->out_device_ns;
    return out;
}

}  // namespace

result<std::unique_ptr<backend>> make_kernel_backend()
{
    if (auto module = check_module(); !module)
        return tl::unexpected(module.error());
    auto made = std::make_unique<kernel_backend>();
    if (auto started = made->start(); !started)
        return tl::unexpected(started.error());
    return made;
}

}  // namespace spanker::daemon
