// SPDX-License-Identifier: Apache-2.0
//
// Work: each function fills one 64-byte submission entry. The blocking form keeps
// its request on the stack: no allocation, and no system call while both sides spin.
#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "buffer.hpp"
#include "tensor.hpp"

using namespace spanker::lib;

namespace {

constexpr std::uint64_t default_timeout_ns = 30'000'000'000;
constexpr std::uint64_t grace_ns = 5'000'000'000;  // the daemon answers at the deadline

struct operand {
    std::uint8_t kind = SPANKER_KIND_NONE;
    std::uint32_t handle = 0;
    std::uint64_t offset = 0;
};

int to_operand(spanker_session* s, const char* name, const spanker_operand_ref& ref, operand& out)
{
    if ((ref.buffer != nullptr) == (ref.tensor != nullptr))
        return fail(s, SPANKER_KIND_INVALID,
                    fmt::format("{}: name exactly one of buffer and tensor", name));
    const spanker_session* owner =
        ref.buffer != nullptr ? ref.buffer->session : ref.tensor->session;
    if (owner != s)
        return fail(s, SPANKER_KIND_NO_OBJECT, fmt::format("{} belongs to another session", name));
    if (ref.tensor != nullptr) {
        if (const int r = check_fresh(s, ref.tensor->generation, "tensor"); r < 0)
            return r;
        out = {SPANKER_KIND_TENSOR, static_cast<std::uint32_t>(ref.tensor->handle), ref.offset};
        return 0;
    }
    if (const int r = session_ensure(s, s); r < 0)
        return r;
    out = {SPANKER_KIND_BUFFER, static_cast<std::uint32_t>(ref.buffer->handle), ref.offset};
    return 0;
}

int start_entry(spanker_session* s, const spanker_work_options* options, std::uint32_t allowed,
                spanker_sqe& entry, std::uint32_t& flags)
{
    spanker_work_options known = {};
    if (const int r = read_options(s, "spanker_work_options", options, known); r < 0)
        return r;
    if ((known.flags & ~allowed) != 0)
        return fail(
            s, SPANKER_KIND_INVALID,
            fmt::format("flags {:#x} are not known for this request", known.flags & ~allowed));
    static_assert(SPANKER_LINKED == SPANKER_SQE_LINKED && SPANKER_BARRIER == SPANKER_SQE_BARRIER);
    entry.flags = static_cast<std::uint8_t>(known.flags & (SPANKER_LINKED | SPANKER_BARRIER));
    flags = known.flags;
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t timeout = known.timeout_ns != 0 ? known.timeout_ns : default_timeout_ns;
    entry.deadline_ns =
        timeout > UINT64_MAX - now - grace_ns ? UINT64_MAX - grace_ns : now + timeout;
    return 0;
}

int run(spanker_session* s, const spanker_sqe& entry, spanker_result* result)
{
    if ((entry.flags & SPANKER_SQE_LINKED) != 0)
        return fail(s, SPANKER_KIND_INVALID,
                    "a LINKED request starts with the next one: use its _async form");
    spanker_request request;
    if (const int r = session_submit(s, entry, request, true); r < 0)
        return r;
    if (!session_wait(s, request, entry.deadline_ns + grace_ns)) {
        session_abandon(s, request);
        return fail(s, SPANKER_KIND_TIMEOUT, "spankerd did not answer by the deadline");
    }
    return session_outcome(s, request.cqe, result);
}

int start(spanker_session* s, const spanker_sqe& entry, spanker_request** out)
{
    auto request = std::make_unique<spanker_request>();
    if (const int r = session_submit(s, entry, *request, false); r < 0)
        return r;
    *out = request.release();
    return 0;
}

int matmul_entry(spanker_session* s, const spanker_weights* w, const spanker_operand_ref& x,
                 spanker_x_format format, const spanker_operand_ref& y, std::uint64_t n_tok,
                 const spanker_work_options* options, spanker_sqe& entry)
{
    std::uint32_t flags = 0;
    operand from, to;
    constexpr std::uint32_t allowed =
        SPANKER_LINKED | SPANKER_BARRIER | SPANKER_EXACT | SPANKER_ACCUMULATE;
    if (const int r = start_entry(s, options, allowed, entry, flags); r < 0)
        return r;
    if (w == nullptr || w->session != s)
        return fail(s, SPANKER_KIND_NO_OBJECT, "the weights belong to another session");
    if (const int r = check_fresh(s, w->generation, "weights"); r < 0)
        return r;
    if (const int r = to_operand(s, "x", x, from); r < 0)
        return r;
    if (const int r = to_operand(s, "y", y, to); r < 0)
        return r;
    if (n_tok > UINT32_MAX)
        return fail(s, SPANKER_KIND_BAD_DIMS, fmt::format("n_tok {} does not fit 32 bits", n_tok));
    entry.opcode = SPANKER_SOP_MATMUL;
    entry.matmul = {.weights = static_cast<std::uint32_t>(w->handle),
                    .n_tok = static_cast<std::uint32_t>(n_tok),
                    .x_handle = from.handle,
                    .y_handle = to.handle,
                    .x_offset = from.offset,
                    .y_offset = to.offset,
                    .x_kind = from.kind,
                    .y_kind = to.kind,
                    .x_format = static_cast<std::uint8_t>(format),
                    .mode = static_cast<std::uint8_t>(
                        ((flags & SPANKER_EXACT) != 0 ? SPK_MATMUL_EXACT : 0u) |
                        ((flags & SPANKER_ACCUMULATE) != 0 ? SPK_MATMUL_ACCUMULATE : 0u)),
                    .reserved = 0};
    return 0;
}

struct collective {
    std::uint8_t opcode;
    spanker_dtype dtype;
    spanker_reduce reduce;
    std::uint32_t root;
    std::uint64_t count;
};

int collective_entry(spanker_session* s, const collective& c, const spanker_operand_ref& src,
                     const spanker_operand_ref& dst, const spanker_work_options* options,
                     spanker_sqe& entry)
{
    std::uint32_t flags = 0;
    operand from, to;
    if (const int r = start_entry(s, options, SPANKER_LINKED | SPANKER_BARRIER, entry, flags);
        r < 0)
        return r;
    if (dtype_bytes(c.dtype) == 0 || c.reduce > SPANKER_MAX)
        return fail(s, SPANKER_KIND_INVALID, "dtype or reduce is none of the known ones");
    if (c.root >= s->cards.size())
        return fail(
            s, SPANKER_KIND_RANGE,
            fmt::format("root {} is no rank; the session has {} cards", c.root, s->cards.size()));
    if (const int r = to_operand(s, "src", src, from); r < 0)
        return r;
    if (const int r = to_operand(s, "dst", dst, to); r < 0)
        return r;
    entry.opcode = c.opcode;
    entry.root = static_cast<std::uint16_t>(c.root);
    entry.collective = {.group = 0,
                        .dtype = static_cast<std::uint8_t>(c.dtype),
                        .reduce = static_cast<std::uint8_t>(c.reduce),
                        .src_kind = from.kind,
                        .dst_kind = to.kind,
                        .src_handle = from.handle,
                        .dst_handle = to.handle,
                        .src_offset = from.offset,
                        .dst_offset = to.offset,
                        .count = c.count};
    return 0;
}

int transfer_entry(std::uint8_t opcode, spanker_tensor* tensor, std::uint64_t offset,
                   const spanker_buffer* buffer, std::uint64_t buffer_offset, std::uint64_t bytes,
                   std::uint32_t rank, const spanker_work_options* options, spanker_sqe& entry)
{
    spanker_session* s = tensor->session;
    std::uint32_t flags = 0;
    operand from;
    if (const int r = start_entry(s, options, SPANKER_LINKED | SPANKER_BARRIER, entry, flags);
        r < 0)
        return r;
    spanker_operand_ref host = {const_cast<spanker_buffer*>(buffer), nullptr, buffer_offset};
    if (const int r = to_operand(s, "buffer", host, from); r < 0)
        return r;
    if (const int r = check_fresh(s, tensor->generation, "tensor"); r < 0)
        return r;
    entry.opcode = opcode;
    entry.transfer = {.tensor = static_cast<std::uint32_t>(tensor->handle),
                      .buffer = from.handle,
                      .tensor_offset = offset,
                      .buffer_offset = buffer_offset,
                      .bytes = bytes,
                      .card = rank,
                      .reserved = 0};
    return 0;
}

}  // namespace

int spanker_matmul(spanker_session* session, const spanker_weights* weights, spanker_operand_ref x,
                   spanker_x_format format, spanker_operand_ref y, std::uint64_t n_tok,
                   const spanker_work_options* options, spanker_result* result)
{
    spanker_sqe entry = {};
    const int r = matmul_entry(session, weights, x, format, y, n_tok, options, entry);
    return r < 0 ? r : run(session, entry, result);
}

int spanker_matmul_async(spanker_session* session, const spanker_weights* weights,
                         spanker_operand_ref x, spanker_x_format format, spanker_operand_ref y,
                         std::uint64_t n_tok, const spanker_work_options* options,
                         spanker_request** out)
{
    spanker_sqe entry = {};
    const int r = matmul_entry(session, weights, x, format, y, n_tok, options, entry);
    return r < 0 ? r : start(session, entry, out);
}

int spanker_all_reduce(spanker_session* session, spanker_operand_ref src, spanker_operand_ref dst,
                       std::uint64_t count, spanker_dtype dtype, spanker_reduce reduce,
                       const spanker_work_options* options, spanker_result* result)
{
    spanker_sqe entry = {};
    const collective c = {SPANKER_SOP_ALL_REDUCE, dtype, reduce, 0, count};
    const int r = collective_entry(session, c, src, dst, options, entry);
    return r < 0 ? r : run(session, entry, result);
}

int spanker_all_reduce_async(spanker_session* session, spanker_operand_ref src,
                             spanker_operand_ref dst, std::uint64_t count, spanker_dtype dtype,
                             spanker_reduce reduce, const spanker_work_options* options,
                             spanker_request** out)
{
    spanker_sqe entry = {};
    const collective c = {SPANKER_SOP_ALL_REDUCE, dtype, reduce, 0, count};
    const int r = collective_entry(session, c, src, dst, options, entry);
    return r < 0 ? r : start(session, entry, out);
}

int spanker_all_gather(spanker_session* session, spanker_operand_ref src, spanker_operand_ref dst,
                       std::uint64_t count, spanker_dtype dtype,
                       const spanker_work_options* options, spanker_result* result)
{
    spanker_sqe entry = {};
    const collective c = {SPANKER_SOP_ALL_GATHER, dtype, SPANKER_SUM, 0, count};
    const int r = collective_entry(session, c, src, dst, options, entry);
    return r < 0 ? r : run(session, entry, result);
}

int spanker_all_gather_async(spanker_session* session, spanker_operand_ref src,
                             spanker_operand_ref dst, std::uint64_t count, spanker_dtype dtype,
                             const spanker_work_options* options, spanker_request** out)
{
    spanker_sqe entry = {};
    const collective c = {SPANKER_SOP_ALL_GATHER, dtype, SPANKER_SUM, 0, count};
    const int r = collective_entry(session, c, src, dst, options, entry);
    return r < 0 ? r : start(session, entry, out);
}

int spanker_broadcast(spanker_session* session, spanker_operand_ref src, spanker_operand_ref dst,
                      std::uint64_t count, spanker_dtype dtype, std::uint32_t root,
                      const spanker_work_options* options, spanker_result* result)
{
    spanker_sqe entry = {};
    const collective c = {SPANKER_SOP_BROADCAST, dtype, SPANKER_SUM, root, count};
    const int r = collective_entry(session, c, src, dst, options, entry);
    return r < 0 ? r : run(session, entry, result);
}

int spanker_broadcast_async(spanker_session* session, spanker_operand_ref src,
                            spanker_operand_ref dst, std::uint64_t count, spanker_dtype dtype,
                            std::uint32_t root, const spanker_work_options* options,
                            spanker_request** out)
{
    spanker_sqe entry = {};
    const collective c = {SPANKER_SOP_BROADCAST, dtype, SPANKER_SUM, root, count};
    const int r = collective_entry(session, c, src, dst, options, entry);
    return r < 0 ? r : start(session, entry, out);
}

int spanker_tensor_write(spanker_tensor* tensor, std::uint64_t offset, const spanker_buffer* from,
                         std::uint64_t from_offset, std::uint64_t bytes, std::uint32_t rank,
                         const spanker_work_options* options)
{
    spanker_sqe entry = {};
    const int r = transfer_entry(SPANKER_SOP_WRITE_TENSOR, tensor, offset, from, from_offset, bytes,
                                 rank, options, entry);
    return r < 0 ? r : run(tensor->session, entry, nullptr);
}

int spanker_tensor_read(spanker_tensor* tensor, std::uint64_t offset, spanker_buffer* to,
                        std::uint64_t to_offset, std::uint64_t bytes, std::uint32_t rank,
                        const spanker_work_options* options)
{
    spanker_sqe entry = {};
    const int r = transfer_entry(SPANKER_SOP_READ_TENSOR, tensor, offset, to, to_offset, bytes,
                                 rank, options, entry);
    return r < 0 ? r : run(tensor->session, entry, nullptr);
}

int spanker_tensor_write_async(spanker_tensor* tensor, std::uint64_t offset,
                               const spanker_buffer* from, std::uint64_t from_offset,
                               std::uint64_t bytes, std::uint32_t rank,
                               const spanker_work_options* options, spanker_request** out)
{
    spanker_sqe entry = {};
    const int r = transfer_entry(SPANKER_SOP_WRITE_TENSOR, tensor, offset, from, from_offset, bytes,
                                 rank, options, entry);
    return r < 0 ? r : start(tensor->session, entry, out);
}

int spanker_tensor_read_async(spanker_tensor* tensor, std::uint64_t offset, spanker_buffer* to,
                              std::uint64_t to_offset, std::uint64_t bytes, std::uint32_t rank,
                              const spanker_work_options* options, spanker_request** out)
{
    spanker_sqe entry = {};
    const int r = transfer_entry(SPANKER_SOP_READ_TENSOR, tensor, offset, to, to_offset, bytes,
                                 rank, options, entry);
    return r < 0 ? r : start(tensor->session, entry, out);
}
