// SPDX-License-Identifier: Apache-2.0
//
// The grammar of ioctls: one function a verb that asks as a program would, or nearly, and the table.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fuzz_verb.hpp"

namespace fuzz {

namespace {

#define OUT(type, member) \
    range { offsetof(type, member), offsetof(type, member) + sizeof(type::member) }

template <typename T>
T& as(std::uint8_t* memory)
{
    return *reinterpret_cast<T*>(memory);
}
template <typename T>
const T& as(const std::uint8_t* memory)
{
    return *reinterpret_cast<const T*>(memory);
}

template <typename Pool>
void remember(thread& t, Pool& where, std::uint32_t handle)
{
    where[t.draw.below(pool)] = handle;
}

void remember_fd(thread& t, std::array<std::atomic<int>, pool>& where, int fd)
{
    if (const int old = where[t.draw.below(pool)].exchange(fd); old >= 0)
        ::close(old);
}

// ---- one function a verb: what a program would ask ----

void fill_nothing(thread&, slot&, std::uint8_t*) {}
void done_nothing(thread&, slot&, const std::uint8_t*) {}

void fill_queue(thread& t, slot&, std::uint8_t* m)
{
    auto& ask = as<spanker_queue_create>(m);
    ask.depth = t.draw.of<std::uint32_t>({16, 16, 16, 2, 64, 1024, 4096, 0, 1, 3, 1u << 31, ~0u});
    ask.records = t.draw.of<std::uint32_t>({0, 0, 0, 2, 64, 3, 1u << 20, ~0u});
}

void fill_alloc(thread& t, slot&, std::uint8_t* m)
{
    as<spanker_tensor_alloc>(m).bytes = t.draw.of<std::uint64_t>(
        {65536, 65536, 65536, 1 << 20, 4096, 1, 0, 64ull << 20, 1ull << 40, ~0ull});
}
void done_alloc(thread& t, slot& file, const std::uint8_t* m)
{
    remember(t, file.tensors, as<spanker_tensor_alloc>(m).out_handle);
}

template <typename T>
void fill_tensor(thread& t, slot& file, std::uint8_t* m)
{
    as<T>(m).handle = some_handle(t, file.tensors);
}

void done_export(thread& t, slot&, const std::uint8_t* m)
{
    remember_fd(t, t.of.exports, as<spanker_tensor_export>(m).out_fd);
}

void fill_import(thread& t, slot& file, std::uint8_t* m)
{
    as<spanker_tensor_import>(m).fd =
        t.draw.percent(85) ? t.of.exports[t.draw.below(pool)].load()
                           : t.draw.of({file.fd.load(), t.of.memfd[0], t.of.ctl[0], 0, -1, 9999});
}
void done_import(thread& t, slot& file, const std::uint8_t* m)
{
    remember(t, file.tensors, as<spanker_tensor_import>(m).out_handle);
}

void fill_register(thread& t, slot&, std::uint8_t* m)
{
    auto& ask = as<spanker_buffer_register>(m);
    ask.flags = t.draw.of<std::uint32_t>({1, 2, 3, 3, 3, 0});
    ask.memfd = -1;
    if (t.draw.percent(25)) {
        ask.memfd = t.draw.percent(90) ? t.of.memfd[t.draw.below(memfds)]
                                       : t.draw.of({t.of.ctl[0], 0, -2, 9999});
        ask.offset = t.draw.of<std::uint64_t>({0, 0, page, 1, ~0ull - 4095});
        ask.bytes = t.draw.of<std::uint64_t>({page, 4 * page, 4 * page, 100, 1ull << 30});
        return;
    }
    ask.address = to_word(t.of.arena + t.draw.below(arena_pages) * page);
    ask.bytes = (1 + t.draw.below(8)) * page;
    if (t.draw.percent(20))
        ask.address += t.draw.below(page);
    if (t.draw.percent(15))
        ask.address =
            t.draw.of<std::uint64_t>({0, to_word(t.of.constant), to_word(t.edge + 2 * page),
                                      ~0ull - 4095, 1ull << 47, 0xffff888000000000});
    if (t.draw.percent(10))
        ask.bytes = t.draw.of<std::uint64_t>({0, 1, (1ull << 40) + 1, ~0ull, 1ull << 30});
}
void done_register(thread& t, slot& file, const std::uint8_t* m)
{
    const auto& ask = as<spanker_buffer_register>(m);
    if (ask.address == to_word(t.of.constant) && (ask.flags & SPANKER_BUFFER_WRITE))
        complain(t, "memory that only may be read was registered for writing");
    remember(t, file.buffers, ask.out_handle);
}

void fill_unregister(thread& t, slot& file, std::uint8_t* m)
{
    as<spanker_buffer_unregister>(m).handle = some_handle(t, file.buffers);
}

void fill_submit(thread& t, slot& file, std::uint8_t* m)
{
    constexpr std::uint32_t most = 2 * page / sizeof(spanker_work_item);
    auto& ask = as<spanker_work_submit>(m);
    std::array<spanker_work_item, most> items;
    ask.count = make_items(t, file, items.data(), most);
    auto* place = t.items + 2 * page - ask.count * sizeof(items[0]);
    std::memcpy(place, items.data(), ask.count * sizeof(items[0]));
    ask.items = some_pointer(t, place);
    ask.item_bytes = sizeof(items[0]);
    ask.cookie = t.draw.word();
    ask.eventfd = t.draw.of({-1, -1, -1, t.of.event[0], t.of.event[1]});
    if (t.draw.percent(4))
        ask.count = t.draw.of<std::uint32_t>({0, 15, 16, 1u << 20, 1u << 25, ~0u});
    if (t.draw.percent(2))
        ask.item_bytes = t.draw.of<std::uint32_t>({0, 127, 129, ~0u});
    if (t.draw.percent(2))
        ask.eventfd = t.draw.of({-2, 0, t.of.memfd[0], 9999});
}
void done_submit(thread& t, slot& file, const std::uint8_t* m)
{
    const auto& ask = as<spanker_work_submit>(m);
    const auto* items = reinterpret_cast<const spanker_work_item*>(t.items + 2 * page) - ask.count;
    for (std::uint32_t n = 0; n < ask.count && ask.items == to_word(items); n++)
        t.of.count->items[items[n].opcode % SPK_OP_COUNT]++;
    file.seq = static_cast<std::uint32_t>(as<spanker_work_submit>(m).out_seq);
}

std::uint64_t some_deadline(thread& t)
{
    const std::uint64_t soon = now_ns() + t.draw.below(old_wait_ms * 1'000'000);
    return t.draw.of<std::uint64_t>({0, 0, soon, soon, 1, ~0ull});
}

void fill_wait(thread& t, slot& file, std::uint8_t* m)
{
    auto& ask = as<spanker_work_wait>(m);
    ask.max = 1 + t.draw.below(16);
    auto* place = t.items + 2 * page - ask.max * sizeof(spanker_record);
    std::memset(place, 0xc5, ask.max * sizeof(spanker_record));
    ask.records = some_pointer(t, place);
    ask.seq = t.draw.of<std::uint64_t>({0, 0, file.seq.load(), t.draw.below(100), t.draw.word()});
    ask.deadline_ns = some_deadline(t);
    if (t.draw.percent(2))
        ask.max = t.draw.of<std::uint32_t>({0, 1u << 20, ~0u});
}
void done_wait(thread& t, slot&, const std::uint8_t* m)
{
    const auto& ask = as<spanker_work_wait>(m);
    if (ask.out_count > ask.max) {
        complain(t, "WORK_WAIT gave %u records of at most %u", ask.out_count, ask.max);
        return;
    }
    const auto* start = t.items + 2 * page - ask.max * sizeof(spanker_record);
    if (ask.max > 16 || ask.records != to_word(start))
        return;
    check_records(t, reinterpret_cast<const spanker_record*>(start), ask.out_count);
    for (const auto* at = start + ask.out_count * sizeof(spanker_record); at < t.items + 2 * page;
         at++)
        if (*at != 0xc5) {
            complain(t, "WORK_WAIT wrote behind the %u records that it gave", ask.out_count);
            return;
        }
}

void fill_cancel(thread& t, slot& file, std::uint8_t* m)
{
    auto& ask = as<spanker_work_cancel>(m);
    ask.flags = t.draw.percent(15) ? SPANKER_CANCEL_ALL : 0;
    ask.seq = t.draw.of<std::uint64_t>({0, file.seq.load(), file.seq.load(), t.draw.word()});
}

void fill_group(thread& t, slot& file, std::uint8_t* m)
{
    auto& ask = as<spanker_group_create>(m);
    std::array<spanker_group_member, 4> members{};
    ask.count = t.draw.of<std::uint32_t>({1, 1, 2, 4});
    for (auto& one : members) {
        one.card_fd =
            t.draw.percent(80) ? file.fd.load() : t.of.files[t.draw.below(slots)].fd.load();
        one.port_mask = t.draw.of<std::uint32_t>({1, 1, 2, 3, 0, 1u << 31});
        one.channel = t.draw.below(t.draw.percent(95) ? 8 : 40);
        one.reserved = t.draw.percent(2);
    }
    ask.members = some_pointer(t, t.items + 2 * page - ask.count * sizeof(members[0]));
    std::memcpy(t.items + 2 * page - ask.count * sizeof(members[0]), members.data(),
                ask.count * sizeof(members[0]));
    ask.member_bytes = sizeof(members[0]);
    if (t.draw.percent(4))
        ask.count = t.draw.of<std::uint32_t>({0, 129, 1000, 1u << 28, ~0u});
    if (t.draw.percent(2))
        ask.member_bytes = t.draw.of<std::uint32_t>({0, 15, 17, ~0u});
}
void done_group(thread& t, slot& file, const std::uint8_t* m)
{
    const auto& ask = as<spanker_group_create>(m);
    remember(t, file.groups, ask.out_group);
    remember_fd(t, t.of.groups, ask.out_fd);
}

std::uint32_t some_card(thread& t) { return t.draw.of<std::uint32_t>({0, 1, 1, 2, 99, ~0u}); }

void fill_train(thread& t, slot&, std::uint8_t* m)
{
    auto& ask = as<spanker_link_train>(m);
    ask.flags = t.draw.percent(20) ? SPANKER_TRAIN_RETRAIN : 0;
    ask.card = some_card(t);
    ask.port_mask = t.draw.of<std::uint32_t>({1, 2, 3, 0, 4, ~0u});
}

void fill_admin(thread& t, slot&, std::uint8_t* m)
{
    auto& ask = as<spanker_link_set_admin>(m);
    ask.flags = t.draw.of<std::uint32_t>({0, 0, 0, 1, 2, 3});
    ask.card = some_card(t);
    ask.port = t.draw.of<std::uint32_t>({0, 1, 2, 1u << 31, ~0u});
    ask.lane_mask = t.draw.of<std::uint32_t>({0, 0, 15, 3, 1, 16, ~0u});
}

// What a reset costs, all acts after it pay: few.
void fill_reset(thread& t, slot&, std::uint8_t* m)
{
    auto& ask = as<spanker_card_reset>(m);
    ask.card = t.draw.percent(12) ? t.draw.below(2) : t.draw.of<std::uint32_t>({2, 99, ~0u});
    ask.mode = t.draw.of<std::uint32_t>({0, 0, 1, 2, ~0u});
}

constexpr range none{0, 0};

#define VERB(NAME, type) #NAME, SPANKER_IOC_##NAME, sizeof(type)

}  // namespace

const std::array<verb, verb_count> verbs = {{
    {VERB(GET_INFO, spanker_get_info),
     true,
     0,
     {ESTALE},
     {range{8, sizeof(spanker_get_info)}},
     {none},
     0,
     fill_nothing,
     done_nothing},
    {VERB(QUEUE_CREATE, spanker_queue_create),
     true,
     0,
     {EBUSY, ENOMEM, ESTALE},
     {OUT(spanker_queue_create, out_queue)},
     {none},
     offsetof(spanker_queue_create, reserved),
     fill_queue,
     done_nothing},
    {VERB(TENSOR_ALLOC, spanker_tensor_alloc),
     true,
     0,
     {ENOMEM, EDQUOT, ESTALE, EINTR},
     {OUT(spanker_tensor_alloc, out_handle)},
     {none},
     offsetof(spanker_tensor_alloc, reserved),
     fill_alloc,
     done_alloc},
    {VERB(TENSOR_FREE, spanker_tensor_free),
     true,
     0,
     {ENOENT, ESTALE},
     {none},
     {none},
     offsetof(spanker_tensor_free, reserved),
     fill_tensor<spanker_tensor_free>,
     done_nothing},
    {VERB(TENSOR_EXPORT, spanker_tensor_export),
     true,
     0,
     {ENOENT, ESTALE, EMFILE},
     {OUT(spanker_tensor_export, out_fd)},
     {none},
     0,
     fill_tensor<spanker_tensor_export>,
     done_export},
    {VERB(TENSOR_IMPORT, spanker_tensor_import),
     true,
     0,
     {EBADF, ESTALE, EDQUOT},
     {OUT(spanker_tensor_import, out_handle), OUT(spanker_tensor_import, out_bytes)},
     {none},
     0,
     fill_import,
     done_import},
    {VERB(BUFFER_REGISTER, spanker_buffer_register),
     true,
     SPANKER_BUFFER_FLAGS,
     {EPERM, EFAULT, ENOMEM, EBADF, ERANGE, EDQUOT, ESTALE, EINTR},
     {OUT(spanker_buffer_register, out_handle)},
     {none},
     0,
     fill_register,
     done_register},
    {VERB(BUFFER_UNREGISTER, spanker_buffer_unregister),
     true,
     0,
     {ENOENT, EBUSY, ESTALE},
     {none},
     {none},
     offsetof(spanker_buffer_unregister, reserved),
     fill_unregister,
     done_nothing},
    {VERB(WORK_SUBMIT, spanker_work_submit),
     true,
     0,
     {EPERM, EFAULT, EBADF, ENOENT, ERANGE, EOPNOTSUPP, EAGAIN, ESTALE, EINTR},
     {OUT(spanker_work_submit, out_bad_item), OUT(spanker_work_submit, out_seq)},
     {OUT(spanker_work_submit, out_bad_item)},
     0,
     fill_submit,
     done_submit},
    {VERB(WORK_WAIT, spanker_work_wait),
     true,
     0,
     {ENOENT, EAGAIN, ETIMEDOUT, EFAULT, ESTALE, EINTR},
     {OUT(spanker_work_wait, out_count)},
     {none},
     0,
     fill_wait,
     done_wait},
    {VERB(WORK_CANCEL, spanker_work_cancel),
     true,
     SPANKER_CANCEL_ALL,
     {ENOENT, ESTALE},
     {none},
     {none},
     0,
     fill_cancel,
     done_nothing},
    {VERB(GROUP_CREATE, spanker_group_create),
     false,
     0,
     {EBADF, EBUSY, EFAULT, ESTALE, EMFILE, ENOMEM},
     {range{offsetof(spanker_group_create, out_fd), offsetof(spanker_group_create, reserved)}},
     {OUT(spanker_group_create, out_busy_pid)},
     offsetof(spanker_group_create, reserved),
     fill_group,
     done_group},
    {VERB(LINK_TRAIN, spanker_link_train),
     false,
     SPANKER_TRAIN_RETRAIN,
     {ENOENT, ESTALE},
     {none},
     {none},
     0,
     fill_train,
     done_nothing},
    {VERB(LINK_SET_ADMIN, spanker_link_set_admin),
     false,
     SPANKER_LINK_DISABLE | SPANKER_LINK_LOOPBACK,
     {ENOENT, ESTALE},
     {none},
     {none},
     offsetof(spanker_link_set_admin, reserved),
     fill_admin,
     done_nothing},
    {VERB(CARD_RESET, spanker_card_reset),
     false,
     0,
     {ENOENT, EBUSY, EAGAIN},
     {none},
     {none},
     0,
     fill_reset,
     done_nothing},
}};

}  // namespace fuzz
