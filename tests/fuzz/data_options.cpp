// SPDX-License-Identifier: Apache-2.0
//
// Options of the portable form with keys, types and values at random. What
// parses must be an entry that the ring's own check takes (a group that is
// not 0 excepted: the session, not the parser, knows groups).
#include <cstdint>
#include <cstdlib>

#include "daemon/data/entry.hpp"
#include "daemon/data/portable.hpp"

namespace {

using namespace spanker::daemon;

constexpr const char* keys[] = {"op",       "user_data", "deadline_ns", "linked",        "barrier",
                                "weights",  "n_tok",     "x",           "x_kind",        "x_offset",
                                "y",        "y_kind",    "y_offset",    "x_format",      "exact",
                                "group",    "dtype",     "reduce",      "root",          "src",
                                "src_kind", "dst",       "dst_kind",    "count",         "tensor",
                                "buffer",   "bytes",     "rank",        "tensor_offset", "target",
                                "format",   "n_out",     "k",           "sharding",      "seal",
                                "cards"};
constexpr const char* words[] = {"matmul", "all_reduce", "nop",   "buffer", "tensor", "f32",
                                 "q4_k",   "sum",        "rows",  "auto",   "k",      "",
                                 "cancel", "broadcast",  "whole", "i8",     "max",    "bf16"};

struct reader {
    const std::uint8_t* data;
    std::size_t left;

    std::uint8_t byte() { return left ? (left--, *data++) : 0; }
    std::uint64_t number()
    {
        std::uint64_t value = 0;
        for (unsigned n = byte() % 9; n > 0; n--)
            value = value << 8 | byte();
        return value;
    }
    option_value value()
    {
        switch (byte() % 6) {
        case 0:
            return byte() % 2 == 1;
        case 1:
            return 0.5 * byte();
        case 2:
            return std::string(words[byte() % std::size(words)]);
        case 3:
            return std::vector<std::uint64_t>(byte() % 20, number());
        default:
            return number();
        }
    }
};

void expect_lawful(const result<spanker_sqe>& parsed)
{
    if (!parsed) {
        if (parsed.error().kind != SPANKER_ERR_INVALID || parsed.error().message.empty())
            std::abort();
        return;
    }
    const auto answer = data::check_entry(*parsed);
    if (!answer && answer.error().kind != SPANKER_ERR_NO_OBJECT)
        std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    reader in{bytes, size};
    const std::uint8_t op = in.byte();
    options from;
    while (in.left > 0 && from.size() < 24)
        from.push_back({keys[in.byte() % std::size(keys)], in.value()});
    expect_lawful(parse_request(from, in.number()));
    expect_lawful(parse_request(op, from, in.number()));
    (void)parse_weights(from);
    (void)parse_session(from);
    (void)parse_none(from);
    return 0;
}
