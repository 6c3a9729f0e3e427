// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel/telemetry_files.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

using namespace spanker::daemon;
using kernel::read_telemetry_files;
namespace fs = std::filesystem;

class telemetry_files : public testing::Test {
protected:
    void SetUp() override
    {
        char name[] = "/tmp/spanker-telemetry-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        root = name;
        for (const auto& [path, text] :
             {std::pair{"temp1_input", "-1500\n"}, std::pair{"power1_input", "12345678\n"},
              std::pair{"in0_input", "1101\n"}, std::pair{"in1_input", "1352\n"},
              std::pair{"in2_input", "3298\n"}})
            write(sensors() / path, text);
        write(card() / "busy_ns", "0 1 2 3 18000000000 5 6\n");
    }
    void TearDown() override { fs::remove_all(root); }
    fs::path card() const { return root / "spanker3"; }
    fs::path sensors() const { return card() / "device/hwmon/hwmon7"; }
    static void write(const fs::path& path, const std::string& text)
    {
        fs::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    result<telemetry> read() const { return read_telemetry_files(3, root.string()); }

    fs::path root;
};

TEST_F(telemetry_files, are_read_in_their_units)
{
    const auto got = read();
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->temperature_mc, -1500);
    EXPECT_EQ(got->power_mw, 12345u);
    EXPECT_EQ(got->voltage_mv[0], 1101u);
    EXPECT_EQ(got->voltage_mv[2], 3298u);
    EXPECT_EQ(got->busy_ns[SPK_ENGINE_MEMORY], 18'000'000'000u);
    EXPECT_EQ(got->busy_ns[SPK_ENGINE_TX], 6u);
}

TEST_F(telemetry_files, that_are_not_there_are_named)
{
    for (const fs::path& path :
         {sensors() / "temp1_input", sensors() / "in2_input", card() / "busy_ns"}) {
        const auto aside = root / "aside";
        fs::rename(path, aside);
        const auto got = read();
        ASSERT_FALSE(got) << path;
        EXPECT_EQ(got.error().kind, SPANKER_ERR_NOT_SUPPORTED);
        EXPECT_NE(got.error().message.find(path.string()), std::string::npos)
            << got.error().message;
        fs::rename(aside, path);
    }
    fs::remove_all(card() / "device");
    EXPECT_EQ(read().error().kind, SPANKER_ERR_NOT_SUPPORTED);
}

TEST_F(telemetry_files, of_no_card_are_no_object)
{
    EXPECT_EQ(read_telemetry_files(4, root.string()).error().kind, SPANKER_ERR_NO_OBJECT);
}

TEST_F(telemetry_files, must_hold_numbers)
{
    for (const char* text : {"", "warm\n", "1 2 3 4 5 6\n", "1 2 3 4 5 6 x\n"}) {
        write(card() / "busy_ns", text);
        EXPECT_EQ(read().error().kind, SPANKER_ERR_NOT_SUPPORTED) << text;
    }
}

}  // namespace
