// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>

#include "sim/fault_text.hpp"

namespace spanker::sim {
namespace {

std::string refusal_of(const std::string& text)
{
    try {
        parse_fault(0, text);
    } catch (const std::invalid_argument& wrong) {
        return wrong.what();
    }
    return "";
}

TEST(fault_text, every_fault_has_a_text_form)
{
    const struct {
        const char* text;
        fault_kind kind;
        std::uint32_t a;
        std::uint32_t count;
        std::uint64_t value;
    } table[] = {
        {"irq_drop", fault_kind::irq_drop, ~0u, 1, 0},
        {"irq_drop vector=3 count=0", fault_kind::irq_drop, 3, 0, 0},
        {"irq_duplicate count=2", fault_kind::irq_duplicate, ~0u, 2, 0},
        {"irq_duplicate times=500 vector=3", fault_kind::irq_duplicate, 3, 1, 500},
        {"irq_delay ns=5000", fault_kind::irq_delay, ~0u, 1, 5000},
        {"completion_drop queue=1", fault_kind::completion_drop, 1, 1, 0},
        {"completion_duplicate queue=2", fault_kind::completion_duplicate, 2, 1, 0},
        {"completion_corrupt_id queue=2", fault_kind::completion_corrupt_id, 2, 1, 0},
        {"completion_error queue=2 status=5 count=1", fault_kind::completion_error, 2, 1, 5},
        {"queue_hang queue=1", fault_kind::queue_hang, 1, 1, 0},
        {"engine_hang lane=3", fault_kind::engine_hang, 3, 1, 0},
        {"queue_hang queue=1 starts=2", fault_kind::queue_hang, 1, 1, 2},
        {"engine_hang resets=1 lane=3", fault_kind::engine_hang, 3, 1, 1},
        {" gone ", fault_kind::gone, 0, 1, 0},
        {"reset_stuck", fault_kind::reset_stuck, 0, 1, 0},
        {"reset_stuck count=3", fault_kind::reset_stuck, 0, 3, 0},
        {"ddr_uncalibrated", fault_kind::ddr_uncalibrated, 0, 1, 0},
        {"other_gateware", fault_kind::other_gateware, 0, 1, 0},
        {"standstill ms=2500 count=2", fault_kind::standstill, 0, 2, 2500},
        {"fatal reason=7", fault_kind::fatal, 0, 1, 7},
        {"dma_fault skip=4 count=2", fault_kind::dma_fault, 4, 2, 0},
        {"cable_cut port=1", fault_kind::cable_cut, 1, 1, 0},
        {"temperature millidegrees=-5000", fault_kind::temperature, 0, 1, 0u - std::uint64_t{5000}},
        {"ddr_bit_flip address=0x1000 bit=7", fault_kind::ddr_bit_flip, 7, 1, 0x1000},
    };
    for (const auto& row : table) {
        SCOPED_TRACE(row.text);
        const fault_order order = parse_fault(2, row.text);
        EXPECT_FALSE(order.clear);
        EXPECT_EQ(order.what.card, 2u);
        EXPECT_EQ(order.what.kind, row.kind) << row.text;
        EXPECT_EQ(order.what.a, row.a) << row.text;
        EXPECT_EQ(order.what.count, row.count) << row.text;
        EXPECT_EQ(order.what.value, row.value) << row.text;
    }
}

TEST(fault_text, may_wait_for_a_device_time)
{
    EXPECT_EQ(parse_fault(0, "gone at_ns=123").what.at_ns, 123u);
}

TEST(fault_text, clears_by_name)
{
    const fault_order order = parse_fault(1, "clear cable_cut");
    EXPECT_TRUE(order.clear);
    EXPECT_EQ(order.what.kind, fault_kind::cable_cut);
}

TEST(fault_text, refuses_nonsense_and_names_it)
{
    const struct {
        const char* text;
        const char* named;
        const char* cure;
    } table[] = {
        {"", "names no fault", "cable_cut"},
        {"clear", "names no fault", "gone"},
        {"explode", "explode", "queue_hang"},
        {"cable_cut", "cable_cut", "port=N"},
        {"cable_cut port", "port", "port=N"},
        {"cable_cut port=", "port=", "key=number"},
        {"cable_cut port=one", "port=one", "key=number"},
        {"cable_cut port=1x", "port=1x", "key=number"},
        {"cable_cut port=4294967296", "port=4294967296", "port=N"},
        {"cable_cut queue=1", "queue=1", "port=N"},
        {"gone count=2", "count=2", "at_ns"},
        {"completion_error queue=1", "completion_error", "status=N"},
        {"clear gone at_ns=1", "at_ns=1", "clear"},
    };
    for (const auto& row : table) {
        SCOPED_TRACE(row.text);
        const std::string said = refusal_of(row.text);
        EXPECT_NE(said.find(row.named), std::string::npos) << said;
        EXPECT_NE(said.find(row.cure), std::string::npos) << said;
    }
}

// What an error says between two words.
std::string said_between(const std::string& text, const std::string& from, const std::string& to)
{
    const auto begin = text.find(from) + from.size();
    return text.substr(begin, text.find(to, begin) - begin);
}

TEST(fault_text, the_manual_shows_every_fault_with_its_keys)
{
    std::ifstream file(SPANKER_TEST_DATA "/../../docs/simulator.md");
    const std::string manual{std::istreambuf_iterator<char>(file), {}};
    const std::string refusal = refusal_of("explode");
    std::istringstream names(refusal.substr(refusal.find("irq_drop")));
    int faults = 0;
    for (std::string name; std::getline(names, name, ','); ++faults) {
        name.erase(0, name.find_first_not_of(' '));
        const std::string keys = said_between(refusal_of(name + " key"), "takes", " [at_ns=N]");
        EXPECT_NE(manual.find("\n| `" + name + keys + "` |"), std::string::npos) << name << keys;
    }
    EXPECT_GE(faults, 17);
}

}  // namespace
}  // namespace spanker::sim
