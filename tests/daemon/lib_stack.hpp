// SPDX-License-Identifier: Apache-2.0
//
// What tests of the library stand on: a daemon with cards in software, its links up, and a connection to it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spankerctl.hpp>

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/daemon/bed.hpp"
#include "tools/reference/q4k_reference.hpp"

namespace stack {

using spanker::buffer;
using spanker::connection;
using spanker::session;
using spanker::tensor;
using spanker::weights;

// The value, or a failed test that says what the library said.
template <typename T>
T must(spanker::result<T> r)
{
    if (!r)
        throw std::runtime_error(r.error().message);
    return std::move(*r);
}
inline void must(spanker::result<void> r)
{
    if (!r)
        throw std::runtime_error(r.error().message);
}

inline bool fabric_is_up(connection& link)
{
    const auto daemon = link.daemon();
    return daemon && (std::string(daemon->fabric_state) == "up" ||
                      std::string(daemon->fabric_state) == "none");
}

class lib_stack : public testing::Test {
protected:
    explicit lib_stack(const std::string& cards = "4:ring")
        : daemon_(bus_, bed::embedded(cards)), link_(must(connection::open(bus_.address())))
    {
        EXPECT_TRUE(bed::eventually([&] { return fabric_is_up(link_); }, std::chrono::seconds(30)));
    }
    // What sessions had a card do. Queue 0 is the driver's own: it zeroes freed memory.
    std::vector<spanker_command_trace> commands(std::uint32_t card)
    {
        auto all = must(link_.trace(card, 4096));
        std::erase_if(all, [](const auto& command) { return command.queue == 0; });
        return all;
    }
    std::vector<std::string> opcodes(std::uint32_t card)
    {
        std::vector<std::string> out;
        for (const auto& command : commands(card))
            out.emplace_back(command.opcode);
        return out;
    }
    // As kill -9 and a service manager do it.
    void restart(const std::string& cards = "4:ring")
    {
        daemon_.child().signal(SIGKILL);
        daemon_.child().wait(std::chrono::seconds(10));
        daemon_again_.emplace(bus_, bed::embedded(cards));
        EXPECT_TRUE(bed::eventually([&] { return fabric_is_up(link_); }, std::chrono::seconds(30)));
    }

    bed::private_bus bus_;
    bed::spanker_daemon daemon_;
    std::optional<bed::spanker_daemon> daemon_again_;
    connection link_;
};

// Random blocks whose scales are finite, so that results are too.
inline std::vector<std::byte> random_q4k(std::size_t rows, std::size_t k, unsigned seed)
{
    std::mt19937 random(seed);
    std::vector<std::byte> out(rows * (k / 256) * 144);
    for (auto& byte : out)
        byte = static_cast<std::byte>(random());
    for (std::size_t block = 0; block < out.size(); block += 144) {
        out[block + 1] = static_cast<std::byte>(0x20 + random() % 8);  // d: small positive f16
        out[block + 3] = static_cast<std::byte>(0x20 + random() % 8);
    }
    return out;
}

inline std::vector<float> random_f32(std::size_t count, unsigned seed)
{
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> out(count);
    std::generate(out.begin(), out.end(), [&] { return normal(random); });
    return out;
}

inline void fill(const buffer& b, std::span<const float> values)
{
    std::copy(values.begin(), values.end(), b.as<float>().begin());
}

}  // namespace stack
