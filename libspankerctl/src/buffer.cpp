// SPDX-License-Identifier: Apache-2.0
#include "buffer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <vector>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace spanker::lib {
namespace {

const char* access_text(spanker_access access)
{
    switch (access) {
    case SPANKER_ACCESS_READ:
        return "r";
    case SPANKER_ACCESS_WRITE:
        return "w";
    case SPANKER_ACCESS_READ_WRITE:
        return "rw";
    default:
        return nullptr;
    }
}

int fail_system(const void* who, const char* what)
{
    const int err = errno;
    return fail(who, make_error_errno(err, fmt::format("{}: {}", what, std::strerror(err))));
}

// Populated, so that the first use does not fault page by page, and so that the pages are charged to
// this process and not to the daemon.
int map(const void* who, spanker_buffer& b, int protection)
{
    void* data = mmap(nullptr, b.mapped, protection, MAP_SHARED | MAP_POPULATE, b.memfd.get(),
                      static_cast<off_t>(b.offset));
    if (data == MAP_FAILED)
        return fail_system(who, "cannot map the buffer");
    b.data = data;
    return 0;
}

int unregister(spanker_session* s, std::uint64_t handle)
{
    message_ptr reply;
    return session_call(
        s, "UnregisterBuffer",
        [&](sd_bus_message* m) { return sd_bus_message_append(m, "t", handle); }, reply);
}

// Buffers that were freed with work in flight can perhaps go now. Under `objects`.
void drop_unwanted(spanker_session* s)
{
    std::erase_if(s->unwanted, [&](std::uint64_t handle) {
        return unregister(s, handle) >= 0 || spanker_last_error(s)->kind != SPANKER_KIND_BUSY;
    });
}

int adopt(spanker_session* s, std::unique_ptr<spanker_buffer> buffer, int protection,
          spanker_buffer** out)
{
    if (const int r = map(s, *buffer, protection); r < 0)
        return r;
    const std::lock_guard lock(s->objects);
    drop_unwanted(s);
    std::uint32_t handle = 0;
    if (const int r = buffer_register(*buffer, s, *s->link, s->path, handle); r < 0)
        return r;
    buffer->handle.store(handle, std::memory_order_relaxed);
    s->buffers.insert(buffer.get());
    *out = buffer.release();
    return 0;
}

int create(spanker_session* session, std::uint64_t bytes, spanker_access access,
           spanker_buffer** out)
{
    if (access_text(access) == nullptr)
        return fail(session, SPANKER_KIND_INVALID, "access is none of SPANKER_ACCESS_*");
    if (const int r = session_ensure(session, session, true); r < 0)
        return r;
    auto buffer = std::make_unique<spanker_buffer>();
    buffer->session = session;
    buffer->bytes = bytes;
    buffer->access = access;
    if (const int r = make_memfd(session, bytes, buffer->memfd); r < 0)
        return r;
    buffer->mapped = whole_pages(bytes);
    return adopt(session, std::move(buffer), PROT_READ | PROT_WRITE, out);
}

int check_import(spanker_session* s, int memfd, std::uint64_t offset, std::uint64_t bytes)
{
    const std::uint64_t page = whole_pages(1);
    if (bytes == 0 || offset % page != 0)
        return fail(s, SPANKER_KIND_INVALID,
                    fmt::format("offset {} must be a multiple of {} and bytes {} positive", offset,
                                page, bytes));
    struct stat st = {};
    if (fstat(memfd, &st) < 0)
        return fail_system(s, "memfd");
    const auto size = static_cast<std::uint64_t>(st.st_size);
    if (S_ISREG(st.st_mode) && (offset > size || whole_pages(bytes) > size - offset))
        return fail(s, SPANKER_KIND_RANGE,
                    fmt::format("the memfd has {} bytes; {} from offset {} on need whole pages up "
                                "to {}",
                                size, bytes, offset, offset + whole_pages(bytes)));
    return 0;
}

// What we may map: frozen memory and a file opened for reading only cannot be written.
int protection_of(int memfd)
{
    const int seals = fcntl(memfd, F_GET_SEALS);
    const int mode = fcntl(memfd, F_GETFL) & O_ACCMODE;
    const bool frozen = seals >= 0 && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0;
    return frozen || mode != O_RDWR ? PROT_READ : PROT_READ | PROT_WRITE;
}

int import_memfd(spanker_session* session, int memfd, std::uint64_t offset, std::uint64_t bytes,
                 spanker_access access, spanker_buffer** out)
{
    if (access_text(access) == nullptr)
        return fail(session, SPANKER_KIND_INVALID, "access is none of SPANKER_ACCESS_*");
    if (const int r = check_import(session, memfd, offset, bytes); r < 0)
        return r;
    if (const int r = session_ensure(session, session, true); r < 0)
        return r;
    auto buffer = std::make_unique<spanker_buffer>();
    buffer->session = session;
    buffer->memfd = unique_fd(fcntl(memfd, F_DUPFD_CLOEXEC, 3));
    if (!buffer->memfd)
        return fail_system(session, "cannot duplicate the file descriptor");
    buffer->offset = offset;
    buffer->bytes = bytes;
    buffer->mapped = whole_pages(bytes);
    buffer->access = access;
    return adopt(session, std::move(buffer), protection_of(memfd), out);
}

int seal(spanker_buffer* b)
{
    spanker_session* s = b->session;
    if (const int r = session_ensure(s, s, true); r < 0)
        return r;
    const std::lock_guard lock(s->objects);
    // The daemon's own mapping of a writable registration would keep the seal out.
    if (const int r = unregister(s, b->handle.load()); r < 0)
        return r;
    munmap(b->data, b->mapped);
    b->data = nullptr;
    const int sealed = fcntl(b->memfd.get(), F_ADD_SEALS, F_SEAL_WRITE) < 0
                           ? fail_system(s, "cannot add F_SEAL_WRITE (is it mapped elsewhere?)")
                           : 0;
    if (sealed == 0)
        b->access = SPANKER_ACCESS_READ;
    const spanker_error why = *spanker_last_error(s);
    if (const int r = map(s, *b, protection_of(b->memfd.get())); r < 0)
        return r;
    std::uint32_t handle = 0;
    if (const int r = buffer_register(*b, s, *s->link, s->path, handle); r < 0)
        return r;
    b->handle.store(handle, std::memory_order_relaxed);
    return sealed == 0 ? 0 : fail(s, why);
}

void free_buffer(spanker_buffer* buffer)
{
    spanker_session* s = buffer->session;
    const std::lock_guard lock(s->objects);
    s->buffers.erase(buffer);
    // With work in flight the daemon keeps its own mapping; later calls try again.
    const std::uint64_t handle = buffer->handle.load();
    if (unregister(s, handle) < 0 && spanker_last_error(s)->kind == SPANKER_KIND_BUSY)
        s->unwanted.push_back(handle);
}

}  // namespace

std::uint64_t whole_pages(std::uint64_t bytes)
{
    static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return bytes > UINT64_MAX - page ? UINT64_MAX / page * page : (bytes + page - 1) / page * page;
}

int to_handle(const void* who, std::uint64_t from_daemon, const char* method, std::uint32_t& out)
{
    if (from_daemon == 0 || from_daemon > UINT32_MAX)
        return malformed(who, method);
    out = static_cast<std::uint32_t>(from_daemon);
    return 0;
}

int make_memfd(const void* who, std::uint64_t bytes, unique_fd& out)
{
    if (bytes == 0 || bytes > INT64_MAX / 2)
        return fail(who, SPANKER_KIND_INVALID, fmt::format("a buffer cannot have {} bytes", bytes));
    unique_fd fd(memfd_create("spanker", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
    if (!fd && errno == EINVAL)  // before Linux 6.3
        fd = unique_fd(memfd_create("spanker", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd)
        return fail_system(who, "cannot make a memfd");
    if (ftruncate(fd.get(), static_cast<off_t>(whole_pages(bytes))) < 0)
        return fail_system(who, "cannot size the memfd");
    if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return fail_system(who, "cannot seal the memfd");
    out = std::move(fd);
    return 0;
}

int buffer_register(const spanker_buffer& b, const void* who, bus& link, const std::string& path,
                    std::uint32_t& handle)
{
    message_ptr reply;
    const int r = link.call(
        who, path, "Session", "RegisterBuffer",
        [&](sd_bus_message* m) {
            return sd_bus_message_append(m, "httsa{sv}", b.memfd.get(), b.offset, b.mapped,
                                         access_text(b.access), 0);
        },
        reply);
    if (r < 0)
        return r;
    std::uint64_t number = 0;
    if (sd_bus_message_read(reply.get(), "t", &number) < 0)
        return malformed(who, "RegisterBuffer");
    return to_handle(who, number, "RegisterBuffer", handle);
}

}  // namespace spanker::lib

using namespace spanker::lib;

spanker_buffer::~spanker_buffer()
{
    if (data != nullptr)
        munmap(data, mapped);
}

int spanker_buffer_create(spanker_session* session, std::uint64_t bytes, spanker_access access,
                          spanker_buffer** out)
{
    if (session == nullptr || out == nullptr)
        return fail_null(session, session == nullptr ? "session" : "out");
    return guarded(session, [&] { return create(session, bytes, access, out); });
}

int spanker_buffer_import(spanker_session* session, int memfd, std::uint64_t offset,
                          std::uint64_t bytes, spanker_access access, spanker_buffer** out)
{
    if (session == nullptr || out == nullptr)
        return fail_null(session, session == nullptr ? "session" : "out");
    return guarded(session,
                   [&] { return import_memfd(session, memfd, offset, bytes, access, out); });
}

void* spanker_buffer_data(const spanker_buffer* buffer)
{
    return buffer != nullptr ? buffer->data : nullptr;
}

std::uint64_t spanker_buffer_bytes(const spanker_buffer* buffer)
{
    return buffer != nullptr ? buffer->bytes : 0;
}

int spanker_buffer_seal(spanker_buffer* buffer)
{
    if (buffer == nullptr)
        return fail_null(nullptr, "buffer");
    return guarded(buffer->session, [&] { return seal(buffer); });
}

void spanker_buffer_free(spanker_buffer* buffer)
{
    if (buffer == nullptr)
        return;
    guarded(buffer->session, [&] {
        free_buffer(buffer);
        return 0;
    });
    delete buffer;
}
