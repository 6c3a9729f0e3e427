// SPDX-License-Identifier: Apache-2.0
#include "buffer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

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
    }
    return nullptr;
}

int fail_system(const void* who, const char* what)
{
    const int err = errno;
    return fail(who, make_error_errno(err, fmt::format("{}: {}", what, std::strerror(err))));
}

int map(const void* who, spanker_buffer& b, int protection)
{
    void* data = mmap(nullptr, b.mapped, protection, MAP_SHARED, b.memfd.get(),
                      static_cast<off_t>(b.offset));
    if (data == MAP_FAILED)
        return fail_system(who, "cannot map the buffer");
    b.data = data;
    return 0;
}

int adopt(spanker_session* s, std::unique_ptr<spanker_buffer> buffer, int protection,
          spanker_buffer** out)
{
    if (const int r = map(s, *buffer, protection); r < 0)
        return r;
    const std::lock_guard lock(s->objects);
    if (const int r = buffer_register(buffer.get(), s); r < 0)
        return r;
    s->buffers.insert(buffer.get());
    *out = buffer.release();
    return 0;
}

}  // namespace

std::uint64_t whole_pages(std::uint64_t bytes)
{
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
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

int buffer_register(spanker_buffer* b, const void* who)
{
    spanker_session* s = b->session;
    message_ptr reply;
    const int r = s->link->call(
        who, s->path, "Session", "RegisterBuffer",
        [&](sd_bus_message* m) {
            return sd_bus_message_append(m, "httsa{sv}", b->memfd.get(), b->offset, b->mapped,
                                         access_text(b->access), 0);
        },
        reply);
    if (r < 0)
        return r;
    return sd_bus_message_read(reply.get(), "t", &b->handle) < 0 ? malformed(who, "RegisterBuffer")
                                                                 : 0;
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
    if (access_text(access) == nullptr)
        return fail(session, SPANKER_KIND_INVALID, "access is none of SPANKER_ACCESS_*");
    if (const int r = session_ensure(session, session); r < 0)
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

int spanker_buffer_import(spanker_session* session, int memfd, std::uint64_t offset,
                          std::uint64_t bytes, spanker_access access, spanker_buffer** out)
{
    if (access_text(access) == nullptr)
        return fail(session, SPANKER_KIND_INVALID, "access is none of SPANKER_ACCESS_*");
    if (bytes == 0 || offset % whole_pages(1) != 0)
        return fail(
            session, SPANKER_KIND_INVALID,
            fmt::format("offset {} must be a multiple of the page size and bytes {} positive",
                        offset, bytes));
    if (const int r = session_ensure(session, session); r < 0)
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
    const int seals = fcntl(memfd, F_GET_SEALS);
    const bool frozen = seals >= 0 && (seals & F_SEAL_WRITE) != 0;
    return adopt(session, std::move(buffer), frozen ? PROT_READ : PROT_READ | PROT_WRITE, out);
}

void* spanker_buffer_data(const spanker_buffer* buffer)
{
    return buffer->data;
}

std::uint64_t spanker_buffer_bytes(const spanker_buffer* buffer)
{
    return buffer->bytes;
}

int spanker_buffer_seal(spanker_buffer* b)
{
    spanker_session* s = b->session;
    const std::lock_guard lock(s->objects);
    // The daemon's own mapping of a writable registration would keep the seal out.
    message_ptr reply;
    if (const int r = s->link->call(
            s, s->path, "Session", "UnregisterBuffer",
            [&](sd_bus_message* m) { return sd_bus_message_append(m, "t", b->handle); }, reply);
        r < 0)
        return r;
    munmap(b->data, b->mapped);
    b->data = nullptr;
    const int sealed = fcntl(b->memfd.get(), F_ADD_SEALS, F_SEAL_WRITE) < 0
                           ? fail_system(s, "cannot add F_SEAL_WRITE (is it mapped elsewhere?)")
                           : 0;
    if (sealed == 0)
        b->access = SPANKER_ACCESS_READ;
    if (const int r = map(s, *b, sealed == 0 ? PROT_READ : PROT_READ | PROT_WRITE); r < 0)
        return r;
    if (const int r = buffer_register(b, s); r < 0)
        return r;
    return sealed;
}

void spanker_buffer_free(spanker_buffer* buffer)
{
    if (buffer == nullptr)
        return;
    spanker_session* s = buffer->session;
    {
        const std::lock_guard lock(s->objects);
        s->buffers.erase(buffer);
        // With work in flight the daemon keeps its own mapping until the session ends.
        message_ptr reply;
        static_cast<void>(s->link->call(
            s, s->path, "Session", "UnregisterBuffer",
            [&](sd_bus_message* m) { return sd_bus_message_append(m, "t", buffer->handle); },
            reply));
    }
    delete buffer;
}
