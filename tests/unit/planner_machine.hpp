// SPDX-License-Identifier: Apache-2.0
//
// A fabric that runs plans and knows nothing of how they are made: card memory,
// host buffers, lanes, messages, signals and gangs, straight from card.md and
// from the relocation rules of plan.hpp.
//
// An element is a number modulo 2^64, so that any missing, doubled or misplaced
// contribution shows. Messages travel whole; time does not exist: what may run
// next runs in an order drawn from `seed`, so a missing dependency shows too.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "planner_fabric.hpp"

namespace spanker::daemon::collective {

using elements = std::vector<std::uint64_t>;
using fold = std::function<std::uint64_t(std::uint64_t arriving, std::uint64_t local)>;

class machine {
public:
    machine(const graph& fabric, const request& of, const plan& what,
            std::uint32_t element_bytes = 4, std::uint32_t seed = 1);

    fold reduce = [](std::uint64_t a, std::uint64_t b) { return a + b; };

    // Of object `index`: a buffer (the same on every rank) or the rank's piece.
    elements& memory(std::uint32_t rank, std::uint32_t index);
    // w(o, i) of a weights object, o and i in the whole matrix.
    static std::uint64_t weight(std::uint64_t o, std::uint64_t i);

    // Empty on success; else what is wrong.
    std::string execute();

    // How many items of an opcode ran on a rank.
    std::uint64_t ran(std::uint32_t rank, std::uint8_t opcode) const;

private:
    struct pending {
        spanker_work_item item;
        std::uint64_t gang = 0;  // 1 + sequence of the gang that holds it; 0: none
        std::uint64_t sequence = 0;
    };
    struct message {
        std::uint32_t tag;
        std::uint8_t dtype;
        elements data;
    };
    struct card {
        std::map<std::uint32_t, std::deque<std::uint64_t>> lanes;  // sequences, by lane
        std::map<std::uint64_t, pending> waiting;
        std::map<std::uint64_t, bool> fired;  // gangs by sequence
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<message>> inbox;
        std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>>
            peer;  // port -> rank, port
        std::vector<std::uint32_t> signals, posted;
        std::map<std::uint32_t, elements> pieces;
        std::map<std::uint8_t, std::uint64_t> ran;
        std::uint64_t next = 1;
    };

    void submit(const segment& part);
    spanker_work_item relocate(std::uint32_t rank, spanker_work_item item, const segment& part);
    bool step(std::uint32_t rank);
    bool may_start(card& on, const pending& one);
    bool start(std::uint32_t rank, pending& one);
    bool fire(std::uint32_t id);
    void finish(std::uint32_t rank, std::uint64_t sequence);
    void link(std::uint32_t rank, const spanker_work_item& item);
    void move_rows(std::uint32_t rank, const spanker_work_item& item);
    void matmul(std::uint32_t rank, const spanker_work_item& item);
    elements read(std::uint32_t rank, const spanker_operand& from, std::uint64_t bytes);
    void write(std::uint32_t rank, const spanker_operand& to, const elements& data);
    std::uint64_t* at(std::uint32_t rank, const spanker_operand& operand, std::uint64_t offset,
                      std::uint64_t bytes);
    void complain(const std::string& what);

    const request& of_;
    const plan& what_;
    std::uint32_t element_;
    std::vector<card> cards_;
    std::map<std::uint32_t, elements> buffers_;
    std::uint32_t tags_ = 0, gangs_ = 0;
    std::minstd_rand dice_;
    std::string wrong_;
};

// A number that names (rank, index) and nothing else.
inline std::uint64_t contribution(std::uint64_t rank, std::uint64_t index)
{
    std::uint64_t z = (rank + 1) * 0x9e3779b97f4a7c15ull + (index + 1) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 30) * 0x94d049bb133111ebull;
    return z ^ z >> 27;
}

}  // namespace spanker::daemon::collective
