// SPDX-License-Identifier: Apache-2.0
//
// How a chunk of a weight file is dealt to the cards: every byte of the matrix
// lands once, at its place in some piece.
#include "daemon/data/load.hpp"

#include <gtest/gtest.h>

#include "daemon/collective/sharding.hpp"

#include <algorithm>

namespace spanker::daemon::data {
namespace {

using collective::sharding;

struct deal {
    sharding how;
    std::uint64_t n_out, k;
    std::uint32_t cards;
};

const deal deals[] = {
    {sharding::rows, 10, 512, 4},    {sharding::rows, 3, 256, 4},    {sharding::rows, 1024, 256, 3},
    {sharding::k_split, 7, 1024, 4}, {sharding::k_split, 5, 768, 4}, {sharding::k_split, 9, 256, 2},
    {sharding::whole, 6, 512, 3},
};

std::vector<std::byte> pattern(std::uint64_t bytes)
{
    std::vector<std::byte> file(bytes);
    for (std::uint64_t i = 0; i < bytes; i++)
        file[i] = static_cast<std::byte>(i * 31 + i / 251);
    return file;
}

// Where byte `at` of a rank's piece comes from in the file.
std::uint64_t origin_of(const collective::object& shape, std::uint32_t rank, std::uint64_t at)
{
    const std::uint64_t row_bytes = collective::weight_row_bytes(shape.cols);
    std::uint64_t before = 0;
    for (std::uint32_t r = 0; r < rank; r++)
        before += shape.extent[r];
    if (shape.split == sharding::k_split) {
        const std::uint64_t piece_row = collective::weight_row_bytes(shape.extent[rank]);
        return at / piece_row * row_bytes + collective::weight_row_bytes(before) + at % piece_row;
    }
    return (shape.split == sharding::rows ? before * row_bytes : 0) + at;
}

TEST(data_load, every_byte_lands_once_at_its_place)
{
    for (const deal& d : deals) {
        const auto shape = *collective::describe_weights(d.how, d.n_out, d.k, d.cards, false, 1);
        const std::uint64_t row_bytes = collective::weight_row_bytes(d.k),
                            total = d.n_out * row_bytes;
        const auto file = pattern(total);
        const std::uint64_t step = d.how == sharding::k_split ? 2 * row_bytes : 1000;
        for (std::uint32_t rank = 0; rank < d.cards; rank++) {
            std::vector<std::byte> piece(collective::piece_bytes(shape, rank));
            std::vector<int> writes(piece.size());
            for (std::uint64_t at = 0; at < total; at += step) {
                const load_chunk chunk = {0, at, std::min(step, total - at)};
                const auto part = part_of(shape, rank, chunk);
                for (std::uint32_t row = 0; part && row < part->rows; row++)
                    for (std::uint32_t i = 0; i < part->row_bytes; i++) {
                        const auto to = part->card_offset + row * part->card_pitch + i;
                        ASSERT_LT(to, piece.size());
                        piece[to] = file[at + part->staging_offset + row * part->staging_pitch + i];
                        writes[to]++;
                    }
            }
            for (std::uint64_t i = 0; i < piece.size(); i++) {
                ASSERT_EQ(writes[i], 1) << "byte " << i << " of rank " << rank;
                ASSERT_EQ(piece[i], file[origin_of(shape, rank, i)]);
            }
        }
    }
}

TEST(data_load, chunks_of_a_k_split_are_whole_rows)
{
    const auto shape = *collective::describe_weights(sharding::k_split, 4, 14336, 2);
    const std::uint64_t row_bytes = collective::weight_row_bytes(14336);
    EXPECT_EQ(chunk_bytes(shape) % row_bytes, 0u);
    EXPECT_GT(chunk_bytes(shape) + row_bytes, staging_bytes);
    EXPECT_EQ(chunk_bytes(*collective::describe_weights(sharding::rows, 4, 256, 2)), staging_bytes);
}

TEST(data_load, the_digest_is_sha_256)
{
    digest d;
    const std::byte abc[] = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
    d.update(abc);
    EXPECT_EQ(to_hex(d.finish()),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace spanker::daemon::data
