// SPDX-License-Identifier: Apache-2.0
//
// The last error of each handle in each thread, and how names and numbers become kinds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "libspankerctl/src/error.hpp"

namespace {

using namespace spanker::lib;

const char handles[40] = {};

// The C interface calls it as D-Bus does.
std::string c_name(const std::string& symbol)
{
    return symbol == "HOST_FAULT" ? "DEVICE_IO" : symbol;
}

TEST(lib_errors, a_handle_that_never_failed_has_no_error)
{
    EXPECT_EQ(spanker_last_error(&handles[39])->negative_errno, 0);
    EXPECT_EQ(spanker_last_error(&handles[39])->kind, SPANKER_KIND_OK);
    EXPECT_STREQ(spanker_last_error(&handles[39])->message, "");
}

TEST(lib_errors, each_handle_has_its_own)
{
    EXPECT_EQ(fail(&handles[0], SPANKER_KIND_BUSY, "zero"), -EBUSY);
    EXPECT_EQ(fail(&handles[1], SPANKER_KIND_TIMEOUT, "one"), -ETIMEDOUT);
    EXPECT_EQ(fail(nullptr, SPANKER_KIND_NO_DAEMON, "none"), -ECONNREFUSED);
    EXPECT_STREQ(spanker_last_error(&handles[0])->message, "zero");
    EXPECT_STREQ(spanker_last_error(&handles[1])->message, "one");
    EXPECT_STREQ(spanker_last_error(nullptr)->message, "none");
}

TEST(lib_errors, what_was_returned_survives_failures_of_other_handles)
{
    fail(&handles[0], SPANKER_KIND_BUSY, "mine");
    const spanker_error* mine = spanker_last_error(&handles[0]);
    for (int i = 1; i < 16; ++i)
        fail(&handles[i], SPANKER_KIND_AGAIN, "theirs");
    EXPECT_STREQ(mine->message, "mine");
    EXPECT_EQ(mine, spanker_last_error(&handles[0]));
}

TEST(lib_errors, a_thread_keeps_the_sixteen_that_failed_last)
{
    for (int i = 0; i < 17; ++i)
        fail(&handles[i], SPANKER_KIND_AGAIN, "x");
    EXPECT_EQ(spanker_last_error(&handles[0])->negative_errno, 0);
    for (int i = 1; i < 17; ++i)
        EXPECT_EQ(spanker_last_error(&handles[i])->negative_errno, -EAGAIN) << i;
}

TEST(lib_errors, a_copy_for_another_handle_is_whole_even_when_slots_run_out)
{
    for (int i = 0; i < 16; ++i)
        fail(&handles[i], SPANKER_KIND_AGAIN, "older");
    fail(&handles[20], SPANKER_KIND_RANGE, "source");
    for (int i = 21; i < 39; ++i) {
        EXPECT_EQ(fail_as(&handles[i], &handles[i - 1]), -ERANGE) << i;
        EXPECT_STREQ(spanker_last_error(&handles[i])->message, "source") << i;
    }
}

TEST(lib_errors, threads_do_not_see_each_others)
{
    fail(&handles[2], SPANKER_KIND_BUSY, "here");
    std::thread([] {
        EXPECT_EQ(spanker_last_error(&handles[2])->negative_errno, 0);
        fail(&handles[2], SPANKER_KIND_RANGE, "there");
    }).join();
    EXPECT_STREQ(spanker_last_error(&handles[2])->message, "here");
}

TEST(lib_errors, a_long_text_is_cut_between_characters)
{
    std::string text(510, 'x');
    text += "\u00e4\u00e4\u00e4";  // two bytes each: the first would be cut in half
    fail(&handles[3], SPANKER_KIND_BUSY, text);
    EXPECT_EQ(std::string(spanker_last_error(&handles[3])->message), std::string(510, 'x'));
}

TEST(lib_errors, every_kind_of_the_table_has_name_text_and_errno)
{
    struct row {
        spanker_kind kind;
        int number;
        const char *name, *text;
    };
    int next = SPANKER_KIND_OK;
    const row rows[] = {
#define SPANKER_X(symbol, number, name, text) \
    {static_cast<spanker_kind>(++next), number, name, text},
        SPANKER_ERRORS(SPANKER_X)
#undef SPANKER_X
    };
    EXPECT_EQ(next + 1, SPANKER_KIND_REMOTE);
    for (const auto& r : rows) {
        EXPECT_STREQ(spanker_kind_name(r.kind), r.name);
        EXPECT_STREQ(spanker_kind_text(r.kind), r.text);
        EXPECT_EQ(make_error(r.kind, "").negative_errno, -r.number) << r.name;
        EXPECT_EQ(kind_of_name(std::string(SPANKER_ERROR_PREFIX) + r.name), r.kind) << r.name;
    }
}

// Each row of the table is a row of the manual, with its C name and errno.
TEST(lib_errors, the_manual_has_every_kind_and_every_card_status)
{
    std::ifstream file(SPANKER_TEST_DATA "/../../docs/errors.md");
    ASSERT_TRUE(file.good());
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    const auto has = [&](const std::string& row) { return page.find(row) != std::string::npos; };
#define SPANKER_X(symbol, number, name, text)                                                   \
    EXPECT_TRUE(                                                                                \
        has(fmt::format("\n| {} | `SPANKER_KIND_{}` | {} | ", name, c_name(#symbol), #number))) \
        << name;
    SPANKER_ERRORS(SPANKER_X)
#undef SPANKER_X
#define SPANKER_X(symbol, number, kind, text) \
    EXPECT_TRUE(has(fmt::format("\n| {} | {} | ", #symbol, number))) << #symbol;
    SPANKER_CARD_STATUSES(SPANKER_X)
#undef SPANKER_X
}

TEST(lib_errors, names_outside_the_table_are_answered_too)
{
    EXPECT_STREQ(spanker_kind_name(SPANKER_KIND_OK), "Ok");
    EXPECT_STREQ(spanker_kind_name(SPANKER_KIND_REMOTE), "Remote");
    EXPECT_STREQ(spanker_kind_name(static_cast<spanker_kind>(999)), "Failed");
    EXPECT_STREQ(spanker_kind_text(static_cast<spanker_kind>(999)), "unknown error");
}

TEST(lib_errors, what_the_bus_says_becomes_a_kind)
{
    const std::pair<const char*, spanker_kind> rows[] = {
        {"org.freedesktop.DBus.Error.InvalidArgs", SPANKER_KIND_INVALID},
        {"org.freedesktop.DBus.Error.AccessDenied", SPANKER_KIND_DENIED},
        {"org.freedesktop.DBus.Error.NoMemory", SPANKER_KIND_NO_MEMORY},
        {"org.freedesktop.DBus.Error.UnknownObject", SPANKER_KIND_NO_OBJECT},
        {"org.freedesktop.DBus.Error.UnknownInterface", SPANKER_KIND_NOT_SUPPORTED},
        {"org.freedesktop.DBus.Error.UnknownMethod", SPANKER_KIND_NOT_SUPPORTED},
        {"org.freedesktop.DBus.Error.ServiceUnknown", SPANKER_KIND_NO_DAEMON},
        {"org.freedesktop.DBus.Error.NameHasNoOwner", SPANKER_KIND_NO_DAEMON},
        {"org.freedesktop.DBus.Error.Spawn.ChildExited", SPANKER_KIND_NO_DAEMON},
        {"org.freedesktop.DBus.Error.Spawn.ExecFailed", SPANKER_KIND_NO_DAEMON},
        {"org.freedesktop.DBus.Error.Spawn.Failed", SPANKER_KIND_NO_DAEMON},
        {"org.freedesktop.systemd1.NoSuchUnit", SPANKER_KIND_NO_DAEMON},
        {"org.freedesktop.DBus.Error.LimitsExceeded", SPANKER_KIND_QUOTA},
        {"org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", SPANKER_KIND_DENIED},
        {"org.popsolutions.Spanker2.Error.LinkDown", SPANKER_KIND_LINK_DOWN},
        {"org.popsolutions.Spanker1.Error.FromTheFuture", SPANKER_KIND_REMOTE},
        {"", SPANKER_KIND_REMOTE},
    };
    for (const auto& [name, kind] : rows)
        EXPECT_EQ(kind_of_name(name), kind) << name;
}

TEST(lib_errors, a_closed_file_is_an_invalid_argument_and_no_question_of_seals)
{
    const spanker_error error = make_error_errno(EBADF, "closed");
    EXPECT_EQ(error.kind, SPANKER_KIND_INVALID);
    EXPECT_EQ(error.negative_errno, -EBADF);
}

TEST(lib_errors, errors_name_no_card_and_no_port_unless_they_know_one)
{
    const spanker_error error = make_error(SPANKER_KIND_BUSY, "x");
    EXPECT_EQ(error.card, SPANKER_NONE);
    EXPECT_EQ(error.port, SPANKER_NONE);
}

TEST(lib_errors, what_is_thrown_inside_becomes_an_error)
{
    const std::pair<std::function<int()>, int> rows[] = {
        {[]() -> int { throw std::bad_alloc(); }, -ENOMEM},
        {[]() -> int { throw std::length_error("x"); }, -ENOMEM},
        {[]() -> int { throw std::system_error(EAGAIN, std::generic_category()); }, -EAGAIN},
        {[]() -> int { throw std::runtime_error("x"); }, -EIO},
        {[]() -> int { throw 1; }, -EIO},
        {[] { return 5; }, 5},
    };
    for (const auto& [body, expected] : rows)
        EXPECT_EQ(guarded(&handles[5], body), expected);
}

}  // namespace
