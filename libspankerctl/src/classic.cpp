// SPDX-License-Identifier: Apache-2.0
//
// Whole problems: host memory in, host memory out. The order of checks and of card
// traffic is a contract (spankerctl.h); the tests hold both.
#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "buffer.hpp"
#include "tensor.hpp"

using namespace spanker::lib;

namespace {

struct problem {
    std::uint64_t m, k, n;
    std::uint64_t a_bytes, b_bytes, out_bytes;  // what they must be
};

struct buffer_free {
    void operator()(spanker_buffer* b) const { spanker_buffer_free(b); }
};
struct tensor_free {
    void operator()(spanker_tensor* t) const { spanker_tensor_free(t); }
};
struct weights_free {
    void operator()(spanker_weights* w) const { spanker_weights_free(w); }
};
using buffer_ptr = std::unique_ptr<spanker_buffer, buffer_free>;
using tensor_ptr = std::unique_ptr<spanker_tensor, tensor_free>;
using weights_ptr = std::unique_ptr<spanker_weights, weights_free>;

int bad_dims(spanker_session* s, const problem& p, const std::string& why)
{
    spanker_error error =
        make_error(SPANKER_KIND_BAD_DIMS, fmt::format("m {}, k {}, n {}: {}", p.m, p.k, p.n, why));
    error.m = p.m;
    error.k = p.k;
    error.n = p.n;
    return fail(s, error);
}

bool sizes(problem& p)
{
    std::uint64_t row = 0, values = 0;
    return !__builtin_mul_overflow(p.k / SPANKER_QK_K, std::uint64_t{SPANKER_Q4_K_BLOCK_BYTES},
                                   &row) &&
           !__builtin_mul_overflow(p.m, row, &p.a_bytes) &&
           !__builtin_mul_overflow(p.n, row, &p.b_bytes) &&
           !__builtin_mul_overflow(p.m, p.n, &values) &&
           !__builtin_mul_overflow(values, std::uint64_t{sizeof(float)}, &p.out_bytes);
}

int check(spanker_session* s, problem& p, std::uint64_t a_bytes, std::uint64_t b_bytes,
          std::uint64_t out_bytes)
{
    if (p.k == 0 || p.k % SPANKER_QK_K != 0)
        return bad_dims(s, p, fmt::format("k must be a positive multiple of {}", SPANKER_QK_K));
    if (!sizes(p))
        return bad_dims(
            s, p, fmt::format("a size overflows 64 bits (blocks of {} values)", SPANKER_QK_K));
    if (a_bytes != p.a_bytes)
        return bad_dims(s, p,
                        fmt::format("a has {} bytes, must have m * (k / {}) * {} = {}", a_bytes,
                                    SPANKER_QK_K, SPANKER_Q4_K_BLOCK_BYTES, p.a_bytes));
    if (b_bytes != p.b_bytes)
        return bad_dims(s, p,
                        fmt::format("b has {} bytes, must have n * (k / {}) * {} = {}", b_bytes,
                                    SPANKER_QK_K, SPANKER_Q4_K_BLOCK_BYTES, p.b_bytes));
    if (out_bytes < p.out_bytes) {
        spanker_error error = make_error(
            SPANKER_KIND_OUTPUT_TOO_SMALL,
            fmt::format("out has {} bytes, needs m * n * 4 = {}", out_bytes, p.out_bytes));
        error.have = out_bytes;
        error.need = p.out_bytes;
        return fail(s, error);
    }
    return 0;
}

// The session's first card alone: one replica, one trace.
int single_card(spanker_session* s, spanker_session*& out)
{
    if (s->cards.size() == 1) {
        out = s;
        return 0;
    }
    const std::lock_guard lock(s->objects);
    if (!s->single) {
        spanker_session_options options = {};
        options.size = sizeof options;
        options.cards = s->cards.data();
        options.card_count = 1;
        spanker_session* single = nullptr;
        if (const int r = spanker_session_open(s->connection, &options, &single); r < 0)
            return fail_as(s, s->connection);
        s->single.reset(single);
    }
    out = s->single.get();
    return 0;
}

int make_buffer(spanker_session* s, std::uint64_t bytes, spanker_access access, buffer_ptr& out)
{
    spanker_buffer* buffer = nullptr;
    const int r = spanker_buffer_create(s, bytes, access, &buffer);
    out.reset(buffer);
    return r;
}

int make_tensor(spanker_session* s, spanker_dtype dtype, std::uint64_t count, tensor_ptr& out)
{
    spanker_tensor* tensor = nullptr;
    const int r = spanker_tensor_alloc(s, SPANKER_REPLICATED, dtype, 1, count, &tensor);
    out.reset(tensor);
    return r;
}

int multiply(spanker_session* s, const problem& p, const void* a, const void* b, void* out)
{
    buffer_ptr host_a, host_out;
    tensor_ptr card_a, card_out;
    weights_ptr card_b;
    spanker_weights* loaded = nullptr;
    spanker_weights_options options = {};
    options.size = sizeof options;
    options.sharding = SPANKER_SHARD_WHOLE;
    int r = 0;
    if ((r = make_buffer(s, p.a_bytes, SPANKER_ACCESS_READ, host_a)) < 0 ||
        (r = make_buffer(s, p.out_bytes, SPANKER_ACCESS_WRITE, host_out)) < 0 ||
        (r = make_tensor(s, SPANKER_I8, p.a_bytes, card_a)) < 0 ||
        (r = make_tensor(s, SPANKER_F32, p.m * p.n, card_out)) < 0)
        return r;
    std::memcpy(host_a->data, a, p.a_bytes);
    if ((r = spanker_tensor_write(card_a.get(), 0, host_a.get(), 0, p.a_bytes, 0, nullptr)) < 0)
        return r;
    r = spanker_weights_load(s, b, p.b_bytes, p.n, p.k, &options, &loaded);
    card_b.reset(loaded);
    if (r < 0)
        return r;
    if ((r = spanker_matmul(s, card_b.get(), {nullptr, card_a.get(), 0}, SPANKER_X_Q4_K,
                            {nullptr, card_out.get(), 0}, p.m, nullptr, nullptr)) < 0 ||
        (r = spanker_tensor_read(card_out.get(), 0, host_out.get(), 0, p.out_bytes, 0, nullptr)) <
            0)
        return r;
    std::memcpy(out, host_out->data, p.out_bytes);
    return 0;
}

// Typed details: TopologyMismatch{have, need} in ranks, ShapeMismatch{have} in elements.
int check_ranks(spanker_session* s, std::uint32_t rank_count, std::uint64_t count,
                std::uint64_t& bytes)
{
    if (rank_count != s->cards.size()) {
        spanker_error error = make_error(
            SPANKER_KIND_TOPOLOGY_MISMATCH,
            fmt::format("{} ranks given, the session has {} cards", rank_count, s->cards.size()));
        error.have = rank_count;
        error.need = s->cards.size();
        return fail(s, error);
    }
    if (__builtin_mul_overflow(count, std::uint64_t{sizeof(float)} * rank_count * rank_count,
                               &bytes)) {
        spanker_error error = make_error(SPANKER_KIND_SHAPE_MISMATCH,
                                         fmt::format("{} elements per rank overflow 64 bits in "
                                                     "all",
                                                     count));
        error.have = count;
        return fail(s, error);
    }
    return 0;
}

template <typename Pointer>
int check_pointers(spanker_session* s, const char* name, const Pointer* each, std::uint32_t count)
{
    if (each == nullptr)
        return fail_null(s, name);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (each[i] == nullptr)
            return fail(s, SPANKER_KIND_INVALID, fmt::format("{}[{}] is NULL", name, i));
    }
    return 0;
}

int matmul_q4_k(spanker_session* session, const void* a, std::uint64_t a_bytes, const void* b,
                std::uint64_t b_bytes, void* out, std::uint64_t out_bytes, problem p)
{
    if (const int r = check(session, p, a_bytes, b_bytes, out_bytes); r < 0)
        return r;
    if (p.m == 0 || p.n == 0)
        return 0;
    if (a == nullptr || b == nullptr || out == nullptr)
        return fail_null(session, a == nullptr ? "a" : b == nullptr ? "b" : "out");
    spanker_session* single = nullptr;
    if (const int r = single_card(session, single); r < 0)
        return r;
    const int r = multiply(single, p, a, b, out);
    return r < 0 && single != session ? fail_as(session, single) : r;
}

int all_reduce_f32(spanker_session* session, float* const* ranks, std::uint32_t rank_count,
                   std::uint64_t count, spanker_reduce reduce)
{
    std::uint64_t unused = 0;
    if (reduce > SPANKER_AVG)
        return fail(session, SPANKER_KIND_INVALID, "reduce is none of the known ones");
    if (const int r = check_ranks(session, rank_count, count, unused); r < 0)
        return r;
    if (count == 0)
        return 0;
    if (const int r = check_pointers(session, "ranks", ranks, rank_count); r < 0)
        return r;
    const std::uint64_t bytes = count * sizeof(float);
    buffer_ptr host;
    if (const int r = make_buffer(session, bytes * rank_count, SPANKER_ACCESS_READ_WRITE, host);
        r < 0)
        return r;
    auto* memory = static_cast<char*>(host->data);
    for (std::uint32_t i = 0; i < rank_count; ++i)
        std::memcpy(memory + i * bytes, ranks[i], bytes);
    const spanker_operand_ref both = {host.get(), nullptr, 0};
    if (const int r =
            spanker_all_reduce(session, both, both, count, SPANKER_F32,
                               reduce == SPANKER_AVG ? SPANKER_SUM : reduce, nullptr, nullptr);
        r < 0)
        return r;
    for (std::uint32_t i = 0; i < rank_count; ++i) {
        std::memcpy(ranks[i], memory + i * bytes, bytes);
        for (std::uint64_t e = 0; reduce == SPANKER_AVG && e < count; ++e)
            ranks[i][e] /= static_cast<float>(rank_count);
    }
    return 0;
}

int all_gather_f32(spanker_session* session, const float* const* ranks, float* const* out,
                   std::uint32_t rank_count, std::uint64_t count)
{
    std::uint64_t out_bytes = 0;
    if (const int r = check_ranks(session, rank_count, count, out_bytes); r < 0)
        return r;
    if (count == 0)
        return 0;
    if (const int r = check_pointers(session, "ranks", ranks, rank_count); r < 0)
        return r;
    if (const int r = check_pointers(session, "out", out, rank_count); r < 0)
        return r;
    const std::uint64_t bytes = count * sizeof(float);
    buffer_ptr from, to;
    int r = 0;
    if ((r = make_buffer(session, bytes * rank_count, SPANKER_ACCESS_READ, from)) < 0 ||
        (r = make_buffer(session, out_bytes, SPANKER_ACCESS_WRITE, to)) < 0)
        return r;
    for (std::uint32_t i = 0; i < rank_count; ++i)
        std::memcpy(static_cast<char*>(from->data) + i * bytes, ranks[i], bytes);
    if ((r = spanker_all_gather(session, {from.get(), nullptr, 0}, {to.get(), nullptr, 0}, count,
                                SPANKER_F32, nullptr, nullptr)) < 0)
        return r;
    for (std::uint32_t i = 0; i < rank_count; ++i)
        std::memcpy(out[i], static_cast<const char*>(to->data) + i * bytes * rank_count,
                    bytes * rank_count);
    return 0;
}

}  // namespace

int spanker_matmul_q4_k(spanker_session* session, const void* a, std::uint64_t a_bytes,
                        const void* b, std::uint64_t b_bytes, void* out, std::uint64_t out_bytes,
                        std::uint64_t m, std::uint64_t k, std::uint64_t n)
{
    if (session == nullptr)
        return fail_null(nullptr, "session");
    return guarded(session, [&] {
        return matmul_q4_k(session, a, a_bytes, b, b_bytes, out, out_bytes,
                           {.m = m, .k = k, .n = n, .a_bytes = 0, .b_bytes = 0, .out_bytes = 0});
    });
}

int spanker_all_reduce_f32(spanker_session* session, float* const* ranks, std::uint32_t rank_count,
                           std::uint64_t count, spanker_reduce reduce)
{
    if (session == nullptr)
        return fail_null(nullptr, "session");
    return guarded(session,
                   [&] { return all_reduce_f32(session, ranks, rank_count, count, reduce); });
}

int spanker_all_gather_f32(spanker_session* session, const float* const* ranks, float* const* out,
                           std::uint32_t rank_count, std::uint64_t count)
{
    if (session == nullptr)
        return fail_null(nullptr, "session");
    return guarded(session, [&] { return all_gather_f32(session, ranks, out, rank_count, count); });
}
