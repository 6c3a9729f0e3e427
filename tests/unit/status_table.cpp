// SPDX-License-Identifier: Apache-2.0
//
// The table of errors as a table: its numbers, its names, its errnos. How each row travels from a card to a client is
// tested where the layers meet (tests/daemon).
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "uapi/spanker_status.h"

namespace {

struct status_row {
    const char* symbol;
    unsigned number;
    spanker_error_kind kind;
};

const std::vector<status_row> statuses = {
#define SPANKER_X(symbol, number, kind, text) {#symbol, number, SPANKER_ERR_##kind},
    SPANKER_CARD_STATUSES(SPANKER_X)
#undef SPANKER_X
};

struct error_row {
    const char* symbol;
    spanker_error_kind kind;
    int number;
    std::string name, text;
};

const std::vector<error_row> errors = {
#define SPANKER_X(symbol, number, name, text) {#symbol, SPANKER_ERR_##symbol, number, name, text},
    SPANKER_ERRORS(SPANKER_X)
#undef SPANKER_X
};

TEST(status_table, card_statuses_are_numbered_without_gaps)
{
    for (unsigned i = 0; i < statuses.size(); ++i)
        EXPECT_EQ(statuses[i].number, i) << statuses[i].symbol;
    EXPECT_EQ(statuses.size(), std::size_t{SPANKER_CARD_STATUS_COUNT});
}

TEST(status_table, every_card_status_has_a_kind_and_an_errno)
{
    for (const auto& row : statuses) {
        EXPECT_EQ(spanker_card_status_kind(row.number), row.kind) << row.symbol;
        EXPECT_EQ(spanker_card_status_to_errno(row.number), -spanker_error_errno(row.kind))
            << row.symbol;
        EXPECT_STREQ(spanker_card_status_name(row.number), row.symbol);
    }
}

TEST(status_table, only_ok_is_not_an_error)
{
    for (const auto& row : statuses)
        EXPECT_EQ(spanker_card_status_to_errno(row.number) == 0, row.number == SPANKER_CARD_OK)
            << row.symbol;
}

TEST(status_table, an_unknown_card_status_is_a_failed_card)
{
    EXPECT_EQ(spanker_card_status_kind(SPANKER_CARD_STATUS_COUNT), SPANKER_ERR_CARD_FAILED);
    EXPECT_EQ(spanker_card_status_to_errno(255), -EIO);
    EXPECT_STREQ(spanker_card_status_name(255), "UNKNOWN");
}

TEST(status_table, bus_names_are_distinct_and_well_formed)
{
    std::set<std::string> names;
    for (const auto& row : errors) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name << " stands twice";
        EXPECT_EQ(
            row.name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
            std::string::npos)
            << row.name;
        EXPECT_TRUE(row.name[0] >= 'A' && row.name[0] <= 'Z') << row.name;
        EXPECT_EQ(spanker_error_name(row.kind), row.name);
    }
}

TEST(status_table, texts_are_one_sentence_without_a_newline_or_full_stop)
{
    for (const auto& row : errors) {
        ASSERT_FALSE(row.text.empty()) << row.symbol;
        EXPECT_EQ(row.text.find('\n'), std::string::npos) << row.symbol;
        EXPECT_NE(row.text.back(), '.') << row.symbol;
        EXPECT_EQ(spanker_error_text(row.kind), row.text);
    }
}

TEST(status_table, an_errno_maps_back_to_a_kind_with_the_same_errno)
{
    for (const auto& row : errors) {
        EXPECT_EQ(spanker_error_errno(spanker_errno_kind(row.number)), row.number) << row.symbol;
        EXPECT_EQ(spanker_errno_kind(-row.number), spanker_errno_kind(row.number)) << row.symbol;
    }
    EXPECT_EQ(spanker_errno_kind(0), SPANKER_ERR_NONE);
    EXPECT_EQ(spanker_errno_kind(ENOTTY), SPANKER_ERR_CARD_FAILED);
}

// The contract of clients: these numbers are what programs switch on.
TEST(status_table, keeps_the_errnos_that_clients_rely_on)
{
    const std::vector<std::pair<spanker_error_kind, int>> rows = {
        {SPANKER_ERR_INVALID, EINVAL},
        {SPANKER_ERR_RANGE, ERANGE},
        {SPANKER_ERR_HOST_FAULT, EFAULT},
        {SPANKER_ERR_LINK_DOWN, ENOLINK},
        {SPANKER_ERR_LINK_ERROR, ECOMM},
        {SPANKER_ERR_MISMATCH, EPROTO},
        {SPANKER_ERR_CANCELLED, ECANCELED},
        {SPANKER_ERR_CARD_RESET, ESTALE},
        {SPANKER_ERR_CARD_LOST, ENODEV},
        {SPANKER_ERR_CARD_FAILED, EIO},
        {SPANKER_ERR_RANK_LOST, EOWNERDEAD},
        {SPANKER_ERR_DAEMON_RESTARTED, ECONNRESET},
        {SPANKER_ERR_TIMEOUT, ETIMEDOUT},
        {SPANKER_ERR_QUOTA, EDQUOT},
        {SPANKER_ERR_AGAIN, EAGAIN},
        {SPANKER_ERR_NO_OBJECT, ENOENT},
        {SPANKER_ERR_BUSY, EBUSY},
        {SPANKER_ERR_DRAINING, ESHUTDOWN},
        {SPANKER_ERR_DENIED, EPERM},
        {SPANKER_ERR_NOT_SEALED, EBADF},
        {SPANKER_ERR_NOT_A_MEMFD, EBADF},
        {SPANKER_ERR_BAD_DIMS, EINVAL},
        {SPANKER_ERR_OUTPUT_TOO_SMALL, ENOSPC},
        {SPANKER_ERR_NO_SAILS, ENODEV},
        {SPANKER_ERR_TOPOLOGY_MISMATCH, EINVAL},
        {SPANKER_ERR_SHAPE_MISMATCH, EINVAL},
    };
    for (const auto& [kind, number] : rows)
        EXPECT_EQ(spanker_error_errno(kind), number) << spanker_error_name(kind);
}

}  // namespace
