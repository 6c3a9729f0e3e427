// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/portable.hpp"

#include <algorithm>
#include <iterator>

#include "daemon/data/key_reader.hpp"

namespace spanker::daemon {
namespace {

using data::key_reader;

// ---- words, in the order of their enumerations ----

constexpr const char* op_words[SPANKER_SOP_COUNT] = {"nop",         "matmul",    "all_reduce",
                                                     "all_gather",  "broadcast", "write_tensor",
                                                     "read_tensor", "cancel"};
constexpr const char* layout_words[SPANKER_LAYOUT_COUNT] = {"replicated", "row_shard", "k_shard",
                                                            "partial"};
constexpr const char* dtype_words[SPK_DTYPE_COUNT] = {"f32", "f16", "bf16", "i32", "i8"};
constexpr const char* reduce_words[SPK_REDUCE_COUNT] = {"sum", "prod", "min", "max"};
constexpr const char* format_words[SPK_X_COUNT] = {"f32", "q8_k", "q4_k"};
constexpr const char* kind_words[] = {"buffer", "tensor"};
constexpr const char* access_words[] = {"r", "w", "rw"};
constexpr const char* sharding_words[] = {"rows", "k", "whole"};

template <std::size_t N>
result<std::uint32_t> parse_word(const char* const (&words)[N], std::string_view name,
                                 const char* what)
{
    std::string known;
    for (std::uint32_t i = 0; i < N; i++) {
        if (name == words[i])
            return i;
        known += std::string(i ? ", " : "") + words[i];
    }
    return fail(SPANKER_ERR_INVALID, std::string("unknown ") + what + " '" + std::string(name) +
                                         "'; say one of " + known);
}

result<std::uint32_t> parse_kind(std::string_view name)
{
    auto word = parse_word(kind_words, name, "kind");
    return word ? result<std::uint32_t>(*word + SPANKER_KIND_BUFFER) : word;
}

result<std::uint32_t> parse_reduce(std::string_view name)
{
    return parse_word(reduce_words, name, "reduction");
}

result<std::uint32_t> parse_format(std::string_view name)
{
    return parse_word(format_words, name, "format of X");
}

// ---- requests ----

using parser = void (*)(key_reader&, spanker_sqe&);

void parse_nop(key_reader&, spanker_sqe&) {}

void parse_matmul(key_reader& keys, spanker_sqe& e)
{
    e.matmul.weights = keys.need<std::uint32_t>("weights");
    e.matmul.n_tok = keys.need<std::uint32_t>("n_tok");
    e.matmul.x_handle = keys.need<std::uint32_t>("x");
    e.matmul.y_handle = keys.need<std::uint32_t>("y");
    e.matmul.x_offset = keys.number<std::uint64_t>("x_offset", 0);
    e.matmul.y_offset = keys.number<std::uint64_t>("y_offset", 0);
    e.matmul.x_kind = keys.word<std::uint8_t>("x_kind", SPANKER_KIND_BUFFER, parse_kind);
    e.matmul.y_kind = keys.word<std::uint8_t>("y_kind", SPANKER_KIND_BUFFER, parse_kind);
    e.matmul.x_format = keys.word<std::uint8_t>("x_format", SPK_X_F32, parse_format);
    const unsigned exact = keys.boolean("exact") ? SPK_MATMUL_EXACT : 0;
    const unsigned accumulate = keys.boolean("accumulate") ? SPK_MATMUL_ACCUMULATE : 0;
    e.matmul.mode = static_cast<std::uint8_t>(exact | accumulate);
}

void parse_collective(key_reader& keys, spanker_sqe& e)
{
    e.collective.group = keys.number<std::uint32_t>("group", 0);
    e.collective.dtype = keys.word<std::uint8_t>("dtype", SPK_DTYPE_F32, parse_dtype);
    e.collective.src_kind = keys.word<std::uint8_t>("src_kind", SPANKER_KIND_BUFFER, parse_kind);
    e.collective.dst_kind = keys.word<std::uint8_t>("dst_kind", SPANKER_KIND_BUFFER, parse_kind);
    e.collective.src_handle = keys.need<std::uint32_t>("src");
    e.collective.dst_handle = keys.need<std::uint32_t>("dst");
    e.collective.src_offset = keys.number<std::uint64_t>("src_offset", 0);
    e.collective.dst_offset = keys.number<std::uint64_t>("dst_offset", 0);
    e.collective.count = keys.need<std::uint64_t>("count");
}

void parse_all_reduce(key_reader& keys, spanker_sqe& e)
{
    parse_collective(keys, e);
    e.collective.reduce = keys.word<std::uint8_t>("reduce", SPK_REDUCE_SUM, parse_reduce);
}

void parse_broadcast(key_reader& keys, spanker_sqe& e)
{
    parse_collective(keys, e);
    e.root = keys.number<std::uint16_t>("root", 0);
}

void parse_transfer(key_reader& keys, spanker_sqe& e)
{
    e.transfer.tensor = keys.need<std::uint32_t>("tensor");
    e.transfer.buffer = keys.need<std::uint32_t>("buffer");
    e.transfer.tensor_offset = keys.number<std::uint64_t>("tensor_offset", 0);
    e.transfer.buffer_offset = keys.number<std::uint64_t>("buffer_offset", 0);
    e.transfer.bytes = keys.need<std::uint64_t>("bytes");
    e.transfer.card = keys.number<std::uint32_t>("rank", 0);
}

void parse_cancel(key_reader& keys, spanker_sqe& e)
{
    e.cancel.user_data = keys.need<std::uint64_t>("target");
}

// In the order of enum spanker_session_op.
constexpr parser parsers[SPANKER_SOP_COUNT] = {parse_nop,        parse_matmul,    parse_all_reduce,
                                               parse_collective, parse_broadcast, parse_transfer,
                                               parse_transfer,   parse_cancel};

result<spanker_sqe> parse(std::uint8_t op, key_reader& keys, std::uint64_t now_ns)
{
    spanker_sqe e = {};
    e.opcode = op;
    parsers[op](keys, e);
    e.user_data = keys.number<std::uint64_t>("user_data", 0);
    const auto wait_ns = keys.number<std::uint64_t>("deadline_ns", 0);
    if (wait_ns != 0 && __builtin_add_overflow(now_ns, wait_ns, &e.deadline_ns))
        e.deadline_ns = ~std::uint64_t{0};
    const unsigned linked = keys.boolean("linked") ? SPANKER_SQE_LINKED : 0;
    const unsigned barrier = keys.boolean("barrier") ? SPANKER_SQE_BARRIER : 0;
    e.flags = static_cast<std::uint8_t>(linked | barrier);
    if (auto good = keys.finish(); !good) {
        error why = good.error();
        why.message = std::string(op_words[op]) + ": " + why.message;
        return tl::unexpected(std::move(why));
    }
    return e;
}

}  // namespace

result<std::uint8_t> parse_op(std::string_view name)
{
    auto word = parse_word(op_words, name, "operation");
    if (!word)
        return tl::unexpected(word.error());
    return static_cast<std::uint8_t>(*word);
}

const char* op_name(std::uint8_t op) { return op < SPANKER_SOP_COUNT ? op_words[op] : "unknown"; }

result<std::uint32_t> parse_layout(std::string_view name)
{
    return parse_word(layout_words, name, "layout");
}

result<std::uint32_t> parse_dtype(std::string_view name)
{
    return parse_word(dtype_words, name, "dtype");
}

result<std::uint32_t> parse_access(std::string_view name)
{
    static_assert(SPANKER_BUFFER_READ == 1 && SPANKER_BUFFER_WRITE == 2);
    auto word = parse_word(access_words, name, "access");
    return word ? result<std::uint32_t>(*word + 1) : word;
}

result<std::optional<collective::sharding>> parse_sharding(std::string_view name)
{
    if (name == "auto")
        return std::optional<collective::sharding>();
    auto word = parse_word(sharding_words, name, "sharding");
    if (!word)
        return fail(SPANKER_ERR_INVALID, word.error().message + ", auto");
    return std::optional(static_cast<collective::sharding>(*word));
}

const char* sharding_name(collective::sharding how)
{
    return sharding_words[static_cast<unsigned>(how)];
}

result<spanker_sqe> parse_request(const options& from, std::uint64_t now_ns)
{
    key_reader keys(from);
    const std::string_view name = keys.text("op");
    if (name.empty())
        return fail(SPANKER_ERR_INVALID, "key 'op' is missing or no name of an operation");
    auto op = parse_op(name);
    if (!op)
        return tl::unexpected(op.error());
    return parse(*op, keys, now_ns);
}

result<spanker_sqe> parse_request(std::uint8_t op, const options& from, std::uint64_t now_ns)
{
    if (op >= SPANKER_SOP_COUNT)
        return fail(SPANKER_ERR_INVALID, "unknown operation " + std::to_string(op));
    key_reader keys(from);
    return parse(op, keys, now_ns);
}

result<weights_options> parse_weights(const options& from)
{
    key_reader keys(from);
    weights_options how;
    const std::string_view format = keys.text("format"), split = keys.text("sharding");
    if (!format.empty() && format != "q4_k")
        keys.refuse("format '" + std::string(format) + "' is unknown; say q4_k");
    how.n_out = keys.need<std::uint64_t>("n_out");
    how.k = keys.need<std::uint64_t>("k");
    how.offset = keys.number<std::uint64_t>("offset", 0);
    how.chainable = keys.boolean("chainable");
    how.seal = keys.boolean("seal");
    how.as_job = keys.boolean("job");
    if (!split.empty()) {
        if (auto parsed = parse_sharding(split))
            how.how = *parsed;
        else
            keys.refuse(parsed.error().message);
    }
    if (auto good = keys.finish(); !good)
        return tl::unexpected(good.error());
    return how;
}

result<session_options> parse_session(const options& from)
{
    key_reader keys(from);
    session_options how;
    how.sq_entries = keys.number<std::uint32_t>("sq_entries", how.sq_entries);
    how.arena_bytes = keys.number<std::uint64_t>("arena_bytes", how.arena_bytes);
    if (const auto* cards = keys.numbers("cards")) {
        if (cards->empty() || cards->size() > SPK_MAX_CARDS)
            keys.refuse("key 'cards' must name 1 to " + std::to_string(SPK_MAX_CARDS) + " cards");
        for (const std::uint64_t card : *cards) {
            if (card > ~std::uint32_t{0})
                keys.refuse("there is no card " + std::to_string(card));
            how.cards.push_back(static_cast<std::uint32_t>(card));
        }
    }
    if (auto good = keys.finish(); !good)
        return tl::unexpected(good.error());
    return how;
}

result<void> parse_none(const options& from) { return key_reader(from).finish(); }

}  // namespace spanker::daemon
