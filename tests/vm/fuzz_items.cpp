// SPDX-License-Identifier: Apache-2.0
//
// Work items: good ones by opcode, then one member that is nearly right, or bytes by chance. One bad item refuses its batch,
// so most batches have none.
#include <cstring>

#include "fuzz.hpp"

namespace fuzz {

std::uint32_t some_handle(thread& t, std::array<std::atomic<std::uint32_t>, pool>& from)
{
    auto known = from[t.draw.below(pool)].load();
    for (int tries = 0; !known && tries < 3; tries++)
        known = from[t.draw.below(pool)].load();
    const auto guess = t.draw.below(40);
    const auto wild = static_cast<std::uint32_t>(t.draw.word());
    const auto share = t.draw.below(100);
    return share < 90 ? known : share < 98 ? guess : wild;
}

namespace {

struct maker {
    thread& t;
    slot& file;

    spanker_operand tensor(std::uint32_t offset = 0)
    {
        return {some_handle(t, file.tensors), 0, offset};
    }
    spanker_operand buffer() { return {some_handle(t, file.buffers), 0, 0}; }

    void rows(spanker_work_item& out)
    {
        out.rows.rows = 1 + t.draw.below(3);
        out.rows.row_bytes = 4 * (1 + t.draw.below(200));
        const std::uint32_t pitch = out.rows.row_bytes + 4 * t.draw.below(8);
        if (out.dst.handle)
            out.dst.pitch = pitch;
        if (out.src.handle)
            out.src.pitch = pitch;
    }
    void link(spanker_work_item& out, bool receives, bool sends)
    {
        out.group = some_handle(t, file.groups);
        out.link.rows = 1;
        out.link.row_bytes = 4 * (1 + t.draw.below(64));
        out.link.rx_ports = receives ? static_cast<std::uint8_t>(1 << t.draw.below(2)) : 0;
        out.link.tx_ports = sends ? static_cast<std::uint8_t>(1 << t.draw.below(2)) : 0;
        out.link.rx_channel = receives ? static_cast<std::uint8_t>(t.draw.below(2)) : 0;
        out.link.tx_channel = sends ? static_cast<std::uint8_t>(t.draw.below(2)) : 0;
        out.link.rx_tag = receives ? t.draw.below(2) : 0;
        out.link.tx_tag = sends ? t.draw.below(2) : 0;
    }
    spanker_work_item good();
    void schedule(spanker_work_item& out);
    void spoil(spanker_work_item& out);
};

spanker_work_item maker::good()
{
    spanker_work_item out{};
    out.wait_signal = out.post_signal = SPK_NO_SIGNAL;
    out.cookie = t.draw.word();
    const auto opcode = t.draw.of<spk_opcode>(
        {SPK_OP_NOP, SPK_OP_NOP, SPK_OP_FILL, SPK_OP_FILL, SPK_OP_COPY, SPK_OP_DMA_IN,
         SPK_OP_DMA_IN, SPK_OP_DMA_OUT, SPK_OP_DMA_OUT, SPK_OP_MATMUL_Q4_K, SPK_OP_REDUCE,
         SPK_OP_SCALE, SPK_OP_LINK_SEND, SPK_OP_LINK_RECV, SPK_OP_LINK_FORWARD, SPK_OP_GANG,
         SPK_OP_SIGNAL_SET});
    out.opcode = static_cast<std::uint8_t>(opcode);
    switch (opcode) {
    case SPK_OP_FILL:
        out.dst = tensor();
        out.fill.bytes = 4 * (1 + t.draw.below(1024));
        out.fill.pattern = static_cast<std::uint32_t>(t.draw.word());
        break;
    case SPK_OP_COPY:
        out.dst = tensor();
        out.src = tensor(8192);
        rows(out);
        break;
    case SPK_OP_DMA_IN:
        out.dst = tensor();
        out.src = buffer();
        rows(out);
        break;
    case SPK_OP_DMA_OUT:
        out.dst = buffer();
        out.src = tensor();
        rows(out);
        break;
    case SPK_OP_MATMUL_Q4_K:
        out.dst = tensor(16384);
        out.src = tensor();
        out.src.pitch = 1024;
        out.aux = tensor(4096);
        out.matmul.n_out = 8;
        out.matmul.k = 256;
        out.matmul.n_tok = 1;
        out.matmul.x_format = SPK_X_F32;
        break;
    case SPK_OP_REDUCE:
        out.dst = tensor();
        out.src = tensor(8192);
        out.elements.count = 1 + t.draw.below(500);
        break;
    case SPK_OP_SCALE:
        out.dst = tensor();
        out.elements.count = 1 + t.draw.below(500);
        out.elements.divisor = 2;
        break;
    case SPK_OP_LINK_SEND:
        out.src = tensor();
        link(out, false, true);
        break;
    case SPK_OP_LINK_RECV:
        out.dst = tensor();
        link(out, true, false);
        break;
    case SPK_OP_LINK_FORWARD:
        link(out, true, true);
        break;
    case SPK_OP_GANG:
        out.group = some_handle(t, file.groups);
        out.gang.id = t.draw.below(3);
        out.gang.members = 1;
        break;
    case SPK_OP_SIGNAL_SET:
        out.signals.first = t.draw.below(8);
        out.signals.count = 1 + t.draw.below(4);
        out.signals.value = t.draw.below(2);
        break;
    default:
        break;
    }
    return out;
}

// Signals are few, so that some are posted; who waits has a deadline, mostly.
void maker::schedule(spanker_work_item& out)
{
    if (t.draw.percent(20))
        out.flags |= SPANKER_ITEM_FENCE;
    if (t.draw.percent(10))
        out.flags |= SPANKER_ITEM_RECORD;
    if (t.draw.percent(20))
        out.post_signal = static_cast<std::uint16_t>(t.draw.below(8));
    if (t.draw.percent(10)) {
        out.wait_signal = static_cast<std::uint16_t>(t.draw.below(8));
        out.wait_value = 1;
    }
    if (t.draw.percent(30))
        out.deadline_ns = now_ns() + t.draw.below(60'000'000);
    if (t.draw.percent(1))
        out.deadline_ns = t.draw.of<std::uint64_t>({1, ~0ull, ~0ull >> 1});
}

void maker::spoil(spanker_work_item& out)
{
    auto* bytes = reinterpret_cast<std::uint8_t*>(&out);
    switch (t.draw.below(8)) {
    case 0:
        for (std::size_t at = 0; at < sizeof(out); at++)
            bytes[at] = static_cast<std::uint8_t>(t.draw.word());
        break;
    case 1:
        out.raw[t.draw.below(12)] =
            t.draw.of<std::uint32_t>({0, 1, 3, 0x7fffffff, 0x80000000, ~0u});
        break;
    case 2:
        out.dst.offset = t.draw.of<std::uint64_t>({1, 4, 65536 - 4, 65536, ~0ull - 3, 1ull << 63});
        break;
    case 3:
        out.src.offset = t.draw.of<std::uint64_t>({1, 4, 65536 - 4, 65536, ~0ull - 3, 1ull << 63});
        break;
    case 4:
        out.dst.pitch = out.src.pitch = t.draw.of<std::uint32_t>({0, 1, 0x80000000, ~0u});
        break;
    case 5:
        out.dtype = static_cast<std::uint8_t>(t.draw.below(8));
        out.reduce = static_cast<std::uint8_t>(t.draw.below(8));
        break;
    case 6:
        out.wait_signal = static_cast<std::uint16_t>(t.draw.of({255, 256, 65534}));
        break;
    default:
        bytes[t.draw.below(sizeof(out))] ^= static_cast<std::uint8_t>(1 << t.draw.below(8));
    }
}

}  // namespace

std::uint32_t make_items(thread& t, slot& file, spanker_work_item* to, std::uint32_t limit)
{
    maker make{t, file};
    const std::uint32_t most = t.draw.percent(95) ? 4 : limit;
    const std::uint32_t count = 1 + t.draw.below(most);
    for (std::uint32_t n = 0; n < count; n++) {
        to[n] = make.good();
        make.schedule(to[n]);
    }
    if (t.draw.percent(25))
        make.spoil(to[t.draw.below(count)]);
    return count;
}

}  // namespace fuzz
