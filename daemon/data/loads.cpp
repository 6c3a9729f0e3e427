// SPDX-License-Identifier: Apache-2.0
//
// The plane's half of loading weights: what the loader thread asks for.
#include <algorithm>
#include <memory>
#include <semaphore>

#include "daemon/collective/sharding.hpp"
#include "daemon/data/executor.hpp"
#include "daemon/data/objects.hpp"

namespace spanker::daemon::data {
namespace {

// Runs `what` on the plane thread and waits for its answer.
template <typename T>
T ask(executor& plane, std::function<T(executor&)> what)
{
    struct answer_slot {
        std::binary_semaphore there{0};
        std::optional<T> value;
    };
    auto slot = std::make_shared<answer_slot>();
    plane.post_waiting([slot, what = std::move(what)](executor& x) {
        slot->value.emplace(what(x));
        slot->there.release();
    });
    slot->there.acquire();
    return std::move(*slot->value);
}

tl::unexpected<error> cancelled_load()
{
    return fail(SPANKER_ERR_CANCELLED, "loading of the weights was cancelled");
}

}  // namespace

result<collective::object> executor::weights_shape(const load_job& job,
                                                   std::span<const std::uint32_t> numbers)
{
    const weights_options& how = job.how;
    const auto cards = static_cast<std::uint32_t>(numbers.size());
    if (how.n_out == 0 || how.k == 0 || how.n_out > ~std::uint32_t{0} ||
        how.k > ~std::uint32_t{0} || how.k % SPK_QK_K != 0)
        return fail(SPANKER_ERR_BAD_DIMS, "weights of n_out " + std::to_string(how.n_out) +
                                              " x k " + std::to_string(how.k) +
                                              ": both must be above 0 and below 2^32, and k a "
                                              "multiple of 256");
    if (collective::weight_row_bytes(how.k) > staging_bytes)
        return fail(SPANKER_ERR_BAD_DIMS, "k " + std::to_string(how.k) +
                                              ": a row may have at most " +
                                              std::to_string(staging_bytes) + " bytes");
    collective::sharding split = collective::sharding::rows;
    if (how.how) {
        split = *how.how;
    } else {
        auto choice = collective::choose_sharding(cards_.graph(), numbers, how.n_out, how.k, 1);
        if (!choice)
            return tl::unexpected(choice.error());
        split = choice->best;
    }
    return collective::describe_weights(
        split, how.n_out, how.k, cards, how.chainable,
        split == collective::sharding::whole ? weights_.emptiest(numbers) : 0);
}

void executor::load_weights(session_id id, std::shared_ptr<load_job> job)
{
    session* s = open_session(id, job->done);
    if (!s)
        return;
    if (s->weights.size() + s->loads_running >= s->weights.capacity())
        return answer_loop(
            job->done,
            fail_as<weights_info>(SPANKER_ERR_QUOTA, "the session has " +
                                                         std::to_string(s->weights.capacity()) +
                                                         " weights already; unload some"));
    job->cards = ready_cards(*s);
    if (job->cards.empty())
        return answer_loop(job->done,
                           fail_as<weights_info>(SPANKER_ERR_NO_SAILS, "no card is present"));
    auto shape = weights_shape(*job, job->cards);
    if (!shape)
        return answer_loop(job->done, result<weights_info>(tl::unexpected(shape.error())));
    job->shape = *shape;
    job->owner = id;
    job->uid = s->account->uid;
    if (auto fits = check_room(*job); !fits)
        return answer_loop(job->done, result<weights_info>(tl::unexpected(fits.error())));
    loads_.emplace(job->id, job);
    s->loads_running++;
    loads_waiting_.push_back(std::move(job));
    start_loads();
}

// Before a byte is read: a sparse file costs its maker nothing.
result<void> executor::check_room(const load_job& job)
{
    for (std::uint32_t rank = 0; rank < job.cards.size(); rank++) {
        const std::uint64_t part = collective::piece_bytes(job.shape, rank);
        const plane_card* card = cards_.find(job.cards[rank]);
        if (card && part > card->memory_bytes)
            return fail(SPANKER_ERR_NO_MEMORY, "the weights need " + std::to_string(part) +
                                                   " bytes on card " +
                                                   std::to_string(card->number) + ", which has " +
                                                   std::to_string(card->memory_bytes));
    }
    return {};
}

// nullptr: later, when one is idle.
result<executor::load_lane*> executor::idle_lane()
{
    for (load_lane& lane : lanes_)
        if (!lane.job)
            return &lane;
    if (lanes_.size() == load_lanes_max)
        return nullptr;
    auto made = loader::make(loader_port());
    if (!made && lanes_.empty())
        return tl::unexpected(made.error());
    if (!made)
        return nullptr;
    lanes_.push_back({std::move(*made), std::make_unique<worker>("spanker-load"), nullptr});
    return &lanes_.back();
}

void executor::start_loads()
{
    for (auto next = loads_waiting_.begin(); next != loads_waiting_.end();) {
        const bool busy = std::any_of(lanes_.begin(), lanes_.end(), [&](const load_lane& lane) {
            return lane.job && lane.job->uid == (*next)->uid;
        });
        const auto found = busy ? result<load_lane*>(nullptr) : idle_lane();
        if (found && !*found) {
            ++next;
            continue;
        }
        std::shared_ptr<load_job> job = std::move(*next);
        next = loads_waiting_.erase(next);
        if (!found)
            return finish_load(job, tl::unexpected(found.error()), nullptr);
        load_lane* lane = *found;
        lane->job = job.get();
        job->staging = lane->home->staging();
        lane->thread->post([home = lane->home.get(), job = std::move(job)] { home->run(job); });
    }
}

void executor::cancel_load(load_id id)
{
    const auto found = loads_.find(id);
    if (found == loads_.end())
        return;
    const std::shared_ptr<load_job> job = found->second;
    job->cancelled.store(true);
    if (std::erase(loads_waiting_, job) != 0)
        finish_load(job, cancelled_load(), nullptr);
}

// Answered now: the file of a client that is gone may never be read.
void executor::cancel_loads(session& s)
{
    std::vector<load_id> mine;
    for (const auto& [id, job] : loads_)
        if (job->owner == s.id && !job->answered)
            mine.push_back(id);
    for (const load_id id : mine) {
        const std::shared_ptr<load_job> job = loads_.at(id);
        cancel_load(id);
        if (loads_.count(id) != 0) {
            job->answered = true;
            answer_loop(job->done, result<weights_info>(cancelled_load()));
        }
    }
}

loader::port executor::loader_port()
{
    using weights = std::shared_ptr<resident_weights>;
    return {
        .find =
            [this](load_job& job, const digest_bytes& hash) {
                return ask<weights>(*this, [&job, hash](executor& x) {
                    return x.weights_.acquire({hash, job.shape, job.cards});
                });
            },
        .allocate =
            [this](load_job& job) {
                return ask<result<void>>(*this, [&job](executor& x) {
                    job.on_cards.shape = job.shape;
                    job.on_cards.cards = job.cards;
                    return x.allocate(job.on_cards);
                });
            },
        .upload =
            [this](load_job& job, load_chunk chunk, std::function<void(result<void>)> ended) {
                post_waiting([&job, chunk, ended](executor& x) {
                    x.uploads_.push_back({&job, chunk, ended});
                });
            },
        .commit =
            [this](load_job& job, const digest_bytes& hash) {
                return ask<weights>(*this, [&job, hash](executor& x) {
                    return x.weights_.insert({hash, job.shape, job.cards}, std::move(job.on_cards));
                });
            },
        .discard =
            [this](load_job& job) {
                ask<bool>(*this, [&job](executor& x) {
                    free_pieces(x.cards_, job.on_cards);
                    return true;
                });
            },
        .finish =
            [this](std::shared_ptr<load_job> job, result<weights_info> info, weights held) {
                post_waiting([job, info, held](executor& x) { x.finish_load(job, info, held); });
            },
        .progress =
            [this](std::shared_ptr<load_job> job, load_progress at) {
                post_waiting([job, at](executor& x) {
                    if (job->progress && !job->answered)
                        x.to_loop([job, at] { job->progress(at); });
                });
            },
    };
}

bool executor::upload_more()
{
    bool any = false;
    while (!uploads_.empty()) {
        const upload& next = uploads_.front();
        if (!start_upload(*next.job, next.chunk, next.ended))
            break;
        uploads_.pop_front();
        any = true;
    }
    return any;
}

// False: no room, try again. Everything else ends in `ended`.
bool executor::start_upload(load_job& job, const load_chunk& chunk,
                            const std::function<void(result<void>)>& ended)
{
    loose_batch batches[SPK_MAX_CARDS];
    spanker_work_item items[SPK_MAX_CARDS];
    std::size_t n = 0;
    if (auto whole = check_pieces(cards_, job.on_cards); !whole) {
        ended(whole);
        return true;
    }
    for (std::uint32_t rank = 0; rank < job.cards.size(); rank++) {
        const auto part = part_of(job.shape, rank, chunk);
        if (!part)
            continue;
        plane_card& card = cards_.at(job.on_cards.pieces[rank].card);
        auto from = buffer_handle(job.staging[chunk.buffer], card, queue_requests);
        if (!from) {
            ended(tl::unexpected(from.error()));
            return true;
        }
        items[n] = {
            .opcode = SPK_OP_DMA_IN,
            .wait_signal = SPK_NO_SIGNAL,
            .post_signal = SPK_NO_SIGNAL,
            .dst = {.handle = job.on_cards.pieces[rank].handle[queue_requests],
                    .pitch = part->card_pitch,
                    .offset = part->card_offset},
            .src = {.handle = *from, .pitch = part->staging_pitch, .offset = part->staging_offset}};
        items[n].rows = {.rows = part->rows, .row_bytes = part->row_bytes};
        batches[n] = {&card, std::span(&items[n], 1)};
        n++;
    }
    auto started = deck_.start_loose(std::span(batches, n), 0, [ended](flight& f) {
        if (!f.failed())
            return ended({});
        std::string what =
            f.failure.message.empty() ? spanker_error_text(f.failure.kind) : f.failure.message;
        if (f.failure.message.empty() && f.failure.card != SPANKER_NO_CARD)
            what = "card " + std::to_string(f.failure.card) + ": " + what;
        ended(fail(f.failure.kind, "loading of the weights: " + what));
    });
    return started && *started == start_result::started;
}

void executor::finish_load(std::shared_ptr<load_job> job, result<weights_info> info,
                           std::shared_ptr<resident_weights> held)
{
    loads_.erase(job->id);
    for (load_lane& lane : lanes_)
        if (lane.job == job.get())
            lane.job = nullptr;
    start_loads();
    session* s = find(job->owner);
    if (s)
        s->loads_running--;
    const bool wanted = s && !s->closing && !job->cancelled.load();
    if (info && !wanted) {
        weights_.release(held);
        info = cancelled_load();
    } else if (info) {
        for (std::uint32_t rank = 0; rank < job->cards.size(); rank++)
            if (held->on_cards.pieces[rank].bytes != 0)
                info->cards.push_back(job->cards[rank]);
        info->handle = s->weights.add(std::make_unique<weights_ref>(weights_ref{held}));
        s->counters->weights++;
    }
    if (!job->answered)
        answer_loop(job->done, std::move(info));
}

void executor::unload_weights(session_id id, std::uint64_t handle, reply<void> done)
{
    session* s = open_session(id, done, work::undoing);
    if (!s)
        return;
    auto found = s->weights.get(handle);
    if (!found)
        return answer_loop(done, result<void>(tl::unexpected(found.error())));
    auto ref = s->weights.take(handle);
    s->counters->weights--;
    weights_.release(ref->weights);
    answer_loop(done, result<void>());
}

}  // namespace spanker::daemon::data
