// SPDX-License-Identifier: Apache-2.0
//
// What commands cost in bytes and MACs, and which shapes are refused.
#include "timing_bed.hpp"

#include <cstring>
#include <functional>

namespace spanker::timing {
namespace {

spk_cmd wire(unsigned opcode)
{
    spk_cmd cmd;
    std::memset(&cmd, 0, sizeof cmd);
    cmd.opcode = static_cast<__u8>(opcode);
    cmd.wait_signal = cmd.post_signal = SPK_NO_SIGNAL;
    return cmd;
}

spk_cmd matmul_wire(__u32 n_out, __u32 k, __u32 n_tok, __u8 format, __u8 mode)
{
    spk_cmd cmd = wire(SPK_OP_MATMUL_Q4_K);
    cmd.matmul = {.n_out = n_out, .k = k, .n_tok = n_tok, .x_format = format, .mode = mode};
    return cmd;
}

TEST(costs, ddr_bytes_per_payload_byte_follow_the_table)
{
    const std::map<unsigned, unsigned> factors = {{SPK_OP_LINK_SEND, 1},
                                                  {SPK_OP_LINK_RECV, 1},
                                                  {SPK_OP_LINK_RECV_REDUCE, 2},
                                                  {SPK_OP_LINK_RECV_REDUCE_SEND, 1},
                                                  {SPK_OP_LINK_FORWARD, 0},
                                                  {SPK_OP_LINK_RECV_REDUCE_COPY, 2},
                                                  {SPK_OP_DMA_IN, 1},
                                                  {SPK_OP_LINK_RECV_COPY_SEND, 1},
                                                  {SPK_OP_DMA_OUT, 1},
                                                  {SPK_OP_FILL, 1},
                                                  {SPK_OP_COPY, 2},
                                                  {SPK_OP_REDUCE, 3},
                                                  {SPK_OP_SCALE, 2},
                                                  {SPK_OP_MATMUL_Q4_K, 1}};
    for (const auto& [opcode, factor] : factors)
        EXPECT_EQ(cost_of(opcode).ddr_factor, factor) << "opcode " << opcode;
}

TEST(costs, unknown_opcodes_have_the_row_of_nop)
{
    EXPECT_EQ(cost_of(SPK_OP_COUNT).engine, SPK_ENGINE_CONTROL);
    EXPECT_EQ(cost_of(255).engine, SPK_ENGINE_CONTROL);
}

TEST(costs, payload_is_what_moves)
{
    spk_cmd fill_cmd = wire(SPK_OP_FILL), copy_cmd = wire(SPK_OP_COPY);
    spk_cmd dma_cmd = wire(SPK_OP_DMA_OUT), send_cmd = wire(SPK_OP_LINK_SEND);
    spk_cmd reduce_cmd = wire(SPK_OP_REDUCE), scale_cmd = wire(SPK_OP_SCALE);
    fill_cmd.fill.bytes = 77;
    copy_cmd.copy.rows = dma_cmd.dma.rows = send_cmd.link.rows = 3;
    copy_cmd.copy.row_bytes = dma_cmd.dma.row_bytes = send_cmd.link.row_bytes = 100;
    reduce_cmd.reduce_args.count = scale_cmd.scale.count = 10;
    reduce_cmd.dtype = SPK_DTYPE_BF16;
    scale_cmd.dtype = SPK_DTYPE_I8;
    EXPECT_EQ(describe(fill_cmd).payload_bytes, 77u);
    EXPECT_EQ(describe(copy_cmd).payload_bytes, 300u);
    EXPECT_EQ(describe(dma_cmd).payload_bytes, 300u);
    EXPECT_EQ(describe(send_cmd).payload_bytes, 300u);
    EXPECT_EQ(describe(reduce_cmd).payload_bytes, 20u);
    EXPECT_EQ(describe(scale_cmd).payload_bytes, 10u);
}

TEST(costs, a_matmul_moves_weights_activations_and_results_once)
{
    // W 8 x 512: 8 * 2 * 144 = 2304. Y 8 x 3 x 4 = 96. X by format; 8 * 512 * 3 MACs.
    EXPECT_EQ(describe(matmul_wire(8, 512, 3, SPK_X_F32, 0)).payload_bytes, 2304u + 6144 + 96);
    EXPECT_EQ(describe(matmul_wire(8, 512, 3, SPK_X_Q8_K, 0)).payload_bytes, 2304u + 1752 + 96);
    EXPECT_EQ(describe(matmul_wire(8, 512, 3, SPK_X_Q4_K, 0)).payload_bytes, 2304u + 864 + 96);
    EXPECT_EQ(describe(matmul_wire(8, 512, 3, SPK_X_F32, 0)).macs, 12288u);
}

TEST(costs, accumulate_reads_the_results_too)
{
    EXPECT_EQ(describe(matmul_wire(8, 512, 3, SPK_X_F32, SPK_MATMUL_ACCUMULATE)).payload_bytes,
              2304u + 6144 + 2 * 96);
}

TEST(costs, absurd_sizes_saturate)
{
    const command cmd = describe(matmul_wire(~0u, ~0u, ~0u, SPK_X_F32, 0));
    EXPECT_EQ(cmd.payload_bytes, UINT64_MAX);
    EXPECT_EQ(cmd.macs, UINT64_MAX);
    spk_cmd reduce_cmd = wire(SPK_OP_REDUCE);
    reduce_cmd.reduce_args.count = UINT64_MAX / 2;
    EXPECT_EQ(describe(reduce_cmd).payload_bytes, UINT64_MAX);
}

TEST(costs, control_operands_are_carried_over)
{
    spk_cmd cmd = wire(SPK_OP_GANG);
    cmd.gang = {.domain = 1, .id = 2, .members = 3, .section = 4};
    const command g = describe(cmd);
    for (std::uint32_t i = 0; i < 4; ++i)
        EXPECT_EQ(g.args[i], i + 1);
    cmd = wire(SPK_OP_SIGNAL_SET);
    cmd.signal_set = {.first = 5, .count = 6, .value = 7};
    EXPECT_EQ(describe(cmd).args[2], 7u);
    cmd = wire(SPK_OP_ABORT);
    cmd.abort_args = {.queue = 8, .id = 9};
    EXPECT_EQ(describe(cmd).args[1], 9u);
}

TEST(costs, link_operands_are_carried_over)
{
    spk_cmd cmd = wire(SPK_OP_LINK_RECV_REDUCE_SEND);
    cmd.rx_ports = 1;
    cmd.tx_ports = 2;
    cmd.dtype = SPK_DTYPE_BF16;
    cmd.link.rx_tag = 3;
    cmd.link.tx_tag = 4;
    cmd.link.rx_channel = 5;
    cmd.link.tx_channel = 6;
    const command c = describe(cmd);
    EXPECT_EQ(c.rx_ports, 1);
    EXPECT_EQ(c.tx_ports, 2);
    EXPECT_EQ(c.dtype, SPK_DTYPE_BF16);
    EXPECT_EQ(c.rx_tag, 3u);
    EXPECT_EQ(c.tx_tag, 4u);
    EXPECT_EQ(c.rx_channel, 5);
    EXPECT_EQ(c.tx_channel, 6);
}

struct bad_shape {
    const char* what;
    command cmd;
    std::uint64_t offset;
};

TEST(judge, names_the_byte_of_the_bad_field)
{
    const auto with = [](command cmd, const std::function<void(command&)>& change) {
        change(cmd);
        return cmd;
    };
    const bad_shape shapes[] = {
        {"opcode", work(SPK_OP_COUNT, 0), 0},
        {"wait signal", waiting(nop(), SPK_SIGNALS, 1), 4},
        {"post signal", posting(nop(), SPK_SIGNALS), 6},
        {"send without port", with(send(0, 4), [](auto& c) { c.tx_ports = 0; }), 15},
        {"send to a port that is not there", send(2, 4), 15},
        {"send with an rx port", with(send(0, 4), [](auto& c) { c.rx_ports = 1; }), 14},
        {"receive from two ports", with(recv(0, 4), [](auto& c) { c.rx_ports = 3; }), 14},
        {"receive with a tx port", with(recv(0, 4), [](auto& c) { c.tx_ports = 1; }), 15},
        {"rx channel", recv(0, 4, 8), 60},
        {"tx channel", send(0, 4, 8), 61},
        {"gang of nobody", gang(1, 0, 0), 24},
        {"first signal", signal_set(256, 0, 0), 16},
        {"signals past the end", signal_set(255, 2, 0), 20},
        {"abort of a queue that is not there", abort_of(16, 1), 16},
    };
    for (const bad_shape& s : shapes) {
        const outcome o = judge(s.cmd, 0, card_costs{});
        EXPECT_EQ(o.status, SPANKER_CARD_INVALID) << s.what;
        EXPECT_EQ(o.detail, s.offset) << s.what;
    }
    EXPECT_EQ(judge(abort_of(0, 1), 1, card_costs{}).status, SPANKER_CARD_INVALID);
}

TEST(judge, accepts_good_shapes)
{
    command fold = through(SPK_OP_LINK_RECV_REDUCE_COPY, 0, 0, 4);
    fold.rx_ports = 3;
    fold.tx_ports = 3;
    for (const command& cmd : {nop(), fill(0), send(1, 4, 7), recv(0, 4), fold, gang(1, 1, 0),
                               signal_set(0, 256, 0), signal_set(255, 1, 0), abort_of(15, 1)})
        EXPECT_TRUE(judge(cmd, 0, card_costs{}).ok()) << "opcode " << unsigned{cmd.opcode};
}

TEST(judge, a_command_refused_by_its_owner_keeps_that_reason)
{
    command cmd = fill(4);
    cmd.refused = SPANKER_CARD_RANGE;
    cmd.refused_detail = 123;
    EXPECT_EQ(judge(cmd, 0, card_costs{}).status, SPANKER_CARD_RANGE);
    EXPECT_EQ(judge(cmd, 0, card_costs{}).detail, 123u);
}

}  // namespace
}  // namespace spanker::timing
