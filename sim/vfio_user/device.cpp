// SPDX-License-Identifier: Apache-2.0
//
// The table says which sizes a command has, so a handler finds its structure there.
#include "sim/vfio_user/device.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace spanker::sim::vfio_user {
namespace {

constexpr std::uint32_t bar_region = VFIO_PCI_BAR0_REGION_INDEX;
constexpr std::uint32_t config_region = VFIO_PCI_CONFIG_REGION_INDEX;
constexpr std::uint32_t config_bytes = 4096;
constexpr std::uint32_t word_bytes = 4;

}  // namespace

const device::row device::table[] = {
    {command::version, sizeof(version), max_data_bytes, 0, &device::agree},
    {command::dma_map, sizeof(dma_map_request), sizeof(dma_map_request), 1, &device::map},
    {command::dma_unmap, sizeof(dma_unmap_request), max_data_bytes, 0, &device::unmap},
    {command::device_get_info, sizeof(device_info), max_data_bytes, 0, &device::describe_device},
    {command::device_get_region_info, sizeof(region_info), max_data_bytes, 0,
     &device::describe_region},
    {command::device_get_region_io_fds, sizeof(region_io_fds), max_data_bytes, 0,
     &device::describe_region_fds},
    {command::device_get_irq_info, sizeof(irq_info), max_data_bytes, 0, &device::describe_irqs},
    {command::device_set_irqs, sizeof(irq_set), max_data_bytes, max_message_fds, &device::set_irqs},
    {command::region_read, sizeof(region_access), sizeof(region_access), 0, &device::read_region},
    {command::region_write, sizeof(region_access), sizeof(region_access) + max_data_bytes, 0,
     &device::write_region},
    {command::device_reset, 0, 0, 0, &device::reset},
    {command::dirty_pages, 0, max_data_bytes, 0, &device::refuse_dirty_pages},
};

device::device(fabric& cards, unsigned card, guest& its_guest, std::vector<register_lie> lies)
    : cards_(cards), card_(card), guest_(its_guest), lies_(std::move(lies))
{
    cards_.set_host_vectors(card_, guest_.irqs.armed());
}

const device::row* device::find(std::uint16_t number)
{
    const auto* found = std::find_if(std::begin(table), std::end(table), [&](const row& one) {
        return number == static_cast<std::uint16_t>(one.number);
    });
    return found == std::end(table) ? nullptr : found;
}

int device::handle(std::uint16_t command, std::span<const std::byte> payload,
                   std::vector<unique_fd>& fds, buffer& reply)
{
    reply.clear();
    const row* const known = find(command);
    if (known == nullptr)
        return ENOSYS;
    if (agreed_ == (known->number == command::version))
        return EINVAL;
    if (payload.size() < known->least_bytes || payload.size() > known->most_bytes ||
        fds.size() > known->most_fds)
        return EINVAL;
    request what = {payload, fds};
    return (this->*known->handle)(what, reply);
}

void device::forget_client()
{
    agreed_ = false;
    cards_.reset(card_, reset_kind::bus);
    guest_.irqs.disarm();
    cards_.set_host_vectors(card_, 0);
    guest_.dma.unmap_all();
}

// ---- what there is ----

int device::agree(request& what, buffer& reply)
{
    version asked;
    take(what.payload, asked);
    if (asked.major != version_major || !is_capabilities(what.payload))
        return EINVAL;
    agreed_ = true;
    append(reply, version{.major = version_major, .minor = version_minor});
    const std::string offer = offered_capabilities();
    const auto raw = std::as_bytes(std::span(offer));
    reply.insert(reply.end(), raw.begin(), raw.end());
    return 0;
}

int device::describe_device(request& what, buffer& reply)
{
    device_info info;
    take(what.payload, info);
    if (info.argsz < sizeof info)
        return EINVAL;
    append(reply, device_info{.argsz = sizeof info,
                              .flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
                              .regions = region_count,
                              .irqs = irq_kinds});
    return 0;
}

std::uint64_t device::region_bytes(std::uint32_t region) const
{
    if (region == config_region)
        return config_bytes;
    return region == bar_region ? cards_.config(card_).bar_bytes : 0;
}

int device::describe_region(request& what, buffer& reply)
{
    region_info info;
    take(what.payload, info);
    if (info.argsz < sizeof info || info.index >= region_count)
        return EINVAL;
    const std::uint64_t size = region_bytes(info.index);
    append(reply, region_info{.argsz = sizeof info,
                              .flags = size == 0 ? 0u
                                                 : std::uint32_t{VFIO_REGION_INFO_FLAG_READ |
                                                                 VFIO_REGION_INFO_FLAG_WRITE},
                              .index = info.index,
                              .capabilities_offset = 0,
                              .bytes = size,
                              .offset = 0});
    return 0;
}

// Every access comes as a message: the card has side effects everywhere.
int device::describe_region_fds(request& what, buffer& reply)
{
    region_io_fds info;
    take(what.payload, info);
    if (info.argsz < sizeof info || info.flags != 0 || info.index >= region_count)
        return EINVAL;
    append(reply, region_io_fds{.argsz = sizeof info, .flags = 0, .index = info.index, .count = 0});
    return 0;
}

// ---- interrupts ----

int device::describe_irqs(request& what, buffer& reply)
{
    irq_info info;
    take(what.payload, info);
    const auto described = guest_.irqs.describe(info.index);
    if (info.argsz < sizeof info || !described)
        return EINVAL;
    append(reply, *described);
    return 0;
}

int device::set_irqs(request& what, buffer&)
{
    irq_set wanted;
    take(what.payload, wanted);
    const int error = guest_.irqs.set(wanted, what.payload, what.fds);
    if (error == 0)
        cards_.set_host_vectors(card_, guest_.irqs.armed());
    return error;
}

// ---- memory ----

int device::map(request& what, buffer&)
{
    dma_map_request wanted;
    take(what.payload, wanted);
    if (wanted.argsz < sizeof wanted)
        return EINVAL;
    const unique_fd none;
    return guest_.dma.map(wanted, what.fds.empty() ? none : what.fds.front());
}

int device::unmap(request& what, buffer& reply)
{
    dma_unmap_request wanted;
    take(what.payload, wanted);
    if ((wanted.flags & VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP) != 0)
        return EOPNOTSUPP;
    if (wanted.argsz < sizeof wanted || !what.payload.empty())
        return EINVAL;
    if (const int error = guest_.dma.unmap(wanted); error != 0)
        return error;
    append(reply, wanted);
    return 0;
}

int device::refuse_dirty_pages(request&, buffer&) { return EOPNOTSUPP; }

// ---- accesses ----

int device::judge(const region_access& what) const
{
    const std::uint64_t size = region_bytes(what.region);
    const bool inside = what.count != 0 && what.count <= size && what.offset <= size - what.count;
    return inside ? 0 : EINVAL;
}

std::uint32_t device::read_register(std::uint32_t offset)
{
    const std::uint32_t value = cards_.bar_read(card_, offset);
    const auto lie = std::find_if(lies_.begin(), lies_.end(),
                                  [&](const register_lie& one) { return one.offset == offset; });
    // A card that is gone does not lie.
    return lie == lies_.end() || value == ~std::uint32_t{0} ? value : lie->value;
}

// Registers are words. What is no word goes to the card as an access to no register, so that it answers, or not, as it does.
void device::read_bar(std::uint32_t offset, std::span<std::byte> to)
{
    const bool words = offset % word_bytes == 0 && to.size() % word_bytes == 0;
    for (std::size_t at = 0; at < to.size(); at += word_bytes) {
        const auto here = static_cast<std::uint32_t>(offset + at);
        const std::uint32_t value = words ? read_register(here) : cards_.bar_read(card_, here | 1);
        std::memcpy(to.data() + at, &value, std::min<std::size_t>(word_bytes, to.size() - at));
    }
}

void device::write_bar(std::uint32_t offset, std::span<const std::byte> from)
{
    const bool words = offset % word_bytes == 0 && from.size() % word_bytes == 0;
    for (std::size_t at = 0; at < from.size(); at += word_bytes) {
        const auto here = static_cast<std::uint32_t>(offset + at);
        std::uint32_t value = 0;
        std::memcpy(&value, from.data() + at, std::min<std::size_t>(word_bytes, from.size() - at));
        cards_.bar_write(card_, words ? here : here | 1, value);
    }
}

namespace {

// Configuration space is accessed in aligned pieces of 4, 2 and 1 bytes.
unsigned piece_at(std::uint64_t offset, std::uint64_t left)
{
    for (const unsigned piece : {4u, 2u})
        if (offset % piece == 0 && left >= piece)
            return piece;
    return 1;
}

}  // namespace

void device::read_config(std::uint32_t offset, std::span<std::byte> to)
{
    for (std::size_t at = 0; at < to.size();) {
        const unsigned piece = piece_at(offset + at, to.size() - at);
        const std::uint32_t value =
            cards_.config_read(card_, static_cast<std::uint32_t>(offset + at), piece);
        std::memcpy(to.data() + at, &value, piece);
        at += piece;
    }
}

void device::write_config(std::uint32_t offset, std::span<const std::byte> from)
{
    for (std::size_t at = 0; at < from.size();) {
        const unsigned piece = piece_at(offset + at, from.size() - at);
        std::uint32_t value = 0;
        std::memcpy(&value, from.data() + at, piece);
        cards_.config_write(card_, static_cast<std::uint32_t>(offset + at), piece, value);
        at += piece;
    }
}

int device::read_region(request& what, buffer& reply)
{
    region_access wanted;
    take(what.payload, wanted);
    if (const int error = judge(wanted); error != 0)
        return error;
    append(reply, wanted);
    reply.resize(sizeof wanted + wanted.count);
    const auto to = std::span(reply).subspan(sizeof wanted);
    const auto offset = static_cast<std::uint32_t>(wanted.offset);
    if (wanted.region == config_region)
        read_config(offset, to);
    else
        read_bar(offset, to);
    return 0;
}

int device::write_region(request& what, buffer& reply)
{
    region_access wanted;
    take(what.payload, wanted);
    if (const int error = judge(wanted); error != 0)
        return error;
    if (what.payload.size() != wanted.count)
        return EINVAL;
    const auto offset = static_cast<std::uint32_t>(wanted.offset);
    if (wanted.region == config_region)
        write_config(offset, what.payload);
    else
        write_bar(offset, what.payload);
    append(reply, wanted);
    return 0;
}

int device::reset(request&, buffer&)
{
    cards_.reset(card_, reset_kind::bus);
    guest_.irqs.forget();
    return 0;
}

}  // namespace spanker::sim::vfio_user
