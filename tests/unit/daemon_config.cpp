// SPDX-License-Identifier: Apache-2.0
//
// The configuration file: what it sets, and what it refuses by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/config.hpp"

namespace spanker::daemon {
namespace {

using testing::HasSubstr;

TEST(config, an_empty_file_gives_the_defaults)
{
    auto parsed = parse_config("", "x");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->limits.sessions_per_uid, plane_limits{}.sessions_per_uid);
    EXPECT_EQ(parsed->job_keep_us, 60'000'000u);
}

TEST(config, every_key_reaches_its_place)
{
    auto parsed = parse_config("# limits of one machine\n"
                               "[limits]\n"
                               "sessions_per_uid = 3\r\n"
                               "  buffers_per_session=7 ; few\n"
                               "tensors_per_session = 8\n"
                               "weights_per_session = 9\n"
                               "buffer_bytes_per_uid = 2G\n"
                               "sq_entries_max = 1K\n"
                               "arena_bytes_max = 64K\n"
                               "portable_in_flight = 5\n"
                               "default_deadline_ms = 1500\n"
                               "[cards]\n"
                               "probe_timeout_ms = 10\n"
                               "answer_timeout_ms = 20\n"
                               "call_timeout_ms = 30\n"
                               "[jobs]\n"
                               "keep_ms = 40",
                               "x");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->limits.sessions_per_uid, 3u);
    EXPECT_EQ(parsed->limits.buffers_per_session, 7u);
    EXPECT_EQ(parsed->limits.tensors_per_session, 8u);
    EXPECT_EQ(parsed->limits.weights_per_session, 9u);
    EXPECT_EQ(parsed->limits.buffer_bytes_per_uid, 2ull << 30);
    EXPECT_EQ(parsed->limits.sq_entries_max, 1024u);
    EXPECT_EQ(parsed->limits.arena_bytes_max, 65536u);
    EXPECT_EQ(parsed->limits.portable_in_flight, 5u);
    EXPECT_EQ(parsed->limits.default_deadline_ns, 1'500'000'000u);
    EXPECT_EQ(parsed->patience.probe_us, 10'000u);
    EXPECT_EQ(parsed->patience.look_us, 20'000u);
    EXPECT_EQ(parsed->patience.call_us, 30'000u);
    EXPECT_EQ(parsed->job_keep_us, 40'000u);
}

TEST(config, what_is_wrong_is_named_with_its_line)
{
    const struct {
        const char* text;
        const char* says;
    } rows[] = {
        {"[limits]\nsesions_per_uid = 3\n",
         "spankerd.conf:2: unknown key 'sesions_per_uid' in section [limits]"},
        {"[limit]\n", "spankerd.conf:1: unknown section [limit]"},
        {"[limits\n", "spankerd.conf:1: a section must end in ']'"},
        {"\n\n[limits]\nsessions_per_uid\n",
         "spankerd.conf:4: 'sessions_per_uid' is not 'key = value'"},
        {"sessions_per_uid = 3\n", "unknown key 'sessions_per_uid' in section []"},
        {"[limits]\nsessions_per_uid = three\n", "'three' is not a number"},
        {"[limits]\nsessions_per_uid = 0\n", "sessions_per_uid = 0 is not within 1 to 4096"},
        {"[limits]\nsq_entries_max = 1M\n", "is not within 8 to 4096"},
    };
    for (const auto& row : rows) {
        auto parsed = parse_config(row.text, "spankerd.conf");
        ASSERT_FALSE(parsed) << row.text;
        EXPECT_EQ(parsed.error().kind, SPANKER_ERR_INVALID);
        EXPECT_THAT(parsed.error().message, HasSubstr(row.says));
    }
}

TEST(config, a_file_that_is_not_there_is_named)
{
    auto parsed = read_config("/nonexistent/spankerd.conf");
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().kind, SPANKER_ERR_NO_OBJECT);
    EXPECT_THAT(parsed.error().message, HasSubstr("/nonexistent/spankerd.conf"));
}

TEST(config, a_file_that_need_not_be_there_gives_the_defaults)
{
    EXPECT_TRUE(read_config("-/nonexistent/spankerd.conf"));
    EXPECT_TRUE(read_config("-/dev/null"));
}

TEST(config, a_directory_is_no_file)
{
    for (const char* path : {"/", "-/"}) {
        const auto parsed = read_config(path);
        ASSERT_FALSE(parsed) << path;
        EXPECT_THAT(parsed.error().message, HasSubstr("configuration /: Is a directory"));
    }
}

TEST(config, an_empty_file_on_disk_is_read) { EXPECT_TRUE(read_config("/dev/null")); }

TEST(config, sizes_have_units)
{
    const struct {
        const char* text;
        std::uint64_t bytes;
    } rows[] = {{"0", 0},         {"17", 17},         {"4K", 4096},
                {"3M", 3u << 20}, {"2G", 2ull << 30}, {"1T", 1ull << 40}};
    for (const auto& row : rows)
        EXPECT_EQ(parse_size(row.text).value_or(~0ull), row.bytes) << row.text;
    for (const char* wrong :
         {"", "K", "-1", "4KB", "4 K", "1.5G", "99999999999999999999", "99999999T"})
        EXPECT_FALSE(parse_size(wrong)) << wrong;
}

}  // namespace
}  // namespace spanker::daemon
