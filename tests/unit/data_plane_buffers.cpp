// SPDX-License-Identifier: Apache-2.0
//
// Registered memory: rules, quotas, and letting go.
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "data_fake_backend.hpp"
#include "data_rig.hpp"

namespace spanker::daemon::test {
namespace {

constexpr std::uint64_t page = 4096;

struct bed {
    explicit bed(plane_limits limits = {}) : rig(cards, limits), session(rig.opened()) {}
    fake_backend cards{2};
    plane_rig rig;
    session_fds session;
};

TEST(data_buffers, are_registered_once_on_every_card)
{
    bed b;
    client_memory m(4 * page);
    const auto handle = b.rig.add_buffer(b.session.id, m);
    ASSERT_TRUE(handle) << handle.error().message;
    EXPECT_NE(*handle, 0u);
    EXPECT_EQ(b.cards.card(0).buffers, 1u);
    EXPECT_EQ(b.cards.card(1).buffers, 1u);
    EXPECT_TRUE(b.rig.drop_buffer(b.session.id, *handle));
    EXPECT_EQ(b.cards.card(0).buffers, 0u);
    EXPECT_EQ(b.cards.card(1).buffers, 0u);
}

TEST(data_buffers, bad_descriptors_are_refused_and_cost_nothing)
{
    bed b;
    const buffer_options whole = {.offset = 0, .bytes = page, .access = 3};
    const auto unsealed = b.rig.add_buffer(b.session.id, make_memfd(page, 0), whole);
    EXPECT_EQ(unsealed.error().kind, SPANKER_ERR_NOT_SEALED);
    const auto event = b.rig.add_buffer(b.session.id, unique_fd(::eventfd(0, EFD_CLOEXEC)), whole);
    EXPECT_EQ(event.error().kind, SPANKER_ERR_NOT_A_MEMFD);
    const auto closed = b.rig.add_buffer(b.session.id, unique_fd(), whole);
    ASSERT_FALSE(closed);
    EXPECT_EQ(b.rig.data->sessions()[0].buffer_bytes, 0u);
    EXPECT_EQ(b.rig.data->sessions()[0].buffers, 0u);
}

TEST(data_buffers, sparse_memfds_are_charged_by_their_length)
{
    bed b({.buffer_bytes_per_uid = 1u << 20});
    constexpr std::uint64_t tebibyte = 1ull << 40;
    const auto huge = b.rig.add_buffer(b.session.id, make_memfd(tebibyte),
                                       {.offset = 0, .bytes = tebibyte, .access = 1});
    ASSERT_FALSE(huge);
    EXPECT_EQ(huge.error().kind, SPANKER_ERR_QUOTA);
    const auto wraps = b.rig.add_buffer(b.session.id, make_memfd(page),
                                        {.offset = 0, .bytes = ~std::uint64_t{0}, .access = 1});
    EXPECT_EQ(wraps.error().kind, SPANKER_ERR_QUOTA);
}

TEST(data_buffers, the_users_quota_spans_sessions_and_comes_back)
{
    bed b({.buffer_bytes_per_uid = 4 * page});
    const auto other = b.rig.open();
    client_memory a(3 * page), c(2 * page);
    const auto first = b.rig.add_buffer(b.session.id, a);
    ASSERT_TRUE(first);
    EXPECT_EQ(b.rig.add_buffer(other->id, c).error().kind, SPANKER_ERR_QUOTA);
    EXPECT_TRUE(b.rig.add_buffer(b.rig.opened(1001).id, c));
    EXPECT_TRUE(b.rig.drop_buffer(b.session.id, *first));
    EXPECT_TRUE(b.rig.add_buffer(other->id, c));
}

TEST(data_buffers, their_number_is_limited)
{
    bed b({.buffers_per_session = 2});
    client_memory m(page);
    const auto first = b.rig.add_buffer(b.session.id, m);
    ASSERT_TRUE(first && b.rig.add_buffer(b.session.id, m));
    EXPECT_EQ(b.rig.add_buffer(b.session.id, m).error().kind, SPANKER_ERR_QUOTA);
    EXPECT_TRUE(b.rig.drop_buffer(b.session.id, *first));
    EXPECT_TRUE(b.rig.add_buffer(b.session.id, m));
}

TEST(data_buffers, unknown_and_foreign_handles_are_named)
{
    bed b;
    client_memory m(page);
    const auto mine = b.rig.add_buffer(b.session.id, m);
    const auto other = b.rig.open();
    EXPECT_EQ(b.rig.drop_buffer(other->id, *mine).error().kind, SPANKER_ERR_NO_OBJECT);
    EXPECT_EQ(b.rig.drop_buffer(b.session.id, 0).error().kind, SPANKER_ERR_NO_OBJECT);
    EXPECT_TRUE(b.rig.drop_buffer(b.session.id, *mine));
    EXPECT_EQ(b.rig.drop_buffer(b.session.id, *mine).error().kind, SPANKER_ERR_NO_OBJECT);
}

spanker_sqe write_tensor(std::uint64_t tensor, std::uint64_t buffer, std::uint64_t bytes)
{
    spanker_sqe e = {.opcode = SPANKER_SOP_WRITE_TENSOR, .user_data = 1};
    e.transfer = {.tensor = static_cast<std::uint32_t>(tensor),
                  .buffer = static_cast<std::uint32_t>(buffer),
                  .bytes = bytes};
    return e;
}

TEST(data_buffers, work_in_flight_keeps_buffer_and_tensor)
{
    bed b;
    client_memory m(page);
    const auto buffer = b.rig.add_buffer(b.session.id, m);
    const auto tensor = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    b.cards.card(0).hold = b.cards.card(1).hold = true;
    client_rings rings(b.session);
    rings.push({write_tensor(*tensor, *buffer, page)});
    ASSERT_TRUE(b.rig.until([&] { return b.cards.card(0).count(SPK_OP_DMA_IN) != 0; }));
    EXPECT_EQ(b.rig.drop_buffer(b.session.id, *buffer).error().kind, SPANKER_ERR_BUSY);
    EXPECT_EQ(b.rig.drop_tensor(b.session.id, *tensor).error().kind, SPANKER_ERR_BUSY);
    b.cards.release(0);
    b.cards.release(1);
    EXPECT_EQ(b.rig.next(rings)->res, 0);
    EXPECT_TRUE(b.rig.drop_buffer(b.session.id, *buffer));
    EXPECT_TRUE(b.rig.drop_tensor(b.session.id, *tensor));
}

TEST(data_buffers, access_that_was_not_granted_is_denied)
{
    bed b;
    client_memory m(page);
    const auto write_only = b.rig.add_buffer(b.session.id, m, SPANKER_BUFFER_WRITE);
    const auto tensor = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    const auto denied = b.rig.submit(b.session.id, {write_tensor(*tensor, *write_only, page)});
    EXPECT_EQ(denied[0].cqe.res, -EPERM);
    EXPECT_NE(denied[0].message.find("without \"r\""), std::string::npos) << denied[0].message;
}

TEST(data_buffers, read_only_registration_takes_a_write_sealed_memfd)
{
    bed b;
    const int frozen = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    EXPECT_TRUE(b.rig.add_buffer(b.session.id, make_memfd(page, frozen),
                                 {.offset = 0, .bytes = page, .access = SPANKER_BUFFER_READ}));
    const auto writable = b.rig.add_buffer(b.session.id, make_memfd(page, frozen),
                                           {.offset = 0, .bytes = page, .access = 3});
    EXPECT_EQ(writable.error().kind, SPANKER_ERR_DENIED);
}

TEST(data_buffers, a_punched_hole_hurts_nobody)
{
    bed b;
    client_memory m(16 * page);
    const auto buffer = b.rig.add_buffer(b.session.id, m);
    const auto tensor = b.rig.add_tensor(b.session.id, {.shape = {16 * 1024}});
    ASSERT_EQ(::fallocate(m.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 16 * page), 0);
    EXPECT_EQ(b.rig.submit(b.session.id, {write_tensor(*tensor, *buffer, 16 * page)})[0].cqe.res,
              0);
    EXPECT_TRUE(b.rig.closed.empty());
}

// Where the daemon maps a memfd that this process maps too.
std::uintptr_t other_mapping(const client_memory& m)
{
    struct stat wanted = {};
    EXPECT_EQ(::fstat(m.fd.get(), &wanted), 0);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0, inode = 0;
        if (line.find("memfd:operand") == std::string::npos)
            continue;  // inodes of other devices
        if (std::sscanf(line.c_str(), "%lx-%*x %*s %*x %*s %lu", &begin, &inode) == 2 &&
            inode == wanted.st_ino && begin != reinterpret_cast<std::uintptr_t>(m.data))
            return begin;
    }
    return 0;
}

// The kernel's message that a page is gone, as memory pressure or a bad page would bring it.
void lose_page(std::uintptr_t address)
{
    siginfo_t info = {};
    info.si_signo = SIGBUS;
    info.si_code = BUS_ADRERR;
    info.si_addr = reinterpret_cast<void*>(address);
    ASSERT_EQ(::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), SIGBUS, &info), 0);
}

TEST(data_buffers, vanished_pages_end_their_session_and_no_other)
{
    bed b;
    const auto other = b.rig.opened();
    client_memory m(4 * page), sound(4 * page);
    const auto buffer = b.rig.add_buffer(b.session.id, m);
    const auto fine = b.rig.add_buffer(other.id, sound);
    const auto tensor = b.rig.add_tensor(b.session.id, {.shape = {1024}});
    const auto others = b.rig.add_tensor(other.id, {.shape = {1024}});
    const std::uintptr_t mapping = other_mapping(m);
    ASSERT_NE(mapping, 0u);
    lose_page(mapping + page);
    const auto lost = b.rig.submit(b.session.id, {write_tensor(*tensor, *buffer, page)});
    EXPECT_EQ(lost[0].cqe.res, -EFAULT);
    ASSERT_TRUE(b.rig.until([&] { return !b.rig.closed.empty(); }));
    EXPECT_EQ(b.rig.closed[0].first, b.session.id);
    EXPECT_EQ(b.rig.closed[0].second.kind, SPANKER_ERR_HOST_FAULT);
    EXPECT_EQ(b.rig.submit(other.id, {write_tensor(*others, *fine, page)})[0].cqe.res, 0);
}

}  // namespace
}  // namespace spanker::daemon::test
