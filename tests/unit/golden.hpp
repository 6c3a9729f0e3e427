// SPDX-License-Identifier: Apache-2.0
//
// Reader of tests/data/golden; the README there describes the container. Throws std::runtime_error
// for a file that is missing or not of that form, and for a section that is not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace spanker::test {

class golden {
public:
    std::uint32_t kind;
    std::uint32_t n_out;
    std::uint32_t k;
    std::uint32_t n_tok;

    explicit golden(const std::string& name) : name_(name)
    {
        const std::string path = std::string(SPANKER_TEST_DATA) + "/golden/" + name + ".bin";
        std::ifstream file(path, std::ios::binary);
        const std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
        if (content.size() < 64 || std::memcmp(content.data(), "SPKGOLD1", 8) != 0)
            throw std::runtime_error(path + " is missing or is no golden file");
        std::uint32_t header[5];
        std::memcpy(header, content.data() + 8, sizeof header);
        kind = header[0];
        n_out = header[1];
        k = header[2];
        n_tok = header[3];
        for (std::uint32_t i = 0; i < header[4]; i++)
            read_section(content, 64 + 40 * std::size_t{i});
    }

    bool has(const std::string& section) const { return sections_.count(section) != 0; }

    const std::vector<std::byte>& bytes(const std::string& section) const
    {
        if (!has(section))
            throw std::runtime_error("golden file " + name_ + " has no section " + section);
        return sections_.at(section);
    }

    std::vector<float> floats(const std::string& section) const
    {
        const auto& raw = bytes(section);
        std::vector<float> values(raw.size() / sizeof(float));
        std::memcpy(values.data(), raw.data(), values.size() * sizeof(float));
        return values;
    }

private:
    void read_section(const std::vector<char>& content, std::size_t at)
    {
        std::uint64_t place[2];
        if (at + 40 > content.size())
            throw std::runtime_error("golden file " + name_ + " ends inside its table of sections");
        std::memcpy(place, content.data() + at + 24, sizeof place);
        if (place[0] > content.size() || place[1] > content.size() - place[0])
            throw std::runtime_error("golden file " + name_ + " ends inside a section");
        const std::string section(content.data() + at, strnlen(content.data() + at, 24));
        std::vector<std::byte>& to = sections_[section];
        to.resize(place[1]);
        if (!to.empty())
            std::memcpy(to.data(), content.data() + place[0], to.size());
    }

    std::string name_;
    std::map<std::string, std::vector<std::byte>> sections_;
};

}  // namespace spanker::test
