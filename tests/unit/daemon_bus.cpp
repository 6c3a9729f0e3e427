// SPDX-License-Identifier: Apache-2.0
//
// The layer over sd-bus without a bus: error names, options to and from messages, paths of private objects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "daemon/bus.hpp"
#include "daemon/private_path.hpp"

namespace spanker::daemon {
namespace {

using testing::HasSubstr;

TEST(bus_errors, every_row_of_the_table_has_its_name_and_errno)
{
    const std::string standard = "org.freedesktop.DBus.Error.";
#define SPANKER_X(symbol, number, last, text)                                                 \
    {                                                                                         \
        const auto kind = SPANKER_ERR_##symbol;                                               \
        const bool bus_word = kind == SPANKER_ERR_INVALID || kind == SPANKER_ERR_DENIED ||    \
                              kind == SPANKER_ERR_NO_MEMORY;                                  \
        EXPECT_EQ(bus_error_name(kind), (bus_word ? standard : SPANKER_ERROR_PREFIX) + last); \
        sd_bus_error made = SD_BUS_ERROR_NULL;                                                \
        EXPECT_EQ(set_error(&made, {kind, ""}), -number) << last;                             \
        EXPECT_STREQ(made.message, text);                                                     \
        sd_bus_error_free(&made);                                                             \
    }
    SPANKER_ERRORS(SPANKER_X)
#undef SPANKER_X
}

TEST(bus_errors, the_message_names_what_went_wrong)
{
    sd_bus_error made = SD_BUS_ERROR_NULL;
    set_error(&made, {SPANKER_ERR_LINK_DOWN, "card 0: link 0.1-1.0 is down; retrain it"});
    EXPECT_STREQ(made.name, "org.popsolutions.Spanker1.Error.LinkDown");
    EXPECT_STREQ(made.message, "card 0: link 0.1-1.0 is down; retrain it");
    sd_bus_error_free(&made);
}

// Messages need a connection, though they never travel here.
class bus_options : public testing::Test {
protected:
    bus_options()
    {
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        other_.reset(ends[1]);
        sd_bus* made = nullptr;
        sd_bus_new(&made);
        bus_.reset(made);
        sd_bus_set_fd(made, ends[0], ends[0]);
        EXPECT_GE(sd_bus_start(made), 0);
    }
    struct message_deleter {
        void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
    };
    using message_ptr = std::unique_ptr<sd_bus_message, message_deleter>;

    message_ptr make()
    {
        sd_bus_message* made = nullptr;
        sd_bus_message_new_method_call(bus_.get(), &made, nullptr, "/x", "x.y", "z");
        return message_ptr(made);
    }
    static void rewind(sd_bus_message* message)
    {
        ASSERT_GE(sd_bus_message_seal(message, 1, 0), 0);
        ASSERT_GE(sd_bus_message_rewind(message, 1), 0);
    }

    bus_ptr bus_;
    unique_fd other_;  // goes first, so that closing the bus waits for nobody
};

TEST_F(bus_options, integers_of_every_width_are_u64)
{
    auto message = make();
    sd_bus_message_append(message.get(), "a{sv}", 7, "t", "t", std::uint64_t{1}, "u", "u", 2u, "q",
                          "q", 3, "y", "y", 4, "x", "x", std::int64_t{5}, "i", "i", 6, "n", "n", 7);
    rewind(message.get());
    auto values = read_options(message.get());
    ASSERT_TRUE(values) << values.error().message;
    ASSERT_EQ(values->size(), 7u);
    for (std::size_t i = 0; i < 7; i++)
        EXPECT_EQ(std::get<std::uint64_t>((*values)[i].value), i + 1) << (*values)[i].key;
}

TEST_F(bus_options, other_types_arrive_as_they_are)
{
    auto message = make();
    sd_bus_message_append(message.get(), "a{sv}", 5, "b", "b", 1, "d", "d", 1.5, "s", "s", "text",
                          "au", "au", 2, 7u, 8u, "at", "at", 1, std::uint64_t{1} << 40);
    rewind(message.get());
    auto values = read_options(message.get());
    ASSERT_TRUE(values) << values.error().message;
    EXPECT_TRUE(std::get<bool>((*values)[0].value));
    EXPECT_EQ(std::get<double>((*values)[1].value), 1.5);
    EXPECT_EQ(std::get<std::string>((*values)[2].value), "text");
    EXPECT_EQ(std::get<std::vector<std::uint64_t>>((*values)[3].value),
              (std::vector<std::uint64_t>{7, 8}));
    EXPECT_EQ(std::get<std::vector<std::uint64_t>>((*values)[4].value),
              (std::vector<std::uint64_t>{1ull << 40}));
}

TEST_F(bus_options, a_negative_number_is_refused_by_key)
{
    auto message = make();
    sd_bus_message_append(message.get(), "a{sv}", 1, "n_tok", "i", -1);
    rewind(message.get());
    auto values = read_options(message.get());
    ASSERT_FALSE(values);
    EXPECT_EQ(values.error().message, "key 'n_tok' must not be negative");
}

TEST_F(bus_options, a_type_that_no_option_takes_is_refused_by_key)
{
    auto message = make();
    sd_bus_message_append(message.get(), "a{sv}", 1, "x", "as", 1, "a");
    rewind(message.get());
    auto values = read_options(message.get());
    ASSERT_FALSE(values);
    EXPECT_THAT(values.error().message, HasSubstr("key 'x' has a value of type 'as'"));
}

TEST_F(bus_options, a_key_given_twice_is_refused)
{
    auto message = make();
    sd_bus_message_append(message.get(), "a{sv}", 2, "x", "u", 1u, "x", "u", 2u);
    rewind(message.get());
    auto values = read_options(message.get());
    ASSERT_FALSE(values);
    EXPECT_EQ(values.error().message, "key 'x' is given twice");
}

TEST_F(bus_options, more_keys_than_any_call_has_are_refused_before_the_rest_is_read)
{
    for (const std::size_t count : {max_options, max_options + 1}) {
        options sent;
        for (std::size_t i = 0; i < count; i++)
            sent.push_back({"key" + std::to_string(i), true});
        auto message = make();
        ASSERT_GE(append_options(message.get(), sent), 0);
        rewind(message.get());
        auto values = read_options(message.get());
        ASSERT_EQ(values.has_value(), count == max_options);
        if (!values) {
            EXPECT_THAT(values.error().message, HasSubstr("too many keys"));
        }
    }
}

TEST_F(bus_options, what_is_written_is_read_again)
{
    const options sent{{"a", std::uint64_t{1}},
                       {"b", true},
                       {"c", 2.5},
                       {"d", std::string("s")},
                       {"e", std::vector<std::uint64_t>{1, 2}},
                       {"f", std::vector<std::uint64_t>{}}};
    auto message = make();
    ASSERT_GE(append_options(message.get(), sent), 0);
    rewind(message.get());
    auto values = read_options(message.get());
    ASSERT_TRUE(values);
    ASSERT_EQ(values->size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); i++) {
        EXPECT_EQ((*values)[i].key, sent[i].key);
        EXPECT_EQ((*values)[i].value, sent[i].value) << sent[i].key;
    }
}

TEST(private_paths, a_number_has_one_spelling)
{
    const std::string base = std::string(private_path) + "/sessions/";
    EXPECT_EQ(private_object_id((base + "17").c_str(), "sessions"), 17u);
    for (const char* wrong : {"", "x", "01", "+1", "-1", "1x", "1/2", "18446744073709551616"})
        EXPECT_EQ(private_object_id((base + wrong).c_str(), "sessions"), std::nullopt) << wrong;
    EXPECT_EQ(private_object_id((base + "17").c_str(), "jobs"), std::nullopt);
}

TEST(bus_connection, a_bus_that_is_not_there_is_named)
{
    auto bus = open_bus("unix:path=/nonexistent/bus");
    ASSERT_FALSE(bus);
    EXPECT_THAT(bus.error().message, HasSubstr("/nonexistent/bus"));
}

}  // namespace
}  // namespace spanker::daemon
