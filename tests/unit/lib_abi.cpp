// SPDX-License-Identifier: Apache-2.0
//
// What the shared library exports: exactly what the header declares, exactly what the version script lists, all of
// one version.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <string>

namespace {

std::string read(const std::string& path)
{
    std::ifstream file(path);
    EXPECT_TRUE(file.good()) << path;
    return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> matches(const std::string& text, const char* pattern)
{
    const std::regex expression(pattern);
    std::set<std::string> out;
    for (std::sregex_iterator i(text.begin(), text.end(), expression), end; i != end; ++i)
        out.insert((*i)[1]);
    return out;
}

std::set<std::string> declared()
{
    return matches(read(SPANKERCTL_SOURCES "/include/spankerctl.h") +
                       read(SPANKERCTL_SOURCES "/include/spankerctl_strategy.h"),
                   R"(SPANKER_API[^;(]*?\b\*?(spanker_\w+)\s*\()");
}

std::set<std::string> listed()
{
    return matches(read(SPANKERCTL_SOURCES "/spankerctl.map"), R"(\n\s(spanker_\w+);)");
}

std::string run(const std::string& command)
{
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    std::string out;
    char part[4096];
    while (const std::size_t n = std::fread(part, 1, sizeof part, pipe.get()))
        out.append(part, n);
    return out;
}

const std::string& exported()
{
    static const std::string text =
        run("nm --dynamic --defined-only --with-symbol-versions " SPANKERCTL_LIBRARY);
    return text;
}

TEST(lib_abi, the_header_declares_a_good_number_of_functions)
{
    EXPECT_GT(declared().size(), 50u);
    EXPECT_TRUE(declared().contains("spanker_mock_bus"));       // returns a pointer
    EXPECT_TRUE(declared().contains("spanker_pick_strategy"));  // arguments on the next line
}

TEST(lib_abi, the_version_script_lists_what_the_header_declares)
{
    EXPECT_EQ(listed(), declared());
}

TEST(lib_abi, the_library_exports_what_the_header_declares)
{
    EXPECT_EQ(matches(exported(), R"( [TW] (\w+)@@SPANKERCTL_0)"), declared());
}

TEST(lib_abi, nothing_else_is_exported)
{
    EXPECT_EQ(matches(exported(), R"( [A-Z] (\S+))").size(), declared().size() + 1) << exported();
    EXPECT_TRUE(matches(exported(), R"( A (\w+))").contains("SPANKERCTL_0"));
}

TEST(lib_abi, the_library_has_the_soname_of_its_interface)
{
    EXPECT_NE(run("readelf -d " SPANKERCTL_LIBRARY).find("soname: [libspankerctl.so.0]"),
              std::string::npos);
}

}  // namespace
