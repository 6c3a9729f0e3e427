// SPDX-License-Identifier: Apache-2.0
//
// The checked-in XML is the source of truth: what the daemon says of itself equals it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "tests/daemon/bed.hpp"

namespace {

using namespace bed;

// One interface as lines that compare: "method Reset in s mode", "property State s read annotation ...".
using lines = std::vector<std::string>;

std::string attribute(const std::string& tag, const std::string& key)
{
    std::smatch found;
    return std::regex_search(tag, found, std::regex("\\b" + key + "=\"([^\"]*)\"")) ? found[1].str()
                                                                                    : "";
}

// Walks the tags of a document in order. Comments and white space do not count, nor does the order of members.
std::map<std::string, lines> parse(std::string text)
{
    text = std::regex_replace(text, std::regex("<!--[^]*?-->|<!DOCTYPE[^>]*>|<\\?[^>]*>"), "");
    std::map<std::string, lines> interfaces;
    std::string interface, member;
    const std::regex tag_pattern("<(/?)(\\w+)([^>]*?)(/?)>");
    for (std::sregex_iterator i(text.begin(), text.end(), tag_pattern), end; i != end; ++i) {
        const std::string kind = (*i)[2], tag = (*i)[3];
        const bool closes = (*i)[1].length() > 0;
        if (closes || kind == "node")
            continue;
        if (kind == "interface") {
            interface = attribute(tag, "name");
            interfaces[interface];
        } else if (kind == "method" || kind == "signal" || kind == "property") {
            member = kind + " " + attribute(tag, "name");
            interfaces[interface].push_back(member + " " + attribute(tag, "type") + " " +
                                            attribute(tag, "access"));
        } else if (kind == "arg") {
            interfaces[interface].push_back(member + " " + attribute(tag, "direction") + " " +
                                            attribute(tag, "type") + " " + attribute(tag, "name"));
        } else if (kind == "annotation") {
            interfaces[interface].push_back(member + " " + attribute(tag, "name") + " " +
                                            attribute(tag, "value"));
        }
    }
    return interfaces;
}

// Members in any order, but the arguments of one method in theirs: a stable sort by member.
lines sorted(lines all)
{
    auto member = [](const std::string& line) {
        return line.substr(0, line.find(' ', line.find(' ') + 1));
    };
    std::stable_sort(all.begin(), all.end(), [&](const std::string& a, const std::string& b) {
        return member(a) < member(b);
    });
    return all;
}

lines checked_in(const std::string& noun)
{
    std::ifstream file(std::string(SPANKER_TEST_DATA) + "/../../daemon/dbus/" + interface(noun) +
                       ".xml");
    std::ostringstream text;
    text << file.rdbuf();
    return sorted(parse(text.str())[interface(noun)]);
}

std::map<std::string, lines> live(client& from, const std::string& path)
{
    auto got = from.call(path, "org.freedesktop.DBus.Introspectable", "Introspect");
    EXPECT_TRUE(got) << got.text;
    const char* text = "";
    sd_bus_message_read(*got, "s", &text);
    return parse(text);
}

void expect_equal(client& from, const std::string& path, const std::string& noun)
{
    auto seen = live(from, path);
    ASSERT_TRUE(seen.contains(interface(noun))) << path;
    const lines wanted = checked_in(noun);
    ASSERT_FALSE(wanted.empty()) << noun;
    EXPECT_EQ(sorted(seen[interface(noun)]), wanted) << noun;
}

TEST(introspection, the_xml_equals_what_every_object_says)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=2"));
    client one(bus);
    expect_equal(one, root, "Manager");
    expect_equal(one, card_path(0), "Card");
    expect_equal(one, card_path(0), "Simulator");
    expect_equal(one, std::string(root) + "/links/0_0__1_1", "Link");
    auto made = open_session(one);
    expect_equal(one, made.path, "Session");
    auto reset =
        one.call(card_path(1), interface("Card"), "Reset", "sa{sv}", "soft", 1, "force", "b", 1);
    ASSERT_TRUE(reset) << reset.text;
    const char* job = nullptr;
    sd_bus_message_read(*reset, "o", &job);
    expect_equal(one, job, "Job");
}

TEST(introspection, the_normaliser_tells_documents_apart)
{
    const std::string method =
        R"(<node><interface name="i"><method name="m"><arg name="a" type="s" direction="in"/>)"
        R"(<arg name="b" type="u" direction="in"/></method></interface></node>)";
    const std::string swapped =
        R"(<node><interface name="i"><method name="m"><arg name="b" type="u" direction="in"/>)"
        R"(<arg name="a" type="s" direction="in"/></method></interface></node>)";
    EXPECT_EQ(parse(method),
              parse("<!-- x --><node>\n <interface name=\"i\"> <method name=\"m\">"
                    "<arg name=\"a\" type=\"s\" direction=\"in\"/>"
                    "<arg name=\"b\" type=\"u\" direction=\"in\"/></method></interface></node>"));
    EXPECT_NE(sorted(parse(method)["i"]), sorted(parse(swapped)["i"]));
}

TEST(introspection, private_objects_are_not_listed)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=1"));
    client one(bus);
    auto made = open_session(one);
    auto got = one.call(std::string(root) + "_private/sessions",
                        "org.freedesktop.DBus.Introspectable", "Introspect");
    const char* text = "";
    if (got)
        sd_bus_message_read(*got, "s", &text);
    EXPECT_EQ(std::string(text).find("<node name="), std::string::npos) << text;
}

}  // namespace
