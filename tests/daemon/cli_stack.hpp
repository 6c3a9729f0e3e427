// SPDX-License-Identifier: Apache-2.0
//
// What tests of the command line stand on: a daemon with cards in software, its links up, and spankerctl as a program.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/daemon/bed.hpp"
#include "tests/unit/cli_run.hpp"

namespace cli {

using json = nlohmann::json;

// One document, one line of it, and nothing else.
inline json only_document(const ran& r)
{
    EXPECT_EQ(r.out.find('\n'), r.out.size() - 1) << r.out;
    json document = json::parse(r.out, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << r.out;
    EXPECT_EQ(document.value("schema", ""), "spankerctl/1") << r.out;
    return document;
}

class cli_stack : public testing::Test {
protected:
    explicit cli_stack(const std::string& cards = "4:ring")
        : daemon_(bus_, bed::embedded(cards)), admin_(bus_)
    {
        EXPECT_TRUE(becomes(0));
    }
    // What `status --check` exits with, in a while.
    bool becomes(int code) const
    {
        const words check = {"status", "--check"};
        return bed::eventually([&] { return call(check).code == code; }, std::chrono::seconds(60));
    }
    words environment() const { return {"SPANKER_BUS=" + bus_.address()}; }
    ran call(const words& arguments) const { return run(arguments, environment()); }
    json ask(const words& arguments, int code = 0) const
    {
        const ran r = call(arguments + words{"--json=short"});
        EXPECT_EQ(r.code, code) << testing::PrintToString(arguments) << r.err;
        return only_document(r);
    }
    // Breaks something and waits until the daemon has seen it.
    void break_and_wait(unsigned card, const std::string& fault) const
    {
        bed::client admin(bus_);
        ASSERT_EQ(bed::inject(admin, card, fault), "");
        ASSERT_TRUE(becomes(7));
    }

    bed::private_bus bus_;
    bed::spanker_daemon daemon_;
    bed::client admin_;
};

inline std::string slurp(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file.good()) << path;
    return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T>
std::string spill(const bed::folder& home, const std::string& name, const std::vector<T>& values)
{
    return home.write(name,
                      {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

template <typename T>
std::vector<T> read_as(const std::string& path)
{
    const std::string bytes = slurp(path);
    std::vector<T> out(bytes.size() / sizeof(T));
    std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
    return out;
}

}  // namespace cli
