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

// What every kind of work starts from: options, deadline, and the generation that all handles are of.
struct draft {
    submission work;
    std::uint32_t flags = 0;
};

int start_draft(spanker_session* s, const spanker_work_options* options, std::uint32_t allowed,
                draft& d)
{
    spanker_work_options known = {};
    if (const int r = read_options(s, "spanker_work_options", options, known); r < 0)
        return r;
    if ((known.flags & ~allowed) != 0)
        return fail(
            s, SPANKER_KIND_INVALID,
            fmt::format("flags {:#x} are not known for this request", known.flags & ~allowed));
    if (const int r = session_ensure(s, s, false); r < 0)
        return r;
    d.work.generation = s->generation.load(std::memory_order_acquire);  // before any handle
    if ((known.flags & SPANKER_LINKED) != 0)
        d.work.entry.flags |= SPANKER_SQE_LINKED;
    if ((known.flags & SPANKER_BARRIER) != 0)
        d.work.entry.flags |= SPANKER_SQE_BARRIER;
    d.flags = known.flags;
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t timeout = known.timeout_ns != 0 ? known.timeout_ns : default_timeout_ns;
    d.work.entry.deadline_ns =
        timeout > UINT64_MAX - now - grace_ns ? UINT64_MAX - grace_ns : now + timeout;
    return 0;
}

int to_operand(spanker_session* s, const draft& d, const char* name, const spanker_operand_ref& ref,
               operand& out)
{
    if ((ref.buffer != nullptr) == (ref.tensor != nullptr))
        return fail(s, SPANKER_KIND_INVALID,
                    fmt::format("{}: name exactly one of buffer and tensor", name));
    const spanker_session* owner =
        ref.buffer != nullptr ? ref.buffer->session : ref.tensor->session;
    if (owner != s)
        return fail(s, SPANKER_KIND_NO_OBJECT, fmt::format("{} belongs to another session", name));
    if (ref.tensor != nullptr) {
        out = {SPANKER_KIND_TENSOR, ref.tensor->handle, ref.offset};
        return check_fresh(s, ref.tensor->generation, d.work.generation, "tensor");
    }
    out = {SPANKER_KIND_BUFFER, ref.buffer->handle.load(std::memory_order_relaxed), ref.offset};
    return 0;
}

int run(spanker_session* s, const draft& d, spanker_result* result)
{
    const spanker_sqe& entry = d.work.entry;
    if ((entry.flags & SPANKER_SQE_LINKED) != 0)
        return fail(s, SPANKER_KIND_INVALID,
                    "a LINKED request starts with the next one: use its _async form");
    spanker_request request;
    if (const int r = session_submit(s, d.work, request, true, false); r < 0)
        return r;
    if (!session_wait(s, request, entry.deadline_ns + grace_ns)) {
        session_abandon(s, request);
        return fail(s, SPANKER_KIND_TIMEOUT, "spankerd did not answer by the deadline");
    }
    return outcome_of(s, request, result);
}

int start(spanker_session* s, const draft& d, spanker_request** out)
{
    auto request = std::make_unique<spanker_request>();
    if (const int r = session_submit(s, d.work, *request, false, true); r < 0)
        return r;
    *out = request.release();
    return 0;
}

struct matmul {
    const spanker_weights* weights;
    spanker_operand_ref x, y;
    spanker_x_format format;
    std::uint64_t n_tok;
};

int make_draft(spanker_session* s, const matmul& m, const spanker_work_options* options, draft& d)
{
    constexpr std::uint32_t allowed =
        SPANKER_LINKED | SPANKER_BARRIER | SPANKER_EXACT | SPANKER_ACCUMULATE;
    if (m.weights == nullptr || m.weights->session != s)
        return fail(s, SPANKER_KIND_NO_OBJECT, "the weights are NULL or of another session");
    const std::uint32_t weights = m.weights->handle.load(std::memory_order_acquire);
    if (weights == 0)
        return fail(s, SPANKER_KIND_NO_OBJECT,
                    "the weights are not loaded; wait for their load, or load them again");
    if (m.format > SPANKER_X_Q4_K)
        return fail(s, SPANKER_KIND_INVALID, "format is none of SPANKER_X_*");
    if (m.n_tok > UINT32_MAX)
        return fail(s, SPANKER_KIND_BAD_DIMS,
                    fmt::format("n_tok {} does not fit 32 bits", m.n_tok));
    operand x, y;
    if (const int r = start_draft(s, options, allowed, d); r < 0)
        return r;
    if (const int r = check_fresh(s, m.weights->generation, d.work.generation, "weights"); r < 0)
        return r;
    if (const int r = to_operand(s, d, "x", m.x, x); r < 0)
        return r;
    if (const int r = to_operand(s, d, "y", m.y, y); r < 0)
        return r;
    d.work.entry.opcode = SPANKER_SOP_MATMUL;
    d.work.entry.matmul = {.weights = weights,
                           .n_tok = static_cast<std::uint32_t>(m.n_tok),
                           .x_handle = x.handle,
                           .y_handle = y.handle,
                           .x_offset = x.offset,
                           .y_offset = y.offset,
                           .x_kind = x.kind,
                           .y_kind = y.kind,
                           .x_format = static_cast<std::uint8_t>(m.format),
                           .mode = static_cast<std::uint8_t>(
                               ((d.flags & SPANKER_EXACT) != 0 ? SPK_MATMUL_EXACT : 0u) |
                               ((d.flags & SPANKER_ACCUMULATE) != 0 ? SPK_MATMUL_ACCUMULATE : 0u)),
                           .reserved = 0};
    return 0;
}

struct collective {
    std::uint8_t opcode;
    spanker_operand_ref src, dst;
    std::uint64_t count;
    spanker_dtype dtype;
    spanker_reduce reduce = SPANKER_SUM;
    std::uint32_t root = 0;
};

int make_draft(spanker_session* s, const collective& c, const spanker_work_options* options,
               draft& d)
{
    if (dtype_bytes(c.dtype) == 0 || c.reduce > SPANKER_MAX)
        return fail(s, SPANKER_KIND_INVALID, "dtype or reduce is none of the known ones");
    if (c.root >= s->cards.size())
        return fail(
            s, SPANKER_KIND_RANGE,
            fmt::format("root {} is no rank; the session has {} cards", c.root, s->cards.size()));
    operand src, dst;
    if (const int r = start_draft(s, options, SPANKER_LINKED | SPANKER_BARRIER, d); r < 0)
        return r;
    if (const int r = to_operand(s, d, "src", c.src, src); r < 0)
        return r;
    if (const int r = to_operand(s, d, "dst", c.dst, dst); r < 0)
        return r;
    d.work.entry.opcode = c.opcode;
    d.work.entry.root = static_cast<std::uint16_t>(c.root);
    d.work.entry.collective = {.group = 0,
                               .dtype = static_cast<std::uint8_t>(c.dtype),
                               .reduce = static_cast<std::uint8_t>(c.reduce),
                               .src_kind = src.kind,
                               .dst_kind = dst.kind,
                               .src_handle = src.handle,
                               .dst_handle = dst.handle,
                               .src_offset = src.offset,
                               .dst_offset = dst.offset,
                               .count = c.count};
    return 0;
}

struct transfer {
    std::uint8_t opcode;
    spanker_tensor* tensor;
    std::uint64_t offset;
    const spanker_buffer* buffer;
    std::uint64_t buffer_offset, bytes;
    std::uint32_t rank;
};

int make_draft(spanker_session* s, const transfer& t, const spanker_work_options* options, draft& d)
{
    operand host, card;
    if (const int r = start_draft(s, options, SPANKER_LINKED | SPANKER_BARRIER, d); r < 0)
        return r;
    const spanker_operand_ref on_host = {const_cast<spanker_buffer*>(t.buffer), nullptr,
                                         t.buffer_offset};
    if (const int r = to_operand(s, d, "buffer", on_host, host); r < 0)
        return r;
    if (const int r = to_operand(s, d, "tensor", {nullptr, t.tensor, t.offset}, card); r < 0)
        return r;
    d.work.entry.opcode = t.opcode;
    d.work.entry.transfer = {.tensor = card.handle,
                             .buffer = host.handle,
                             .tensor_offset = card.offset,
                             .buffer_offset = host.offset,
                             .bytes = t.bytes,
                             .card = t.rank,
                             .reserved = 0};
    return 0;
}

template <typename Work>
int blocking(spanker_session* s, const Work& work, const spanker_work_options* options,
             spanker_result* result)
{
    if (s == nullptr)
        return fail_null(nullptr, "session");
    return guarded(s, [&] {
        draft d;
        const int r = make_draft(s, work, options, d);
        return r < 0 ? r : run(s, d, result);
    });
}

template <typename Work>
int async(spanker_session* s, const Work& work, const spanker_work_options* options,
          spanker_request** out)
{
    if (s == nullptr || out == nullptr)
        return fail_null(s, s == nullptr ? "session" : "out");
    return guarded(s, [&] {
        draft d;
        const int r = make_draft(s, work, options, d);
        return r < 0 ? r : start(s, d, out);
    });
}

spanker_session* session_of(const spanker_tensor* tensor)
{
    return tensor != nullptr ? tensor->session : nullptr;
}

}  // namespace

int spanker_matmul(spanker_session* session, const spanker_weights* weights, spanker_operand_ref x,
                   spanker_x_format format, spanker_operand_ref y, std::uint64_t n_tok,
                   const spanker_work_options* options, spanker_result* result)
{
    return blocking(session, matmul{weights, x, y, format, n_tok}, options, result);
}

int spanker_matmul_async(spanker_session* session, const spanker_weights* weights,
                         spanker_operand_ref x, spanker_x_format format, spanker_operand_ref y,
                         std::uint64_t n_tok, const spanker_work_options* options,
                         spanker_request** out)
{
    return async(session, matmul{weights, x, y, format, n_tok}, options, out);
}

int spanker_all_reduce(spanker_session* session, spanker_operand_ref src, spanker_operand_ref dst,
                       std::uint64_t count, spanker_dtype dtype, spanker_reduce reduce,
                       const spanker_work_options* options, spanker_result* result)
{
    return blocking(session, collective{SPANKER_SOP_ALL_REDUCE, src, dst, count, dtype, reduce},
                    options, result);
}

int spanker_all_reduce_async(spanker_session* session, spanker_operand_ref src,
                             spanker_operand_ref dst, std::uint64_t count, spanker_dtype dtype,
                             spanker_reduce reduce, const spanker_work_options* options,
                             spanker_request** out)
{
    return async(session, collective{SPANKER_SOP_ALL_REDUCE, src, dst, count, dtype, reduce},
                 options, out);
}

int spanker_all_gather(spanker_session* session, spanker_operand_ref src, spanker_operand_ref dst,
                       std::uint64_t count, spanker_dtype dtype,
                       const spanker_work_options* options, spanker_result* result)
{
    return blocking(session, collective{SPANKER_SOP_ALL_GATHER, src, dst, count, dtype}, options,
                    result);
}

int spanker_all_gather_async(spanker_session* session, spanker_operand_ref src,
                             spanker_operand_ref dst, std::uint64_t count, spanker_dtype dtype,
                             const spanker_work_options* options, spanker_request** out)
{
    return async(session, collective{SPANKER_SOP_ALL_GATHER, src, dst, count, dtype}, options, out);
}

int spanker_broadcast(spanker_session* session, spanker_operand_ref src, spanker_operand_ref dst,
                      std::uint64_t count, spanker_dtype dtype, std::uint32_t root,
                      const spanker_work_options* options, spanker_result* result)
{
    return blocking(session,
                    collective{SPANKER_SOP_BROADCAST, src, dst, count, dtype, SPANKER_SUM, root},
                    options, result);
}

int spanker_broadcast_async(spanker_session* session, spanker_operand_ref src,
                            spanker_operand_ref dst, std::uint64_t count, spanker_dtype dtype,
                            std::uint32_t root, const spanker_work_options* options,
                            spanker_request** out)
{
    return async(session,
                 collective{SPANKER_SOP_BROADCAST, src, dst, count, dtype, SPANKER_SUM, root},
                 options, out);
}

int spanker_tensor_write(spanker_tensor* tensor, std::uint64_t offset, const spanker_buffer* from,
                         std::uint64_t from_offset, std::uint64_t bytes, std::uint32_t rank,
                         const spanker_work_options* options)
{
    return blocking(
        session_of(tensor),
        transfer{SPANKER_SOP_WRITE_TENSOR, tensor, offset, from, from_offset, bytes, rank}, options,
        nullptr);
}

int spanker_tensor_read(spanker_tensor* tensor, std::uint64_t offset, spanker_buffer* to,
                        std::uint64_t to_offset, std::uint64_t bytes, std::uint32_t rank,
                        const spanker_work_options* options)
{
    return blocking(session_of(tensor),
                    transfer{SPANKER_SOP_READ_TENSOR, tensor, offset, to, to_offset, bytes, rank},
                    options, nullptr);
}

int spanker_tensor_write_async(spanker_tensor* tensor, std::uint64_t offset,
                               const spanker_buffer* from, std::uint64_t from_offset,
                               std::uint64_t bytes, std::uint32_t rank,
                               const spanker_work_options* options, spanker_request** out)
{
    return async(session_of(tensor),
                 transfer{SPANKER_SOP_WRITE_TENSOR, tensor, offset, from, from_offset, bytes, rank},
                 options, out);
}

int spanker_tensor_read_async(spanker_tensor* tensor, std::uint64_t offset, spanker_buffer* to,
                              std::uint64_t to_offset, std::uint64_t bytes, std::uint32_t rank,
                              const spanker_work_options* options, spanker_request** out)
{
    return async(session_of(tensor),
                 transfer{SPANKER_SOP_READ_TENSOR, tensor, offset, to, to_offset, bytes, rank},
                 options, out);
}
