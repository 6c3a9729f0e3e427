// SPDX-License-Identifier: Apache-2.0
//
// The objects and what is said about them: every view of the same thing agrees.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>

#include "tests/daemon/bed.hpp"

namespace {

using namespace bed;
using std::chrono::seconds;

constexpr const char* object_manager = "org.freedesktop.DBus.ObjectManager";

using object_map = std::map<std::string, std::set<std::string>>;

std::set<std::string> read_interfaces(sd_bus_message* message)
{
    std::set<std::string> found;
    sd_bus_message_enter_container(message, 'a', "{sa{sv}}");
    while (sd_bus_message_enter_container(message, 'e', "sa{sv}") > 0) {
        const char* interface = nullptr;
        sd_bus_message_read(message, "s", &interface);
        found.insert(interface);
        sd_bus_message_skip(message, "a{sv}");
        sd_bus_message_exit_container(message);
    }
    sd_bus_message_exit_container(message);
    return found;
}

object_map managed(client& from)
{
    auto got = from.call(root, object_manager, "GetManagedObjects");
    EXPECT_TRUE(got) << got.text;
    object_map all;
    sd_bus_message_enter_container(*got, 'a', "{oa{sa{sv}}}");
    while (sd_bus_message_enter_container(*got, 'e', "oa{sa{sv}}") > 0) {
        const char* path = nullptr;
        sd_bus_message_read(*got, "o", &path);
        all[path] = read_interfaces(*got);
        sd_bus_message_exit_container(*got);
    }
    std::erase_if(all, [](const auto& one) {
        return std::none_of(one.second.begin(), one.second.end(),
                            [](const std::string& i) { return i.rfind(name, 0) == 0; });
    });
    return all;
}

struct topology_link {
    std::uint32_t card_a, port_a, card_b, port_b, lanes;
    std::string state;
    std::uint64_t rate;
};

struct topology {
    std::uint64_t generation = 0;
    std::string kind;
    std::vector<std::tuple<std::uint32_t, std::string, std::string>> cards;
    std::vector<topology_link> links;
};

topology get_topology(client& from)
{
    auto got = from.call(root, interface("Manager"), "GetTopology");
    EXPECT_TRUE(got) << got.text;
    topology seen;
    const char *kind = "", *serial = "", *state = "";
    std::uint32_t index = 0;
    sd_bus_message_read(*got, "ts", &seen.generation, &kind);
    seen.kind = kind;
    sd_bus_message_enter_container(*got, 'a', "(uss)");
    while (sd_bus_message_read(*got, "(uss)", &index, &serial, &state) > 0)
        seen.cards.emplace_back(index, serial, state);
    sd_bus_message_exit_container(*got);
    sd_bus_message_enter_container(*got, 'a', "(uuuusut)");
    for (topology_link l; sd_bus_message_read(*got, "(uuuusut)", &l.card_a, &l.port_a, &l.card_b,
                                              &l.port_b, &state, &l.lanes, &l.rate) > 0;) {
        l.state = state;
        seen.links.push_back(l);
    }
    return seen;
}

void expect_topology_equals_properties(client& from)
{
    const topology seen = get_topology(from);
    EXPECT_EQ(from.get_u64(root, "Manager", "TopologyGeneration"), seen.generation);
    EXPECT_EQ(from.get_u32(root, "Manager", "CardCount"), seen.cards.size());
    for (const auto& [index, serial, state] : seen.cards) {
        EXPECT_EQ(from.get_string(card_path(index), "Card", "Serial"), serial);
        EXPECT_EQ(from.get_string(card_path(index), "Card", "State"), state);
    }
    for (const topology_link& l : seen.links) {
        const auto path =
            fmt::format("{}/links/{}_{}__{}_{}", root, l.card_a, l.port_a, l.card_b, l.port_b);
        EXPECT_EQ(from.get_string(path, "Link", "Name"),
                  fmt::format("{}.{}-{}.{}", l.card_a, l.port_a, l.card_b, l.port_b));
        EXPECT_EQ(from.get_string(path, "Link", "State"), l.state);
        EXPECT_EQ(from.get_u32(path, "Link", "Width"), l.lanes);
        EXPECT_EQ(from.get_u64(path, "Link", "BytesPerSecond"), l.rate);
    }
}

TEST(objects, a_ring_of_four_simulated_cards_has_four_cards_and_four_links)
{
    private_bus bus;
    spanker_daemon daemon(bus, embedded("4:ring"));
    client one(bus);
    object_map wanted;
    for (unsigned i = 0; i < 4; i++)
        wanted[card_path(i)] = {interface("Card"), interface("Simulator")};
    for (const char* link : {"0_0__3_1", "0_1__1_0", "1_1__2_0", "2_1__3_0"})
        wanted[std::string(root) + "/links/" + link] = {interface("Link")};
    auto seen = managed(one);
    for (auto& [path, interfaces] : seen)
        std::erase_if(interfaces,
                      [](const std::string& i) { return i.rfind("org.freedesktop", 0) == 0; });
    EXPECT_EQ(seen, wanted);
}

TEST(objects, the_topology_equals_the_properties)
{
    private_bus bus;
    spanker_daemon daemon(bus, embedded("4:ring"));
    client one(bus);
    EXPECT_EQ(get_topology(one).kind, "ring");
    expect_topology_equals_properties(one);
}

TEST(objects, the_topology_equals_the_properties_after_every_kind_of_change)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=4"));
    client one(bus);
    for (const char* fault :
         {"link_down port=0", "link_up port=0", "remove card=2", "add card=2", "add card=9"}) {
        const auto before = one.get_u64(root, "Manager", "TopologyGeneration");
        ASSERT_EQ(inject(one, 0, fault), "") << fault;
        EXPECT_TRUE(eventually([&] {
            return one.get_u64(root, "Manager", "TopologyGeneration") > before;
        })) << fault;
        ASSERT_TRUE(eventually([&] {  // the last card has answered
            auto cards = get_topology(one).cards;
            return cards.size() == one.get_u32(root, "Manager", "CardCount") &&
                   std::none_of(cards.begin(), cards.end(),
                                [](const auto& card) { return std::get<2>(card) == "probing"; });
        })) << fault;
        expect_topology_equals_properties(one);
    }
}

TEST(objects, every_cabling_has_its_kind)
{
    const struct {
        const char* cards;
        const char* kind;
        const char* fabric;
    } rows[] = {{"1", "none", "none"},
                {"2:line", "line", "up"},
                {"3:line", "line", "up"},
                {"4:mesh", "mesh", "up"},
                {"4:0.1-1.0,2.1-3.0", "islands", "up"}};
    for (const auto& row : rows) {
        private_bus bus;
        spanker_daemon daemon(bus, embedded(row.cards));
        client one(bus);
        EXPECT_TRUE(eventually([&] { return get_topology(one).kind == row.kind; }))
            << row.cards << " is " << get_topology(one).kind;
        EXPECT_EQ(one.get_string(root, "Manager", "FabricState"), row.fabric) << row.cards;
    }
}

// Interfaces as the signals of the object manager tell them.
struct told {
    object_map added, removed;
    static int on_added(sd_bus_message* message, void* userdata, sd_bus_error*)
    {
        const char* path = nullptr;
        sd_bus_message_read(message, "o", &path);
        static_cast<told*>(userdata)->added[path] = read_interfaces(message);
        return 0;
    }
    static int on_removed(sd_bus_message* message, void* userdata, sd_bus_error*)
    {
        const char *path = nullptr, *interface = nullptr;
        sd_bus_message_read(message, "o", &path);
        auto& found = static_cast<told*>(userdata)->removed[path];
        sd_bus_message_enter_container(message, 'a', "s");
        while (sd_bus_message_read(message, "s", &interface) > 0)
            found.insert(interface);
        return 0;
    }
    void listen(client& to)
    {
        sd_bus_match_signal(to.bus(), nullptr, name, root, object_manager, "InterfacesAdded",
                            on_added, this);
        sd_bus_match_signal(to.bus(), nullptr, name, root, object_manager, "InterfacesRemoved",
                            on_removed, this);
    }
};

TEST(objects, what_is_removed_is_told_with_the_interfaces_it_had)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=3"));
    client one(bus), listener(bus);
    told heard;
    heard.listen(listener);
    auto before = managed(one);
    ASSERT_EQ(inject(one, 0, "remove card=2"), "");
    ASSERT_TRUE(listener.process_until([&] { return heard.removed.size() == 3; }, seconds(5)));
    EXPECT_EQ(heard.removed[card_path(2)], before[card_path(2)]);
    for (const auto& [path, interfaces] : heard.removed)
        EXPECT_EQ(interfaces, before[path]) << path;
    EXPECT_FALSE(managed(one).contains(card_path(2)));
}

TEST(objects, what_is_added_is_told_with_the_interfaces_it_has)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=2"));
    client one(bus), listener(bus);
    told heard;
    heard.listen(listener);
    ASSERT_EQ(inject(one, 0, "add card=5"), "");
    ASSERT_TRUE(listener.process_until(
        [&] { return heard.added[card_path(5)].contains(interface("Simulator")); }, seconds(5)));
    EXPECT_EQ(heard.added[card_path(5)], managed(one)[card_path(5)]);
}

TEST(objects, cards_come_and_go_500_times_without_losing_a_descriptor)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=2"));
    client one(bus);
    {
        client first(bus);  // with its session the data plane has the cards open
        ASSERT_EQ(open_session(first).error, "");
    }
    ASSERT_TRUE(eventually([&] { return count_sessions(one) == 0; }));
    const auto descriptors = daemon.descriptors();
    for (int i = 0; i < 500; i++) {
        ASSERT_EQ(inject(one, 0, "add card=7"), "");
        ASSERT_EQ(inject(one, 0, "remove card=7"), "");
    }
    EXPECT_TRUE(eventually([&] { return one.get_u32(root, "Manager", "CardCount") == 2; }));
    EXPECT_TRUE(eventually([&] { return daemon.descriptors() <= descriptors; }))
        << daemon.descriptors() << " instead of " << descriptors;
}

TEST(objects, 256_cards_with_32_ports_each_fit_in_one_reply)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=256 ports=32"));
    client one(bus);
    ASSERT_TRUE(eventually([&] { return get_topology(one).links.size() == 4096; }, seconds(20)));
    auto got = one.call(root, object_manager, "GetManagedObjects");
    ASSERT_TRUE(got) << got.text;
    EXPECT_EQ(managed(one).size(), 256u + 4096u);
}

TEST(objects, a_path_with_nothing_at_it_is_an_unknown_object)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=1"));
    client one(bus);
    for (const std::string& path : std::vector<std::string>{
             card_path(9), std::string(root) + "/jobs/1", std::string(root) + "_private/sessions/1",
             std::string(root) + "_private/jobs/1"})
        EXPECT_EQ(one.call(path, properties, "GetAll", "s", "").kind(), "UnknownObject") << path;
}

TEST(objects, properties_cannot_be_set)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=1"));
    client one(bus);
    auto got =
        one.call(root, properties, "Set", "ssv", interface("Manager").c_str(), "Draining", "b", 1);
    EXPECT_EQ(got.kind(), "PropertyReadOnly");
}

TEST(objects, telemetry_and_counters_come_from_the_card)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=2"));
    client one(bus);
    auto telemetry = one.call(card_path(0), interface("Card"), "GetTelemetry");
    ASSERT_TRUE(telemetry) << telemetry.text;
    std::map<std::string, double> numbers;
    sd_bus_message_enter_container(*telemetry, 'a', "{sv}");
    while (sd_bus_message_enter_container(*telemetry, 'e', "sv") > 0) {
        const char *key = nullptr, *type = nullptr;
        sd_bus_message_read(*telemetry, "s", &key);
        sd_bus_message_peek_type(*telemetry, nullptr, &type);
        double value = 0;
        std::uint64_t integer = 0;
        if (std::string(type) == "d")
            sd_bus_message_read(*telemetry, "v", "d", &value);
        else
            sd_bus_message_read(*telemetry, "v", "t", &integer);
        numbers[key] = value + static_cast<double>(integer);
        sd_bus_message_exit_container(*telemetry);
    }
    EXPECT_EQ(numbers["temperature_celsius"], 41.5);
    EXPECT_EQ(numbers["power_watts"], 5.2);
    EXPECT_EQ(numbers["voltage_ddr_volts"], 1.35);
    EXPECT_TRUE(numbers.contains("busy_ns_compute"));
    EXPECT_TRUE(numbers.contains("memory_used_bytes"));

    std::map<std::string, std::uint64_t> counters;
    const char* counter = nullptr;
    std::uint64_t value = 0;
    auto errors = one.call(card_path(0), interface("Card"), "GetErrorCounters");
    sd_bus_message_enter_container(*errors, 'a', "(st)");
    while (sd_bus_message_read(*errors, "(st)", &counter, &value) > 0)
        counters[counter] = value;
    EXPECT_EQ(counters["port1.crc_errors"], 101u);
    EXPECT_EQ(counters["port1.lane3.symbol_errors"], 13u);

    auto link = one.call(std::string(root) + "/links/0_0__1_1", interface("Link"), "GetCounters");
    counters.clear();
    sd_bus_message_enter_container(*link, 'a', "(st)");
    while (sd_bus_message_read(*link, "(st)", &counter, &value) > 0)
        counters[counter] = value;
    EXPECT_EQ(counters["a.crc_errors"], 100u);
    EXPECT_EQ(counters["b.crc_errors"], 101u);
    EXPECT_EQ(counters["b.bytes_tx"], 1001u);
}

TEST(objects, the_trace_of_a_simulated_card_shows_names)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=1"));
    client one(bus);
    auto got = one.call(card_path(0), interface("Simulator"), "GetTrace", "u", 1u);
    ASSERT_TRUE(got) << got.text;
    const char *opcode = "", *status = "";
    std::uint32_t queue, a, b, c;
    std::uint64_t bytes, start, end;
    sd_bus_message_enter_container(*got, 'a', "(sus(uuu)ttt)");
    ASSERT_GT(sd_bus_message_read(*got, "(sus(uuu)ttt)", &opcode, &queue, &status, &a, &b, &c,
                                  &bytes, &start, &end),
              0);
    EXPECT_STREQ(opcode, "MATMUL_Q4_K");
    EXPECT_STREQ(status, "LINK_DOWN");
    EXPECT_EQ(queue, 2u);
    EXPECT_EQ(c, 3u);
    EXPECT_EQ(end, 900u);
    EXPECT_EQ(sd_bus_message_at_end(*got, false), 1);
}

}  // namespace
