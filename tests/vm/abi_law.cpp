// SPDX-License-Identifier: Apache-2.0
//
// The law of every verb, from one table: sizes, tails, flags, reserved members, pointers, nodes.
// Each row has a call that fails for a reason of its own, later than the law is checked; so when
// the law is kept, that reason comes back, and when it is broken, another.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "abi.hpp"

namespace abi {

namespace {

const spanker_work_item a_nop = item(SPK_OP_NOP);
spanker_group_member nobody = {-1, 1, 0, 0};
spanker_record a_record;

std::uint64_t to_word(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

struct verb {
    const char* name;
    unsigned long request;
    std::size_t bytes;
    bool on_card;
    std::uint32_t known_flags;
    int reason;                             // of a lawful call
    std::vector<std::size_t> reserved;      // offsets
    void (*prepare)(std::uint8_t* memory);  // beside size
};

template <typename T>
T& as(std::uint8_t* memory)
{
    return *reinterpret_cast<T*>(memory);
}

const std::vector<verb>& verbs()
{
    static const std::vector<verb> table = {
        {"GET_INFO",
         SPANKER_IOC_GET_INFO,
         sizeof(spanker_get_info),
         true,
         0,
         0,
         {},
         [](std::uint8_t*) {}},
        {"QUEUE_CREATE",
         SPANKER_IOC_QUEUE_CREATE,
         sizeof(spanker_queue_create),
         true,
         0,
         -EBUSY,
         {offsetof(spanker_queue_create, reserved)},
         [](std::uint8_t* m) { as<spanker_queue_create>(m).depth = 16; }},
        {"TENSOR_ALLOC",
         SPANKER_IOC_TENSOR_ALLOC,
         sizeof(spanker_tensor_alloc),
         true,
         0,
         -ENOMEM,
         {offsetof(spanker_tensor_alloc, reserved)},
         [](std::uint8_t* m) { as<spanker_tensor_alloc>(m).bytes = 1ull << 60; }},
        {"TENSOR_FREE",
         SPANKER_IOC_TENSOR_FREE,
         sizeof(spanker_tensor_free),
         true,
         0,
         -ENOENT,
         {offsetof(spanker_tensor_free, reserved)},
         [](std::uint8_t* m) { as<spanker_tensor_free>(m).handle = 99999; }},
        {"TENSOR_EXPORT",
         SPANKER_IOC_TENSOR_EXPORT,
         sizeof(spanker_tensor_export),
         true,
         0,
         -ENOENT,
         {},
         [](std::uint8_t* m) { as<spanker_tensor_export>(m).handle = 99999; }},
        {"TENSOR_IMPORT",
         SPANKER_IOC_TENSOR_IMPORT,
         sizeof(spanker_tensor_import),
         true,
         0,
         -EBADF,
         {},
         [](std::uint8_t* m) { as<spanker_tensor_import>(m).fd = -1; }},
        {"BUFFER_REGISTER",
         SPANKER_IOC_BUFFER_REGISTER,
         sizeof(spanker_buffer_register),
         true,
         SPANKER_BUFFER_FLAGS,
         -EBADF,
         {},
         [](std::uint8_t* m) {
             auto& out = as<spanker_buffer_register>(m);
             out.flags = SPANKER_BUFFER_READ;
             out.bytes = 4096;
             out.memfd = 9999;
         }},
        {"BUFFER_UNREGISTER",
         SPANKER_IOC_BUFFER_UNREGISTER,
         sizeof(spanker_buffer_unregister),
         true,
         0,
         -ENOENT,
         {offsetof(spanker_buffer_unregister, reserved)},
         [](std::uint8_t* m) { as<spanker_buffer_unregister>(m).handle = 99999; }},
        {"WORK_SUBMIT",
         SPANKER_IOC_WORK_SUBMIT,
         sizeof(spanker_work_submit),
         true,
         0,
         -EBADF,
         {},
         [](std::uint8_t* m) {
             auto& out = as<spanker_work_submit>(m);
             out.items = to_word(&a_nop);
             out.count = 1;
             out.item_bytes = sizeof(a_nop);
             out.eventfd = 9999;
         }},
        {"WORK_WAIT",
         SPANKER_IOC_WORK_WAIT,
         sizeof(spanker_work_wait),
         true,
         0,
         -EAGAIN,
         {},
         [](std::uint8_t* m) {
             as<spanker_work_wait>(m).records = to_word(&a_record);
             as<spanker_work_wait>(m).max = 1;
         }},
        {"WORK_CANCEL",
         SPANKER_IOC_WORK_CANCEL,
         sizeof(spanker_work_cancel),
         true,
         SPANKER_CANCEL_ALL,
         -ENOENT,
         {},
         [](std::uint8_t* m) { as<spanker_work_cancel>(m).seq = 99999; }},
        {"GROUP_CREATE",
         SPANKER_IOC_GROUP_CREATE,
         sizeof(spanker_group_create),
         false,
         0,
         -EBADF,
         {offsetof(spanker_group_create, reserved)},
         [](std::uint8_t* m) {
             auto& out = as<spanker_group_create>(m);
             out.members = to_word(&nobody);
             out.count = 1;
             out.member_bytes = sizeof(nobody);
         }},
        {"LINK_TRAIN",
         SPANKER_IOC_LINK_TRAIN,
         sizeof(spanker_link_train),
         false,
         SPANKER_TRAIN_RETRAIN,
         -ENOENT,
         {},
         [](std::uint8_t* m) {
             as<spanker_link_train>(m).card = 99;
             as<spanker_link_train>(m).port_mask = 1;
         }},
        {"LINK_SET_ADMIN",
         SPANKER_IOC_LINK_SET_ADMIN,
         sizeof(spanker_link_set_admin),
         false,
         SPANKER_LINK_DISABLE | SPANKER_LINK_LOOPBACK,
         -ENOENT,
         {offsetof(spanker_link_set_admin, reserved)},
         [](std::uint8_t* m) { as<spanker_link_set_admin>(m).card = 99; }},
        {"CARD_RESET",
         SPANKER_IOC_CARD_RESET,
         sizeof(spanker_card_reset),
         false,
         0,
         -ENOENT,
         {},
         [](std::uint8_t* m) { as<spanker_card_reset>(m).card = 99; }},
    };
    return table;
}

// A struct of this size in memory that ends where a page that is not there begins: who reads or
// writes past it gets EFAULT.
class at_the_edge {
public:
    explicit at_the_edge(std::size_t bytes)
    {
        void* at =
            ::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            bail_out("mmap");
        start_ = static_cast<std::uint8_t*>(at);
        ::munmap(start_ + 2 * page, page);
        struct_ = start_ + 2 * page - bytes;
    }
    ~at_the_edge() { ::munmap(start_, 2 * page); }
    std::uint8_t* memory() const { return struct_; }
    void protect(int protection) { ::mprotect(start_, 2 * page, protection); }

    static constexpr std::size_t page = 4096;

private:
    std::uint8_t* start_;
    std::uint8_t* struct_;
};

struct nodes {
    fd card = open_queue();
    fd ctl = open_ctl();
    const fd& of(const verb& v) const { return v.on_card ? card : ctl; }
    const fd& other_of(const verb& v) const { return v.on_card ? ctl : card; }
};

void set_size(std::uint8_t* memory, std::size_t size)
{
    const auto word = static_cast<std::uint32_t>(size);
    std::memcpy(memory, &word, sizeof(word));
}

// The verb with a struct of `size` bytes, the part beyond its own filled with `tail`.
int call_sized(const nodes& files, const verb& v, std::size_t size, std::uint8_t tail)
{
    const at_the_edge at(std::max(size, v.bytes));
    std::memset(at.memory() + v.bytes, tail, size > v.bytes ? size - v.bytes : 0);
    v.prepare(at.memory());
    set_size(at.memory(), size);
    return call(files.of(v), v.request, at.memory());
}

// Where a verb's answers are.
std::vector<std::pair<std::size_t, std::size_t>> answers_of(unsigned long request)
{
#define ANSWER(type, member)                                                  \
    {                                                                         \
        offsetof(type, member), offsetof(type, member) + sizeof(type::member) \
    }
    switch (request) {
    case SPANKER_IOC_QUEUE_CREATE:
        return {ANSWER(spanker_queue_create, out_queue)};
    case SPANKER_IOC_TENSOR_ALLOC:
        return {ANSWER(spanker_tensor_alloc, out_handle)};
    case SPANKER_IOC_TENSOR_EXPORT:
        return {ANSWER(spanker_tensor_export, out_fd)};
    case SPANKER_IOC_TENSOR_IMPORT:
        return {ANSWER(spanker_tensor_import, out_handle),
                ANSWER(spanker_tensor_import, out_bytes)};
    case SPANKER_IOC_BUFFER_REGISTER:
        return {ANSWER(spanker_buffer_register, out_handle)};
    case SPANKER_IOC_WORK_SUBMIT:
        return {ANSWER(spanker_work_submit, out_bad_item), ANSWER(spanker_work_submit, out_seq)};
    case SPANKER_IOC_WORK_WAIT:
        return {ANSWER(spanker_work_wait, out_count)};
    case SPANKER_IOC_GROUP_CREATE:
        return {ANSWER(spanker_group_create, out_fd), ANSWER(spanker_group_create, out_group),
                ANSWER(spanker_group_create, out_busy_pid)};
    default:
        return {};
    }
#undef ANSWER
}

template <typename F>
void for_each_verb(F body)
{
    const nodes files;
    for (const verb& v : verbs()) {
        note(v.name);
        body(files, v);
    }
}

}  // namespace

ABI_TEST(a_lawful_call_fails_for_its_own_reason_only)
{
    for_each_verb([](const nodes& files, const verb& v) {
        CHECK_EQ(call_sized(files, v, v.bytes, 0), v.reason);
    });
}

ABI_TEST(a_struct_that_is_too_short_is_invalid)
{
    for_each_verb([](const nodes& files, const verb& v) {
        for (const std::size_t size : {std::size_t{0}, std::size_t{4}, std::size_t{8}, v.bytes - 1})
            CHECK_EQ(call_sized(files, v, size, 0), -EINVAL);
    });
}

ABI_TEST(a_longer_struct_is_taken_when_its_tail_is_zero)
{
    for_each_verb([](const nodes& files, const verb& v) {
        for (const std::size_t more : {1u, 8u, 500u})
            CHECK_EQ(call_sized(files, v, v.bytes + more, 0), v.reason);
        CHECK_EQ(call_sized(files, v, v.bytes + 1, 1), -E2BIG);
        CHECK_EQ(call_sized(files, v, v.bytes + 64, 0x80), -E2BIG);
        CHECK_EQ(call_sized(files, v, 4096, 0), v.reason);
        CHECK_EQ(call_sized(files, v, 4097, 0), -E2BIG);
    });
}

ABI_TEST(a_later_version_of_a_verb_is_known_by_its_number)
{
    for_each_verb([](const nodes& files, const verb& v) {
        std::array<std::uint8_t, 1024> memory{};
        v.prepare(memory.data());
        set_size(memory.data(), v.bytes + 16);
        const unsigned long later = v.request + (16ul << _IOC_SIZESHIFT);
        CHECK_EQ(call(files.of(v), later, memory.data()), v.reason);
    });
}

ABI_TEST(unknown_flags_are_invalid)
{
    for_each_verb([](const nodes& files, const verb& v) {
        for (unsigned bit = 0; bit < 32; bit++) {
            if (v.known_flags >> bit & 1)
                continue;
            const at_the_edge at(v.bytes);
            v.prepare(at.memory());
            set_size(at.memory(), v.bytes);
            std::uint32_t flags;
            std::memcpy(&flags, at.memory() + 4, 4);
            flags |= 1u << bit;
            std::memcpy(at.memory() + 4, &flags, 4);
            CHECK_EQ(call(files.of(v), v.request, at.memory()), -EINVAL);
        }
    });
}

ABI_TEST(reserved_members_are_zero)
{
    for_each_verb([](const nodes& files, const verb& v) {
        for (const std::size_t offset : v.reserved) {
            const at_the_edge at(v.bytes);
            v.prepare(at.memory());
            set_size(at.memory(), v.bytes);
            for (const std::size_t byte : {0u, 1u, 2u, 3u}) {
                at.memory()[offset + byte] = 0x80;
                CHECK_EQ(call(files.of(v), v.request, at.memory()), -EINVAL);
                at.memory()[offset + byte] = 0;
            }
        }
    });
}

ABI_TEST(bad_pointers_are_faults)
{
    for_each_verb([](const nodes& files, const verb& v) {
        CHECK_EQ(call(files.of(v), v.request, nullptr), -EFAULT);
        const at_the_edge at(v.bytes);
        v.prepare(at.memory());
        set_size(at.memory(), v.bytes);
        // Half of the struct lies where nothing is.
        std::memmove(at.memory() + v.bytes / 2, at.memory(), v.bytes - v.bytes / 2);
        CHECK_EQ(call(files.of(v), v.request, at.memory() + v.bytes / 2), -EFAULT);
    });
}

ABI_TEST(an_answer_that_cannot_be_written_is_a_fault_and_nothing_happened)
{
    for_each_verb([](const nodes& files, const verb& v) {
        at_the_edge at(v.bytes);
        v.prepare(at.memory());
        set_size(at.memory(), v.bytes);
        at.protect(PROT_READ);
        const bool answers = _IOC_DIR(v.request) & _IOC_READ;
        CHECK_EQ(call(files.of(v), v.request, at.memory()), answers ? -EFAULT : v.reason);
    });
    note("");
    const fd file = open_card();
    const auto before = info_of(file).out_memory_free_bytes;
    at_the_edge at(sizeof(spanker_tensor_alloc));
    as<spanker_tensor_alloc>(at.memory()) = ask<spanker_tensor_alloc>();
    as<spanker_tensor_alloc>(at.memory()).bytes = 4096;
    at.protect(PROT_READ);
    CHECK_EQ(call(file, SPANKER_IOC_TENSOR_ALLOC, at.memory()), -EFAULT);
    CHECK_EQ(info_of(file).out_memory_free_bytes, before);
}

ABI_TEST(an_error_changes_nothing_but_what_tells_of_it)
{
    for_each_verb([](const nodes& files, const verb& v) {
        std::array<std::uint8_t, 256> memory{}, asked;
        v.prepare(memory.data());
        set_size(memory.data(), v.bytes);
        for (const auto& [from, to] : answers_of(v.request))
            std::memset(memory.data() + from, 0xaa, to - from);
        asked = memory;
        if (call(files.of(v), v.request, memory.data()) == 0)
            return;
        if (v.request == SPANKER_IOC_WORK_SUBMIT)
            as<spanker_work_submit>(asked.data()).out_bad_item = SPANKER_NO_ITEM;
        if (v.request == SPANKER_IOC_GROUP_CREATE)
            as<spanker_group_create>(asked.data()).out_busy_pid = 0;
        CHECK(memory == asked);
    });
}

ABI_TEST(nothing_is_written_past_a_struct_and_its_size_and_flags_stay)
{
    const fd file = open_card();
    std::array<std::uint8_t, sizeof(spanker_get_info) + 64> memory;
    memory.fill(0);
    set_size(memory.data(), memory.size());
    CHECK_EQ(call(file, SPANKER_IOC_GET_INFO, memory.data()), 0);
    CHECK_EQ(as<spanker_get_info>(memory.data()).size, memory.size());
    for (std::size_t at = sizeof(spanker_get_info); at < memory.size(); at++)
        CHECK_EQ(memory[at], 0);
}

ABI_TEST(verbs_of_the_other_node_and_unknown_ones_do_not_exist)
{
    for_each_verb([](const nodes& files, const verb& v) {
        std::array<std::uint8_t, 256> memory{};
        v.prepare(memory.data());
        set_size(memory.data(), v.bytes);
        CHECK_EQ(call(files.other_of(v), v.request, memory.data()), -ENOTTY);
        const unsigned long other_way =
            v.request ^ (static_cast<unsigned long>(_IOC_READ) << _IOC_DIRSHIFT);
        CHECK_EQ(call(files.of(v), other_way, memory.data()), -ENOTTY);
    });
    note("");
    const nodes files;
    std::array<std::uint8_t, 256> memory{};
    for (const fd* file : {&files.card, &files.ctl})
        for (unsigned number : {0u, 3u, 0x0fu, 0x1bu, 0x3fu, 0x44u, 0xffu}) {
            CHECK_EQ(call(*file, _IOWR(SPANKER_IOC_MAGIC, number, spanker_get_info), memory.data()),
                     -ENOTTY);
            CHECK_EQ(call(*file, _IO(SPANKER_IOC_MAGIC, number), nullptr), -ENOTTY);
        }
    CHECK_EQ(call(files.card, _IOWR('T', 0x10, spanker_get_info), memory.data()), -ENOTTY);
}

ABI_TEST(ping_and_version_are_as_they_ever_were)
{
    const nodes files;
    for (const fd* file : {&files.card, &files.ctl}) {
        CHECK_EQ(call(*file, SPANKER_IOC_PING, nullptr), 0);
        spanker_version version = {9, 9, 9, 9};
        CHECK_EQ(call(*file, 0x8008E302ul, &version), 0);
        CHECK_EQ(version.major, SPANKER_DRIVER_MAJOR);
        CHECK_EQ(version.minor, SPANKER_DRIVER_MINOR);
        CHECK_EQ(version.patch, SPANKER_DRIVER_PATCH);
        CHECK_EQ(version.reserved, 0);
        CHECK_EQ(call(*file, SPANKER_IOC_GET_VERSION, nullptr), -EFAULT);
    }
}

ABI_TEST(who_may_only_read_the_control_node_changes_nothing)
{
    if (::geteuid() == 0 && ::setegid(12345) == 0 && ::seteuid(12345) == 0) {
        const fd ctl(::open("/dev/spankerctl", O_RDONLY | O_CLOEXEC));
        CHECK(ctl.get() >= 0);
        for (const verb& v : verbs()) {
            if (v.on_card || v.request == SPANKER_IOC_GROUP_CREATE)
                continue;
            note(v.name);
            std::array<std::uint8_t, 64> memory{};
            v.prepare(memory.data());
            set_size(memory.data(), v.bytes);
            CHECK_EQ(call(ctl, v.request, memory.data()), -EPERM);
        }
        CHECK_EQ(call(ctl, SPANKER_IOC_PING, nullptr), 0);
        CHECK_EQ(::seteuid(0), 0);
        CHECK_EQ(::setegid(0), 0);
    } else {
        skip("needs root");
    }
}

}  // namespace abi
