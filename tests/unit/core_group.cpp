// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "kernel/core/group.h"

namespace {

struct group_rig : testing::Test {
    std::unique_ptr<spk_channel_table> table = std::make_unique<spk_channel_table>();
    spk_channel_conflict conflict{};

    void SetUp() override { spk_group_init(table.get()); }
    int claim(const std::vector<spk_channel_claim>& claims, std::uint32_t pid,
              std::uint32_t* domain)
    {
        return spk_group_claim(table.get(), claims.data(),
                               static_cast<std::uint32_t>(claims.size()), pid, domain, &conflict);
    }
};

TEST_F(group_rig, owns_the_channels_it_claimed_and_no_others)
{
    std::uint32_t domain = 0;
    ASSERT_EQ(claim({{0, 0x3, 1}, {5, 0x80, 1}, {5, 0x1, 7}}, 42, &domain), 0);
    EXPECT_NE(domain, 0u);
    EXPECT_EQ(spk_group_ports(table.get(), domain, 0, 1), 0x3);
    EXPECT_EQ(spk_group_ports(table.get(), domain, 0, 0), 0);
    EXPECT_EQ(spk_group_ports(table.get(), domain, 5, 1), 0x80);
    EXPECT_EQ(spk_group_ports(table.get(), domain, 5, 7), 0x1);
    EXPECT_EQ(spk_group_ports(table.get(), domain, 16, 1), 0);
    EXPECT_EQ(spk_group_ports(table.get(), domain, 0, 8), 0);
    EXPECT_EQ(spk_group_ports(table.get(), 0, 1, 1), 0);
    EXPECT_EQ(spk_group_cards(table.get(), domain), 2u);
}

TEST_F(group_rig, is_all_or_nothing_and_names_the_owner)
{
    std::uint32_t first = 0, second = 0;
    ASSERT_EQ(claim({{2, 0x2, 3}}, 77, &first), 0);
    EXPECT_EQ(claim({{1, 0x1, 3}, {2, 0x3, 3}}, 88, &second), -EBUSY);
    EXPECT_EQ(conflict.claim, 1u);
    EXPECT_EQ(conflict.port, 1u);
    EXPECT_EQ(conflict.pid, 77u);
    EXPECT_EQ(claim({{1, 0x1, 3}, {2, 0x1, 3}}, 88, &second), 0);
}

TEST_F(group_rig, refuses_a_claim_that_overlaps_itself)
{
    std::uint32_t domain = 0;
    EXPECT_EQ(claim({{1, 0x3, 0}, {1, 0x2, 0}}, 5, &domain), -EBUSY);
    EXPECT_EQ(claim({{1, 0x3, 0}}, 5, &domain), 0);
}

TEST_F(group_rig, refuses_impossible_claims)
{
    std::uint32_t domain = 0;
    EXPECT_EQ(claim({}, 1, &domain), -EINVAL);
    for (const spk_channel_claim& bad :
         {spk_channel_claim{16, 1, 0}, spk_channel_claim{0, 0, 0}, spk_channel_claim{0, 0x100, 0},
          spk_channel_claim{0, 1, 8}, spk_channel_claim{~0u, ~0u, ~0u}}) {
        EXPECT_EQ(claim({{3, 1, 1}, bad}, 1, &domain), -EINVAL);
        EXPECT_EQ(conflict.claim, 1u);
    }
    EXPECT_EQ(claim({{3, 1, 1}}, 1, &domain), 0);  // nothing was kept
}

TEST_F(group_rig, never_gives_a_domain_twice)
{
    std::set<std::uint32_t> seen;
    for (int n = 0; n < 100; n++) {
        std::uint32_t domain = 0;
        ASSERT_EQ(claim({{0, 1, 0}}, 1, &domain), 0);
        EXPECT_TRUE(seen.insert(domain).second);
        spk_group_release(table.get(), domain);
        EXPECT_EQ(spk_group_cards(table.get(), domain), 0u);
    }
}

TEST_F(group_rig, a_card_that_goes_leaves_its_channels_and_no_others)
{
    std::uint32_t old = 0, fresh = 0;
    ASSERT_EQ(claim({{0, 1, 0}, {15, 0x80, 7}, {15, 1, 0}}, 1, &old), 0);
    spk_group_leave(table.get(), 15);
    EXPECT_EQ(spk_group_cards(table.get(), old), 1u);
    EXPECT_EQ(spk_group_ports(table.get(), old, 0, 0), 1u);
    EXPECT_EQ(claim({{15, 0x80, 7}, {15, 1, 0}}, 2, &fresh), 0);
    spk_group_release(table.get(), old);
    EXPECT_EQ(spk_group_ports(table.get(), fresh, 15, 7), 0x80u);
}

TEST_F(group_rig, skips_zero_and_living_domains_when_the_counter_wraps)
{
    std::uint32_t old = 0, fresh = 0;
    ASSERT_EQ(claim({{0, 1, 0}}, 1, &old), 0);
    table->last_domain = ~0u;
    ASSERT_EQ(claim({{1, 1, 0}}, 1, &fresh), 0);
    EXPECT_NE(fresh, 0u);
    EXPECT_NE(fresh, old);
}

}  // namespace
