// SPDX-License-Identifier: Apache-2.0
//
// Looking: what is there is reported, whatever its state; what is not there is an error that says so.
#include "tests/daemon/lib_service.hpp"
#include "tests/daemon/lib_stack.hpp"

namespace {

using namespace stack;
using testing::ElementsAre;
using testing::HasSubstr;

class lib_look : public lib_stack {};

TEST_F(lib_look, enumerate_knows_every_card)
{
    const auto cards = must(link_.enumerate());
    ASSERT_EQ(cards.size(), 4u);
    for (std::uint32_t i = 0; i < 4; ++i) {
        EXPECT_EQ(cards[i].index, i);
        EXPECT_EQ(cards[i].state, SPANKER_STATE_READY);
        EXPECT_EQ(cards[i].simulated, 1u);
        EXPECT_NE(cards[i].serial, 0u);
        EXPECT_EQ(cards[i].memory_bytes, 64u << 20);
        EXPECT_GT(cards[i].ddr_bytes_per_s, cards[i].link_bytes_per_s);
        EXPECT_GT(cards[i].link_bytes_per_s, cards[i].host_bytes_per_s);
        EXPECT_GT(cards[i].macs_per_s, 0u);
        EXPECT_GE(cards[i].ports, 2u);
        EXPECT_EQ(cards[i].lanes, 4u);
        EXPECT_GT(cards[i].hop_ns, 0u);
        EXPECT_STRNE(cards[i].bus_id, "");
        EXPECT_STRNE(cards[i].gateware, "");
    }
}

TEST_F(lib_look, a_list_that_is_too_short_gets_what_fits_and_how_many_there_are)
{
    spanker_card_info two[2] = {};
    std::size_t count = 0;
    ASSERT_EQ(spanker_enumerate(link_.get(), two, 2, &count), 0);
    EXPECT_EQ(count, 4u);
    EXPECT_EQ(two[1].index, 1u);
    ASSERT_EQ(spanker_enumerate(link_.get(), nullptr, 0, &count), 0);
    EXPECT_EQ(count, 4u);
}

TEST_F(lib_look, topology_is_the_ring_that_was_asked_for)
{
    spanker_fabric_info fabric = {};
    const auto links = must(link_.topology(fabric));
    EXPECT_STREQ(fabric.kind, "ring");
    EXPECT_STREQ(fabric.state, "up");
    EXPECT_GT(fabric.generation, 0u);
    ASSERT_EQ(links.size(), 4u);
    for (const auto& l : links) {
        EXPECT_STREQ(l.state, "up") << l.name;
        EXPECT_EQ(l.width, 4u) << l.name;
        EXPECT_EQ(l.width_max, 4u) << l.name;
        EXPECT_GT(l.bytes_per_s, 0u) << l.name;
        EXPECT_LT(l.card_a, l.card_b) << l.name;
    }
}

TEST_F(lib_look, links_have_counters_and_lanes)
{
    spanker_fabric_info fabric = {};
    for (const auto& l : must(link_.topology(fabric))) {
        EXPECT_FALSE(must(link_.counters(std::string(l.name))).empty()) << l.name;
        EXPECT_EQ(must(link_.lanes(l.name)).size(), 8u) << l.name;
    }
}

TEST_F(lib_look, cards_have_telemetry_and_counters)
{
    const auto t = must(link_.telemetry(0));
    EXPECT_GT(t.temperature_celsius, 0);
    EXPECT_GT(t.power_watts, 0);
    EXPECT_GT(t.voltage_core_volts, 0);
    EXPECT_GT(t.monotonic_ns, 0u);
    EXPECT_FALSE(must(link_.counters(0)).empty());
}

TEST_F(lib_look, what_is_not_there_is_no_such_object)
{
    EXPECT_EQ(link_.telemetry(9).error().kind, SPANKER_KIND_NO_OBJECT);
    EXPECT_EQ(link_.counters(9).error().kind, SPANKER_KIND_NO_OBJECT);
    EXPECT_EQ(link_.trace(9, 1).error().kind, SPANKER_KIND_NO_OBJECT);
    EXPECT_EQ(link_.counters(std::string("0.7-1.7")).error().kind, SPANKER_KIND_NO_OBJECT);
    EXPECT_EQ(link_.lanes("0.7-1.7").error().kind, SPANKER_KIND_NO_OBJECT);
}

TEST_F(lib_look, a_fault_that_does_not_exist_is_refused_with_those_that_do)
{
    const auto r = link_.inject_fault(0, "earthquake");
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().kind, SPANKER_KIND_INVALID);
    EXPECT_THAT(r.error().message, HasSubstr("cable_cut"));
}

TEST_F(lib_look, a_card_that_goes_away_is_reported_and_not_hidden)
{
    must(link_.inject_fault(2, "gone"));
    EXPECT_TRUE(bed::eventually([&] {
        const auto cards = link_.enumerate();
        return cards && cards->size() == 4 && (*cards)[2].state != SPANKER_STATE_READY;
    }));
    const auto cards = must(link_.enumerate());
    EXPECT_TRUE(cards[2].state == SPANKER_STATE_LOST || cards[2].state == SPANKER_STATE_FAILED);
    EXPECT_STRNE(cards[2].state_reason, "");
    EXPECT_THAT(must(link_.open_session()).cards(), ElementsAre(0u, 1u, 3u));
}

class lib_look_scripted : public testing::Test {
protected:
    void serve(lib_service::script s)
    {
        service_ = std::make_unique<lib_service::service>(bus_, std::move(s));
        // Opening asks the service too: with a short time-out a busy machine needs more than one try.
        ASSERT_TRUE(bed::eventually([&] {
            auto made = connection::open(bus_.address(), timeout_ns_);
            if (made)
                link_.emplace(std::move(*made));
            return made.has_value();
        }));
    }
    std::uint64_t timeout_ns_ = 0;
    bed::private_bus bus_;
    std::unique_ptr<lib_service::service> service_;
    std::optional<connection> link_;
};

TEST_F(lib_look_scripted, no_card_is_no_sails)
{
    serve({});
    const auto cards = link_->enumerate();
    ASSERT_FALSE(cards);
    EXPECT_EQ(cards.error().kind, SPANKER_KIND_NO_SAILS);
    EXPECT_EQ(cards.error().negative_errno, -ENODEV);
    EXPECT_THAT(cards.error().message, HasSubstr("embedded"));
    std::size_t count = 99;
    EXPECT_EQ(spanker_enumerate(link_->get(), nullptr, 0, &count), -ENODEV);
    EXPECT_EQ(count, 0u);
}

TEST_F(lib_look_scripted, numbers_may_have_gaps)
{
    serve({.cards = {{1}, {4}, {15}}});
    std::vector<std::uint32_t> numbers;
    for (const auto& card : must(link_->enumerate()))
        numbers.push_back(card.index);
    EXPECT_THAT(numbers, ElementsAre(1u, 4u, 15u));
}

TEST_F(lib_look_scripted, failed_denied_and_vanished_cards_are_reported)
{
    serve({.cards = {{0},
                     {1, "failed", "no answer for 5 s"},
                     {2, "denied"},
                     {3, "ready", "", "org.freedesktop.DBus.Error.AccessDenied"},
                     {4, "ready", "", "org.freedesktop.DBus.Error.UnknownObject"},
                     {5, "state-of-the-future"}}});
    const auto cards = must(link_->enumerate());
    std::vector<spanker_card_state_t> states;
    for (const auto& card : cards)
        states.push_back(card.state);
    EXPECT_THAT(states,
                ElementsAre(SPANKER_STATE_READY, SPANKER_STATE_FAILED, SPANKER_STATE_DENIED,
                            SPANKER_STATE_DENIED, SPANKER_STATE_LOST, SPANKER_STATE_FAILED));
    EXPECT_STREQ(cards[1].state_reason, "no answer for 5 s");
    EXPECT_EQ(cards[3].serial, 0xffu);  // from the snapshot
    EXPECT_EQ(cards[0].memory_bytes, 4ull << 30);
}

TEST_F(lib_look_scripted, an_error_of_one_card_that_is_no_state_is_an_error)
{
    serve({.cards = {{0, "ready", "", "org.popsolutions.Spanker1.Error.DeviceIO"}}});
    EXPECT_EQ(link_->enumerate().error().kind, SPANKER_KIND_DEVICE_IO);
}

TEST_F(lib_look_scripted, names_of_a_newer_daemon_are_kept)
{
    serve({.cards = {{0, "ready", "", "org.popsolutions.Spanker1.Error.FluxCapacitorEmpty"}}});
    const auto cards = link_->enumerate();
    ASSERT_FALSE(cards);
    EXPECT_EQ(cards.error().kind, SPANKER_KIND_REMOTE);
    EXPECT_STREQ(cards.error().name, "org.popsolutions.Spanker1.Error.FluxCapacitorEmpty");
    EXPECT_STREQ(cards.error().message, "scripted");
}

TEST_F(lib_look_scripted, replies_of_a_wrong_form_are_no_crash)
{
    serve({.cards = {{0}}, .malformed = true});
    const auto cards = link_->enumerate();
    ASSERT_FALSE(cards);
    EXPECT_EQ(cards.error().kind, SPANKER_KIND_REMOTE);
    EXPECT_THAT(cards.error().message, HasSubstr("do not fit together"));
    EXPECT_FALSE(link_->open_session());
    EXPECT_FALSE(link_->trace(0, 1));
    EXPECT_FALSE(link_->counters(0));
    EXPECT_FALSE(link_->lanes("0.0-1.0"));
    EXPECT_FALSE(link_->telemetry(0));
}

TEST_F(lib_look_scripted, silence_is_a_timeout_of_the_length_asked_for)
{
    timeout_ns_ = 50'000'000;
    serve({.cards = {{0}}, .silent = true});
    const auto cards = link_->enumerate();
    ASSERT_FALSE(cards);
    EXPECT_EQ(cards.error().kind, SPANKER_KIND_TIMEOUT);
    EXPECT_EQ(cards.error().negative_errno, -ETIMEDOUT);
    EXPECT_STREQ(cards.error().name, "NoReply");
    const auto session = link_->open_session();
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().kind, SPANKER_KIND_TIMEOUT);
}

TEST_F(lib_look_scripted, who_may_not_open_sessions_is_told)
{
    serve({.cards = {{0}}, .open_error = "org.freedesktop.DBus.Error.AccessDenied"});
    const auto session = link_->open_session();
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().kind, SPANKER_KIND_DENIED);
    EXPECT_EQ(session.error().negative_errno, -EPERM);
}

TEST_F(lib_look_scripted,
       a_service_that_dies_under_a_call_is_a_restart_and_the_next_call_finds_nobody)
{
    timeout_ns_ = 20'000'000'000;
    serve({.cards = {{0}}, .silent = true});
    std::thread later([&] {
        EXPECT_TRUE(bed::eventually([&] { return service_->unanswered() > 0; }));
        service_.reset();
    });
    const auto cards = link_->enumerate();
    later.join();
    ASSERT_FALSE(cards);
    EXPECT_TRUE(cards.error().kind == SPANKER_KIND_DAEMON_RESTARTED ||
                cards.error().kind == SPANKER_KIND_NO_DAEMON)
        << cards.error().message;
    EXPECT_EQ(link_->enumerate().error().kind, SPANKER_KIND_NO_DAEMON);
}

TEST(lib_look_bus, a_bus_without_the_service_is_no_daemon)
{
    bed::private_bus bus;
    const auto link = connection::open(bus.address());
    ASSERT_FALSE(link);
    EXPECT_EQ(link.error().kind, SPANKER_KIND_NO_DAEMON);
    EXPECT_THAT(link.error().message, HasSubstr("systemctl status spankerd"));
}

}  // namespace
