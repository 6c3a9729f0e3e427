// SPDX-License-Identifier: Apache-2.0
//
// spankerctl.hpp - the C++20 layer over spankerctl.h; header only.
//
// Handles are move-only types that free themselves. Functions return
// result<T>: a value or the spanker_error; nothing throws but std::bad_alloc and value().
// Contracts (sizes, units, threads) are those of spankerctl.h: what a session made must go before it.
//
//   auto link = spanker::connection::open();
//   if (!link) { std::cerr << link.error().message; return 1; }
//   auto session = link->open_session();
#pragma once

#include <spankerctl.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spanker {

using error = spanker_error;

// Thrown by result::value() only.
class bad_result : public std::runtime_error {
public:
    explicit bad_result(const error& e) : std::runtime_error(e.message), error_(e) {}
    const error& what_failed() const { return error_; }

private:
    error error_;
};

// A value or an error.
template <typename T>
class [[nodiscard]] result {
public:
    result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    result(const error& e) : state_(std::in_place_index<1>, e) {}

    bool has_value() const { return state_.index() == 0; }
    explicit operator bool() const { return has_value(); }
    const spanker::error& error() const { return std::get<1>(state_); }

    T& value() &
    {
        if (!has_value())
            throw bad_result(error());
        return std::get<0>(state_);
    }
    T&& value() && { return std::move(value()); }
    // Only after a check.
    T& operator*() { return std::get<0>(state_); }
    const T& operator*() const { return std::get<0>(state_); }
    T* operator->() { return &std::get<0>(state_); }
    const T* operator->() const { return &std::get<0>(state_); }

private:
    std::variant<T, spanker::error> state_;
};

struct done {};
template <>
class [[nodiscard]] result<void> : public result<done> {
public:
    result() : result<done>(done{}) {}
    using result<done>::result;
};

namespace detail {

template <typename T, auto Free>
struct free_with {
    void operator()(T* handle) const { Free(handle); }
};
template <typename T, auto Free>
using handle = std::unique_ptr<T, free_with<T, Free>>;

inline result<void> check(int r, const void* handle)
{
    if (r >= 0)
        return {};
    return *spanker_last_error(handle);
}

template <typename T, typename H>
result<T> made(int r, const void* handle, H* raw)
{
    if (r < 0)
        return *spanker_last_error(handle);
    return T(raw);
}

// A list whose length only the call knows: asks again with room for all.
template <typename T, typename Ask>
result<std::vector<T>> listed(const void* handle, const Ask& ask)
{
    std::vector<T> out(64);
    for (;;) {
        std::size_t count = 0;
        if (ask(out.data(), out.size(), &count) < 0)
            return *spanker_last_error(handle);
        const bool all = count <= out.size();
        out.resize(count);
        if (all)
            return out;
    }
}

}  // namespace detail

// Host memory that the cards reach.
class buffer {
public:
    explicit buffer(spanker_buffer* raw) : raw_(raw) {}
    spanker_buffer* get() const { return raw_.get(); }
    template <typename T = std::byte>
    std::span<T> as() const
    {
        return {static_cast<T*>(spanker_buffer_data(get())),
                spanker_buffer_bytes(get()) / sizeof(T)};
    }

private:
    detail::handle<spanker_buffer, spanker_buffer_free> raw_;
};

class tensor {
public:
    explicit tensor(spanker_tensor* raw) : raw_(raw) {}
    spanker_tensor* get() const { return raw_.get(); }

private:
    detail::handle<spanker_tensor, spanker_tensor_free> raw_;
};

class weights {
public:
    explicit weights(spanker_weights* raw) : raw_(raw) {}
    spanker_weights* get() const { return raw_.get(); }

private:
    detail::handle<spanker_weights, spanker_weights_free> raw_;
};

// An operand is a buffer or a tensor, from an offset (bytes) on.
struct operand : spanker_operand_ref {
    operand(const spanker::buffer& b, std::uint64_t offset_bytes = 0)
        : spanker_operand_ref{b.get(), nullptr, offset_bytes}
    {}
    operand(const spanker::tensor& t, std::uint64_t offset_bytes = 0)
        : spanker_operand_ref{nullptr, t.get(), offset_bytes}
    {}
};

class request {
public:
    explicit request(spanker_request* raw) : raw_(raw) {}
    bool ended() const { return spanker_request_poll(raw_.get()) == 1; }
    int eventfd() const { return spanker_request_eventfd(raw_.get()); }
    result<spanker_result> wait(std::uint64_t timeout_ns = SPANKER_FOREVER)
    {
        spanker_result out = {};
        if (spanker_request_wait(raw_.get(), timeout_ns, &out) < 0)
            return *spanker_last_error(raw_.get());
        return out;
    }
    result<void> cancel() { return detail::check(spanker_request_cancel(raw_.get()), raw_.get()); }

private:
    detail::handle<spanker_request, spanker_request_free> raw_;
};

// A load under way, and what it makes.
struct weights_request {
    spanker::weights weights;
    spanker::request request;
};

// spanker_weights_options with its size filled in.
struct load_options : spanker_weights_options {
    load_options(spanker_sharding how = SPANKER_SHARD_AUTO, std::uint64_t load_timeout_ns = 0,
                 spanker_progress_fn* told = nullptr, void* told_data = nullptr)
        : spanker_weights_options{sizeof(spanker_weights_options), how, told, told_data,
                                  load_timeout_ns}
    {}
};

// spanker_work_options with its size filled in.
struct work_options : spanker_work_options {
    explicit work_options(std::uint32_t work_flags = 0, std::uint64_t work_timeout_ns = 0)
        : spanker_work_options{sizeof(spanker_work_options), work_flags, work_timeout_ns}
    {}
};

class session {
public:
    explicit session(spanker_session* raw) : raw_(raw) {}
    spanker_session* get() const { return raw_.get(); }

    std::vector<std::uint32_t> cards() const
    {
        std::vector<std::uint32_t> out(16);
        out.resize(static_cast<std::size_t>(spanker_session_cards(get(), out.data(), out.size())));
        return out;
    }
    result<buffer> make_buffer(std::uint64_t bytes,
                               spanker_access access = SPANKER_ACCESS_READ_WRITE)
    {
        spanker_buffer* raw = nullptr;
        const int r = spanker_buffer_create(get(), bytes, access, &raw);
        return detail::made<buffer>(r, get(), raw);
    }
    result<buffer> import_buffer(int memfd, std::uint64_t offset, std::uint64_t bytes,
                                 spanker_access access = SPANKER_ACCESS_READ_WRITE)
    {
        spanker_buffer* raw = nullptr;
        const int r = spanker_buffer_import(get(), memfd, offset, bytes, access, &raw);
        return detail::made<buffer>(r, get(), raw);
    }
    result<void> seal(buffer& b) { return detail::check(spanker_buffer_seal(b.get()), get()); }
    result<tensor> make_tensor(spanker_layout layout, spanker_dtype dtype, std::uint64_t rows,
                               std::uint64_t cols)
    {
        spanker_tensor* raw = nullptr;
        const int r = spanker_tensor_alloc(get(), layout, dtype, rows, cols, &raw);
        return detail::made<tensor>(r, get(), raw);
    }
    result<weights> load(std::span<const std::byte> blocks, std::uint64_t n_out, std::uint64_t k,
                         const load_options& options = load_options())
    {
        spanker_weights* raw = nullptr;
        const int r =
            spanker_weights_load(get(), blocks.data(), blocks.size(), n_out, k, &options, &raw);
        return detail::made<weights>(r, get(), raw);
    }
    // From a file or memfd at `offset` on.
    result<weights> load_file(int fd, std::uint64_t offset, std::uint64_t n_out, std::uint64_t k,
                              const load_options& options = load_options())
    {
        spanker_weights* raw = nullptr;
        const int r = spanker_weights_load_fd(get(), fd, offset, n_out, k, &options, &raw);
        return detail::made<weights>(r, get(), raw);
    }
    // Without waiting: the weights may be used when the request has ended well.
    result<weights_request> load_async(std::span<const std::byte> blocks, std::uint64_t n_out,
                                       std::uint64_t k,
                                       const load_options& options = load_options())
    {
        spanker_weights* w = nullptr;
        spanker_request* r = nullptr;
        if (spanker_weights_load_async(get(), blocks.data(), blocks.size(), n_out, k, &options, &w,
                                       &r) < 0)
            return *spanker_last_error(get());
        return weights_request{weights(w), request(r)};
    }
    result<weights_request> load_file_async(int fd, std::uint64_t offset, std::uint64_t n_out,
                                            std::uint64_t k,
                                            const load_options& options = load_options())
    {
        spanker_weights* w = nullptr;
        spanker_request* r = nullptr;
        if (spanker_weights_load_fd_async(get(), fd, offset, n_out, k, &options, &w, &r) < 0)
            return *spanker_last_error(get());
        return weights_request{weights(w), request(r)};
    }
    result<spanker_result> matmul(const weights& w, operand x, operand y, std::uint64_t n_tok,
                                  spanker_x_format format = SPANKER_X_F32,
                                  const work_options& options = work_options())
    {
        spanker_result out = {};
        const int r = spanker_matmul(get(), w.get(), x, format, y, n_tok, &options, &out);
        return outcome(r, out);
    }
    result<request> matmul_async(const weights& w, operand x, operand y, std::uint64_t n_tok,
                                 spanker_x_format format = SPANKER_X_F32,
                                 const work_options& options = work_options())
    {
        spanker_request* raw = nullptr;
        const int r = spanker_matmul_async(get(), w.get(), x, format, y, n_tok, &options, &raw);
        return detail::made<request>(r, get(), raw);
    }
    result<spanker_result> all_reduce(operand src, operand dst, std::uint64_t count,
                                      spanker_dtype dtype, spanker_reduce reduce = SPANKER_SUM,
                                      const work_options& options = work_options())
    {
        spanker_result out = {};
        const int r = spanker_all_reduce(get(), src, dst, count, dtype, reduce, &options, &out);
        return outcome(r, out);
    }
    result<request> all_reduce_async(operand src, operand dst, std::uint64_t count,
                                     spanker_dtype dtype, spanker_reduce reduce = SPANKER_SUM,
                                     const work_options& options = work_options())
    {
        spanker_request* raw = nullptr;
        const int r =
            spanker_all_reduce_async(get(), src, dst, count, dtype, reduce, &options, &raw);
        return detail::made<request>(r, get(), raw);
    }
    result<spanker_result> all_gather(operand src, operand dst, std::uint64_t count,
                                      spanker_dtype dtype,
                                      const work_options& options = work_options())
    {
        spanker_result out = {};
        const int r = spanker_all_gather(get(), src, dst, count, dtype, &options, &out);
        return outcome(r, out);
    }
    result<request> all_gather_async(operand src, operand dst, std::uint64_t count,
                                     spanker_dtype dtype,
                                     const work_options& options = work_options())
    {
        spanker_request* raw = nullptr;
        const int r = spanker_all_gather_async(get(), src, dst, count, dtype, &options, &raw);
        return detail::made<request>(r, get(), raw);
    }
    result<spanker_result> broadcast(operand src, operand dst, std::uint64_t count,
                                     spanker_dtype dtype, std::uint32_t root,
                                     const work_options& options = work_options())
    {
        spanker_result out = {};
        const int r = spanker_broadcast(get(), src, dst, count, dtype, root, &options, &out);
        return outcome(r, out);
    }
    result<request> broadcast_async(operand src, operand dst, std::uint64_t count,
                                    spanker_dtype dtype, std::uint32_t root,
                                    const work_options& options = work_options())
    {
        spanker_request* raw = nullptr;
        const int r = spanker_broadcast_async(get(), src, dst, count, dtype, root, &options, &raw);
        return detail::made<request>(r, get(), raw);
    }
    // Bytes of a tensor in its logical order; rank: whose summand of a partial one.
    result<void> write(const tensor& t, const buffer& from, std::uint64_t bytes,
                       std::uint64_t offset = 0, std::uint32_t rank = 0,
                       std::uint64_t from_offset = 0)
    {
        return detail::check(
            spanker_tensor_write(t.get(), offset, from.get(), from_offset, bytes, rank, nullptr),
            get());
    }
    result<void> read(const tensor& t, const buffer& to, std::uint64_t bytes,
                      std::uint64_t offset = 0, std::uint32_t rank = 0, std::uint64_t to_offset = 0)
    {
        return detail::check(
            spanker_tensor_read(t.get(), offset, to.get(), to_offset, bytes, rank, nullptr), get());
    }
    result<request> write_async(const tensor& t, const buffer& from, std::uint64_t bytes,
                                std::uint64_t offset = 0, std::uint32_t rank = 0,
                                const work_options& options = work_options())
    {
        spanker_request* raw = nullptr;
        const int r =
            spanker_tensor_write_async(t.get(), offset, from.get(), 0, bytes, rank, &options, &raw);
        return detail::made<request>(r, get(), raw);
    }
    result<request> read_async(const tensor& t, const buffer& to, std::uint64_t bytes,
                               std::uint64_t offset = 0, std::uint32_t rank = 0,
                               const work_options& options = work_options())
    {
        spanker_request* raw = nullptr;
        const int r =
            spanker_tensor_read_async(t.get(), offset, to.get(), 0, bytes, rank, &options, &raw);
        return detail::made<request>(r, get(), raw);
    }
    // out[m x n] = a . b^T, both Q4_K, on one card.
    result<void> matmul_q4_k(std::span<const std::byte> a, std::span<const std::byte> b,
                             std::span<float> out, std::uint64_t m, std::uint64_t k,
                             std::uint64_t n)
    {
        return detail::check(spanker_matmul_q4_k(get(), a.data(), a.size(), b.data(), b.size(),
                                                 out.data(), out.size_bytes(), m, k, n),
                             get());
    }

    // One vector per card, in rank order, in place; vectors of differing lengths are ShapeMismatch
    // (have, need: elements; m: the rank).
    result<void> all_reduce_f32(std::span<std::vector<float>> ranks,
                                spanker_reduce reduce = SPANKER_SUM)
    {
        std::vector<float*> each;
        for (auto& rank : ranks)
            each.push_back(rank.data());
        if (const auto same = check_shapes(ranks); !same)
            return same.error();
        return detail::check(spanker_all_reduce_f32(get(), each.data(),
                                                    static_cast<std::uint32_t>(each.size()),
                                                    ranks.empty() ? 0 : ranks[0].size(), reduce),
                             get());
    }
    // The vectors of all cards one after the other.
    result<std::vector<float>> all_gather_f32(std::span<const std::vector<float>> ranks)
    {
        if (const auto same = check_shapes(ranks); !same)
            return same.error();
        const std::size_t count = ranks.empty() ? 0 : ranks[0].size();
        std::vector<std::vector<float>> out(ranks.size(), std::vector<float>(ranks.size() * count));
        std::vector<const float*> from;
        std::vector<float*> to;
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            from.push_back(ranks[r].data());
            to.push_back(out[r].data());
        }
        const int r = spanker_all_gather_f32(get(), from.data(), to.data(),
                                             static_cast<std::uint32_t>(ranks.size()), count);
        if (r < 0)
            return *spanker_last_error(get());
        return out.empty() ? std::vector<float>() : std::move(out[0]);
    }

private:
    template <typename Ranks>
    static result<void> check_shapes(const Ranks& ranks)
    {
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            if (ranks[r].size() != ranks[0].size())
                return shape_mismatch(r, ranks[r].size(), ranks[0].size());
        }
        return {};
    }
    static spanker::error shape_mismatch(std::size_t rank, std::size_t have, std::size_t need)
    {
        spanker::error e = {};
        e.negative_errno = -EINVAL;
        e.kind = SPANKER_KIND_SHAPE_MISMATCH;
        e.card = e.port = SPANKER_NONE;
        e.have = have;
        e.need = need;
        e.m = rank;
        std::snprintf(e.name, sizeof e.name, "%s", spanker_kind_name(e.kind));
        std::snprintf(e.message, sizeof e.message, "rank %zu has %zu elements, rank 0 has %zu",
                      rank, have, need);
        return e;
    }
    result<spanker_result> outcome(int r, const spanker_result& out)
    {
        if (r < 0)
            return *spanker_last_error(get());
        return out;
    }
    detail::handle<spanker_session, spanker_session_close> raw_;
};

class connection {
public:
    explicit connection(spanker_connection* raw) : raw_(raw) {}
    spanker_connection* get() const { return raw_.get(); }

    // bus: "system", "session", an address; empty: $SPANKER_BUS or the system bus. timeout: per
    // call, 0: 25 s.
    static result<connection> open(const std::string& bus = {}, std::uint64_t timeout_ns = 0)
    {
        spanker_connection* raw = nullptr;
        const spanker_connect_options options = {sizeof options,
                                                 bus.empty() ? nullptr : bus.c_str(), timeout_ns};
        const int r = spanker_connect(&options, &raw);
        return detail::made<connection>(r, nullptr, raw);
    }
    result<spanker_daemon_info> daemon() const
    {
        spanker_daemon_info out = {};
        if (spanker_daemon(get(), &out) < 0)
            return *spanker_last_error(get());
        return out;
    }
    // All cards, failed and denied ones too; none: NoSails.
    result<std::vector<spanker_card_info>> enumerate() const
    {
        return detail::listed<spanker_card_info>(get(), [&](auto* out, auto max, auto* count) {
            return spanker_enumerate(get(), out, max, count);
        });
    }
    result<std::vector<spanker_link_info>> topology(spanker_fabric_info& fabric) const
    {
        return detail::listed<spanker_link_info>(get(), [&](auto* out, auto max, auto* count) {
            return spanker_topology(get(), &fabric, out, max, count);
        });
    }
    result<spanker_telemetry> telemetry(std::uint32_t card) const
    {
        spanker_telemetry out = {};
        if (spanker_card_telemetry(get(), card, &out) < 0)
            return *spanker_last_error(get());
        return out;
    }
    result<std::vector<spanker_counter>> counters(std::uint32_t card) const
    {
        return detail::listed<spanker_counter>(get(), [&](auto* out, auto max, auto* count) {
            return spanker_card_counters(get(), card, out, max, count);
        });
    }
    result<std::vector<spanker_counter>> counters(const std::string& link) const
    {
        return detail::listed<spanker_counter>(get(), [&](auto* out, auto max, auto* count) {
            return spanker_link_counters(get(), link.c_str(), out, max, count);
        });
    }
    result<std::vector<spanker_lane_info>> lanes(const std::string& link) const
    {
        return detail::listed<spanker_lane_info>(get(), [&](auto* out, auto max, auto* count) {
            return spanker_link_lanes(get(), link.c_str(), out, max, count);
        });
    }
    // The last commands of a card in software, oldest first.
    result<std::vector<spanker_command_trace>> trace(std::uint32_t card, std::size_t last) const
    {
        std::vector<spanker_command_trace> out(last);
        std::size_t count = 0;
        if (spanker_card_trace(get(), card, out.data(), out.size(), &count) < 0)
            return *spanker_last_error(get());
        out.resize(count < last ? count : last);
        return out;
    }
    result<void> inject_fault(std::uint32_t card, const std::string& fault)
    {
        return detail::check(spanker_inject_fault(get(), card, fault.c_str()), get());
    }
    result<session> open_session(std::span<const std::uint32_t> cards = {})
    {
        spanker_session* raw = nullptr;
        spanker_session_options options = {};
        options.size = sizeof options;
        options.cards = cards.empty() ? nullptr : cards.data();
        options.card_count = cards.size();
        const int r = spanker_session_open(get(), &options, &raw);
        return detail::made<session>(r, get(), raw);
    }

private:
    detail::handle<spanker_connection, spanker_disconnect> raw_;
};

// A private bus and daemon with cards in software; ends with the object.
class mock {
public:
    explicit mock(spanker_mock* raw) : raw_(raw) {}
    static result<mock> start(std::uint32_t cards, const char* topology = nullptr)
    {
        spanker_mock* raw = nullptr;
        const int r = spanker_with_mock(cards, topology, &raw);
        return detail::made<mock>(r, nullptr, raw);
    }
    std::string bus() const { return spanker_mock_bus(raw_.get()); }
    int daemon_pid() const { return spanker_mock_daemon_pid(raw_.get()); }

private:
    detail::handle<spanker_mock, spanker_mock_stop> raw_;
};

// A tile in the earlier vocabulary; pick_strategy() as in spankerctl.h.
struct tile_shape : spanker_tile_shape {
    tile_shape(std::uint64_t tokens, std::uint64_t n_out, std::uint64_t depth,
               std::uint64_t element_bytes, spanker_weight_format format = SPANKER_WEIGHTS_PLAIN)
        : spanker_tile_shape{tokens, n_out, depth, element_bytes, format}
    {}
    std::uint64_t weight_bytes() const { return spanker_tile_weight_bytes(this); }
    std::uint64_t activation_bytes() const { return spanker_tile_activation_bytes(this); }
};

inline spanker_strategy pick_strategy(const tile_shape& tile, std::uint64_t n_sails,
                                      std::uint64_t local_ddr_bytes_per_s,
                                      std::uint64_t intercard_bytes_per_s)
{
    return spanker_pick_strategy(&tile, n_sails, local_ddr_bytes_per_s, intercard_bytes_per_s);
}

}  // namespace spanker
