// SPDX-License-Identifier: Apache-2.0
//
// Manual pages of docs/man beside what a program says of itself.
#pragma once

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace spanker::test {

// The page's text with plain hyphens; empty when there is none.
inline std::string manual_page(const std::string& name)
{
    std::ifstream file(SPANKER_TEST_DATA "/../../docs/man/" + name);
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    return std::regex_replace(page, std::regex(R"(\\-)"), "-");
}

// Every --option that a text names.
inline std::set<std::string> options_in(const std::string& text)
{
    const std::regex option(R"((?:^|[\s,])(--[a-z][a-z-]*))");
    std::set<std::string> out;
    for (std::sregex_iterator i(text.begin(), text.end(), option), end; i != end; ++i)
        out.insert((*i)[1]);
    return out;
}

}  // namespace spanker::test
