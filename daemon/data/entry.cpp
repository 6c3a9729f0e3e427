// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/entry.hpp"

#include <algorithm>

#include "daemon/data/portable.hpp"

namespace spanker::daemon::data {
namespace {

tl::unexpected<error> invalid(const spanker_sqe& e, const std::string& what)
{
    return fail(SPANKER_ERR_INVALID, std::string(op_name(e.opcode)) + ": " + what);
}

bool host_or_tensor(std::uint32_t kind)
{
    return kind == SPANKER_KIND_BUFFER || kind == SPANKER_KIND_TENSOR;
}

// ---- what an entry says by itself ----

result<void> all_zero(const spanker_sqe& e)
{
    for (std::uint64_t word : e.raw)
        if (word != 0)
            return invalid(e, "reserved members must be zero");
    return {};
}

result<void> check_matmul(const spanker_sqe& e)
{
    const spanker_sqe_matmul& m = e.matmul;
    if (m.reserved != 0)
        return invalid(e, "reserved members must be zero");
    if (!host_or_tensor(m.x_kind) || !host_or_tensor(m.y_kind))
        return invalid(e, "X and Y must be a buffer or a tensor");
    if (m.x_format >= SPK_X_COUNT)
        return invalid(e, "unknown format " + std::to_string(m.x_format) + " of X");
    if (m.mode & ~static_cast<unsigned>(SPK_MATMUL_MODES))
        return invalid(e, "unknown bits in mode " + std::to_string(m.mode));
    return {};
}

result<void> check_collective(const spanker_sqe& e)
{
    const spanker_sqe_collective& c = e.collective;
    if (c.group != 0)
        return fail(SPANKER_ERR_NO_OBJECT, std::string(op_name(e.opcode)) + ": no group " +
                                               std::to_string(c.group) +
                                               "; 0 means all cards of the session");
    if (!host_or_tensor(c.src_kind) || !host_or_tensor(c.dst_kind))
        return invalid(e, "src and dst must be a buffer or a tensor");
    if (c.dtype >= SPK_DTYPE_COUNT)
        return invalid(e, "unknown dtype " + std::to_string(c.dtype));
    if (c.reduce >= SPK_REDUCE_COUNT)
        return invalid(e, "unknown reduction " + std::to_string(c.reduce));
    if (e.opcode != SPANKER_SOP_ALL_REDUCE && c.reduce != 0)
        return invalid(e, "reduce must be zero, nothing is reduced");
    return {};
}

result<void> check_transfer(const spanker_sqe& e)
{
    if (e.transfer.reserved != 0)
        return invalid(e, "reserved members must be zero");
    return {};
}

result<void> check_cancel(const spanker_sqe& e)
{
    for (std::uint64_t word : e.cancel.reserved)
        if (word != 0)
            return invalid(e, "reserved members must be zero");
    return {};
}

using checker = result<void> (*)(const spanker_sqe&);
// In the order of enum spanker_session_op.
constexpr checker checks[SPANKER_SOP_COUNT] = {
    all_zero,          // NOP
    check_matmul,      // MATMUL
    check_collective,  // ALL_REDUCE
    check_collective,  // ALL_GATHER
    check_collective,  // BROADCAST
    check_transfer,    // WRITE_TENSOR
    check_transfer,    // READ_TENSOR
    check_cancel,      // CANCEL
};

// ---- handles ----

class drafter final {
public:
    drafter(run_draft& draft, session& owner, card_set& cards)
        : draft_(draft), owner_(owner), cards_(cards)
    {
        draft.stage_count = draft.object_count = draft.card_count = draft.bad_entry = 0;
    }

    result<void> add(const spanker_sqe& e);
    result<void> settle_cards();
    void mark_aliases();

private:
    std::uint32_t index_of(const run_object& object, const collective::object& shape);
    result<void> adopt_cards(const card_object& object, std::uint64_t handle);
    result<collective::place> place(std::uint32_t kind, std::uint32_t handle, std::uint64_t offset,
                                    std::uint32_t access);
    result<collective::place> buffer_place(std::uint32_t handle, std::uint64_t offset,
                                           std::uint32_t access);
    result<collective::place> card_place(card_object& object, std::uint32_t handle,
                                         std::uint64_t offset);
    result<collective::place> weights_place(std::uint32_t handle);

    result<collective::stage> matmul(const spanker_sqe& e);
    result<collective::stage> reduce_or_share(const spanker_sqe& e);
    result<collective::stage> transfer(const spanker_sqe& e);
    result<collective::stage> stage_of(const spanker_sqe& e);

    run_draft& draft_;
    session& owner_;
    card_set& cards_;
};

std::uint32_t drafter::index_of(const run_object& object, const collective::object& shape)
{
    for (std::uint32_t i = 0; i < draft_.object_count; i++)
        if (draft_.objects[i].memory == object.memory &&
            draft_.objects[i].on_cards == object.on_cards)
            return i;
    draft_.objects[draft_.object_count] = object;
    draft_.shapes[draft_.object_count] = shape;
    return draft_.object_count++;
}

// Everything of a run lies on the same cards; the first object says which.
result<void> drafter::adopt_cards(const card_object& object, std::uint64_t handle)
{
    const std::span<const std::uint32_t> given(object.cards);
    if (draft_.card_count == 0) {
        std::copy(given.begin(), given.end(), draft_.cards.begin());
        draft_.card_count = static_cast<std::uint32_t>(given.size());
    } else if (!std::equal(given.begin(), given.end(), draft_.cards.begin(),
                           draft_.cards.begin() + draft_.card_count)) {
        return fail(SPANKER_ERR_INVALID, "object " + std::to_string(handle) +
                                             " lies on other cards than the objects before it; "
                                             "make them for the same cards");
    }
    return check_pieces(cards_, object);
}

result<collective::place> drafter::buffer_place(std::uint32_t handle, std::uint64_t offset,
                                                std::uint32_t access)
{
    auto found = owner_.buffers.get(handle);
    if (!found)
        return tl::unexpected(found.error());
    buffer& b = **found;
    if ((b.access & access) != access)
        return fail(SPANKER_ERR_DENIED,
                    "buffer " + std::to_string(handle) + " was registered without \"" +
                        (access & ~b.access & SPANKER_BUFFER_WRITE ? "w" : "r") +
                        "\"; register it with access \"rw\"");
    return collective::place{index_of({.memory = &b}, b.shape), offset};
}

result<collective::place> drafter::card_place(card_object& object, std::uint32_t handle,
                                              std::uint64_t offset)
{
    if (auto same = adopt_cards(object, handle); !same)
        return tl::unexpected(same.error());
    return collective::place{index_of({.on_cards = &object}, object.shape), offset};
}

result<collective::place> drafter::place(std::uint32_t kind, std::uint32_t handle,
                                         std::uint64_t offset, std::uint32_t access)
{
    if (kind == SPANKER_KIND_BUFFER)
        return buffer_place(handle, offset, access);
    auto found = owner_.tensors.get(handle);
    if (!found)
        return tl::unexpected(found.error());
    return card_place(**found, handle, offset);
}

result<collective::place> drafter::weights_place(std::uint32_t handle)
{
    auto found = owner_.weights.get(handle);
    if (!found)
        return tl::unexpected(found.error());
    return card_place((*found)->weights->on_cards, handle, 0);
}

result<collective::stage> drafter::matmul(const spanker_sqe& e)
{
    const spanker_sqe_matmul& m = e.matmul;
    const std::uint32_t y_access =
        SPANKER_BUFFER_WRITE | (m.mode & SPK_MATMUL_ACCUMULATE ? SPANKER_BUFFER_READ : 0);
    auto w = weights_place(m.weights);
    if (!w)
        return tl::unexpected(w.error());
    auto x = place(m.x_kind, m.x_handle, m.x_offset, SPANKER_BUFFER_READ);
    if (!x)
        return tl::unexpected(x.error());
    auto y = place(m.y_kind, m.y_handle, m.y_offset, y_access);
    if (!y)
        return tl::unexpected(y.error());
    return collective::matmul_stage{
        .weights = *w, .x = *x, .y = *y, .n_tok = m.n_tok, .x_format = m.x_format, .mode = m.mode};
}

result<collective::stage> drafter::reduce_or_share(const spanker_sqe& e)
{
    const spanker_sqe_collective& c = e.collective;
    auto src = place(c.src_kind, c.src_handle, c.src_offset, SPANKER_BUFFER_READ);
    if (!src)
        return tl::unexpected(src.error());
    auto dst = place(c.dst_kind, c.dst_handle, c.dst_offset, SPANKER_BUFFER_WRITE);
    if (!dst)
        return tl::unexpected(dst.error());
    return collective::collective_stage{.op = static_cast<spanker_session_op>(e.opcode),
                                        .dtype = c.dtype,
                                        .reduce = c.reduce,
                                        .root = e.root,
                                        .src = *src,
                                        .dst = *dst,
                                        .count = c.count};
}

result<collective::stage> drafter::transfer(const spanker_sqe& e)
{
    const spanker_sqe_transfer& t = e.transfer;
    const bool write = e.opcode == SPANKER_SOP_WRITE_TENSOR;
    auto tensor = place(SPANKER_KIND_TENSOR, t.tensor, t.tensor_offset, 0);
    if (!tensor)
        return tl::unexpected(tensor.error());
    auto memory = place(SPANKER_KIND_BUFFER, t.buffer, t.buffer_offset,
                        write ? SPANKER_BUFFER_READ : SPANKER_BUFFER_WRITE);
    if (!memory)
        return tl::unexpected(memory.error());
    return collective::transfer_stage{
        .write = write, .tensor = *tensor, .buffer = *memory, .bytes = t.bytes, .rank = t.card};
}

result<collective::stage> drafter::stage_of(const spanker_sqe& e)
{
    switch (e.opcode) {
    case SPANKER_SOP_NOP:
        return collective::nop_stage{};
    case SPANKER_SOP_MATMUL:
        return matmul(e);
    case SPANKER_SOP_ALL_REDUCE:
    case SPANKER_SOP_ALL_GATHER:
    case SPANKER_SOP_BROADCAST:
        return reduce_or_share(e);
    case SPANKER_SOP_WRITE_TENSOR:
    case SPANKER_SOP_READ_TENSOR:
        return transfer(e);
    default:
        return invalid(e, "it starts at once and cannot be LINKED or a BARRIER");
    }
}

result<void> drafter::add(const spanker_sqe& e)
{
    draft_.bad_entry = draft_.stage_count;
    if (auto good = check_entry(e); !good)
        return good;
    auto made = stage_of(e);
    if (!made) {
        error why = made.error();
        if (why.message.rfind(op_name(e.opcode), 0) != 0)
            why.message = std::string(op_name(e.opcode)) + ": " + why.message;
        return tl::unexpected(std::move(why));
    }
    draft_.stages[draft_.stage_count++] = *made;
    return {};
}

// Handles over one memory get a number, only then: a plan for separate buffers is kept for others.
void drafter::mark_aliases()
{
    for (std::uint32_t i = 1; i < draft_.object_count; i++)
        for (std::uint32_t j = 0; j < i; j++) {
            const buffer *a = draft_.objects[j].memory, *b = draft_.objects[i].memory;
            if (!a || !b || b->inode == 0 || a->inode != b->inode || a->device != b->device)
                continue;
            collective::object &first = draft_.shapes[j], &second = draft_.shapes[i];
            first.memory = second.memory = first.memory ? first.memory : j + 1;
            first.base = a->file_offset;
            second.base = b->file_offset;
            break;
        }
}

// A run that names nothing on cards uses what is left of the session's.
result<void> drafter::settle_cards()
{
    if (draft_.card_count != 0)
        return {};
    const plane_card* missing = nullptr;
    for (std::uint32_t number : owner_.cards) {
        const plane_card* card = cards_.find(number);
        if (card && card->ready())
            draft_.cards[draft_.card_count++] = number;
        else if (card)
            missing = card;
    }
    if (draft_.card_count != 0)
        return {};
    draft_.bad_entry = 0;
    return tl::unexpected(missing ? card_set::lost_error(*missing)
                                  : error{SPANKER_ERR_NO_SAILS, "no card is present"});
}

}  // namespace

result<void> check_entry(const spanker_sqe& e)
{
    if (e.opcode >= SPANKER_SOP_COUNT)
        return fail(SPANKER_ERR_INVALID, "unknown opcode " + std::to_string(e.opcode));
    if (e.flags & ~SPANKER_SQE_FLAGS)
        return invalid(e, "unknown flags " + std::to_string(e.flags));
    if (e.desc_bytes != 0)
        return invalid(e, "it takes no descriptor, desc_bytes must be 0");
    if (e.root != 0 && e.opcode != SPANKER_SOP_BROADCAST)
        return invalid(e, "root must be zero, only broadcast has one");
    return checks[e.opcode](e);
}

error run_too_long(std::uint32_t most)
{
    return {SPANKER_ERR_INVALID,
            "a linked run has more than " + std::to_string(most) + " entries; end it earlier"};
}

result<void> draft_run(run_draft& draft, session& owner, card_set& cards, const entry_queue& from,
                       std::uint32_t count)
{
    drafter d(draft, owner, cards);
    if (count > run_entries_max)
        return tl::unexpected(run_too_long(run_entries_max));
    for (std::uint32_t i = 0; i < count; i++)
        if (auto added = d.add(from[i].entry); !added)
            return added;
    d.mark_aliases();
    return d.settle_cards();
}

}  // namespace spanker::daemon::data
