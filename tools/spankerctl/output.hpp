// SPDX-License-Identifier: Apache-2.0
//
// What reaches stdout: aligned tables for people, or one JSON document and nothing else.
// No escape code unless stdout is a terminal and NO_COLOR is unset.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace spanker::cli {

using json = nlohmann::ordered_json;

enum class json_mode { off, compact, pretty };

// A document with the schema key in front.
json document();
void print_json(const json& value, json_mode mode);

enum class colour { plain, good, warning, bad, dim };
std::string paint(const std::string& text, colour c);

// Rows of cells under a header; columns as wide as their widest cell.
class table {
public:
    explicit table(std::vector<std::string> header) : rows_{std::move(header)} {}
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    std::string text() const;

private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace spanker::cli
