// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "rig.hpp"

namespace contract {

class info : public rig {};

TEST_F(info, cards_are_numbered_upwards_and_each_tells_what_it_is)
{
    const auto numbers = cards->cards();
    EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
    std::set<std::uint64_t> serials;
    for (const auto card : numbers) {
        const auto got = cards->info(card);
        ASSERT_TRUE(got) << text_of(got);
        EXPECT_EQ(got->out_number, card);
        EXPECT_EQ(got->out_state, std::uint32_t{SPANKER_CARD_READY});
        EXPECT_TRUE(serials.insert(got->out_serial).second) << "a serial twice";
        EXPECT_GE(got->out_queues, 2u);
        EXPECT_GT(got->out_queue_depth, 1u);
        EXPECT_GT(got->out_memory_bytes, 0u);
        EXPECT_LE(got->out_memory_free_bytes, got->out_memory_bytes);
        EXPECT_GT(got->out_boottime_ns, 0u);
        EXPECT_NE(got->out_bus_id[0], '\0');
        EXPECT_EQ(std::memchr(got->out_bus_id, 0, sizeof(got->out_bus_id)) == nullptr, false);
    }
}

TEST_F(info, a_card_that_is_not_there_has_no_anything)
{
    const std::uint32_t card = cards->cards().back() + 1;
    EXPECT_EQ(errno_of(cards->info(card)), -ENOENT);
    EXPECT_EQ(errno_of(cards->ports(card)), -ENOENT);
    EXPECT_EQ(errno_of(cards->read_telemetry(card)), -ENOENT);
    EXPECT_EQ(errno_of(cards->open(card, 0)), -ENOENT);
    EXPECT_EQ(errno_of(cards->card_reset(card, SPANKER_RESET_SOFT)), -ENOENT);
    EXPECT_NE(text_of(cards->info(card)).find(std::to_string(card)), std::string::npos);
}

TEST_F(info, a_file_knows_its_card_and_depth)
{
    const auto card = cards->cards().front();
    auto file = open(card, 16);
    EXPECT_EQ(file->depth(), 16u);
    EXPECT_EQ(file->info()->out_number, card);
    auto deep = open(card, 0);
    EXPECT_EQ(deep->depth(), file->info()->out_queue_depth);
}

TEST_F(info, a_depth_is_a_power_of_two_within_the_card)
{
    const auto card = cards->cards().front();
    for (std::uint32_t depth : {1u, 3u, 100u, 8192u, 0x80000000u, ~0u})
        EXPECT_EQ(errno_of(cards->open(card, depth)), -EINVAL) << depth;
}

TEST_F(info, queues_run_out_and_come_back_with_close)
{
    const auto card = cards->cards().front();
    std::vector<std::unique_ptr<card_file>> files;
    for (;;) {
        auto opened = cards->open(card, 2);
        if (!opened) {
            EXPECT_EQ(errno_of(opened), -EBUSY);
            break;
        }
        files.push_back(std::move(*opened));
        ASSERT_LE(files.size(), std::size_t{SPK_MAX_QUEUES});
    }
    EXPECT_EQ(files.size(), cards->info(card)->out_queues - 1);
    files.erase(files.begin());
    auto again = open(card, 2);
    EXPECT_EQ(run(*again, {nop()}).result, 0);
}

TEST_F(info, telemetry_has_plausible_numbers)
{
    const auto got = cards->read_telemetry(cards->cards().front());
    ASSERT_TRUE(got) << text_of(got);
    EXPECT_GT(got->temperature_mc, -40'000);
    EXPECT_LT(got->temperature_mc, 150'000);
    EXPECT_GT(got->power_mw, 0u);
    for (const auto millivolt : got->voltage_mv)
        EXPECT_GT(millivolt, 500u);
}

TEST_F(info, busy_time_of_an_engine_grows_with_its_work)
{
    const auto card = cards->cards().front();
    auto file = open(card);
    const auto tensor = alloc(*file, 1 << 20);
    settle();
    const auto before = cards->read_telemetry(card)->busy_ns[SPK_ENGINE_MEMORY];
    EXPECT_EQ(run(*file, {fill(tensor, 0, 1 << 20, 1)}).result, 0);
    settle();
    EXPECT_GT(cards->read_telemetry(card)->busy_ns[SPK_ENGINE_MEMORY], before);
}

TEST_F(info, both_ends_of_a_link_name_each_other)
{
    for (const auto card : cards->cards())
        for (const auto& port : ports_of(card)) {
            if (port.state != SPK_PORT_UP)
                continue;
            EXPECT_GE(port.width, 1u);
            EXPECT_LE(port.width, port.lanes);
            bool mutual = false;
            for (const auto other : cards->cards())
                if (cards->info(other)->out_serial == port.partner_serial) {
                    const auto back = ports_of(other).at(port.partner_port);
                    mutual = back.partner_serial == cards->info(card)->out_serial &&
                             back.partner_port == port.port;
                }
            EXPECT_TRUE(mutual) << "card " << card << " port " << port.port;
        }
}

}  // namespace contract
