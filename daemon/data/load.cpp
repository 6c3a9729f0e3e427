// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/load.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "daemon/clock.hpp"
#include "daemon/collective/sharding.hpp"
#include "daemon/data/memfd.hpp"
#include "daemon/os_error.hpp"

namespace spanker::daemon::data {
namespace {

constexpr std::uint64_t progress_interval_ns = 250'000'000;

tl::unexpected<error> cancelled()
{
    return fail(SPANKER_ERR_CANCELLED, "loading of the weights was cancelled");
}

// A file that shrinks under us ends the load by name and not by a short upload.
result<void> read_all(int fd, std::byte* to, std::uint64_t offset, std::uint64_t bytes)
{
    while (bytes != 0) {
        const ssize_t n = ::pread(fd, to, bytes, static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            const int err = errno;
            return fail(SPANKER_ERR_HOST_FAULT, "cannot read the weights file at offset " +
                                                    std::to_string(offset) + ": " +
                                                    std::strerror(err));
        }
        if (n == 0)
            return fail(SPANKER_ERR_RANGE, "the weights file shrank: it ends at offset " +
                                               std::to_string(offset) + " while it was being read");
        to += n;
        offset += static_cast<std::uint64_t>(n);
        bytes -= static_cast<std::uint64_t>(n);
    }
    return {};
}

result<buffer> make_staging()
{
    unique_fd fd(::memfd_create("spanker-staging", MFD_CLOEXEC));
    if (!fd || ::ftruncate(fd.get(), staging_bytes) != 0)
        return fail_os(errno, "cannot make the staging memory for weights");
    auto memory = guarded_map::map(fd.get(), 0, staging_bytes, true, true);
    if (!memory)
        return tl::unexpected(memory.error());
    buffer b;
    b.memory = std::move(*memory);
    b.access = SPANKER_BUFFER_READ;
    b.shape = collective::describe_buffer(staging_bytes);
    return b;
}

std::uint64_t total_bytes(const collective::object& shape)
{
    return shape.rows * collective::weight_row_bytes(shape.cols);
}

// First row or column of a rank's share.
std::uint64_t start_of(const collective::object& shape, std::uint32_t rank)
{
    std::uint64_t start = 0;
    for (std::uint32_t r = 0; r < rank; r++)
        start += shape.extent[r];
    return start;
}

std::optional<chunk_part> columns_part(const collective::object& shape, std::uint32_t rank,
                                       const load_chunk& chunk)
{
    const std::uint64_t row_bytes = collective::weight_row_bytes(shape.cols);
    const std::uint64_t piece_row = collective::weight_row_bytes(shape.extent[rank]);
    if (piece_row == 0)
        return std::nullopt;
    return chunk_part{.card_offset = chunk.offset / row_bytes * piece_row,
                      .staging_offset = collective::weight_row_bytes(start_of(shape, rank)),
                      .rows = static_cast<std::uint32_t>(chunk.bytes / row_bytes),
                      .row_bytes = static_cast<std::uint32_t>(piece_row),
                      .card_pitch = static_cast<std::uint32_t>(piece_row),
                      .staging_pitch = static_cast<std::uint32_t>(row_bytes)};
}

std::optional<chunk_part> range_part(std::uint64_t piece_begin, std::uint64_t piece_end,
                                     const load_chunk& chunk)
{
    const std::uint64_t begin = std::max(piece_begin, chunk.offset);
    const std::uint64_t end = std::min(piece_end, chunk.offset + chunk.bytes);
    if (begin >= end)
        return std::nullopt;
    const auto bytes = static_cast<std::uint32_t>(end - begin);
    return chunk_part{.card_offset = begin - piece_begin,
                      .staging_offset = begin - chunk.offset,
                      .rows = 1,
                      .row_bytes = bytes,
                      .card_pitch = bytes,
                      .staging_pitch = bytes};
}

}  // namespace

std::optional<chunk_part> part_of(const collective::object& shape, std::uint32_t rank,
                                  const load_chunk& chunk)
{
    const std::uint64_t row_bytes = collective::weight_row_bytes(shape.cols);
    switch (shape.split) {
    case collective::sharding::k_split:
        return columns_part(shape, rank, chunk);
    case collective::sharding::rows: {
        const std::uint64_t begin = start_of(shape, rank) * row_bytes;
        return range_part(begin, begin + shape.extent[rank] * row_bytes, chunk);
    }
    case collective::sharding::whole:
        break;
    }
    return rank == shape.owner ? range_part(0, total_bytes(shape), chunk) : std::nullopt;
}

std::uint64_t chunk_bytes(const collective::object& shape)
{
    if (shape.split != collective::sharding::k_split)
        return staging_bytes;
    const std::uint64_t row_bytes = collective::weight_row_bytes(shape.cols);
    return staging_bytes / row_bytes * row_bytes;
}

result<std::unique_ptr<loader>> loader::make(port plane)
{
    std::unique_ptr<loader> made(new loader(std::move(plane)));
    for (buffer& b : made->staging_) {
        auto staging = make_staging();
        if (!staging)
            return tl::unexpected(staging.error());
        b = std::move(*staging);
    }
    return made;
}

void loader::run(std::shared_ptr<load_job> job)
{
    std::shared_ptr<resident_weights> weights;
    auto info = load(job, weights);
    plane_.finish(std::move(job), std::move(info), std::move(weights));
}

result<weights_info> loader::load(const std::shared_ptr<load_job>& job,
                                  std::shared_ptr<resident_weights>& weights)
{
    auto source = check_source_file(job->file.get(), job->how.offset, total_bytes(job->shape));
    if (!source)
        return tl::unexpected(source.error());
    if (job->how.seal && !source->frozen)
        return fail(SPANKER_ERR_NOT_SEALED,
                    "the weights file is not sealed F_SEAL_WRITE, F_SEAL_SHRINK and F_SEAL_GROW; "
                    "seal it or load it without \"seal\"");
    weights_info info = {.how = job->shape.split, .bytes = total_bytes(job->shape)};
    digest_bytes hash{};
    if (source->frozen) {
        auto hashed = hash_file(job);
        if (!hashed)
            return tl::unexpected(hashed.error());
        hash = *hashed;
        weights = plane_.find(*job, hash);
        info.resident = weights != nullptr;
    }
    if (!weights) {
        if (auto there = plane_.allocate(*job); !there)
            return tl::unexpected(there.error());
        auto uploaded = upload_file(job);
        if (!uploaded) {
            plane_.discard(*job);
            return tl::unexpected(uploaded.error());
        }
        hash = *uploaded;
        weights = plane_.commit(*job, hash);
    }
    info.hash = to_hex(hash);
    return info;
}

result<digest_bytes> loader::hash_file(const std::shared_ptr<load_job>& job)
{
    digest hash;
    const std::uint64_t total = total_bytes(job->shape);
    for (std::uint64_t done = 0; done < total;) {
        if (job->cancelled.load())
            return cancelled();
        const load_chunk chunk = {0, done, std::min(staging_bytes, total - done)};
        if (auto filled = fill(*job, chunk); !filled)
            return tl::unexpected(filled.error());
        hash.update({staging_[0].memory.data(), chunk.bytes});
        done += chunk.bytes;
        tell(job, done, "hashing");
    }
    return hash.finish();
}

result<void> loader::fill(load_job& job, const load_chunk& chunk)
{
    return read_all(job.file.get(), staging_[chunk.buffer].memory.data(),
                    job.how.offset + chunk.offset, chunk.bytes);
}

void loader::wait_for(unsigned which)
{
    while (lanes_[which].busy.load(std::memory_order_acquire) != 0)
        lanes_[which].busy.wait(1, std::memory_order_acquire);
}

// Both buffers are idle when this returns, also on an error.
result<digest_bytes> loader::upload_file(const std::shared_ptr<load_job>& job)
{
    digest hash;
    std::optional<error> failure;
    const std::uint64_t total = total_bytes(job->shape), step = chunk_bytes(job->shape);
    unsigned which = 0;
    for (lane& l : lanes_)
        l.failure.reset();
    for (std::uint64_t done = 0; done < total && !failure; which ^= 1) {
        wait_for(which);
        lane& l = lanes_[which];
        failure = l.failure;
        if (!failure && job->cancelled.load())
            failure = cancelled().value();
        const load_chunk chunk = {which, done, std::min(step, total - done)};
        if (!failure)
            if (auto filled = fill(*job, chunk); !filled)
                failure = filled.error();
        if (failure)
            break;
        hash.update({staging_[which].memory.data(), chunk.bytes});
        l.busy.store(1, std::memory_order_relaxed);
        plane_.upload(*job, chunk, [&l](result<void> ended) {
            if (!ended)
                l.failure = ended.error();
            l.busy.store(0, std::memory_order_release);
            l.busy.notify_one();
        });
        done += chunk.bytes;
        tell(job, done, "uploading");
    }
    for (unsigned i = 0; i < 2; i++) {
        wait_for(i);
        if (!failure)
            failure = lanes_[i].failure;
    }
    if (failure)
        return tl::unexpected(std::move(*failure));
    return hash.finish();
}

void loader::tell(const std::shared_ptr<load_job>& job, std::uint64_t done, const char* stage)
{
    const std::uint64_t now = monotonic_ns();
    if (now - told_ns_ < progress_interval_ns)
        return;
    told_ns_ = now;
    plane_.progress(job, {done, total_bytes(job->shape), stage});
}

}  // namespace spanker::daemon::data
