// SPDX-License-Identifier: Apache-2.0
#include "daemon/refusals.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "daemon/os_error.hpp"

namespace spanker::daemon::refusals {

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t buffer_bytes_max = std::uint64_t{1} << 40;

template <typename T>
std::string text(T number)
{
    return std::to_string(number);
}

std::string card_name(std::uint32_t card) { return "card " + text(card); }

std::string card_port(std::uint32_t card, std::uint32_t port)
{
    return card_name(card) + " port " + text(port);
}

}  // namespace

error gate(std::uint32_t card, int err)
{
    switch (err) {
    case -ESTALE:
        return {SPANKER_ERR_CARD_RESET, card_name(card) + " was reset; open it again"};
    case -ENODEV:
        return {SPANKER_ERR_CARD_LOST, card_name(card) + " is gone"};
    case -EIO:
        return {SPANKER_ERR_CARD_FAILED, card_name(card) + " failed; reset it"};
    default:
        return {SPANKER_ERR_AGAIN, card_name(card) + " is not ready yet; try again"};
    }
}

// ---- queues ----

error depth(std::uint32_t card, std::uint32_t most, std::uint32_t asked)
{
    return {SPANKER_ERR_INVALID, "the depth of a queue on " + card_name(card) +
                                     " is a power of two from 2 to " + text(most) + ", not " +
                                     text(asked)};
}

error no_queue_left(std::uint32_t card, std::uint32_t queues)
{
    return {SPANKER_ERR_BUSY, card_name(card) + " has no queue left (" + text(queues) +
                                  "); close another file first"};
}

error item(int err, const spk_item_fault& fault, std::span<const spanker_work_item> items)
{
    error out{spanker_errno_kind(err), "item " + text(fault.item) + " (opcode " +
                                           text(unsigned{items[fault.item].opcode}) +
                                           "): " + fault.field + " " + fault.why};
    out.detail = fault.item;
    return out;
}

error queue_full() { return {SPANKER_ERR_AGAIN, "the queue is full; poll and try again"}; }

error batch_size(std::uint32_t depth, std::size_t items)
{
    return {SPANKER_ERR_INVALID, "a batch on this queue has 1 to " + text(depth - 1) +
                                     " items and at most as many records, not " + text(items)};
}

error not_in_flight(std::uint64_t seq)
{
    return {SPANKER_ERR_NO_OBJECT, "batch " + text(seq) + " is not in flight"};
}

// ---- tensors and buffers ----

error no_handle(const char* what, std::uint32_t handle)
{
    return {SPANKER_ERR_NO_OBJECT,
            std::string("this file has no ") + what + " with handle " + text(handle)};
}

error handles_used_up(const char* what)
{
    return {SPANKER_ERR_QUOTA,
            std::string("this file has as many ") + what + "s as a file may have; give some back"};
}

error no_card_memory(std::uint32_t card, std::uint64_t bytes)
{
    return {SPANKER_ERR_NO_MEMORY, card_name(card) + " has no " + text(bytes) +
                                       " bytes of memory in one piece; free tensors"};
}

error empty_tensor() { return {SPANKER_ERR_INVALID, "a tensor has at least one byte"}; }

error not_exported(int fd, std::uint32_t card)
{
    return {SPANKER_ERR_INVALID,
            "descriptor " + text(fd) + " is not an exported tensor of " + card_name(card)};
}

error buffer_in_use(std::uint32_t handle)
{
    return {SPANKER_ERR_BUSY,
            "buffer " + text(handle) + " is used by work in flight; wait for it or cancel it"};
}

namespace {

result<void> check_spec(const buffer_spec& spec)
{
    if (!spec.access || (spec.access & ~SPANKER_BUFFER_FLAGS))
        return fail(SPANKER_ERR_INVALID,
                    "access of a buffer is SPANKER_BUFFER_READ, _WRITE or both, not " +
                        text(spec.access));
    if (spec.bytes == 0 || spec.bytes > buffer_bytes_max)
        return fail(SPANKER_ERR_INVALID, "a buffer has 1 to 2^40 bytes, not " + text(spec.bytes));
    if ((spec.memfd >= 0) == (spec.address != nullptr))
        return fail(SPANKER_ERR_INVALID, "a buffer is a memfd or an address, one of them");
    if (spec.offset % page || (spec.address && spec.offset))
        return fail(SPANKER_ERR_INVALID, "the offset of a buffer must be a multiple of 4096 in a "
                                         "memfd and 0 with an address, not " +
                                             text(spec.offset));
    return {};
}

// Nobody may take away pages that a card writes to.
result<void> check_memfd(const buffer_spec& spec)
{
    const int seals = ::fcntl(spec.memfd, F_GET_SEALS);
    if (seals < 0)
        return fail(SPANKER_ERR_NOT_A_MEMFD, std::string("buffer: the descriptor is no memfd (") +
                                                 std::strerror(errno) + ")");
    if ((seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_GROW) == 0)
        return fail(SPANKER_ERR_NOT_SEALED,
                    "buffer: seal the memfd with F_SEAL_SHRINK and F_SEAL_GROW first");
    if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) && (spec.access & SPANKER_BUFFER_WRITE))
        return fail(SPANKER_ERR_DENIED,
                    "buffer: the memfd is sealed against writing; register it for reading only");
    struct stat at = {};
    if (::fstat(spec.memfd, &at) != 0)
        return fail_os(errno, "buffer: cannot learn the size of the memfd");
    const auto size = static_cast<std::uint64_t>(at.st_size);
    if (spec.offset > size || spec.bytes > size - spec.offset)
        return fail(SPANKER_ERR_RANGE,
                    "buffer: " + text(spec.bytes) + " bytes at " + text(spec.offset) +
                        " reach past the end of the memfd, which has " + text(size));
    return {};
}

}  // namespace

result<void> check_buffer(const buffer_spec& spec)
{
    if (auto good = check_spec(spec); !good)
        return good;
    return spec.memfd >= 0 ? check_memfd(spec) : result<void>();
}

// ---- groups and ports ----

error empty_group() { return {SPANKER_ERR_INVALID, "a group has at least one member"}; }

error foreign_file()
{
    return {SPANKER_ERR_INVALID, "a member of a group is a file of the same backend"};
}

result<void> check_claim(const spk_channel_claim& claim, std::uint32_t ports,
                         std::uint32_t channels)
{
    if (claim.port_mask == 0 || claim.port_mask >> ports)
        return fail(SPANKER_ERR_INVALID, card_name(claim.card) +
                                             ": the port mask must name some of its ports 0 to " +
                                             text(ports - 1) + " and no others");
    if (claim.channel >= channels)
        return fail(SPANKER_ERR_INVALID, card_name(claim.card) + " has channels 0 to " +
                                             text(channels - 1) + ", not " + text(claim.channel));
    return {};
}

error channel_taken(const spk_channel_claim& claim, std::optional<std::uint32_t> port,
                    std::uint32_t pid)
{
    const std::string where = port ? card_port(claim.card, *port)
                                   : card_name(claim.card) + " port mask " + text(claim.port_mask);
    return {SPANKER_ERR_BUSY,
            where + " channel " + text(claim.channel) + " belongs to pid " + text(pid)};
}

error no_such_port(std::uint32_t card, std::uint32_t ports, std::uint32_t asked)
{
    return {SPANKER_ERR_INVALID,
            card_name(card) + " has ports 0 to " + text(ports - 1) + ", not " + text(asked)};
}

error bad_port_mask(std::uint32_t card, std::uint32_t ports)
{
    return {SPANKER_ERR_INVALID, card_name(card) + " has ports 0 to " + text(ports - 1) +
                                     "; the mask must name some of them and no others"};
}

error port_disabled(std::uint32_t card, std::optional<std::uint32_t> port)
{
    return {SPANKER_ERR_INVALID,
            (port ? card_port(card, *port) : card_name(card) + ": a port of the mask") +
                " is disabled; enable it first"};
}

error no_reset_mode(std::uint32_t mode)
{
    return {SPANKER_ERR_INVALID, "there is no reset mode " + text(mode)};
}

}  // namespace spanker::daemon::refusals
