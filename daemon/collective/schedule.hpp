// SPDX-License-Identifier: Apache-2.0
//
// Who passes what to whom: collectives as tracks of chains.
//
// A chain is the way of one slice over the cards: a SEND, cut-through stages,
// and a last receive. A track is a set of chains that flow in one sense round
// the ring (or along the line) over the same lanes; its `share` of the vector
// is cut in as many chunks as it has chains, its chunks in slices. Slices go
// slice-major: number j of every chunk runs its whole way before j + 1 needs a
// lane. A track other than the first is shifted against it by `shift` quarters
// of a slice, so that the steps that use DDR twice do not coincide.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/collective/route.hpp"
#include "uapi/spanker_card.h"

namespace spanker::daemon::collective {

struct node {
    std::uint8_t rank = 0;
    std::uint8_t opcode = SPK_OP_LINK_SEND;
    std::uint8_t rx_port = SPK_NO_PORT, tx_port = SPK_NO_PORT;
    std::uint8_t rx_channel = 0, tx_channel = 0;
};

struct chain {
    std::uint8_t owner = 0;  // reduce: rank that ends up with the sum; else rank of the source
    std::vector<node> nodes;
};

struct track {
    std::uint32_t share_of = 1;  // the track carries 1 / share_of of the vector
    std::uint32_t part = 0;      // and which
    std::uint32_t shift = 0;     // quarters of a slice
    std::uint32_t chunks = 1;    // 1: every chain carries all of the share
    std::vector<chain> chains;
};
using schedule = std::vector<track>;

// Fused AllReduce. Ring: SEND, RECV_REDUCE_SEND x (N-2), RECV_REDUCE_COPY with send-on,
// RECV_COPY_SEND x (N-2), RECV. Line: half the vector rooted at each end, reduced on channel 0,
// turned at the end card and handed back on channel 1. `tracks`: 1 or 2 senses of the ring.
schedule all_reduce_schedule(const route& way, std::uint32_t tracks);
// The first half of it: RECV_REDUCE_COPY ends the chain. On a line each end card holds half.
schedule reduce_scatter_schedule(const route& way, std::uint32_t tracks);
// Ring: half of each block each way. Line: every block both ways.
schedule all_gather_schedule(const route& way, std::uint32_t tracks);
// home: on a ring, let the data come all the way round to the root, over cables that are idle
// anyway: that is how it gets from src to dst there without taking DDR from the sends.
schedule broadcast_schedule(const route& way, std::uint32_t root, bool home = false);

// Elements of one slice: chunk of the track, and where in the vector it lies.
struct slice {
    std::uint64_t begin = 0, end = 0;
};

// Where slices lie in a vector of `elements`, cut at multiples of `unit` elements.
class slicing {
public:
    // slice_elements: none is longer (a multiple of unit).
    slicing(const track& of, std::uint64_t elements, std::uint64_t unit,
            std::uint64_t slice_elements);

    std::uint64_t slices() const { return cuts_; }  // per chunk
    slice share() const { return share_; }
    slice chunk(std::uint32_t index) const;
    slice at(std::uint32_t chunk, std::uint64_t index) const;

private:
    std::uint64_t cut(std::uint64_t length, std::uint64_t index) const;

    slice share_;
    std::uint32_t chunks_ = 1, shift_ = 0;
    std::uint64_t unit_ = 1;
    std::uint64_t whole_ = 1;  // slices of full length per chunk, were there no shift
    std::uint64_t cuts_ = 1;
};

}  // namespace spanker::daemon::collective
