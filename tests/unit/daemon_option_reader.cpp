// SPDX-License-Identifier: Apache-2.0
//
// Options of a call: taken by key, and what nobody takes is refused by name.
#include <gtest/gtest.h>

#include "daemon/option_reader.hpp"

namespace spanker::daemon {
namespace {

TEST(option_reader, gives_values_and_defaults)
{
    const options values{{"force", true}, {"count", std::uint64_t{7}}};
    option_reader reader(values, "Reset");
    EXPECT_TRUE(reader.boolean("force", false));
    EXPECT_EQ(reader.u64("count", 1), 7u);
    EXPECT_EQ(reader.u64("other", 5), 5u);
    EXPECT_TRUE(reader.finish());
}

TEST(option_reader, an_unknown_key_is_refused_with_key_and_method)
{
    const options values{{"froce", true}};
    option_reader reader(values, "Reset");
    EXPECT_FALSE(reader.boolean("force", false));
    auto done = reader.finish();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, SPANKER_ERR_INVALID);
    EXPECT_EQ(done.error().message, "Reset: unknown key 'froce'");
}

TEST(option_reader, a_value_of_the_wrong_type_is_refused)
{
    const options values{{"force", std::uint64_t{1}}};
    option_reader reader(values, "Reset");
    EXPECT_FALSE(reader.boolean("force", false));
    auto done = reader.finish();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "Reset: key 'force' must be a boolean");
}

TEST(option_reader, a_method_stands_once_in_front_of_an_error)
{
    auto once = in_method("MatMul", {SPANKER_ERR_INVALID, "key 'x' is missing"});
    EXPECT_EQ(once.value().message, "MatMul: key 'x' is missing");
    auto twice = in_method("MatMul", once.value());
    EXPECT_EQ(twice.value().message, "MatMul: key 'x' is missing");
}

}  // namespace
}  // namespace spanker::daemon
