// SPDX-License-Identifier: Apache-2.0
//
// Buffers and tensors of sessions. Buffers are charged to the user by their
// declared length before anything is mapped: a sparse memfd costs its maker nothing.
#include "daemon/data/objects.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "daemon/collective/sharding.hpp"
#include "daemon/data/executor.hpp"
#include "daemon/data/memfd.hpp"
#include "daemon/os_error.hpp"

namespace spanker::daemon::data {
namespace {

result<std::unique_ptr<buffer>> make_buffer(int fd, const buffer_options& how,
                                            std::span<const file_of_card> files)
{
    if (auto good = check_operand_memfd(fd, how.offset, how.bytes, how.access); !good)
        return tl::unexpected(good.error());
    auto memory =
        guarded_map::map(fd, how.offset, how.bytes, how.access & SPANKER_BUFFER_WRITE, true);
    if (!memory)
        return tl::unexpected(memory.error());
    auto b = std::make_unique<buffer>();
    b->memory = std::move(*memory);
    b->access = how.access;
    b->shape = collective::describe_buffer(how.bytes);
    struct stat file = {};
    if (::fstat(fd, &file) != 0)
        return fail_os(errno, "cannot identify the memfd");
    b->device = file.st_dev;
    b->inode = file.st_ino;
    b->file_offset = how.offset;
    if (auto there = register_on(*b, files); !there)
        return tl::unexpected(there.error());
    return b;
}

}  // namespace

session* executor::find(session_id id) const
{
    const auto found = sessions_.find(id);
    return found == sessions_.end() ? nullptr : found->second.get();
}

// ---- buffers ----

void executor::register_buffer(session_id id, std::shared_ptr<unique_fd> memfd,
                               const buffer_options& how, reply<std::uint64_t> done)
{
    session* s = open_session(id, done);
    if (!s)
        return;
    if (s->buffers.size() + s->buffers_coming >= s->buffers.capacity())
        return answer_loop(done, fail_as<std::uint64_t>(SPANKER_ERR_QUOTA,
                                                        "the session has " +
                                                            std::to_string(s->buffers.capacity()) +
                                                            " buffers already; unregister one"));
    const std::uint64_t used = s->account->buffer_bytes, most = limits_.buffer_bytes_per_uid;
    if (s->account->uid != 0 && (used > most || how.bytes > most - used))
        return answer_loop(
            done, fail_as<std::uint64_t>(SPANKER_ERR_QUOTA,
                                         "registering " + std::to_string(how.bytes) +
                                             " bytes would pass the user's limit of " +
                                             std::to_string(most) + "; unregister buffers"));
    std::vector<file_of_card> files;
    for (const std::uint32_t number : ready_cards(*s)) {
        const plane_card& card = *cards_.find(number);
        files.push_back({card.index, card.epoch, card.queue[queue_requests].file});
    }
    s->account->buffer_bytes += how.bytes;
    s->counters->buffer_bytes += how.bytes;
    s->buffers_coming++;
    mapper_.post([this, id, memfd = std::move(memfd), how, files = std::move(files), done] {
        auto made = std::make_shared<result<std::unique_ptr<buffer>>>(
            make_buffer(memfd->get(), how, files));
        post_waiting([id, made, bytes = how.bytes, done](executor& x) {
            x.commit_buffer(id, std::move(*made), bytes, done);
        });
    });
}

void executor::commit_buffer(session_id id, result<std::unique_ptr<buffer>> made,
                             std::uint64_t bytes, const reply<std::uint64_t>& done)
{
    session& s = *find(id);  // buffers_coming keeps it
    s.buffers_coming--;
    if (!made || s.closing) {
        if (made)
            release_buffer(s, std::move(*made), nullptr);
        else {
            s.account->buffer_bytes -= bytes;
            s.counters->buffer_bytes -= bytes;
        }
        const error why = made ? error{SPANKER_ERR_CANCELLED, "the session ended"} : made.error();
        return answer_loop(done, result<std::uint64_t>(tl::unexpected(why)));
    }
    s.counters->buffers++;
    answer_loop(done, result<std::uint64_t>(s.buffers.add(std::move(*made))));
}

void executor::unregister_buffer(session_id id, std::uint64_t handle, reply<void> done)
{
    session* s = open_session(id, done, work::undoing);
    if (!s)
        return;
    auto found = s->buffers.get(handle);
    if (!found)
        return answer_loop(done, result<void>(tl::unexpected(found.error())));
    if ((*found)->in_use != 0)
        return answer_loop(
            done,
            fail_as<void>(SPANKER_ERR_BUSY, "buffer " + std::to_string(handle) +
                                                " is used by work in flight; wait for it first"));
    s->counters->buffers--;
    release_buffer(*s, s->buffers.take(handle), [done] { done({}); });
}

// Unregistered and unmapped by the worker; `after` runs on the loop.
void executor::release_buffer(session& s, std::unique_ptr<buffer> b, loop_call after)
{
    const std::uint64_t bytes = b->memory.bytes();
    s.account->buffer_bytes -= bytes;
    s.counters->buffer_bytes -= bytes;
    unmapping_++;
    std::shared_ptr<buffer> held(std::move(b));
    mapper_.post(
        [this, handles = registrations(*held, cards_), held, after = std::move(after)]() mutable {
            unregister(handles);
            handles.clear();
            held.reset();
            post_waiting([after = std::move(after)](executor& x) {
                x.unmapping_--;
                if (after)
                    x.to_loop(after);
            });
        });
}

// ---- tensors ----

std::vector<std::uint32_t> executor::ready_cards(const session& s) const
{
    std::vector<std::uint32_t> ready;
    for (const std::uint32_t number : s.cards)
        for (const auto& card : cards_.all())
            if (card->number == number && card->ready())
                ready.push_back(number);
    return ready;
}

// Weights that nobody refers to give way.
result<void> executor::allocate(card_object& object)
{
    auto made = allocate_pieces(cards_, object);
    while (!made && made.error().kind == SPANKER_ERR_NO_MEMORY && weights_.evict_one())
        made = allocate_pieces(cards_, object);
    if (!made)
        for (const std::uint32_t number : object.cards)
            look_for_loss(number);
    return made;
}

result<collective::object> tensor_shape(const tensor_options& how, std::uint32_t cards)
{
    if (how.group != 0)
        return fail(SPANKER_ERR_NO_OBJECT,
                    "no group " + std::to_string(how.group) + "; 0 means all cards of the session");
    if (how.layout >= SPANKER_LAYOUT_COUNT)
        return fail(SPANKER_ERR_INVALID, "unknown layout " + std::to_string(how.layout));
    if (how.dtype >= SPK_DTYPE_COUNT)
        return fail(SPANKER_ERR_INVALID, "unknown dtype " + std::to_string(how.dtype));
    if (how.shape.empty() || how.shape.size() > 2)
        return fail(SPANKER_ERR_BAD_DIMS,
                    "a tensor has 1 or 2 dimensions, not " + std::to_string(how.shape.size()));
    for (const std::uint64_t dimension : how.shape)
        if (dimension == 0)
            return fail(SPANKER_ERR_BAD_DIMS, "a dimension of the tensor is 0");
    // A vector is one row, but for row_shard, which cuts it.
    const bool column = how.shape.size() == 1 && how.layout == SPANKER_LAYOUT_ROW_SHARD;
    const std::uint64_t rows = how.shape.size() == 2 || column ? how.shape[0] : 1;
    const std::uint64_t cols = column ? 1 : how.shape.back();
    return collective::describe_tensor(static_cast<spanker_tensor_layout>(how.layout),
                                       static_cast<std::uint8_t>(how.dtype), rows, cols, cards);
}

void executor::alloc_tensor(session_id id, const tensor_options& how, reply<std::uint64_t> done)
{
    session* s = open_session(id, done);
    if (!s)
        return;
    if (s->tensors.full())
        return answer_loop(done, fail_as<std::uint64_t>(SPANKER_ERR_QUOTA,
                                                        "the session has " +
                                                            std::to_string(s->tensors.capacity()) +
                                                            " tensors already; free one"));
    auto tensor = std::make_unique<card_object>();
    tensor->cards = ready_cards(*s);
    if (tensor->cards.empty())
        return answer_loop(done,
                           fail_as<std::uint64_t>(SPANKER_ERR_NO_SAILS, "no card is present"));
    auto shape = tensor_shape(how, static_cast<std::uint32_t>(tensor->cards.size()));
    if (!shape)
        return answer_loop(done, result<std::uint64_t>(tl::unexpected(shape.error())));
    tensor->shape = *shape;
    if (auto there = allocate(*tensor); !there)
        return answer_loop(done, result<std::uint64_t>(tl::unexpected(there.error())));
    s->counters->tensors++;
    s->counters->card_bytes += tensor->card_bytes;
    answer_loop(done, result<std::uint64_t>(s->tensors.add(std::move(tensor))));
}

void executor::free_tensor(session_id id, std::uint64_t handle, reply<void> done)
{
    session* s = open_session(id, done, work::undoing);
    if (!s)
        return;
    auto found = s->tensors.get(handle);
    if (!found)
        return answer_loop(done, result<void>(tl::unexpected(found.error())));
    if ((*found)->in_use != 0)
        return answer_loop(
            done,
            fail_as<void>(SPANKER_ERR_BUSY, "tensor " + std::to_string(handle) +
                                                " is used by work in flight; wait for it first"));
    auto tensor = s->tensors.take(handle);
    s->counters->tensors--;
    s->counters->card_bytes -= tensor->card_bytes;
    free_pieces(cards_, *tensor);
    answer_loop(done, result<void>());
}

// ---- the portable form ----

static std::uint32_t longest_run(std::span<const spanker_sqe> entries)
{
    std::uint32_t longest = 0, length = 0;
    for (const spanker_sqe& e : entries) {
        longest = std::max(longest, ++length);
        length = e.flags & SPANKER_SQE_LINKED ? length : 0;
    }
    return longest;
}

void executor::submit(session_id id, std::vector<spanker_sqe> entries,
                      reply<std::vector<entry_result>> done)
{
    using results = std::vector<entry_result>;
    session* s = open_session(id, done);
    if (!s)
        return;
    if (entries.empty())
        return answer_loop(done, result<results>(results()));
    if (entries.back().flags & SPANKER_SQE_LINKED)
        return answer_loop(done, fail_as<results>(SPANKER_ERR_INVALID,
                                                  "the last entry of a call cannot be linked"));
    if (s->portable_accepted + entries.size() > limits_.portable_in_flight)
        return answer_loop(
            done, fail_as<results>(SPANKER_ERR_AGAIN,
                                   "more than " + std::to_string(limits_.portable_in_flight) +
                                       " entries would be in flight; wait for replies"));
    if (longest_run(entries) > run_entries_max)
        return answer_loop(done, result<results>(tl::unexpected(run_too_long(run_entries_max))));
    auto* call = new portable_call{std::move(done), results(entries.size()),
                                   static_cast<std::uint32_t>(entries.size())};  // deliver_ frees
    s->portable_accepted += static_cast<std::uint32_t>(entries.size());
    for (std::uint32_t i = 0; i < entries.size(); i++)
        accept(*s, s->portable_queue, {.entry = entries[i], .call = call, .index = i});
}

}  // namespace spanker::daemon::data
