// SPDX-License-Identifier: Apache-2.0
//
// The link commands. A sender leaves its bytes with its messages, a receiver finds them there; commands that receive and
// send pass on what arrived, changed in place when nobody else holds it.
//
// The fold of RECV_REDUCE_COPY: what arrives, by rising port, then the local operand.
#include <cstring>

#include "sim/effects.hpp"
#include "sim/engine/elementwise.hpp"

namespace spanker::sim {
namespace {

using timing::outcome;

// The clockwork joins messages of one length; bytes that are not there are a lost message.
constexpr outcome lost = {SPANKER_CARD_LINK_ERROR, SPK_NO_PORT};

std::uint64_t message_bytes(const spk_cmd& cmd)
{
    return std::uint64_t{cmd.link.rows} * cmd.link.row_bytes;
}

payload* arrived(const effect_context& at, std::size_t which)
{
    if (which >= at.run.in.size())
        return nullptr;
    auto* bytes = static_cast<payload*>(at.run.in[which]->payload);
    return bytes != nullptr && bytes->data.size() == message_bytes(at.cmd) ? bytes : nullptr;
}

// All leaving messages carry it; the caller's own hold ends.
void leave(const effect_context& at, payload* bytes)
{
    for (timing::message* out : at.run.out) {
        at.m.payloads.hold(bytes);
        out->payload = bytes;
    }
    at.m.payloads.drop(bytes);
}

// Calls row(memory, message) for each row at `address`.
template <typename row_function>
void each_row(const effect_context& at, std::uint64_t address, std::uint64_t pitch,
              std::byte* message, const row_function& row)
{
    const spk_op_link& op = at.cmd.link;
    if (op.row_bytes == 0)
        return;
    for (std::uint64_t i = 0; i < op.rows; i++)
        row(at.card.memory.at(address + i * pitch), message + i * op.row_bytes);
}

void load(const effect_context& at, std::byte* message)
{
    const std::size_t bytes = at.cmd.link.row_bytes;
    each_row(at, at.cmd.link.src, at.cmd.link.src_pitch, message,
             [bytes](const std::byte* memory, std::byte* to) { std::memcpy(to, memory, bytes); });
}

void store(const effect_context& at, std::byte* message)
{
    const std::size_t bytes = at.cmd.link.row_bytes;
    each_row(
        at, at.cmd.link.dst, at.cmd.link.dst_pitch, message,
        [bytes](std::byte* memory, const std::byte* from) { std::memcpy(memory, from, bytes); });
}

// message = op(message, local operand)
int fold_local(const effect_context& at, std::byte* message)
{
    const std::size_t count = at.cmd.link.row_bytes / engine::dtype_bytes(at.cmd.dtype);
    int error = 0;
    each_row(at, at.cmd.link.src, at.cmd.link.src_pitch, message,
             [&](const std::byte* memory, std::byte* to) {
                 error |= engine::reduce(at.cmd.dtype, at.cmd.reduce, to, to, memory, count);
             });
    return error;
}

// What arrived, free to be changed, with one holder more: the caller. A copy only if somebody else still needs it.
payload* own(const effect_context& at, payload* bytes)
{
    if (bytes->holders == 1) {
        at.m.payloads.hold(bytes);
        return bytes;
    }
    payload* copy = at.m.payloads.take(bytes->data.size());
    std::memcpy(copy->data.data(), bytes->data.data(), bytes->data.size());
    return copy;
}

}  // namespace

outcome send_effect(const effect_context& at)
{
    payload* bytes = at.m.payloads.take(message_bytes(at.cmd));
    load(at, bytes->data.data());
    leave(at, bytes);
    return {};
}

outcome recv_effect(const effect_context& at)
{
    payload* bytes = arrived(at, 0);
    if (bytes == nullptr)
        return lost;
    const std::lock_guard lock(at.m.data_mutex);
    store(at, bytes->data.data());
    return {};
}

outcome recv_reduce_effect(const effect_context& at)
{
    const payload* bytes = arrived(at, 0);
    if (bytes == nullptr)
        return lost;
    const std::size_t count = at.cmd.link.row_bytes / engine::dtype_bytes(at.cmd.dtype);
    int error = 0;
    const std::lock_guard lock(at.m.data_mutex);
    each_row(at, at.cmd.link.dst, at.cmd.link.dst_pitch, const_cast<std::byte*>(bytes->data.data()),
             [&](std::byte* memory, const std::byte* from) {
                 error |= engine::reduce(at.cmd.dtype, at.cmd.reduce, memory, memory, from, count);
             });
    return error == 0 ? outcome{} : lost;
}

outcome recv_reduce_send_effect(const effect_context& at)
{
    payload* bytes = arrived(at, 0);
    if (bytes == nullptr)
        return lost;
    payload* mine = own(at, bytes);
    const int error = fold_local(at, mine->data.data());
    leave(at, mine);
    return error == 0 ? outcome{} : lost;
}

outcome recv_reduce_copy_effect(const effect_context& at)
{
    payload* first = arrived(at, 0);
    if (first == nullptr)
        return lost;
    payload* mine = own(at, first);
    const std::size_t count = mine->data.size() / engine::dtype_bytes(at.cmd.dtype);
    int error = 0;
    for (std::size_t i = 1; i < at.run.in.size(); i++) {
        const payload* next = arrived(at, i);
        error |= next == nullptr ? -1
                                 : engine::reduce(at.cmd.dtype, at.cmd.reduce, mine->data.data(),
                                                  mine->data.data(), next->data.data(), count);
    }
    const std::lock_guard lock(at.m.data_mutex);
    if (error == 0)
        error = fold_local(at, mine->data.data());
    if (error == 0)
        store(at, mine->data.data());
    leave(at, mine);
    return error == 0 ? outcome{} : lost;
}

outcome recv_copy_send_effect(const effect_context& at)
{
    payload* bytes = arrived(at, 0);
    if (bytes == nullptr)
        return lost;
    const std::lock_guard lock(at.m.data_mutex);
    store(at, bytes->data.data());
    at.m.payloads.hold(bytes);
    leave(at, bytes);
    return {};
}

outcome forward_effect(const effect_context& at)
{
    payload* bytes = arrived(at, 0);
    if (bytes == nullptr)
        return lost;
    at.m.payloads.hold(bytes);
    leave(at, bytes);
    return {};
}

}  // namespace spanker::sim
