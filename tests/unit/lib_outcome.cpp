// SPDX-License-Identifier: Apache-2.0
//
// What a completion becomes: errno, kind, card, port, a sentence. Walks both tables of errors.
#include <gtest/gtest.h>

#include "libspankerctl/src/session.hpp"

namespace {

const char who = 0;

struct ended {
    spanker_connection connection;
    spanker_session session{&connection};
    spanker_request request;

    ended()
    {
        connection.address = "unix:path=/nonexistent/bus";
        connection.link = nullptr;
        request.session = &session;
        request.connection = &connection;
        request.cqe.card = SPANKER_NO_CARD;
        request.cqe.link = SPANKER_NO_LINK;
    }
    int outcome(spanker_result* result = nullptr)
    {
        return spanker::lib::outcome_of(&who, request, result);
    }
    const spanker_error& error() const { return *spanker_last_error(&who); }
    std::string message() const { return error().message; }
};

TEST(lib_outcome, success_fills_the_result)
{
    ended e;
    e.request.cqe.device_ns = 5;
    e.request.cqe.algorithm = SPANKER_ALGORITHM_K_SPLIT;
    spanker_result result = {};
    EXPECT_EQ(e.outcome(&result), 0);
    EXPECT_EQ(result.device_ns, 5u);
    EXPECT_STREQ(result.algorithm, "k-split");
    EXPECT_EQ(e.outcome(nullptr), 0);
}

TEST(lib_outcome, an_algorithm_of_a_later_daemon_is_unknown)
{
    ended e;
    e.request.cqe.algorithm = 999;
    spanker_result result = {};
    EXPECT_EQ(e.outcome(&result), 0);
    EXPECT_STREQ(result.algorithm, "unknown");
}

TEST(lib_outcome, every_kind_keeps_its_errno_and_its_text)
{
    for (int kind = SPANKER_ERR_NONE + 1; kind < SPANKER_ERR_COUNT; ++kind) {
        const auto k = static_cast<spanker_error_kind>(kind);
        ended e;
        e.request.cqe.kind = k;
        e.request.cqe.res = -spanker_error_errno(k);
        EXPECT_EQ(e.outcome(), -spanker_error_errno(k)) << kind;
        EXPECT_EQ(int{e.error().kind}, kind);
        EXPECT_STREQ(e.error().name, spanker_error_name(k));
        EXPECT_EQ(e.message().find(spanker_error_text(k)), 0u) << e.message();
    }
}

TEST(lib_outcome, every_card_status_is_named_with_its_card)
{
    for (unsigned status = SPANKER_CARD_OK + 1; status < SPANKER_CARD_STATUS_COUNT; ++status) {
        ended e;
        e.request.cqe.card_status = status;
        e.request.cqe.kind = spanker_card_status_kind(status);
        e.request.cqe.res = spanker_card_status_to_errno(status);
        e.request.cqe.card = 3;
        e.request.cqe.detail = 77;
        EXPECT_EQ(e.outcome(), spanker_card_status_to_errno(status));
        EXPECT_EQ(e.error().card, 3u);
        EXPECT_EQ(e.error().card_status, status);
        EXPECT_EQ(e.error().detail, 77u);
        EXPECT_EQ(e.message().find("card 3: "), 0u) << e.message();
        EXPECT_NE(e.message().find(spanker_card_status_name(status)), std::string::npos)
            << e.message();
    }
}

TEST(lib_outcome, an_errno_without_a_kind_gets_the_first_that_has_it)
{
    ended e;
    e.request.cqe.res = -ENOLINK;
    EXPECT_EQ(e.outcome(), -ENOLINK);
    EXPECT_EQ(e.error().kind, SPANKER_KIND_LINK_DOWN);
}

TEST(lib_outcome, an_errno_of_nobody_is_a_failed_card)
{
    ended e;
    e.request.cqe.res = -ENOTTY;
    EXPECT_EQ(e.outcome(), -ENOTTY);
    EXPECT_EQ(e.error().kind, SPANKER_KIND_CARD_FAILED);
}

TEST(lib_outcome, a_positive_result_is_no_success)
{
    ended e;
    e.request.cqe.res = 1;
    EXPECT_LT(e.outcome(), 0);
}

TEST(lib_outcome, a_kind_of_a_later_daemon_is_remote_and_keeps_its_errno)
{
    ended e;
    e.request.cqe.res = -EXDEV;
    e.request.cqe.kind = 1000;
    EXPECT_EQ(e.outcome(), -EXDEV);
    EXPECT_EQ(e.error().kind, SPANKER_KIND_REMOTE);
}

TEST(lib_outcome, errors_that_people_can_cure_say_how)
{
    const std::pair<spanker_error_kind, const char*> rows[] = {
        {SPANKER_ERR_LINK_DOWN, "check the cable"},
        {SPANKER_ERR_CARD_RESET, "load the weights"},
        {SPANKER_ERR_DAEMON_RESTARTED, "send it again"},
        {SPANKER_ERR_TIMEOUT, "timeout_ns"},
    };
    for (const auto& [kind, cure] : rows) {
        ended e;
        e.request.cqe.kind = kind;
        e.request.cqe.res = -spanker_error_errno(kind);
        e.outcome();
        EXPECT_NE(e.message().find(cure), std::string::npos) << e.message();
    }
}

}  // namespace
