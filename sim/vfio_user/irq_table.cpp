// SPDX-License-Identifier: Apache-2.0
#include "sim/vfio_user/irq_table.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

namespace spanker::sim::vfio_user {
namespace {

constexpr std::uint32_t data_none = VFIO_IRQ_SET_DATA_NONE;
constexpr std::uint32_t data_bool = VFIO_IRQ_SET_DATA_BOOL;
constexpr std::uint32_t data_eventfd = VFIO_IRQ_SET_DATA_EVENTFD;
constexpr std::uint32_t trigger_action = VFIO_IRQ_SET_ACTION_TRIGGER;

bool is_eventfd(const unique_fd& fd)
{
    std::array<char, 64> name;
    const std::string link = "/proc/self/fd/" + std::to_string(fd.get());
    const ssize_t length = ::readlink(link.c_str(), name.data(), name.size());
    return length > 0 && std::string_view(name.data(), static_cast<std::size_t>(length)) ==
                             "anon_inode:[eventfd]";
}

bool make_nonblocking(const unique_fd& fd)
{
    const int flags = ::fcntl(fd.get(), F_GETFL);
    return flags >= 0 &&
           ((flags & O_NONBLOCK) != 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) == 0);
}

// A counter at its limit says "signalled" already, so that no failure matters.
void ring(const unique_fd& fd)
{
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(fd.get(), &one, sizeof one);
}

}  // namespace

irq_table::irq_table(std::uint32_t msi, std::uint32_t msix)
    : msi_(std::min<std::uint32_t>(msi, SPK_MSIX_VECTORS)),
      msix_(std::min<std::uint32_t>(msix, SPK_MSIX_VECTORS))
{}

std::uint32_t irq_table::count(std::uint32_t kind) const
{
    switch (kind) {
    case VFIO_PCI_MSI_IRQ_INDEX:
        return msi_;
    case VFIO_PCI_MSIX_IRQ_INDEX:
        return msix_;
    default:  // INTx, which the card has not; errors and requests, which would only stop the guest
        return 0;
    }
}

std::optional<irq_info> irq_table::describe(std::uint32_t kind) const
{
    if (kind >= irq_kinds)
        return std::nullopt;
    irq_info out = {.argsz = sizeof out, .flags = 0, .index = kind, .count = count(kind)};
    if (out.count != 0)
        out.flags = VFIO_IRQ_INFO_EVENTFD;
    if (kind == VFIO_PCI_MSI_IRQ_INDEX)
        out.flags |= VFIO_IRQ_INFO_NORESIZE;
    return out;
}

bool irq_table::is_idle() const
{
    return std::none_of(fds_.begin(), fds_.end(), [](const unique_fd& fd) { return bool{fd}; });
}

// Who masks is the client, which keeps the vector table; so masking is not offered.
int irq_table::judge(const irq_set& what, std::span<const std::byte> data,
                     const std::vector<unique_fd>& fds) const
{
    const std::uint32_t kind_of_data = what.flags & VFIO_IRQ_SET_DATA_TYPE_MASK;
    const std::uint32_t most = count(what.index);
    if ((what.flags & ~std::uint32_t{VFIO_IRQ_SET_DATA_TYPE_MASK}) != trigger_action ||
        what.index >= irq_kinds || what.start > most || what.count > most - what.start)
        return EINVAL;
    if (what.count == 0)
        return kind_of_data == data_none && data.empty() && fds.empty() ? 0 : EINVAL;
    if (!is_idle() && what.index != kind_)
        return EINVAL;
    switch (kind_of_data) {
    case data_none:
        return data.empty() && fds.empty() ? 0 : EINVAL;
    case data_bool:
        return data.size() == what.count && fds.empty() ? 0 : EINVAL;
    case data_eventfd:
        return data.empty() && (fds.empty() || fds.size() == what.count) &&
                       std::all_of(fds.begin(), fds.end(), is_eventfd) &&
                       std::all_of(fds.begin(), fds.end(), make_nonblocking)
                   ? 0
                   : EINVAL;
    default:
        return EINVAL;
    }
}

int irq_table::set(const irq_set& what, std::span<const std::byte> data,
                   std::vector<unique_fd>& fds)
{
    const std::lock_guard hold(lock_);
    if (const int error = judge(what, data, fds); error != 0)
        return error;
    if (what.count == 0)
        disarm_kind(what.index);
    else if ((what.flags & data_eventfd) != 0)
        arm(what, fds);
    else
        trigger(what, data);
    return 0;
}

void irq_table::arm(const irq_set& what, std::vector<unique_fd>& fds)
{
    kind_ = what.index;
    for (std::uint32_t i = 0; i < what.count; i++) {
        const std::uint32_t vector = what.start + i;
        if (fds.empty()) {
            fds_[vector].reset();
            continue;
        }
        fds_[vector] = std::move(fds[i]);
        if ((missed_ >> vector & 1) != 0)
            ring(fds_[vector]);
        missed_ &= ~(1u << vector);
    }
}

void irq_table::disarm_kind(std::uint32_t kind)
{
    if (kind == kind_)
        for (unique_fd& fd : fds_)
            fd.reset();
}

void irq_table::trigger(const irq_set& what, std::span<const std::byte> data)
{
    for (std::uint32_t i = 0; i < what.count; i++) {
        const unique_fd& fd = fds_[what.start + i];
        if (fd && (data.empty() || data[i] != std::byte{0}))
            ring(fd);
    }
}

void irq_table::disarm()
{
    const std::lock_guard hold(lock_);
    for (unique_fd& fd : fds_)
        fd.reset();
    missed_ = 0;
}

void irq_table::forget()
{
    const std::lock_guard hold(lock_);
    missed_ = 0;
}

std::uint32_t irq_table::armed() const
{
    const std::lock_guard hold(lock_);
    std::uint32_t out = 0;
    for (unsigned vector = 0; vector < fds_.size(); vector++)
        if (fds_[vector])
            out |= 1u << vector;
    return out;
}

void irq_table::signal(unsigned vector)
{
    const std::lock_guard hold(lock_);
    if (vector >= fds_.size())
        return;
    if (fds_[vector])
        ring(fds_[vector]);
    else
        missed_ |= 1u << vector;
}

}  // namespace spanker::sim::vfio_user
