// SPDX-License-Identifier: Apache-2.0
//
// What the ABI test consists of: tests that register themselves, checks that say what they saw,
// and the few verbs that most tests need. It runs in a virtual machine with spanker.ko and at
// least one card, prints TAP, and needs nothing but the C library. With --bounced it runs the tests of a machine whose
// memory the card does not reach.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "uapi/spanker.h"

namespace abi {

// What a test asks of the machine: whether the card reaches the host's memory itself, or the
// platform would copy it through bounce buffers, which the module refuses.
enum class host_memory { any, reached, bounced };

struct test {
    const char* name;
    void (*body)();
    host_memory memory;
};
std::vector<test>& tests();

struct registration {
    registration(const char* name, void (*body)(), host_memory memory)
    {
        tests().push_back({name, body, memory});
    }
};

#define ABI_TEST_WITH(memory, name)                                                      \
    static void name();                                                                  \
    static const ::abi::registration name##_at{#name, name, ::abi::host_memory::memory}; \
    static void name()
#define ABI_TEST(name) ABI_TEST_WITH(any, name)
// Registers memory of the host.
#define ABI_BUFFER_TEST(name) ABI_TEST_WITH(reached, name)
#define ABI_BOUNCED_TEST(name) ABI_TEST_WITH(bounced, name)

// One failed check fails the test; the rest of it still runs.
void check_equal(std::int64_t seen, std::int64_t wanted, const char* what, const char* file,
                 int line);
#define CHECK(what) ::abi::check_equal(!!(what), 1, #what, __FILE__, __LINE__)
#define CHECK_EQ(seen, wanted)                                                                    \
    ::abi::check_equal(static_cast<std::int64_t>(seen), static_cast<std::int64_t>(wanted), #seen, \
                       __FILE__, __LINE__)
// Says more about where a table's row failed.
void note(const std::string& text);
// Ends the program: without this nothing else makes sense.
[[noreturn]] void bail_out(const char* what);
void skip(const char* why);

// ---- files ----

class fd {
public:
    fd() = default;
    explicit fd(int value) : value_(value) {}
    fd(fd&& other) noexcept : value_(other.value_) { other.value_ = -1; }
    fd& operator=(fd&& other) noexcept
    {
        std::swap(value_, other.value_);
        return *this;
    }
    ~fd() { close(); }
    void close();
    int get() const { return value_; }

private:
    int value_ = -1;
};

// 0 or a negative errno.
int call(int file, unsigned long request, void* argument);
inline int call(const fd& file, unsigned long request, void* argument)
{
    return call(file.get(), request, argument);
}

fd open_card(unsigned number = 0);
fd open_ctl();
unsigned cards();
// With a queue; depth is a power of two.
fd open_queue(std::uint32_t depth = 16, std::uint32_t records = 0, unsigned number = 0);
spanker_get_info info_of(const fd& file);

template <typename T>
T ask()
{
    T out{};
    out.size = sizeof(T);
    return out;
}

// ---- objects and work ----

std::uint32_t tensor(const fd& file, std::uint64_t bytes);  // 0: refused
int free_tensor(const fd& file, std::uint32_t handle);
int register_memory(const fd& file, void* memory, std::uint64_t bytes, std::uint32_t access,
                    std::uint32_t* handle);
int unregister(const fd& file, std::uint32_t handle);
fd sealed_memfd(std::size_t bytes, int seals);
// A tensor of a page, and channel 0 of port 0, as descriptors of their own.
fd exported_tensor(const fd& file);
fd group_of(const fd& file);

spanker_work_item item(spk_opcode opcode);
spanker_work_item waiting(spanker_work_item what, std::uint16_t signal);
spanker_work_item posting(spanker_work_item what, std::uint16_t signal);
spanker_work_item fill(std::uint32_t tensor, std::uint64_t bytes, std::uint32_t pattern);
spanker_work_item dma(spk_opcode way, std::uint32_t tensor, std::uint32_t buffer,
                      std::uint32_t bytes);

int submit(const fd& file, const std::vector<spanker_work_item>& items, std::uint64_t cookie = 0,
           int eventfd = -1, std::uint64_t* seq = nullptr);
// Sleeps up to 20 s.
spanker_record wait_record(const fd& file);
int run(const fd& file, const std::vector<spanker_work_item>& items);
int cancel_all(const fd& file);
std::uint64_t now_ns();
// VmPin of this process.
long pinned_kib();

// The rest of a test that executes this program: 0, or the number of what was wrong.
int after_exec(const char* number);

}  // namespace abi
