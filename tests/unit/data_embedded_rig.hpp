// SPDX-License-Identifier: Apache-2.0
//
// The plane over real simulated cards, whose links are up, and matrices of
// Q4_K blocks with their exact values.
#pragma once

#include <cmath>
#include <random>

#include "data_rig.hpp"

namespace spanker::daemon::test {

// A ring of cards, trained.
inline std::unique_ptr<backend> trained_ring(unsigned cards)
{
    auto made = make_embedded_backend(
        {.cards = cards, .topology = "ring", .card_memory_bytes = 256u << 20});
    EXPECT_TRUE(made);
    backend& b = **made;
    const auto all_up = [&] {
        for (const std::uint32_t card : b.cards()) {
            const auto ports = b.ports(card);
            for (const port_info& port : *ports)
                if (port.state != SPK_PORT_UP)
                    return false;
        }
        return true;
    };
    for (const std::uint32_t card : b.cards())
        EXPECT_TRUE(b.link_train(card, 3, false));
    for (int i = 0; i < 100'000 && !all_up(); i++)
        b.drive();
    EXPECT_TRUE(all_up());
    return std::move(*made);
}

struct embedded_bed {
    explicit embedded_bed(unsigned n = 4)
        : cards(trained_ring(n)), rig(*cards), session(rig.opened()), rings(session)
    {}
    std::uint64_t free_bytes()
    {
        std::uint64_t sum = 0;
        for (const std::uint32_t card : cards->cards())
            sum += cards->info(card)->out_memory_free_bytes;
        return sum;
    }
    std::uint64_t buffer(const client_memory& m)
    {
        const auto handle = rig.add_buffer(session.id, m);
        EXPECT_TRUE(handle) << (handle ? "" : handle.error().message);
        return handle.value_or(0);
    }
    std::uint64_t tensor(std::uint32_t layout, std::vector<std::uint64_t> shape)
    {
        const auto handle =
            rig.add_tensor(session.id, {.layout = layout, .shape = std::move(shape)});
        EXPECT_TRUE(handle) << (handle ? "" : handle.error().message);
        return handle.value_or(0);
    }
    // What one entry said; "" is success.
    std::string run(const spanker_sqe& entry)
    {
        const auto results = rig.submit(session.id, {entry});
        last = results.at(0).cqe;
        return results.at(0).message;
    }

    std::unique_ptr<backend> cards;
    plane_rig rig;
    session_fds session;
    client_rings rings;
    spanker_cqe last = {};
};

inline spanker_sqe matmul(std::uint64_t weights, std::uint32_t n_tok, std::uint64_t x,
                          std::uint32_t x_kind, std::uint64_t y, std::uint32_t y_kind,
                          std::uint8_t flags = 0)
{
    spanker_sqe e = {.opcode = SPANKER_SOP_MATMUL, .flags = flags};
    e.matmul = {.weights = static_cast<std::uint32_t>(weights),
                .n_tok = n_tok,
                .x_handle = static_cast<std::uint32_t>(x),
                .y_handle = static_cast<std::uint32_t>(y),
                .x_kind = static_cast<std::uint8_t>(x_kind),
                .y_kind = static_cast<std::uint8_t>(y_kind)};
    return e;
}

inline spanker_sqe collective_op(std::uint8_t op, std::uint64_t src, std::uint32_t src_kind,
                                 std::uint64_t dst, std::uint32_t dst_kind, std::uint64_t count,
                                 std::uint8_t dtype = SPK_DTYPE_F32, std::uint8_t flags = 0)
{
    spanker_sqe e = {.opcode = op, .flags = flags};
    e.collective = {.dtype = dtype,
                    .src_kind = static_cast<std::uint8_t>(src_kind),
                    .dst_kind = static_cast<std::uint8_t>(dst_kind),
                    .src_handle = static_cast<std::uint32_t>(src),
                    .dst_handle = static_cast<std::uint32_t>(dst),
                    .count = count};
    return e;
}

// Random blocks with scales of 1/1024, and what they mean (numerics of Q4_K).
struct matrix {
    std::vector<std::uint8_t> blocks;
    std::vector<double> values;  // [n_out][k]

    matrix(std::uint64_t n_out, std::uint64_t k, unsigned seed) : values(n_out * k)
    {
        std::mt19937 random(seed);
        blocks.resize(n_out * k / 256 * 144);
        for (auto& byte : blocks)
            byte = static_cast<std::uint8_t>(random());
        for (std::uint64_t b = 0; b < blocks.size() / 144; b++)
            fill(&blocks[b * 144], &values[b * 256]);
    }
    unique_fd file() const
    {
        unique_fd fd(::memfd_create("weights", MFD_CLOEXEC));
        EXPECT_EQ(::write(fd.get(), blocks.data(), blocks.size()),
                  static_cast<ssize_t>(blocks.size()));
        return fd;
    }

private:
    static void fill(std::uint8_t* block, double* out)
    {
        block[0] = block[2] = 0;
        block[1] = block[3] = 0x14;  // 2^-10
        const std::uint8_t *s = block + 4, *q = block + 16;
        for (unsigned i = 0; i < 256; i++) {
            const unsigned j = i / 32;
            const unsigned sc = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
            const unsigned mn = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
            const std::uint8_t byte = q[i / 64 * 32 + i % 32];
            const unsigned nibble = i % 64 < 32 ? byte & 15 : byte >> 4;
            out[i] = (static_cast<double>(sc * nibble) - mn) / 1024;
        }
    }
};

// Y[n_tok][n_out] = X . W^T in double.
inline std::vector<double> multiply(const std::vector<double>& x, const std::vector<double>& w,
                                    std::uint64_t k)
{
    const std::uint64_t n_tok = x.size() / k, n_out = w.size() / k;
    std::vector<double> y(n_tok * n_out);
    for (std::uint64_t t = 0; t < n_tok; t++)
        for (std::uint64_t o = 0; o < n_out; o++)
            for (std::uint64_t i = 0; i < k; i++)
                y[t * n_out + o] += x[t * k + i] * w[o * k + i];
    return y;
}

inline double nmse(const float* got, const std::vector<double>& want)
{
    double error = 0, power = 0;
    for (std::size_t i = 0; i < want.size(); i++) {
        error += (got[i] - want[i]) * (got[i] - want[i]);
        power += want[i] * want[i];
    }
    return error / power;
}

inline std::vector<double> gaussian(float* out, std::size_t n, unsigned seed)
{
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; i++)
        values[i] = out[i] = normal(random);
    return values;
}

}  // namespace spanker::daemon::test
