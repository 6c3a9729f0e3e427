// SPDX-License-Identifier: Apache-2.0
//
// The constants that programs plan with before they know a card: ranges that a careless edit would leave.
#include <gtest/gtest.h>
#include <spankerctl.h>

#include <cstdint>

#include "uapi/spanker_session.h"

namespace {

constexpr std::uint64_t ddr = SPANKER_LOCAL_DDR_BW_BYTES_PER_SEC;
constexpr std::uint64_t cable = SPANKER_INTERCARD_BW_BYTES_PER_SEC;
constexpr std::uint64_t host = SPANKER_HOST_LINK_BW_BYTES_PER_SEC;

TEST(lib_constants, the_host_link_is_slowest_and_ddr_fastest)
{
    EXPECT_GT(host, 0u);
    EXPECT_LT(host, cable);
    EXPECT_LT(cable, ddr);
}

TEST(lib_constants, ddr_is_what_boards_reach_and_not_what_the_memory_is_sold_as)
{
    EXPECT_GE(ddr, 1'500'000'000u);
    EXPECT_LE(ddr, 2'400'000'000u);
    EXPECT_LT(ddr, 12'800'000'000u);
}

TEST(lib_constants, ddr_is_at_least_four_cables) { EXPECT_GE(ddr, 4 * cable); }

TEST(lib_constants, a_cable_is_four_coded_lanes)
{
    EXPECT_EQ(cable, 500'000'000u);
    EXPECT_EQ(SPANKER_INTERCARD_LANES, 4u);
    EXPECT_EQ(SPANKER_INTERCARD_LANE_WIDTH_BITS, 32u);
    EXPECT_EQ(SPANKER_INTERCARD_BUS_WIDTH_BITS, 128u);
    EXPECT_EQ(SPANKER_INTERCARD_LANES * SPANKER_INTERCARD_LANE_WIDTH_BITS,
              SPANKER_INTERCARD_BUS_WIDTH_BITS);
}

TEST(lib_constants, the_host_link_is_gigabit_ethernet_after_its_headers)
{
    EXPECT_EQ(host, 100'000'000u);
    EXPECT_GE(host, 80'000'000u);
    EXPECT_LE(host, 125'000'000u);
}

TEST(lib_constants, block_formats_are_those_of_the_card)
{
    EXPECT_EQ(SPANKER_QK_K, 256u);
    EXPECT_EQ(SPANKER_Q4_K_BLOCK_BYTES, 2u + 2 + 12 + 128);
    EXPECT_EQ(SPANKER_Q8_K_BLOCK_BYTES, 4u + 256 + 2 * 16);
}

TEST(lib_constants, enumerations_are_those_of_the_wire)
{
    EXPECT_EQ(int{SPANKER_REPLICATED}, int{SPANKER_LAYOUT_REPLICATED});
    EXPECT_EQ(int{SPANKER_ROW_SHARD}, int{SPANKER_LAYOUT_ROW_SHARD});
    EXPECT_EQ(int{SPANKER_K_SHARD}, int{SPANKER_LAYOUT_K_SHARD});
    EXPECT_EQ(int{SPANKER_PARTIAL}, int{SPANKER_LAYOUT_PARTIAL});
    EXPECT_EQ(int{SPANKER_F32}, int{SPK_DTYPE_F32});
    EXPECT_EQ(int{SPANKER_F16}, int{SPK_DTYPE_F16});
    EXPECT_EQ(int{SPANKER_BF16}, int{SPK_DTYPE_BF16});
    EXPECT_EQ(int{SPANKER_I32}, int{SPK_DTYPE_I32});
    EXPECT_EQ(int{SPANKER_I8}, int{SPK_DTYPE_I8});
    EXPECT_EQ(int{SPANKER_SUM}, int{SPK_REDUCE_SUM});
    EXPECT_EQ(int{SPANKER_PROD}, int{SPK_REDUCE_PROD});
    EXPECT_EQ(int{SPANKER_MIN}, int{SPK_REDUCE_MIN});
    EXPECT_EQ(int{SPANKER_MAX}, int{SPK_REDUCE_MAX});
    EXPECT_EQ(int{SPANKER_X_F32}, int{SPK_X_F32});
    EXPECT_EQ(int{SPANKER_X_Q8_K}, int{SPK_X_Q8_K});
    EXPECT_EQ(int{SPANKER_X_Q4_K}, int{SPK_X_Q4_K});
}

}  // namespace
