// SPDX-License-Identifier: Apache-2.0
#include "daemon/session_bus.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "daemon/clock.hpp"
#include "daemon/descriptors.hpp"
#include "daemon/option_reader.hpp"
#include "daemon/os_error.hpp"
#include "daemon/private_path.hpp"

namespace spanker::daemon {

namespace {

// Above this a load is a job and not a late reply.
constexpr std::uint64_t job_bytes = 64u << 20;

// A descriptor of the message, ours to keep.
result<unique_fd> keep_fd(int fd)
{
    unique_fd kept(fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!kept)
        return fail_os(errno, "no descriptors left; close others or raise LimitNOFILE");
    if (auto enough = keep_reserve(kept.get()); !enough)
        return tl::unexpected(enough.error());
    return kept;
}

// Calls without options yet still take the argument, and refuse every key.
result<void> no_options(sd_bus_message* message, const char* method)
{
    auto values = read_options(message);
    if (!values)
        return in_method(method, values.error());
    if (auto r = parse_none(*values); !r)
        return in_method(method, r.error());
    return {};
}

// What a call's end means to others, beside its answer.
using effect = std::function<void()>;

reply<std::uint64_t> answer_handle(sd_bus_message* message, effect then = {})
{
    return [call = pending_call(message), then](result<std::uint64_t> handle) {
        if (then)
            then();
        if (handle)
            call.succeed("t", *handle);
        else
            call.fail(handle.error());
    };
}

reply<void> answer_nothing(sd_bus_message* message, effect then = {})
{
    return [call = pending_call(message), then](result<void> done) {
        if (then)
            then();
        if (done)
            call.succeed();
        else
            call.fail(done.error());
    };
}

// How much a load moves, without overflow: what does not fit is refused by the plane anyway.
std::uint64_t packed_bytes(const weights_options& what)
{
    std::uint64_t blocks, bytes;
    if (__builtin_mul_overflow(what.n_out, what.k / SPK_QK_K, &blocks) ||
        __builtin_mul_overflow(blocks, std::uint64_t{SPK_Q4_K_BLOCK_BYTES}, &bytes))
        return 0;
    return bytes;
}

// The parser names the operation, which the method's own name says as well.
error without_op(error what, std::uint8_t op)
{
    const std::string prefix = fmt::format("{}: ", op_name(op));
    if (what.message.rfind(prefix, 0) == 0)
        what.message.erase(0, prefix.size());
    return what;
}

// What a person can do about it.
const char* cure_of(spanker_error_kind kind)
{
    switch (kind) {
    case SPANKER_ERR_LINK_DOWN:
    case SPANKER_ERR_LINK_ERROR:
        return "check its cable; requests go another way once the link is seen down";
    case SPANKER_ERR_CARD_FAILED:
    case SPANKER_ERR_HOST_FAULT:
        return "reset the card";
    case SPANKER_ERR_CARD_RESET:
        return "make its tensors and weights again";
    case SPANKER_ERR_TIMEOUT:
        return "allow more time with deadline_ns";
    default:
        return nullptr;
    }
}

// The data plane knows cards and ports; people know links by name, and want to know what to do.
std::string sentence_of(const entry_result& entry, const session_services& shared)
{
    std::string text = entry.message;
    if (entry.cqe.link != SPANKER_NO_LINK)
        if (auto name = shared.link_at(entry.cqe.link >> 8, entry.cqe.link & 0xff); !name.empty())
            text += fmt::format(", link {}", name);
    if (const char* cure = cure_of(static_cast<spanker_error_kind>(entry.cqe.kind)))
        text += fmt::format("; {}", cure);
    return text;
}

error problem_of(const entry_result& entry, const session_services& shared)
{
    const auto kind = entry.cqe.kind ? static_cast<spanker_error_kind>(entry.cqe.kind)
                                     : spanker_errno_kind(entry.cqe.res);
    return {kind, sentence_of(entry, shared), entry.cqe.card_status, entry.cqe.detail};
}

// As the plane describes it, with the whole sentence.
options describe(entry_result entry, const session_services& shared)
{
    if (entry.cqe.res < 0)
        entry.message = sentence_of(entry, shared);
    return describe_result(entry);
}

}  // namespace

std::string session_bus::path_of(session_id id)
{
    return fmt::format("{}/sessions/{}", private_path, id);
}

// ---- objects ----

result<void> session_bus::register_buffer(sd_bus_message* message)
{
    int memfd = -1;
    buffer_options what;
    const char* access = nullptr;
    if (auto r =
            check(sd_bus_message_read(message, "htts", &memfd, &what.offset, &what.bytes, &access),
                  "reading RegisterBuffer");
        !r)
        return r;
    if (auto r = no_options(message, "RegisterBuffer"); !r)
        return r;
    auto bits = parse_access(access);
    if (!bits)
        return in_method("RegisterBuffer", bits.error());
    what.access = *bits;
    auto kept = keep_fd(memfd);
    if (!kept)
        return tl::unexpected(kept.error());
    shared_.data->register_buffer(session_.id, std::move(*kept), what, answer_handle(message));
    return {};
}

result<void> session_bus::unregister_buffer(sd_bus_message* message)
{
    std::uint64_t buffer = 0;
    if (auto r = check(sd_bus_message_read(message, "t", &buffer), "reading UnregisterBuffer"); !r)
        return r;
    shared_.data->unregister_buffer(session_.id, buffer, answer_nothing(message));
    return {};
}

result<void> session_bus::alloc_tensor(sd_bus_message* message)
{
    std::uint64_t group = 0;
    const char *layout = nullptr, *dtype = nullptr;
    const void* shape = nullptr;
    std::size_t bytes = 0;
    if (auto r = check(sd_bus_message_read(message, "tss", &group, &layout, &dtype),
                       "reading AllocTensor");
        !r)
        return r;
    if (auto r = check(sd_bus_message_read_array(message, 't', &shape, &bytes), "reading a shape");
        !r)
        return r;
    if (auto r = no_options(message, "AllocTensor"); !r)
        return r;
    if (group > ~std::uint32_t{0})
        return fail(SPANKER_ERR_NO_OBJECT, fmt::format("AllocTensor: there is no group {}", group));
    auto layout_number = parse_layout(layout);
    if (!layout_number)
        return in_method("AllocTensor", layout_number.error());
    auto dtype_number = parse_dtype(dtype);
    if (!dtype_number)
        return in_method("AllocTensor", dtype_number.error());
    tensor_options what{.group = static_cast<std::uint32_t>(group),
                        .layout = *layout_number,
                        .dtype = *dtype_number,
                        .shape = {}};
    auto* first = static_cast<const std::uint64_t*>(shape);
    what.shape.assign(first, first + bytes / sizeof *first);
    shared_.data->alloc_tensor(session_.id, std::move(what),
                               answer_handle(message, shared_.memory_changed));
    return {};
}

result<void> session_bus::free_tensor(sd_bus_message* message)
{
    std::uint64_t tensor = 0;
    if (auto r = check(sd_bus_message_read(message, "t", &tensor), "reading FreeTensor"); !r)
        return r;
    shared_.data->free_tensor(session_.id, tensor, answer_nothing(message, shared_.memory_changed));
    return {};
}

// ---- weights ----

result<void> session_bus::load_weights(sd_bus_message* message)
{
    int file = -1;
    if (auto r = check(sd_bus_message_read(message, "h", &file), "reading LoadWeights"); !r)
        return r;
    auto values = read_options(message);
    if (!values)
        return in_method("LoadWeights", values.error());
    auto what = parse_weights(*values);
    if (!what)
        return in_method("LoadWeights", what.error());
    auto kept = keep_fd(file);
    if (!kept)
        return tl::unexpected(kept.error());
    if (what->as_job || packed_bytes(*what) > job_bytes)
        return load_as_job(message, std::move(*kept), *what);
    shared_.data->load_weights(
        session_.id, std::move(*kept), *what, {},
        [call = pending_call(message), &shared = shared_](result<weights_info> loaded) {
            shared.memory_changed();
            if (!loaded)
                return call.fail(loaded.error());
            sd_bus_message* reply = call.reply();
            if (reply && sd_bus_message_append(reply, "to", loaded->handle, "/") >= 0)
                append_options(reply, describe_weights(*loaded));
            call.send(reply);
        });
    return {};
}

result<void> session_bus::load_as_job(sd_bus_message* message, unique_fd file,
                                      const weights_options& what)
{
    auto load = std::make_shared<load_id>(0);
    auto made =
        shared_.work.start("load-weights", session_.owner, true,
                           [this_plane = shared_.data, load] { this_plane->cancel_load(*load); });
    if (!made)
        return tl::unexpected(made.error());
    const job_id id = (*made)->id;
    auto object = shared_.job_objects.make(**made, message, false);
    if (!object) {
        shared_.work.cancel(id, object.error().message);
        return tl::unexpected(object.error());
    }
    pending_call call(message);
    sd_bus_message* reply = call.reply();
    if (reply &&
        sd_bus_message_append(reply, "to", std::uint64_t{0}, (*object)->path().c_str()) >= 0)
        append_options(reply, {});
    call.send(reply);
    *load = shared_.data->load_weights(
        session_.id, std::move(file), what,
        [&work = shared_.work, id](const load_progress& now) {
            const double share = now.total_bytes ? static_cast<double>(now.done_bytes) /
                                                       static_cast<double>(now.total_bytes)
                                                 : 0;
            work.progress(id, share, now.stage);
        },
        [&work = shared_.work, id, session = session_.id,
         &shared = shared_](result<weights_info> loaded) {
            shared.memory_changed();
            if (!loaded)
                return work.finish(id, tl::unexpected(loaded.error()));
            if (!work.runs(
                    id))  // cancelled while the answer was on its way: nobody knows the handle
                return shared.data->unload_weights(session, loaded->handle, [](result<void>) {});
            options outcome = describe_weights(*loaded);
            outcome.insert(outcome.begin(), {"weights", loaded->handle});
            work.finish(id, std::move(outcome));
        });
    return {};
}

result<void> session_bus::unload_weights(sd_bus_message* message)
{
    std::uint64_t weights = 0;
    if (auto r = check(sd_bus_message_read(message, "t", &weights), "reading UnloadWeights"); !r)
        return r;
    shared_.data->unload_weights(session_.id, weights,
                                 answer_nothing(message, shared_.memory_changed));
    return {};
}

// ---- requests ----

result<void> session_bus::submit(sd_bus_message* message)
{
    if (auto r = check(sd_bus_message_enter_container(message, 'a', "a{sv}"), "reading Submit"); !r)
        return r;
    std::vector<spanker_sqe> entries;
    while (sd_bus_message_at_end(message, false) == 0) {
        if (entries.size() >= shared_.most_entries)
            return fail(SPANKER_ERR_QUOTA, fmt::format("Submit: more than {} entries in one call",
                                                       shared_.most_entries));
        const std::string where = fmt::format("Submit: entry {}", entries.size());
        auto values = read_options(message);
        if (!values)
            return in_method(where, values.error());
        auto entry = parse_request(*values, monotonic_ns());
        if (!entry)
            return in_method(where, entry.error());
        entries.push_back(*entry);
    }
    shared_.data->submit(
        session_.id, std::move(entries),
        [call = pending_call(message), &shared = shared_](result<std::vector<entry_result>> done) {
            if (!done)
                return call.fail(done.error());
            sd_bus_message* reply = call.reply();
            if (reply && sd_bus_message_open_container(reply, 'a', "a{sv}") >= 0) {
                for (const entry_result& one : *done)
                    append_options(reply, describe(one, shared));
                sd_bus_message_close_container(reply);
            }
            call.send(reply);
        });
    return {};
}

template <std::uint8_t Op>
result<void> session_bus::submit_one(sd_bus_message* message)
{
    return run_one(message, Op);
}

result<void> session_bus::run_one(sd_bus_message* message, std::uint8_t op)
{
    const char* method = sd_bus_message_get_member(message);
    auto values = read_options(message);
    if (!values)
        return in_method(method, values.error());
    auto entry = parse_request(op, *values, monotonic_ns());
    if (!entry)
        return in_method(method, without_op(entry.error(), op));
    shared_.data->submit(
        session_.id, {*entry},
        [call = pending_call(message), &shared = shared_](result<std::vector<entry_result>> done) {
            if (!done)
                return call.fail(done.error());
            const entry_result& one = done->front();
            if (one.cqe.res < 0)
                return call.fail(problem_of(one, shared));
            sd_bus_message* reply = call.reply();
            if (reply)
                append_options(reply, describe_result(one));
            call.send(reply);
        });
    return {};
}

result<void> session_bus::close(sd_bus_message* message)
{
    pending_call(message).succeed();
    shared_.all.close(session_.id, "closed by its client");
    return {};
}

const sd_bus_vtable session_bus::vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS(
        "RegisterBuffer",
        SD_BUS_ARGS("h", memfd, "t", offset, "t", length, "s", access, "a{sv}", options),
        SD_BUS_RESULT("t", buffer), bus_method<&session_bus::register_buffer>,
        SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("UnregisterBuffer", SD_BUS_ARGS("t", buffer), SD_BUS_NO_RESULT,
                            bus_method<&session_bus::unregister_buffer>,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(
        "AllocTensor",
        SD_BUS_ARGS("t", group, "s", layout, "s", dtype, "at", shape, "a{sv}", options),
        SD_BUS_RESULT("t", tensor), bus_method<&session_bus::alloc_tensor>,
        SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("FreeTensor", SD_BUS_ARGS("t", tensor), SD_BUS_NO_RESULT,
                            bus_method<&session_bus::free_tensor>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(
        "ReadTensor", SD_BUS_ARGS("a{sv}", request), SD_BUS_RESULT("a{sv}", reply),
        bus_method<&session_bus::submit_one<SPANKER_SOP_READ_TENSOR>>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(
        "WriteTensor", SD_BUS_ARGS("a{sv}", request), SD_BUS_RESULT("a{sv}", reply),
        bus_method<&session_bus::submit_one<SPANKER_SOP_WRITE_TENSOR>>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("LoadWeights", SD_BUS_ARGS("h", file, "a{sv}", options),
                            SD_BUS_RESULT("t", weights, "o", job, "a{sv}", info),
                            bus_method<&session_bus::load_weights>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("UnloadWeights", SD_BUS_ARGS("t", weights), SD_BUS_NO_RESULT,
                            bus_method<&session_bus::unload_weights>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Submit", SD_BUS_ARGS("aa{sv}", entries),
                            SD_BUS_RESULT("aa{sv}", replies), bus_method<&session_bus::submit>,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("MatMul", SD_BUS_ARGS("a{sv}", request), SD_BUS_RESULT("a{sv}", reply),
                            bus_method<&session_bus::submit_one<SPANKER_SOP_MATMUL>>,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(
        "AllReduce", SD_BUS_ARGS("a{sv}", request), SD_BUS_RESULT("a{sv}", reply),
        bus_method<&session_bus::submit_one<SPANKER_SOP_ALL_REDUCE>>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(
        "AllGather", SD_BUS_ARGS("a{sv}", request), SD_BUS_RESULT("a{sv}", reply),
        bus_method<&session_bus::submit_one<SPANKER_SOP_ALL_GATHER>>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS(
        "Broadcast", SD_BUS_ARGS("a{sv}", request), SD_BUS_RESULT("a{sv}", reply),
        bus_method<&session_bus::submit_one<SPANKER_SOP_BROADCAST>>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Close", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT,
                            bus_method<&session_bus::close>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

// ---- all faces ----

session_faces::session_faces(session_services& shared) : shared_(shared)
{
    sd_bus_slot* slot = nullptr;
    sd_bus_add_fallback_vtable(shared.bus, &slot, fmt::format("{}/sessions", private_path).c_str(),
                               SPANKER_INTERFACE("Session"), session_bus::vtable, find, this);
    gate_.reset(slot);
}

void session_faces::add(session& which)
{
    faces_[which.id] = std::make_unique<session_bus>(shared_, which);
}

int session_faces::find(sd_bus* bus, const char* path, const char*, void* userdata, void** found,
                        sd_bus_error* error)
{
    auto* self = static_cast<session_faces*>(userdata);
    auto id = private_object_id(path, "sessions");
    auto face = id ? self->faces_.find(*id) : self->faces_.end();
    if (face == self->faces_.end())
        return 0;
    return admit_owner(bus, face->second->what().owner.sender, face->second.get(), found, error);
}

}  // namespace spanker::daemon
