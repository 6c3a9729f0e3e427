// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace spanker::cli {
namespace {

bool use_colour()
{
    static const bool wanted = [] {
        const char* no_color = std::getenv("NO_COLOR");
        const char* term = std::getenv("TERM");
        return isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0') &&
               term != nullptr && std::string_view(term) != "dumb";
    }();
    return wanted;
}

// In characters. Cells may hold escape codes; they take no room.
std::size_t width(const std::string& cell)
{
    std::size_t n = 0;
    for (std::size_t i = 0; i < cell.size(); ++i) {
        if (cell[i] == '\x1b')
            i = std::min(cell.find('m', i), cell.size() - 1);
        else if ((static_cast<unsigned char>(cell[i]) & 0xc0) != 0x80)
            ++n;
    }
    return n;
}

}  // namespace

json document() { return json{{"schema", "spankerctl/1"}}; }

void print_json(const json& value, json_mode mode)
{
    const std::string text =
        value.dump(mode == json_mode::pretty ? 2 : -1, ' ', false, json::error_handler_t::replace);
    fmt::print("{}\n", text);
}

std::string paint(const std::string& text, colour c)
{
    static constexpr const char* codes[] = {"", "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[2m"};
    if (c == colour::plain || !use_colour())
        return text;
    return codes[static_cast<std::size_t>(c)] + text + "\x1b[0m";
}

std::string table::text() const
{
    std::vector<std::size_t> widths(rows_.front().size(), 0);
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], width(row[i]));
    }
    std::string out;
    for (const auto& row : rows_) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += row[i];
            if (i + 1 < row.size())
                line.append(widths[i] - width(row[i]) + 2, ' ');
        }
        out += line + "\n";
    }
    return out;
}

}  // namespace spanker::cli
