// SPDX-License-Identifier: Apache-2.0
//
// Options structs of every age, and arguments that no daemon is needed to refuse.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "libspankerctl/src/session.hpp"
#include "libspankerctl/src/tensor.hpp"

namespace {

struct longer {
    spanker_connect_options known;
    std::uint64_t unknown[2];
};

int connect(const void* options)
{
    spanker_connection* out = nullptr;
    return spanker_connect(static_cast<const spanker_connect_options*>(options), &out);
}

const char* message(const void* handle = nullptr) { return spanker_last_error(handle)->message; }

longer make(std::size_t size)
{
    longer o = {};
    o.known.size = size;
    o.known.bus = "unix:path=/nonexistent/bus";
    return o;
}

TEST(lib_options, a_longer_struct_with_an_empty_tail_is_of_a_newer_caller_and_taken)
{
    const longer o = make(sizeof(longer));
    EXPECT_EQ(connect(&o), -ECONNREFUSED);
}

TEST(lib_options, a_longer_struct_that_asks_for_something_unknown_is_refused)
{
    longer o = make(sizeof(longer));
    o.unknown[1] = 1;
    EXPECT_EQ(connect(&o), -E2BIG);
    EXPECT_NE(std::string(message()).find("spanker_connect_options"), std::string::npos);
}

TEST(lib_options, a_shorter_struct_is_of_an_older_caller_and_taken)
{
    longer o = make(offsetof(spanker_connect_options, timeout_ns));
    o.known.timeout_ns = 77;  // not ours to read
    EXPECT_EQ(connect(&o), -ECONNREFUSED);
}

TEST(lib_options, a_struct_without_its_size_is_refused)
{
    for (const std::size_t size : {std::size_t{0}, sizeof(std::size_t) - 1}) {
        const longer o = make(size);
        EXPECT_EQ(connect(&o), -EINVAL);
        EXPECT_NE(std::string(message()).find("sizeof"), std::string::npos);
    }
}

TEST(lib_options, no_bus_is_no_daemon_and_the_address_is_named)
{
    const longer o = make(sizeof o.known);
    EXPECT_EQ(connect(&o), -ECONNREFUSED);
    EXPECT_EQ(spanker_last_error(nullptr)->kind, SPANKER_KIND_NO_DAEMON);
    EXPECT_NE(std::string(message()).find("/nonexistent/bus"), std::string::npos);
}

TEST(lib_options, nonsense_as_an_address_is_named_too)
{
    spanker_connect_options o = {sizeof o, "no address at all", 0};
    EXPECT_LT(connect(&o), 0);
    EXPECT_NE(std::string(message()).find("no address at all"), std::string::npos);
}

TEST(lib_options, a_session_needs_a_power_of_two_of_entries)
{
    spanker_connection c;
    for (const std::uint32_t entries : {3u, 8192u, UINT32_MAX}) {
        spanker_session_options o = {sizeof o, nullptr, 0, entries};
        spanker_session* out = nullptr;
        EXPECT_EQ(spanker_session_open(&c, &o, &out), -EINVAL) << entries;
        EXPECT_NE(std::string(message(&c)).find("sq_entries"), std::string::npos);
    }
}

TEST(lib_options, a_session_needs_the_cards_it_counts)
{
    spanker_connection c;
    spanker_session* out = nullptr;
    spanker_session_options o = {sizeof o, nullptr, 2, 0};
    EXPECT_EQ(spanker_session_open(&c, &o, &out), -EINVAL);
    const std::array<std::uint32_t, 17> many = {};
    o.cards = many.data();
    o.card_count = many.size();
    EXPECT_EQ(spanker_session_open(&c, &o, &out), -EINVAL);
    EXPECT_NE(std::string(message(&c)).find("at most 16"), std::string::npos);
}

TEST(lib_options, mocks_of_impossible_sizes_are_refused)
{
    spanker_mock* out = nullptr;
    EXPECT_EQ(spanker_with_mock(0, nullptr, &out), -ENODEV);
    EXPECT_EQ(spanker_last_error(nullptr)->kind, SPANKER_KIND_NO_SAILS);
    EXPECT_EQ(spanker_with_mock(10, nullptr, &out), -EINVAL);
    EXPECT_EQ(spanker_last_error(nullptr)->kind, SPANKER_KIND_TOPOLOGY_MISMATCH);
    EXPECT_EQ(spanker_with_mock(17, "ring", &out), -EINVAL);
}

TEST(lib_options, names_that_are_no_links_are_refused_with_an_example)
{
    spanker_connection c;
    std::size_t count = 0;
    for (const char* name :
         {"", "0", "0.1", "0.1-1", "a.b-c.d", "0.1-1.0x", "0.1-1.0-2.0", "-1.0-1.0"}) {
        EXPECT_EQ(spanker_link_counters(&c, name, nullptr, 0, &count), -EINVAL) << name;
        EXPECT_NE(std::string(message(&c)).find("0.1-1.0"), std::string::npos) << name;
        EXPECT_EQ(spanker_link_lanes(&c, name, nullptr, 0, &count), -EINVAL) << name;
    }
}

struct unattached {
    spanker_connection connection;
    spanker_session session{&connection};
    unattached() { session.cards = {0, 1}; }
};

TEST(lib_options, buffers_tensors_and_weights_refuse_bad_arguments_by_themselves)
{
    unattached u;
    spanker_buffer* b = nullptr;
    spanker_tensor* t = nullptr;
    spanker_weights* w = nullptr;
    const auto wrong = [](auto kind) { return static_cast<decltype(kind)>(99); };
    EXPECT_EQ(spanker_buffer_create(&u.session, 1, wrong(SPANKER_ACCESS_READ), &b), -EINVAL);
    EXPECT_EQ(spanker_buffer_import(&u.session, 0, 1, 1, SPANKER_ACCESS_READ, &b), -EINVAL);
    EXPECT_EQ(spanker_buffer_import(&u.session, 0, 0, 0, SPANKER_ACCESS_READ, &b), -EINVAL);
    EXPECT_EQ(spanker_buffer_import(&u.session, -1, 0, 1, SPANKER_ACCESS_READ, &b), -EBADF);
    EXPECT_EQ(spanker_tensor_alloc(&u.session, wrong(SPANKER_PARTIAL), SPANKER_F32, 1, 1, &t),
              -EINVAL);
    EXPECT_EQ(spanker_tensor_alloc(&u.session, SPANKER_PARTIAL, wrong(SPANKER_F32), 1, 1, &t),
              -EINVAL);
    EXPECT_EQ(spanker_tensor_alloc(&u.session, SPANKER_PARTIAL, SPANKER_F32, 0, 1, &t), -EINVAL);
    EXPECT_EQ(
        spanker_tensor_alloc(&u.session, SPANKER_PARTIAL, SPANKER_F32, 1ull << 40, 1ull << 40, &t),
        -EINVAL);
    EXPECT_EQ(spanker_last_error(&u.session)->kind, SPANKER_KIND_SHAPE_MISMATCH);
    for (const std::uint64_t k : {0ull, 100ull, 1ull << 60})
        EXPECT_EQ(spanker_weights_load_fd(&u.session, 0, 0, 1ull << 60, k, nullptr, &w), -EINVAL)
            << k;
    EXPECT_EQ(spanker_last_error(&u.session)->kind, SPANKER_KIND_BAD_DIMS);
    EXPECT_EQ(spanker_weights_load(&u.session, "", 143, 1, 256, nullptr, &w), -EINVAL);
    EXPECT_NE(std::string(message(&u.session)).find("144 bytes, not 143"), std::string::npos);
    EXPECT_EQ(spanker_weights_load_fd(&u.session, -1, 0, 1, 256, nullptr, &w), -EBADF);
}

TEST(lib_options, a_memfd_shorter_than_the_buffer_is_refused_with_both_sizes)
{
    unattached u;
    const spanker::lib::unique_fd fd(memfd_create("short", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(fd.get(), 4096), 0);
    spanker_buffer* b = nullptr;
    for (const auto& [offset, bytes] :
         {std::pair{0ull, 4097ull}, {4096ull, 1ull}, {0ull, UINT64_MAX}}) {
        EXPECT_EQ(
            spanker_buffer_import(&u.session, fd.get(), offset, bytes, SPANKER_ACCESS_READ, &b),
            -ERANGE);
        EXPECT_NE(std::string(message(&u.session)).find("4096 bytes"), std::string::npos);
    }
}

TEST(lib_options, work_names_what_is_wrong_with_its_operands)
{
    unattached u, other;
    spanker_weights weights;
    weights.session = &u.session;
    weights.handle = 1;
    spanker_tensor mine{&u.session, 1, 0}, foreign{&other.session, 1, 0}, stale{&u.session, 1, 7};
    spanker_work_options linked = {sizeof linked, SPANKER_LINKED, 0};
    spanker_work_options unknown = {sizeof unknown, 1u << 30, 0};
    const auto of = [](spanker_tensor& t) { return spanker_operand_ref{nullptr, &t, 0}; };
    const auto matmul = [&](spanker_weights* w, spanker_operand_ref x, std::uint64_t n_tok,
                            const spanker_work_options* o) {
        return spanker_matmul(&u.session, w, x, SPANKER_X_F32, of(mine), n_tok, o, nullptr);
    };
    struct row {
        int result, expected;
        spanker_kind kind;
    };
    const auto check = [&](const char* name, int result, int expected, spanker_kind kind) {
        EXPECT_EQ(result, expected) << name;
        EXPECT_EQ(spanker_last_error(&u.session)->kind, kind)
            << name << ": " << message(&u.session);
    };
    spanker_weights elsewhere{&other.session, 1, 0}, unloaded{&u.session, 0, 0};
    check("no weights", matmul(nullptr, of(mine), 1, nullptr), -ENOENT, SPANKER_KIND_NO_OBJECT);
    check("foreign weights", matmul(&elsewhere, of(mine), 1, nullptr), -ENOENT,
          SPANKER_KIND_NO_OBJECT);
    check("unloaded weights", matmul(&unloaded, of(mine), 1, nullptr), -ENOENT,
          SPANKER_KIND_NO_OBJECT);
    check("no operand", matmul(&weights, {}, 1, nullptr), -EINVAL, SPANKER_KIND_INVALID);
    check("foreign operand", matmul(&weights, of(foreign), 1, nullptr), -ENOENT,
          SPANKER_KIND_NO_OBJECT);
    check("stale tensor", matmul(&weights, of(stale), 1, nullptr), -ECONNRESET,
          SPANKER_KIND_DAEMON_RESTARTED);
    check("many tokens", matmul(&weights, of(mine), 1ull << 32, nullptr), -EINVAL,
          SPANKER_KIND_BAD_DIMS);
    check("unknown flag", matmul(&weights, of(mine), 1, &unknown), -EINVAL, SPANKER_KIND_INVALID);
    check("blocking and linked", matmul(&weights, of(mine), 1, &linked), -EINVAL,
          SPANKER_KIND_INVALID);
    check("bad root",
          spanker_broadcast(&u.session, of(mine), of(mine), 1, SPANKER_F32, 2, nullptr, nullptr),
          -ERANGE, SPANKER_KIND_RANGE);
    check("bad dtype",
          spanker_all_reduce(&u.session, of(mine), of(mine), 1, static_cast<spanker_dtype>(9),
                             SPANKER_SUM, nullptr, nullptr),
          -EINVAL, SPANKER_KIND_INVALID);
    check("an average on the cards",
          spanker_all_reduce(&u.session, of(mine), of(mine), 1, SPANKER_F32, SPANKER_AVG, nullptr,
                             nullptr),
          -EINVAL, SPANKER_KIND_INVALID);
}

}  // namespace
