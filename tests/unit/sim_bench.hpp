// SPDX-License-Identifier: Apache-2.0
//
// A driver small enough for tests: it reaches cards through the pins alone, as any driver would.
//
//   arena   host memory behind the bus: every access is checked, every interrupt counted
//   rig     a fabric in that arena, with verbs: wake a card, train links, open a queue, run commands
//   queue   one queue pair: put, ring, collect
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <vector>

#include "sim/card.hpp"
#include "uapi/spanker_status.h"

namespace spanker::sim::bench {

using bytes = std::vector<std::byte>;

template <typename value_type>
bytes bytes_of(const std::vector<value_type>& values)
{
    const auto raw = std::as_bytes(std::span(values));
    return {raw.begin(), raw.end()};
}

template <typename value_type>
std::vector<value_type> values_of(const bytes& raw)
{
    std::vector<value_type> out(raw.size() / sizeof(value_type));
    std::memcpy(out.data(), raw.data(), out.size() * sizeof(value_type));
    return out;
}

// Bytes that differ from place to place and from seed to seed.
inline bytes pattern(std::size_t count, std::uint32_t seed)
{
    bytes out(count);
    std::uint32_t state = seed * 2654435761u + 1;
    for (std::byte& b : out) {
        state = state * 1664525u + 1013904223u;
        b = static_cast<std::byte>(state >> 24);
    }
    return out;
}

class arena final : public host {
public:
    static constexpr std::uint64_t base = 0x1'0000'0000;

    explicit arena(std::size_t size_bytes = 48 << 20)
        : memory_(static_cast<std::byte*>(std::calloc(1, size_bytes)), &std::free),
          size_(size_bytes)
    {
        if (!memory_)
            throw std::bad_alloc();
    }

    bool dma_read(unsigned card, std::uint64_t address, std::span<std::byte> to) override
    {
        if (on_dma)
            on_dma(card, address, to.size());
        if (!inside(address, to.size()))
            return false;
        std::memcpy(to.data(), at(address), to.size());
        return true;
    }

    // Eight bytes go in one store, released, so that another thread may poll for the last of them.
    bool dma_write(unsigned card, std::uint64_t address, std::span<const std::byte> from) override
    {
        if (on_dma)
            on_dma(card, address, from.size());
        if (!inside(address, from.size()))
            return false;
        if (from.size() == 8 && address % 8 == 0) {
            std::uint64_t word = 0;
            std::memcpy(&word, from.data(), 8);
            std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at(address)))
                .store(word, std::memory_order_release);
        } else {
            std::memcpy(at(address), from.data(), from.size());
        }
        return true;
    }

    void interrupt(unsigned card, unsigned vector) override
    {
        interrupts_.at(card).at(vector)++;
        if (on_interrupt)
            on_interrupt(card, vector);
    }

    unsigned interrupts(unsigned card, unsigned vector) const { return interrupts_[card][vector]; }

    std::uint64_t allocate(std::size_t size_bytes, std::size_t alignment = 4096)
    {
        next_ = (next_ + alignment - 1) / alignment * alignment;
        if (next_ + size_bytes > size_)
            throw std::runtime_error("the test's arena is too small");
        const std::uint64_t out = base + next_;
        next_ += size_bytes;
        return out;
    }

    std::byte* at(std::uint64_t address) { return memory_.get() + (address - base); }
    std::uint64_t end() const { return base + size_; }

    void put(std::uint64_t address, const bytes& from)
    {
        std::memcpy(at(address), from.data(), from.size());
    }
    bytes get(std::uint64_t address, std::size_t count)
    {
        return {at(address), at(address) + count};
    }

    // Called in the model's thread at each access and each interrupt.
    std::function<void(unsigned card, std::uint64_t address, std::size_t bytes)> on_dma;
    std::function<void(unsigned card, unsigned vector)> on_interrupt;

private:
    bool inside(std::uint64_t address, std::size_t count) const
    {
        return address >= base && count <= size_ && address - base <= size_ - count;
    }

    std::unique_ptr<std::byte, decltype(&std::free)> memory_;  // zeroed by the system, page by page
    std::size_t size_;
    std::size_t next_ = 4096;
    std::array<std::array<std::atomic<unsigned>, SPK_MSIX_VECTORS>, SPK_MAX_CARDS> interrupts_{};
};

// ---- commands ----

struct rows {
    std::uint32_t count;
    std::uint32_t bytes;
    std::uint64_t pitch = 0;  // 0: packed

    std::uint64_t step() const { return pitch != 0 ? pitch : bytes; }
};

inline spk_cmd command(unsigned opcode)
{
    spk_cmd out;
    std::memset(&out, 0, sizeof out);
    out.opcode = static_cast<__u8>(opcode);
    out.wait_signal = out.post_signal = SPK_NO_SIGNAL;
    return out;
}

inline spk_cmd waits(spk_cmd cmd, std::uint16_t signal, std::uint32_t value = 1)
{
    cmd.wait_signal = signal;
    cmd.wait_value = value;
    return cmd;
}
inline spk_cmd posts(spk_cmd cmd, std::uint16_t signal)
{
    cmd.post_signal = signal;
    return cmd;
}
inline spk_cmd flagged(spk_cmd cmd, unsigned flags)
{
    cmd.flags = static_cast<__u8>(flags);
    return cmd;
}

inline spk_cmd nop() { return command(SPK_OP_NOP); }

inline spk_cmd fill(std::uint64_t dst, std::uint64_t count, std::uint32_t word)
{
    spk_cmd out = command(SPK_OP_FILL);
    out.fill.dst = dst;
    out.fill.bytes = count;
    out.fill.pattern = word;
    return out;
}

inline spk_cmd copy(std::uint64_t dst, std::uint64_t src, const rows& shape)
{
    spk_cmd out = command(SPK_OP_COPY);
    out.copy.dst = dst;
    out.copy.src = src;
    out.copy.rows = shape.count;
    out.copy.row_bytes = shape.bytes;
    out.copy.dst_pitch = out.copy.src_pitch = shape.step();
    return out;
}

inline spk_cmd dma(unsigned opcode, std::uint64_t card, std::uint64_t list, const rows& shape)
{
    spk_cmd out = command(opcode);
    out.dma.card = card;
    out.dma.list = list;
    out.dma.rows = shape.count;
    out.dma.row_bytes = shape.bytes;
    out.dma.card_pitch = out.dma.host_pitch = shape.step();
    return out;
}

struct matmul_shape {
    std::uint32_t n_out, k, n_tok;
    std::uint8_t format = SPK_X_F32;
    std::uint8_t mode = 0;
};

inline std::uint32_t x_row_bytes(const matmul_shape& shape)
{
    constexpr std::uint32_t per_block[] = {SPK_QK_K * 4, SPK_Q8_K_BLOCK_BYTES,
                                           SPK_Q4_K_BLOCK_BYTES};
    return shape.k / SPK_QK_K * per_block[shape.format];
}

inline spk_cmd matmul(std::uint64_t w, std::uint64_t x, std::uint64_t y, const matmul_shape& shape)
{
    spk_cmd out = command(SPK_OP_MATMUL_Q4_K);
    out.matmul.w = w;
    out.matmul.x = x;
    out.matmul.y = y;
    out.matmul.n_out = shape.n_out;
    out.matmul.k = shape.k;
    out.matmul.n_tok = shape.n_tok;
    out.matmul.x_pitch = x_row_bytes(shape);
    out.matmul.y_pitch = shape.n_out * 4;
    out.matmul.x_format = shape.format;
    out.matmul.mode = shape.mode;
    return out;
}

inline spk_cmd reduce(std::uint64_t dst, std::uint64_t src, std::uint64_t count, unsigned dtype,
                      unsigned op)
{
    spk_cmd out = command(SPK_OP_REDUCE);
    out.reduce_args.dst = dst;
    out.reduce_args.src = src;
    out.reduce_args.count = count;
    out.dtype = static_cast<__u8>(dtype);
    out.reduce = static_cast<__u8>(op);
    return out;
}

struct scale_by {
    std::uint32_t factor = 0;
    std::uint32_t divisor = 0;
};
inline spk_cmd scale(std::uint64_t dst, std::uint64_t count, unsigned dtype, scale_by by)
{
    spk_cmd out = command(SPK_OP_SCALE);
    out.scale.dst = dst;
    out.scale.count = count;
    out.scale.factor = by.factor;
    out.scale.divisor = by.divisor;
    out.dtype = static_cast<__u8>(dtype);
    return out;
}

// One end of a message: ports (mask), channel, tag.
struct way {
    unsigned ports = 0;
    unsigned channel = 0;
    std::uint32_t tag = 0;
};

inline spk_cmd link(unsigned opcode, const rows& shape, const way& rx, const way& tx)
{
    spk_cmd out = command(opcode);
    out.rx_ports = static_cast<__u8>(rx.ports);
    out.tx_ports = static_cast<__u8>(tx.ports);
    out.link.rows = shape.count;
    out.link.row_bytes = shape.bytes;
    out.link.src_pitch = shape.step();
    out.link.dst_pitch = static_cast<__u32>(shape.step());
    out.link.rx_channel = static_cast<__u8>(rx.channel);
    out.link.tx_channel = static_cast<__u8>(tx.channel);
    out.link.rx_tag = rx.tag;
    out.link.tx_tag = tx.tag;
    return out;
}

inline spk_cmd send(std::uint64_t src, const rows& shape, const way& tx)
{
    spk_cmd out = link(SPK_OP_LINK_SEND, shape, {}, tx);
    out.link.src = src;
    return out;
}

inline spk_cmd recv(std::uint64_t dst, const rows& shape, const way& rx)
{
    spk_cmd out = link(SPK_OP_LINK_RECV, shape, rx, {});
    out.link.dst = dst;
    return out;
}

inline spk_cmd gang(std::uint32_t domain, std::uint32_t id, std::uint32_t members,
                    std::uint32_t section)
{
    spk_cmd out = command(SPK_OP_GANG);
    out.gang.domain = domain;
    out.gang.id = id;
    out.gang.members = members;
    out.gang.section = section;
    return out;
}

inline spk_cmd signal_set(std::uint32_t first, std::uint32_t count, std::uint32_t value)
{
    spk_cmd out = command(SPK_OP_SIGNAL_SET);
    out.signal_set.first = first;
    out.signal_set.count = count;
    out.signal_set.value = value;
    return out;
}

inline spk_cmd abort_of(std::uint32_t queue, std::uint32_t id)
{
    spk_cmd out = command(SPK_OP_ABORT);
    out.abort_args.queue = queue;
    out.abort_args.id = id;
    return out;
}

// ---- a queue ----

struct queue_shape {
    std::uint32_t sq_depth = 64;
    std::uint32_t cq_depth = 64;
    std::uint32_t vector = 1;
    std::uint32_t coalesce_count = 0;
    std::uint32_t coalesce_ns = 0;
    bool status_block = false;
};

class queue final {
public:
    queue(fabric& cards, arena& memory, unsigned card, unsigned q, const queue_shape& shape = {})
        : cards_(cards), memory_(memory), card_(card), q_(q), shape_(shape),
          sq_(memory.allocate(shape.sq_depth * sizeof(spk_cmd))),
          cq_(memory.allocate(shape.cq_depth * sizeof(spk_completion))),
          status_(shape.status_block ? memory.allocate(SPK_STATUS_BLOCK_BYTES) : 0)
    {}

    // Rings zeroed, counters at the start, registers written, enabled.
    void open()
    {
        std::memset(memory_.at(sq_), 0, shape_.sq_depth * sizeof(spk_cmd));
        std::memset(memory_.at(cq_), 0, shape_.cq_depth * sizeof(spk_completion));
        tail_ = head_ = 0;
        write64(SPK_Q_SQ_BASE_LO, sq_);
        write64(SPK_Q_CQ_BASE_LO, cq_);
        write64(SPK_Q_STATUS_BASE_LO, status_);
        write(SPK_Q_SQ_DEPTH, shape_.sq_depth);
        write(SPK_Q_CQ_DEPTH, shape_.cq_depth);
        write(SPK_Q_VECTOR, shape_.vector);
        write(SPK_Q_COALESCE_COUNT, shape_.coalesce_count);
        write(SPK_Q_COALESCE_NS, shape_.coalesce_ns);
        write(SPK_Q_CTRL, SPK_QCTRL_ENABLE);
    }

    std::uint16_t put(spk_cmd cmd)
    {
        cmd.id = next_id_++;
        std::memcpy(memory_.at(sq_ + (tail_ & (shape_.sq_depth - 1)) * sizeof cmd), &cmd,
                    sizeof cmd);
        tail_++;
        return cmd.id;
    }
    void ring() { cards_.bar_write(card_, SPK_REG_SQ_TAIL(q_), tail_); }

    // The completions that arrived since the last call; their slots go back to the card.
    std::vector<spk_completion> collect()
    {
        std::vector<spk_completion> out;
        for (;;) {
            spk_completion* slot = this->slot(head_);
            auto* last = reinterpret_cast<std::uint64_t*>(&slot->id);
            const std::uint64_t word = std::atomic_ref(*last).load(std::memory_order_acquire);
            const auto phase = static_cast<std::uint8_t>(word >> 40) & SPK_CQE_PHASE;
            const std::uint32_t expected = (head_ & shape_.cq_depth) == 0 ? 1 : 0;
            if (phase != expected)
                break;
            out.push_back(*slot);
            head_++;
        }
        if (!out.empty())
            cards_.bar_write(card_, SPK_REG_CQ_HEAD(q_), head_);
        return out;
    }

    void write(std::uint32_t reg, std::uint32_t value)
    {
        cards_.bar_write(card_, SPK_REG_Q(q_, reg), value);
    }
    void write64(std::uint32_t reg, std::uint64_t value)
    {
        write(reg, static_cast<std::uint32_t>(value));
        write(reg + 4, static_cast<std::uint32_t>(value >> 32));
    }
    std::uint32_t read(std::uint32_t reg) { return cards_.bar_read(card_, SPK_REG_Q(q_, reg)); }
    std::uint32_t state() { return read(SPK_Q_STATE); }

    unsigned card() const { return card_; }
    unsigned number() const { return q_; }
    std::uint64_t sq() const { return sq_; }
    std::uint32_t tail() const { return tail_; }
    std::uint32_t head() const { return head_; }
    spk_completion* slot(std::uint32_t counter)
    {
        return reinterpret_cast<spk_completion*>(
            memory_.at(cq_ + (counter & (shape_.cq_depth - 1)) * sizeof(spk_completion)));
    }
    spk_status_block status()
    {
        spk_status_block out;
        std::memcpy(&out, memory_.at(status_), sizeof out);
        return out;
    }

private:
    fabric& cards_;
    arena& memory_;
    unsigned card_, q_;
    queue_shape shape_;
    std::uint64_t sq_, cq_, status_;
    std::uint32_t tail_ = 0, head_ = 0;
    std::uint16_t next_id_ = 0x100;
};

// ---- a fabric with a driver's hands ----

inline fabric_config small_config(unsigned cards, std::string_view topology = "ring")
{
    card_config card;
    card.ddr_bytes = 64 << 20;
    return make_fabric_config(cards, topology, card);
}

class rig final {
public:
    static constexpr std::uint32_t domain = 7;
    static constexpr unsigned event_vector = 15;

    explicit rig(const fabric_config& config = small_config(1), std::size_t arena_bytes = 48 << 20)
        : memory(arena_bytes), cards(config, memory)
    {
        for (unsigned card = 0; card < cards.card_count(); card++)
            wake(card);
    }

    // Bus master and MSI-X on, all vectors unmasked, fetching allowed.
    void wake(unsigned card)
    {
        cards.config_write(card, 0x04, 2, 0x0006);
        cards.config_write(card, 0xb2, 2, 0x8000);
        for (unsigned vector = 0; vector < SPK_MSIX_VECTORS; vector++)
            cards.bar_write(card, SPK_MSIX_TABLE_OFFSET + 16 * vector + 12, 0);
        write(card, SPK_REG_EVENT_VECTOR, event_vector);
        write(card, SPK_REG_CTRL, SPK_CTRL_ENABLE);
    }

    // Every channel of every port to one owner, every port asked to train, and time for it.
    void train()
    {
        for (unsigned card = 0; card < cards.card_count(); card++)
            for (unsigned port = 0; port < cards.config(card).ports; port++) {
                own(card, port);
                write(card, SPK_REG_PORT(port, SPK_P_CTRL), SPK_PCTRL_TRAIN_REQ);
            }
        cards.run();
    }
    void own(unsigned card, unsigned port, std::uint32_t owner = domain)
    {
        for (unsigned channel = 0; channel < cards.config(card).channels; channel++)
            write(card, SPK_REG_PORT(port, SPK_P_DOMAIN(channel)), owner);
    }
    std::uint32_t port(unsigned card, unsigned number, std::uint32_t reg)
    {
        return read(card, SPK_REG_PORT(number, reg));
    }

    std::uint32_t read(unsigned card, std::uint32_t offset) { return cards.bar_read(card, offset); }
    void write(unsigned card, std::uint32_t offset, std::uint32_t value)
    {
        cards.bar_write(card, offset, value);
    }

    queue& open(unsigned card, unsigned q, const queue_shape& shape = {})
    {
        queues.push_back(std::make_unique<queue>(cards, memory, card, q, shape));
        queues.back()->open();
        return *queues.back();
    }

    // A list of one entry, or of one entry per piece of at most piece_bytes.
    std::uint64_t list_of(std::uint64_t address, std::uint64_t count,
                          std::uint64_t piece_bytes = ~std::uint64_t{0})
    {
        const std::uint64_t first = memory.allocate(SPK_SG_PAGE_BYTES);
        auto* page = reinterpret_cast<spk_sg_page*>(memory.at(first));
        std::memset(page, 0, sizeof *page);
        while (count > 0) {
            if (page->used == SPK_SG_ENTRIES) {
                page->next = memory.allocate(SPK_SG_PAGE_BYTES);
                page = reinterpret_cast<spk_sg_page*>(memory.at(page->next));
                std::memset(page, 0, sizeof *page);
            }
            const std::uint64_t part = std::min(count, piece_bytes);
            page->entry[page->used++] = {address, part};
            address += part;
            count -= part;
        }
        return first;
    }

    // Puts, rings, runs until nothing is pending, and returns what completed in order of the commands.
    std::vector<spk_completion> execute(queue& q, const std::vector<spk_cmd>& commands)
    {
        for (const spk_cmd& cmd : commands)
            q.put(cmd);
        q.ring();
        cards.run();
        std::vector<spk_completion> out = q.collect();
        std::sort(out.begin(), out.end(),
                  [](const spk_completion& a, const spk_completion& b) { return a.id < b.id; });
        return out;
    }
    spk_completion execute(queue& q, const spk_cmd& cmd)
    {
        const auto out = execute(q, std::vector<spk_cmd>{cmd});
        if (out.size() != 1)
            throw std::runtime_error("the command did not complete once");
        return out[0];
    }

    // Card memory by DMA_IN, and by looking.
    void store(queue& q, std::uint64_t address, const bytes& from)
    {
        const std::uint64_t buffer = memory.allocate(from.size());
        memory.put(buffer, from);
        const spk_completion done =
            execute(q, dma(SPK_OP_DMA_IN, address, list_of(buffer, from.size()),
                           {.count = 1, .bytes = static_cast<std::uint32_t>(from.size())}));
        if (done.status != SPANKER_CARD_OK)
            throw std::runtime_error("DMA_IN failed");
    }
    bytes load(unsigned card, std::uint64_t address, std::size_t count)
    {
        bytes out(count);
        if (!cards.snapshot(card, address, out))
            throw std::runtime_error("no such card memory");
        return out;
    }

    arena memory;
    fabric cards;
    std::vector<std::unique_ptr<queue>> queues;
};

// Readable expectations.
inline std::vector<int> statuses(const std::vector<spk_completion>& completions)
{
    std::vector<int> out;
    for (const spk_completion& one : completions)
        out.push_back(one.status);
    return out;
}

}  // namespace spanker::sim::bench
