// SPDX-License-Identifier: Apache-2.0
//
// Loading weights: the file is read (never mapped) into the daemon's own two
// staging buffers, hashed, and copied to the cards piece by piece; while one
// buffer is on its way the other is filled. A file sealed against writing is
// hashed first, and not uploaded if the cards have it.
//
// The loader thread reads and hashes; what touches cards and tables is asked of
// the plane thread through `port`, one question at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/collective/plan.hpp"
#include "daemon/data/buffer.hpp"
#include "daemon/data/digest.hpp"
#include "daemon/data/plane.hpp"
#include "daemon/data/weights_store.hpp"

namespace spanker::daemon::data {

inline constexpr std::uint64_t staging_bytes = 4u << 20;

// One load; made on the plane thread, then the loader's until it is finished.
struct load_job {
    load_id id = 0;
    session_id owner = 0;
    uid_t uid = 0;
    unique_fd file;
    weights_options how;
    collective::object shape;
    std::vector<std::uint32_t> cards;
    std::function<void(const load_progress&)> progress;  // runs on the loop
    reply<weights_info> done;                            // runs on the loop
    std::atomic<bool> cancelled{false};

    // Plane thread only.
    card_object on_cards;
    buffer* staging = nullptr;  // two, of the loader that has it
    bool answered = false;      // its session ended meanwhile
};

// Bytes of the file that lie in one staging buffer, whole rows when rows are cut.
struct load_chunk {
    unsigned buffer = 0;                  // which of the two
    std::uint64_t offset = 0, bytes = 0;  // in the weights
};

// What one chunk brings to one rank, as one DMA_IN.
struct chunk_part {
    std::uint64_t card_offset = 0, staging_offset = 0;
    std::uint32_t rows = 0, row_bytes = 0, card_pitch = 0, staging_pitch = 0;
};
std::optional<chunk_part> part_of(const collective::object& shape, std::uint32_t rank,
                                  const load_chunk& chunk);
// How many bytes a chunk may have: whole rows for k_split.
std::uint64_t chunk_bytes(const collective::object& shape);

class loader final {
public:
    // Answers of the plane thread; each call blocks the loader thread.
    struct port {
        // Weights that are there already, with a reference taken.
        std::function<std::shared_ptr<resident_weights>(load_job&, const digest_bytes&)> find;
        std::function<result<void>(load_job&)> allocate;
        // Starts a copy; `ended` is called on the plane thread.
        std::function<void(load_job&, load_chunk, std::function<void(result<void>)> ended)> upload;
        std::function<std::shared_ptr<resident_weights>(load_job&, const digest_bytes&)> commit;
        std::function<void(load_job&)> discard;
        // Always called last.
        std::function<void(std::shared_ptr<load_job>, result<weights_info>,
                           std::shared_ptr<resident_weights>)>
            finish;
        std::function<void(std::shared_ptr<load_job>, load_progress)> progress;
    };

    static result<std::unique_ptr<loader>> make(port plane);

    void run(std::shared_ptr<load_job> job);  // on the loader thread
    buffer* staging() { return staging_; }

private:
    explicit loader(port plane) : plane_(std::move(plane)) {}

    result<weights_info> load(const std::shared_ptr<load_job>& job,
                              std::shared_ptr<resident_weights>& weights);
    result<digest_bytes> hash_file(const std::shared_ptr<load_job>& job);
    result<digest_bytes> upload_file(const std::shared_ptr<load_job>& job);
    result<void> fill(load_job& job, const load_chunk& chunk);
    void tell(const std::shared_ptr<load_job>& job, std::uint64_t done, const char* stage);
    void wait_for(unsigned which);

    const port plane_;
    buffer staging_[2];
    struct lane {
        std::atomic<std::uint32_t> busy{0};
        std::optional<error> failure;  // written before busy falls
    } lanes_[2];
    std::uint64_t told_ns_ = 0;
};

}  // namespace spanker::daemon::data
