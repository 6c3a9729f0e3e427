// SPDX-License-Identifier: Apache-2.0
//
// Every allocation of the library fails once. Nothing is thrown, the call says -ENOMEM or what it would have said,
// and the next one works. (Leaks on these paths are AddressSanitizer's to find.)
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>

#include "libspankerctl/src/session.hpp"
#include "libspankerctl/src/tensor.hpp"

namespace {

thread_local bool counting = false;
thread_local long left = 0;  // allocations that still succeed

void* allocate_or_null(std::size_t bytes) noexcept
{
    if (counting && left-- == 0)
        return nullptr;
    return std::malloc(bytes != 0 ? bytes : 1);
}

void* allocate(std::size_t bytes)
{
    if (void* memory = allocate_or_null(bytes))
        return memory;
    throw std::bad_alloc();
}

}  // namespace

// All of them: a sanitizer's own, left in, would not go with the operator delete below.
void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    return allocate_or_null(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept
{
    return allocate_or_null(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

// How many allocations the call makes; each has failed once then.
long walk(const std::function<int()>& call, int usual)
{
    for (long n = 0;; ++n) {
        left = n;
        counting = true;
        const int result = call();
        counting = false;
        if (left >= 0) {
            EXPECT_EQ(result, usual);
            return n;
        }
        EXPECT_TRUE(result == -ENOMEM || result == usual) << "allocation " << n << ": " << result;
    }
}

struct bed {
    spanker_connection connection;
    spanker_session session{&connection};
    bed()
    {
        connection.address = "unix:path=/nonexistent/bus";
        session.cards = {0, 1};
    }
};

TEST(lib_out_of_memory, connecting)
{
    const spanker_connect_options o = {
        sizeof o, "unix:path=/nonexistent/a/name/too/long/for/no/allocation", 0};
    spanker_connection* out = nullptr;
    EXPECT_GT(walk([&] { return spanker_connect(&o, &out); }, -ECONNREFUSED), 3);
}

TEST(lib_out_of_memory, opening_a_session)
{
    bed b;
    spanker_session* out = nullptr;
    const std::uint32_t cards[] = {0, 1};
    const spanker_session_options o = {sizeof o, cards, 2, 0};
    EXPECT_GT(walk([&] { return spanker_session_open(&b.connection, &o, &out); }, -ECONNREFUSED),
              3);
}

TEST(lib_out_of_memory, refusing_arguments)
{
    bed b;
    spanker_weights* w = nullptr;
    std::size_t count = 0;
    EXPECT_GE(walk(
                  [&] {
                      return spanker_matmul_q4_k(&b.session, nullptr, 1, nullptr, 1, nullptr, 0, 1,
                                                 256, 1);
                  },
                  -EINVAL),
              1);
    EXPECT_GE(
        walk([&] { return spanker_weights_load(&b.session, "", 1, 1, 256, nullptr, &w); }, -EINVAL),
        1);
    EXPECT_GE(walk(
                  [&] {
                      return spanker_link_lanes(&b.connection, "0.1 to 1.0, the long one", nullptr,
                                                0, &count);
                  },
                  -EINVAL),
              1);
}

TEST(lib_out_of_memory, sending_work)
{
    bed b;
    spanker_weights weights;
    weights.session = &b.session;
    weights.handle = 1;
    spanker_tensor tensor{&b.session, 1, 0};
    spanker_request* out = nullptr;
    b.session.lost = true;  // found when everything is ready to go
    const spanker_operand_ref operand = {nullptr, &tensor, 0};
    EXPECT_GE(walk(
                  [&] {
                      return spanker_matmul_async(&b.session, &weights, operand, SPANKER_X_F32,
                                                  operand, 1, nullptr, &out);
                  },
                  -ECONNREFUSED),
              1);
}

}  // namespace
