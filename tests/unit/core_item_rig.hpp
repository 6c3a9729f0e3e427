// SPDX-License-Identifier: Apache-2.0
//
// A file as the item check sees it: two tensors, three buffers, one group, on a card with two ports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/core/item.h"

namespace core_test {

inline constexpr std::uint32_t tensor = 11, other_tensor = 12, stale_tensor = 13;
inline constexpr std::uint32_t buffer = 21, read_only = 22, write_only = 23;
inline constexpr std::uint32_t group = 31;
inline constexpr u64 tensor_address = 0x100000, tensor_bytes = 1 << 20;
inline constexpr u64 other_address = 0x800000, other_bytes = 4096;
inline constexpr u64 buffer_bytes = 1 << 20;
inline constexpr std::uint32_t domain = 0xd0;

struct item_rig {
    spk_sg_page page{};
    spk_sg_slot slot{&page, 0xabc000};
    std::vector<u64> start = std::vector<u64>(SPK_SG_ENTRIES);
    spk_sg sg{};
    spk_item_env env{};
    std::vector<spanker_work_item> items;
    spk_cmd cmd{};
    spk_item_uses uses{};
    spk_item_fault fault{};
    int holds = 0;  // references that lookups gave

    item_rig()
    {
        spk_sg_init(&sg, &slot, 1, start.data());
        for (u64 n = 0; n < buffer_bytes / 8192; n++)
            spk_sg_add(&sg, 0x5000000 + n * 0x10000, 8192);
        spk_sg_seal(&sg);
        env = {.ports = 2,
               .channels = 8,
               .signals = 256,
               .features = SPK_FEATURE_CUT_THROUGH | SPK_FEATURE_GANG | SPK_FEATURE_EXACT,
               .tensor = find_tensor,
               .buffer = find_buffer,
               .group = find_group,
               .context = this};
    }

    int translate(const spanker_work_item& item)
    {
        items = {item};
        return translate_at(0);
    }
    int translate_at(std::uint32_t index)
    {
        fault = {};
        return spk_item_translate(&env, items.data(), static_cast<std::uint32_t>(items.size()),
                                  index, &cmd, &uses, &fault);
    }

private:
    static int find_tensor(void* self, std::uint32_t handle, spk_tensor_ref* ref)
    {
        if (handle == tensor)
            *ref = {.object = self, .address = tensor_address, .bytes = tensor_bytes};
        else if (handle == other_tensor)
            *ref = {.object = self, .address = other_address, .bytes = other_bytes};
        else
            return handle == stale_tensor ? -ESTALE : -ENOENT;
        static_cast<item_rig*>(self)->holds++;
        return 0;
    }
    static int find_buffer(void* self, std::uint32_t handle, spk_buffer_ref* ref)
    {
        if (handle != buffer && handle != read_only && handle != write_only)
            return -ENOENT;
        static_cast<item_rig*>(self)->holds++;
        *ref = {.object = self,
                .sg = &static_cast<item_rig*>(self)->sg,
                .bytes = buffer_bytes,
                .access = handle == buffer      ? SPANKER_BUFFER_READ | SPANKER_BUFFER_WRITE
                          : handle == read_only ? SPANKER_BUFFER_READ
                                                : SPANKER_BUFFER_WRITE};
        return 0;
    }
    static int find_group(void* self, std::uint32_t handle, spk_group_ref* ref)
    {
        if (handle != group)
            return -ENOENT;
        static_cast<item_rig*>(self)->holds++;
        *ref = {.object = self, .domain = domain, .cards = 4, .ports = {0x3, 0x1}};
        return 0;
    }
};

// Valid items, one per opcode: what error tests change one field of.
inline spanker_work_item good(std::uint8_t opcode)
{
    spanker_work_item item{};
    item.opcode = opcode;
    item.wait_signal = SPK_NO_SIGNAL;
    item.post_signal = SPK_NO_SIGNAL;
    const auto link = [&](std::uint8_t rx, std::uint8_t tx) {
        item.group = group;
        item.link = {.rows = 2,
                     .row_bytes = 1024,
                     .rx_tag = rx ? 5u : 0u,
                     .tx_tag = tx ? 6u : 0u,
                     .rx_ports = rx,
                     .tx_ports = tx,
                     .rx_channel = 0,
                     .tx_channel = 0,
                     .reserved = {}};
    };
    const spanker_operand rows{.handle = tensor, .pitch = 2048, .offset = 4096};
    switch (opcode) {
    case SPK_OP_FILL:
        item.dst = {.handle = tensor, .pitch = 0, .offset = 100};
        item.fill.bytes = 1000;
        item.fill.pattern = 0xdeadbeef;
        break;
    case SPK_OP_COPY:
        item.dst = rows;
        item.src = {.handle = other_tensor, .pitch = 1024, .offset = 0};
        item.rows = {.rows = 3, .row_bytes = 1000, .reserved = {}};
        break;
    case SPK_OP_DMA_IN:
        item.dst = rows;
        item.src = {.handle = buffer, .pitch = 4096, .offset = 10000};
        item.rows = {.rows = 3, .row_bytes = 1000, .reserved = {}};
        break;
    case SPK_OP_DMA_OUT:
        item.dst = {.handle = buffer, .pitch = 4096, .offset = 10000};
        item.src = rows;
        item.rows = {.rows = 3, .row_bytes = 1000, .reserved = {}};
        break;
    case SPK_OP_MATMUL_Q4_K:
        item.dst = {.handle = tensor, .pitch = 128, .offset = 0};
        item.src = {.handle = tensor, .pitch = 4096, .offset = 65536};
        item.aux = {.handle = tensor, .pitch = 0, .offset = 131072};
        item.matmul = {
            .n_out = 32, .k = 512, .n_tok = 4, .x_format = SPK_X_F32, .mode = 0, .reserved = {}};
        break;
    case SPK_OP_REDUCE:
        item.dst = {.handle = tensor, .pitch = 0, .offset = 0};
        item.src = {.handle = other_tensor, .pitch = 0, .offset = 0};
        item.dtype = SPK_DTYPE_BF16;
        item.reduce = SPK_REDUCE_MAX;
        item.elements.count = 2048;
        break;
    case SPK_OP_SCALE:
        item.dst = {.handle = tensor, .pitch = 0, .offset = 8};
        item.elements.count = 2048;
        item.elements.divisor = 4;
        break;
    case SPK_OP_LINK_SEND:
        item.src = rows;
        link(0, 3);
        break;
    case SPK_OP_LINK_RECV:
    case SPK_OP_LINK_RECV_REDUCE:
        item.dst = rows;
        link(1, 0);
        break;
    case SPK_OP_LINK_RECV_REDUCE_SEND:
        item.src = rows;
        link(1, 2);
        break;
    case SPK_OP_LINK_RECV_REDUCE_COPY:
        item.dst = rows;
        item.src = {.handle = tensor, .pitch = 1024, .offset = 0};
        link(3, 2);
        break;
    case SPK_OP_LINK_RECV_COPY_SEND:
        item.dst = rows;
        link(1, 2);
        break;
    case SPK_OP_LINK_FORWARD:
        link(2, 1);
        break;
    case SPK_OP_GANG:
        item.group = group;
        item.gang = {.id = 9, .members = 4, .section = 0, .reserved = {}};
        break;
    case SPK_OP_SIGNAL_SET:
        item.signals = {.first = 250, .count = 6, .value = 1, .reserved = {}};
        break;
    default:
        break;
    }
    return item;
}

}  // namespace core_test
