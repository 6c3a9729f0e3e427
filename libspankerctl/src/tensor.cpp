// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

#include <fmt/format.h>

#include "buffer.hpp"

namespace spanker::lib {
namespace {

struct dtype_row {
    const char* name;
    std::uint32_t bytes;
};
constexpr dtype_row dtypes[] = {
    // by spanker_dtype
    {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"i32", 4}, {"i8", 1},
};
constexpr const char* layouts[] = {"replicated", "row_shard", "k_shard", "partial"};

}  // namespace

const char* dtype_name(spanker_dtype dtype)
{
    return static_cast<std::size_t>(dtype) < std::size(dtypes) ? dtypes[dtype].name : nullptr;
}

std::uint32_t dtype_bytes(spanker_dtype dtype)
{
    return static_cast<std::size_t>(dtype) < std::size(dtypes) ? dtypes[dtype].bytes : 0;
}

int check_fresh(spanker_session* s, std::uint32_t generation, std::uint32_t now, const char* what)
{
    if (generation == now)
        return 0;
    return fail(s, SPANKER_KIND_DAEMON_RESTARTED,
                fmt::format("spankerd restarted and the {} went with it: make it again", what));
}

}  // namespace spanker::lib

using namespace spanker::lib;

namespace {

int alloc(spanker_session* session, spanker_layout layout, spanker_dtype dtype, std::uint64_t rows,
          std::uint64_t cols, spanker_tensor** out)
{
    if (dtype_name(dtype) == nullptr || static_cast<std::size_t>(layout) >= std::size(layouts))
        return fail(session, SPANKER_KIND_INVALID, "layout or dtype is none of the known ones");
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(rows, cols, &bytes) ||
        __builtin_mul_overflow(bytes, std::uint64_t{dtype_bytes(dtype)}, &bytes) || bytes == 0)
        return fail(session, SPANKER_KIND_SHAPE_MISMATCH,
                    fmt::format("a tensor cannot have {} x {} elements", rows, cols));
    if (const int r = session_ensure(session, session, true); r < 0)
        return r;
    auto tensor = std::make_unique<spanker_tensor>();
    const std::lock_guard lock(session->objects);
    message_ptr reply;
    const int r = session_call(
        session, "AllocTensor",
        [&](sd_bus_message* m) {
            return sd_bus_message_append(m, "tssata{sv}", std::uint64_t{0}, layouts[layout],
                                         dtype_name(dtype), 2, rows, cols, 0);
        },
        reply);
    if (r < 0)
        return r;
    std::uint64_t number = 0;
    if (sd_bus_message_read(reply.get(), "t", &number) < 0)
        return malformed(session, "AllocTensor");
    *tensor = {session, 0, session->generation.load()};
    if (const int h = to_handle(session, number, "AllocTensor", tensor->handle); h < 0)
        return h;
    *out = tensor.release();
    return 0;
}

int give_back(const spanker_tensor& tensor)
{
    spanker_session* s = tensor.session;
    const std::lock_guard lock(s->objects);
    if (tensor.generation != s->generation.load())
        return 0;
    message_ptr reply;
    return session_call(
        s, "FreeTensor",
        [&](sd_bus_message* m) {
            return sd_bus_message_append(m, "t", std::uint64_t{tensor.handle});
        },
        reply);
}

}  // namespace

int spanker_tensor_alloc(spanker_session* session, spanker_layout layout, spanker_dtype dtype,
                         std::uint64_t rows, std::uint64_t cols, spanker_tensor** out)
{
    if (session == nullptr || out == nullptr)
        return fail_null(session, session == nullptr ? "session" : "out");
    return guarded(session, [&] { return alloc(session, layout, dtype, rows, cols, out); });
}

void spanker_tensor_free(spanker_tensor* tensor)
{
    if (tensor == nullptr)
        return;
    guarded(tensor->session, [&] { return give_back(*tensor); });
    delete tensor;
}
