// SPDX-License-Identifier: Apache-2.0
#include "daemon/embedded/file.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <string>

#include "daemon/clock.hpp"
#include "daemon/refusals.hpp"

namespace spanker::daemon::embedded {

namespace {

const spk_queue_ops queue_ops = {
    .put = [](void*, void* what) { static_cast<object*>(what)->put(); },
    .sq_head =
        [](void* file) {
            const std::uint32_t head = static_cast<embedded_file*>(file)->queue().rings().sq_head();
            return head == ~0u ? -1 : static_cast<s32>(head & 0xffff);
        },
    .stands = [](void* file) { return static_cast<embedded_file*>(file)->card().stands(); },
    .batch_ended = [](void*, u64) {},
};

result<std::uint32_t> choose_depth(const driven_card& card, std::uint32_t asked)
{
    const std::uint32_t most = card.caps().queue_depth;
    if (asked == 0)
        return most;
    if (spk_ring_check_depth(asked) != 0 || asked > most)
        return tl::unexpected(refusals::depth(card.number(), most, asked));
    return asked;
}

}  // namespace

// ---- open and close ----

embedded_file::embedded_file(std::shared_ptr<machine> home, driven_card& card)
    : home_(std::move(home)), card_(card), generation_(card.generation()),
      records_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    env_ = {.ports = card.caps().ports,
            .channels = card.caps().channels,
            .signals = card.caps().signals,
            .features = card.caps().features,
            .tensor = find_tensor,
            .buffer = find_buffer,
            .group = find_group,
            .context = this};
}

result<std::unique_ptr<card_file>> embedded_file::open(const std::shared_ptr<machine>& home,
                                                       driven_card& card, std::uint32_t depth)
{
    if (const int err = card.gate(card.generation()))
        return tl::unexpected(refusals::gate(card.number(), err));
    auto chosen = choose_depth(card, depth);
    if (!chosen)
        return tl::unexpected(chosen.error());
    std::unique_ptr<embedded_file> made(new embedded_file(home, card));
    made->number_ = card.take_queue(*made);
    if (made->number_ == 0)
        return tl::unexpected(refusals::no_queue_left(card.number(), card.caps().queues - 1));
    const queue_place place{home->fabric.get(), card.number(), made->number_,
                            card.vector_of(made->number_)};
    if (!made->records_fd_ ||
        !made->queue_.make(home->bus, place, *chosen, queue_ops, made.get())) {
        card.files[made->number_] = nullptr;
        made->number_ = 0;
        return fail(SPANKER_ERR_NO_MEMORY, "no memory for a queue of depth " +
                                               std::to_string(*chosen) + "; ask for a smaller one");
    }
    made->queue_.start();
    return std::unique_ptr<card_file>(std::move(made));
}

embedded_file::~embedded_file()
{
    if (number_ == 0)
        return;  // open() failed, and holds the lock
    stop_queue();
    const std::lock_guard hold(home_->lock);
    spk_batch_fail_all(&queue_.batches(), -ECANCELED, SPANKER_CARD_CANCELLED);
    card_.files[number_] = nullptr;
    for (group_object* group : home_->groups)
        std::erase(group->files, this);
    tensors_.clear([](tensor* what) { what->put(); });
    buffers_.clear([](buffer* what) { what->put(); });
}

// After this the card touches no memory for this file.
void embedded_file::stop_queue()
{
    const auto alive = [this] { return card_.gate(generation_) == 0; };
    {
        const std::lock_guard hold(home_->lock);
        if (!alive())
            return;
        queue_.close();
    }
    const auto stopped = [&] { return !alive() || queue_.rings().is_off(); };
    const bool done = home_->advance_until(stopped);
    const std::lock_guard hold(home_->lock);
    if (!done && alive())
        card_.in_trouble(monotonic_ns());  // it does not stop
}

result<void> embedded_file::check_gate() const
{
    if (const int err = card_.gate(generation_))
        return tl::unexpected(refusals::gate(card_.number(), err));
    return {};
}

result<spanker_get_info> embedded_file::info()
{
    const std::lock_guard hold(home_->lock);
    if (auto open = check_gate(); !open)
        return tl::unexpected(open.error());
    return card_.info();
}

// ---- tensors ----

result<std::uint32_t> embedded_file::tensor_alloc(std::uint64_t bytes)
{
    {
        const std::lock_guard hold(home_->lock);
        home_->exports.sweep();
    }
    spk_block block{};
    int err = -EAGAIN;
    const auto settled = [&] {
        if ((err = card_.gate(generation_)) != 0)
            return true;
        err = card_.alloc(bytes, block);
        if (err != -EAGAIN)
            return true;
        card_.zero_more();
        return !card_.cleaning();
    };
    home_->advance_until(settled);
    const std::lock_guard hold(home_->lock);
    if (auto open = check_gate(); !open)
        return tl::unexpected(open.error());
    if (err == -EINVAL)
        return tl::unexpected(refusals::empty_tensor());
    if (err != 0)
        return tl::unexpected(refusals::no_card_memory(card_.number(), bytes));
    auto* made = new tensor(card_, block, bytes, generation_);
    const std::uint32_t handle = tensors_.add(made);
    if (handle == 0) {
        made->put();
        return tl::unexpected(refusals::handles_used_up("tensor"));
    }
    return handle;
}

result<void> embedded_file::tensor_free(std::uint32_t handle)
{
    const std::lock_guard hold(home_->lock);
    if (auto open = check_gate(); !open)
        return open;
    tensor* what = tensors_.remove(handle);
    if (!what)
        return tl::unexpected(refusals::no_handle("tensor", handle));
    what->put();
    return {};
}

result<unique_fd> embedded_file::tensor_export(std::uint32_t handle)
{
    const std::lock_guard hold(home_->lock);
    if (auto open = check_gate(); !open)
        return tl::unexpected(open.error());
    tensor* what = tensors_.find(handle);
    if (!what)
        return tl::unexpected(refusals::no_handle("tensor", handle));
    return home_->exports.add(*what);
}

result<std::uint32_t> embedded_file::tensor_import(int fd)
{
    const std::lock_guard hold(home_->lock);
    if (auto open = check_gate(); !open)
        return tl::unexpected(open.error());
    auto found = home_->exports.find(fd);
    if (!found)
        return tl::unexpected(found.error());
    tensor& what = **found;
    if (&what.card() != &card_)
        return fail(SPANKER_ERR_INVALID,
                    "the tensor lies on card " + std::to_string(what.card().number()) +
                        " and cannot be imported on card " + std::to_string(card_.number()));
    if (what.generation() != generation_)
        return tl::unexpected(refusals::gate(card_.number(), -ESTALE));
    const std::uint32_t handle = tensors_.add(&what);
    if (handle == 0)
        return tl::unexpected(refusals::handles_used_up("tensor"));
    what.hold();
    return handle;
}

// ---- buffers ----

result<std::uint32_t> embedded_file::buffer_register(const buffer_spec& spec)
{
    {
        const std::lock_guard hold(home_->lock);
        if (auto open = check_gate(); !open)
            return tl::unexpected(open.error());
    }
    auto made = buffer::make(home_->bus, card_.number(), spec);  // maps memory: no lock held
    if (!made)
        return tl::unexpected(made.error());
    const std::lock_guard hold(home_->lock);
    const std::uint32_t handle = buffers_.add(*made);
    if (handle == 0) {
        (*made)->put();
        return tl::unexpected(refusals::handles_used_up("buffer"));
    }
    return handle;
}

result<void> embedded_file::buffer_unregister(std::uint32_t handle)
{
    const std::lock_guard hold(home_->lock);
    buffer* what = buffers_.find(handle);
    if (!what) {
        if (auto open = check_gate(); !open)
            return open;
        return tl::unexpected(refusals::no_handle("buffer", handle));
    }
    if (what->users() > 1)
        queue_.reap();  // what used it may be done
    if (what->users() > 1)
        return tl::unexpected(refusals::buffer_in_use(handle));
    buffers_.remove(handle);
    what->put();
    return {};
}

// ---- work ----

int embedded_file::find_tensor(void* self, u32 handle, spk_tensor_ref* ref)
{
    tensor* what = static_cast<embedded_file*>(self)->tensors_.find(handle);
    if (!what)
        return -ENOENT;
    what->hold();
    *ref = {
        .object = static_cast<object*>(what), .address = what->address(), .bytes = what->bytes()};
    return 0;
}

int embedded_file::find_buffer(void* self, u32 handle, spk_buffer_ref* ref)
{
    buffer* what = static_cast<embedded_file*>(self)->buffers_.find(handle);
    if (!what)
        return -ENOENT;
    what->hold();
    *ref = {.object = static_cast<object*>(what),
            .sg = &what->list(),
            .bytes = what->bytes(),
            .access = what->access()};
    return 0;
}

int embedded_file::find_group(void* self, u32 domain, spk_group_ref* ref)
{
    auto* file = static_cast<embedded_file*>(self);
    for (group_object* group : file->home_->groups) {
        if (group->domain != domain || !group->has(*file))
            continue;
        group->hold();
        *ref = {.object = static_cast<object*>(group),
                .domain = domain,
                .cards = group->cards,
                .ports = {}};
        for (std::uint32_t channel = 0; channel < SPK_MAX_CHANNELS; channel++)
            ref->ports[channel] =
                spk_group_ports(&file->home_->channels, domain, file->card_.number(), channel);
        return 0;
    }
    return -ENOENT;
}

error embedded_file::refusal(int err, const spk_submission& submission,
                             std::span<const spanker_work_item> items) const
{
    if (submission.out_fault.why)
        return refusals::item(err, submission.out_fault, items);
    return err == -EAGAIN ? refusals::queue_full() : refusals::batch_size(depth(), items.size());
}

result<std::uint64_t> embedded_file::submit(std::span<const spanker_work_item> items,
                                            std::uint64_t cookie)
{
    const std::lock_guard hold(home_->lock);
    if (auto open = check_gate(); !open)
        return tl::unexpected(open.error());
    const std::uint64_t default_ns = home_->default_deadline_ns;
    const std::uint64_t now_ns = monotonic_ns();
    spk_submission submission{};
    submission.items = items.data();
    submission.count = static_cast<u32>(std::min<std::size_t>(items.size(), ~u32{0}));
    submission.cookie = cookie;
    submission.default_deadline_ns = default_ns ? now_ns + default_ns : 0;
    if (const int err = queue_.submit(env_, submission))
        return tl::unexpected(refusal(err, submission, items));
    home_->deadline_at(spk_deadline_next_ns(&queue_.batches().deadlines));
    home_->deadline_at(now_ns + card_.look_interval_ns());
    return submission.out_seq;
}

std::size_t embedded_file::read(std::span<spanker_record> records)
{
    if (card_.gate(generation_) == 0) {
        if (card_.caps().vectors >= card_.caps().queues)
            home_->bus.take_vectors(card_.number(), 1u << queue_.rings().vector());
        queue_.reap();
    }
    const auto most = static_cast<u32>(std::min<std::size_t>(records.size(), ~u32{0}));
    const std::size_t count = spk_batch_read(&queue_.batches(), records.data(), most);
    if (signalled_ || spk_batch_unread(&queue_.batches()) != 0)
        update_fd();
    return count;
}

std::size_t embedded_file::poll(std::span<spanker_record> records)
{
    std::size_t count = 0;
    const auto any = [&] { return (count = read(records)) != 0 || records.empty(); };
    for (;;) {
        {
            const std::lock_guard hold(home_->lock);
            if (any())
                return count;
        }
        if (!home_->advance() && !home_->event_is_later())
            continue;
        const std::lock_guard hold(home_->lock);
        any();
        return count;
    }
}

result<void> embedded_file::cancel(std::uint64_t seq)
{
    const std::lock_guard hold(home_->lock);
    if (auto open = check_gate(); !open)
        return open;
    queue_.reap();
    if (spk_batch_cancel(&queue_.batches(), seq))
        return tl::unexpected(refusals::not_in_flight(seq));
    card_.issue_aborts(monotonic_ns());
    home_->deadline_at(0);
    return {};
}

result<void> embedded_file::cancel_all()
{
    const std::lock_guard hold(home_->lock);
    if (auto open = check_gate(); !open)
        return open;
    queue_.reap();
    spk_batch_cancel_all(&queue_.batches());
    card_.issue_aborts(monotonic_ns());
    home_->deadline_at(0);
    return {};
}

// ---- the descriptor ----

int embedded_file::fd() const
{
    const std::lock_guard hold(home_->lock);
    watched_ = true;
    update_fd();
    return records_fd_.get();
}

void embedded_file::update_fd() const
{
    const bool unread = spk_batch_unread(&queue_.core().batches) != 0;
    if (!watched_ || unread == signalled_)
        return;
    eventfd_t count;
    if (unread)
        (void)::eventfd_write(records_fd_.get(), 1);
    else
        (void)::eventfd_read(records_fd_.get(), &count);
    signalled_ = unread;
}

}  // namespace spanker::daemon::embedded
