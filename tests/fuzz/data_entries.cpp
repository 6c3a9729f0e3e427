// SPDX-License-Identifier: Apache-2.0
//
// Ring entries as a hostile client writes them, through check, resolution and
// planner. Whatever becomes a plan must stay inside the pieces and buffers it names.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "daemon/collective/planner.hpp"
#include "daemon/collective/sharding.hpp"
#include "daemon/data/entry.hpp"
#include "tests/unit/data_fake_backend.hpp"

namespace {

using namespace spanker::daemon;
using namespace spanker::daemon::data;

constexpr std::uint32_t ranks = 4;

// A session over four cards with a few objects of each kind; handles are small
// offsets from known ones, so that random bytes meet them.
struct bed {
    bed() : cards(source, {[](card_file&) {}, [](card_file&) {}, [](auto) {}, [](auto) {}})
    {
        topology_snapshot seen;
        seen.generation = 1;
        for (std::uint32_t i = 0; i < ranks; i++) {
            seen.cards.push_back({.index = i, .serial = i + 1, .state = SPANKER_CARD_READY});
            seen.links.push_back({.a = {i, 1},
                                  .b = {(i + 1) % ranks, 0},
                                  .state = SPK_PORT_UP,
                                  .width = 4,
                                  .width_max = 4,
                                  .bytes_per_second = 500'000'000});
        }
        cards.set_topology(seen);
        owner.counters = std::make_shared<session_counters>();
        owner.cards = {0, 1, 2, 3};
        add_buffer(3, 65536);
        add_buffer(SPANKER_BUFFER_READ, 4096);
        for (std::uint32_t layout = 0; layout < SPANKER_LAYOUT_COUNT; layout++)
            add_tensor(static_cast<spanker_tensor_layout>(layout), 4, 1024);
        for (auto how : {collective::sharding::rows, collective::sharding::k_split,
                         collective::sharding::whole})
            add_weights(*collective::describe_weights(how, 1024, 1024, ranks));
    }
    void add_buffer(std::uint32_t access, std::uint64_t bytes)
    {
        auto b = std::make_unique<buffer>();
        b->access = access;
        b->shape = collective::describe_buffer(bytes);
        owner.buffers.add(std::move(b));
    }
    void add_tensor(spanker_tensor_layout layout, std::uint64_t rows, std::uint64_t cols)
    {
        auto t = std::make_unique<card_object>();
        t->shape = *collective::describe_tensor(layout, SPK_DTYPE_F32, rows, cols, ranks);
        t->cards = owner.cards;
        if (!allocate_pieces(cards, *t))
            std::abort();
        owner.tensors.add(std::move(t));
    }
    void add_weights(const collective::object& shape)
    {
        auto w = std::make_shared<resident_weights>();
        w->on_cards.shape = shape;
        w->on_cards.cards = owner.cards;
        if (!allocate_pieces(cards, w->on_cards))
            std::abort();
        owner.weights.add(std::make_unique<weights_ref>(weights_ref{std::move(w)}));
    }

    spanker::daemon::test::fake_backend source{ranks, 4096};
    card_set cards;
    session owner{1, plane_limits{}, rings()};
    run_draft draft;
};

// Maps a byte to a handle that exists, or nearly.
std::uint32_t handle_near(std::uint32_t raw, std::uint32_t kind)
{
    if (raw > 255)
        return raw;
    return handle_parts{kind == 0 || kind > 3 ? 1 + raw % 3 : kind, 0, raw % 8}.handle();
}

void tame(spanker_sqe& e)
{
    switch (e.opcode) {
    case SPANKER_SOP_MATMUL:
        e.matmul.weights = handle_near(e.matmul.weights & 0x3ff, SPANKER_KIND_WEIGHTS);
        e.matmul.x_handle = handle_near(e.matmul.x_handle & 0x3ff, e.matmul.x_kind);
        e.matmul.y_handle = handle_near(e.matmul.y_handle & 0x3ff, e.matmul.y_kind);
        break;
    case SPANKER_SOP_ALL_REDUCE:
    case SPANKER_SOP_ALL_GATHER:
    case SPANKER_SOP_BROADCAST:
        e.collective.src_handle =
            handle_near(e.collective.src_handle & 0x3ff, e.collective.src_kind);
        e.collective.dst_handle =
            handle_near(e.collective.dst_handle & 0x3ff, e.collective.dst_kind);
        break;
    default:
        e.transfer.tensor = handle_near(e.transfer.tensor & 0x3ff, SPANKER_KIND_TENSOR);
        e.transfer.buffer = handle_near(e.transfer.buffer & 0x3ff, SPANKER_KIND_BUFFER);
    }
}

std::uint64_t limit_of(const bed& b, const collective::plan& plan, std::uint32_t handle,
                       std::uint32_t rank)
{
    if (handle == 0 || handle > plan.objects + plan.scratch.size())
        std::abort();
    if (handle > plan.objects)
        return plan.scratch[handle - 1 - plan.objects].bytes[rank];
    return collective::piece_bytes(b.draft.shapes[handle - 1], rank);
}

void check_rows(const bed& b, const collective::plan& plan, const spanker_operand& o,
                std::uint64_t shift, std::uint32_t rank, std::uint64_t rows,
                std::uint64_t row_bytes)
{
    if (o.handle == 0 || rows == 0 || row_bytes == 0)
        return;
    const std::uint64_t last = o.offset + shift + (rows - 1) * o.pitch;
    if (last + row_bytes > limit_of(b, plan, o.handle, rank))
        std::abort();
}

void check_plan(const bed& b, const collective::plan& plan)
{
    for (const collective::segment& s : plan.segments)
        for (std::uint32_t rank = 0; rank < plan.cards.size(); rank++)
            for (const spanker_work_item& item : plan.items(rank, s)) {
                const bool rows = item.opcode == SPK_OP_COPY || item.opcode == SPK_OP_DMA_IN ||
                                  item.opcode == SPK_OP_DMA_OUT;
                const bool link =
                    item.opcode >= SPK_OP_LINK_SEND && item.opcode < SPK_OP_LINK_FORWARD;
                if (!rows && !link)
                    continue;
                static_assert(offsetof(spanker_dims_rows, row_bytes) ==
                              offsetof(spanker_dims_link, row_bytes));
                check_rows(b, plan, item.dst, s.shift_bytes, rank, item.rows.rows,
                           item.rows.row_bytes);
                check_rows(b, plan, item.src, s.shift_bytes, rank, item.rows.rows,
                           item.rows.row_bytes);
            }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static bed b;
    entry_queue queue(16);
    for (; size >= sizeof(spanker_sqe) && !queue.full(); size -= sizeof(spanker_sqe)) {
        request r;
        std::memcpy(&r.entry, data, sizeof r.entry);
        data += sizeof r.entry;
        (void)check_entry(r.entry);
        r.entry.opcode %= SPANKER_SOP_COUNT;
        tame(r.entry);
        queue.push(r);
    }
    for (std::uint32_t count = 1; count <= queue.size(); count++) {
        if (!draft_run(b.draft, b.owner, b.cards, queue, count))
            break;
        if (const auto plan = collective::make_plan(b.cards.graph(), b.draft.view()))
            check_plan(b, *plan);
    }
    return 0;
}
