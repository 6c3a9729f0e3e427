// SPDX-License-Identifier: Apache-2.0
//
// What tests that compute by messages alone stand on, as a person with busctl would: memory to share, keys and values,
// a session on four cards.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>

#include "tests/daemon/bed.hpp"

namespace bed {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr std::size_t page = 4096;
inline constexpr int operand_seals = F_SEAL_SHRINK | F_SEAL_GROW;

// Memory that the client and the cards share.
class operand final {
public:
    explicit operand(std::size_t bytes, int seals = operand_seals)
        : bytes_((bytes + page - 1) / page * page),
          fd_(memfd_create("operand", MFD_ALLOW_SEALING | MFD_CLOEXEC))
    {
        EXPECT_EQ(ftruncate(fd_.get(), static_cast<off_t>(bytes_)), 0);
        EXPECT_EQ(fcntl(fd_.get(), F_ADD_SEALS, seals), 0);
        map_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
        EXPECT_NE(map_, MAP_FAILED);
        std::memset(map_, 0, bytes_);
    }
    ~operand() { munmap(map_, bytes_); }
    operand(const operand&) = delete;
    operand& operator=(const operand&) = delete;

    int fd() const { return fd_.get(); }
    std::size_t bytes() const { return bytes_; }
    float* floats() const { return static_cast<float*>(map_); }

private:
    std::size_t bytes_;
    unique_fd fd_;
    void* map_ = nullptr;
};

// A key and an unsigned number, or a word.
struct key {
    const char* name;
    std::uint64_t number = 0;
    const char* word = nullptr;
};

inline void append_keys(sd_bus_message* message, const std::vector<key>& keys)
{
    sd_bus_message_open_container(message, 'a', "{sv}");
    for (const key& one : keys)
        if (one.word)
            sd_bus_message_append(message, "{sv}", one.name, "s", one.word);
        else
            sd_bus_message_append(message, "{sv}", one.name, "t", one.number);
    sd_bus_message_close_container(message);
}

inline std::map<std::string, std::string> read_keys(sd_bus_message* message)
{
    std::map<std::string, std::string> found;
    sd_bus_message_enter_container(message, 'a', "{sv}");
    while (sd_bus_message_enter_container(message, 'e', "sv") > 0) {
        const char *named = "", *type = "";
        sd_bus_message_read(message, "s", &named);
        sd_bus_message_peek_type(message, nullptr, &type);
        std::uint64_t number = 0;
        const char* word = nullptr;
        if (*type == 't' && sd_bus_message_read(message, "v", "t", &number) > 0)
            found[named] = std::to_string(number);
        else if (*type == 's' && sd_bus_message_read(message, "v", "s", &word) > 0)
            found[named] = word;
        else
            sd_bus_message_skip(message, "v");
        sd_bus_message_exit_container(message);
    }
    sd_bus_message_exit_container(message);
    return found;
}

class compute : public testing::Test {
protected:
    explicit compute(const daemon_setup& setup = embedded("4:ring"))
        : daemon_(bus_, setup), one_(bus_), session_(open_session(one_))
    {
        EXPECT_EQ(session_.error, "") << session_.text;
    }

    answer call(const char* method, const filler& fill)
    {
        return one_.send(session_.path, interface("Session"), method, fill, seconds(60));
    }
    answer request(const char* method, const std::vector<key>& keys)
    {
        return call(method, [&](sd_bus_message* m) { append_keys(m, keys); });
    }
    answer try_register(int fd, std::uint64_t offset, std::uint64_t bytes,
                        const char* access = "rw")
    {
        return call("RegisterBuffer", [&](sd_bus_message* m) {
            sd_bus_message_append(m, "httsa{sv}", fd, offset, bytes, access, 0);
        });
    }
    static std::uint64_t handle_of(const answer& got)
    {
        std::uint64_t handle = 0;
        EXPECT_TRUE(got) << got.error << ": " << got.text;
        if (got)
            sd_bus_message_read(*got, "t", &handle);
        return handle;
    }
    std::uint64_t registered(const operand& what)
    {
        return handle_of(try_register(what.fd(), 0, what.bytes()));
    }
    answer all_reduce(std::uint64_t src, std::uint64_t dst, std::uint64_t count)
    {
        return request("AllReduce", {{"src", src},
                                     {"dst", dst},
                                     {"count", count},
                                     {"dtype", 0, "f32"},
                                     {"reduce", 0, "sum"}});
    }

    private_bus bus_;
    spanker_daemon daemon_;
    client one_;
    opened session_;
};

// Q4_K blocks whose every weight is 1: scale 1, six-bit scales 1, no minimum, quants 1.
inline std::vector<unsigned char> ones(std::size_t blocks)
{
    std::vector<unsigned char> all(blocks * 144);
    for (std::size_t b = 0; b < blocks; b++) {
        unsigned char* block = &all[b * 144];
        block[1] = 0x3c;                // d = 1.0 as f16
        std::memset(block + 4, 1, 4);   // scales 0..3
        std::memset(block + 12, 1, 4);  // scales 4..7, low nibble
        std::memset(block + 16, 0x11, 128);
    }
    return all;
}

inline unique_fd file_of(const std::vector<unsigned char>& bytes)
{
    unique_fd file(memfd_create("weights", MFD_CLOEXEC));
    EXPECT_EQ(write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    return file;
}

}  // namespace bed
