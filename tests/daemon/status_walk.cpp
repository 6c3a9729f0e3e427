// SPDX-License-Identifier: Apache-2.0
//
// The status table on its way: a card ends a command with a status; the daemon answers a D-Bus call by name, an entry with
// errno and status, and the library with a kind. Every row, through the real daemon, by each of the three ways.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "tests/daemon/lib_stack.hpp"
#include "uapi/spanker_status.h"

namespace {

using namespace stack;

constexpr std::uint64_t bytes = 4096;

// What the three ways say about one failed command.
struct told {
    std::string call_error;                    // of Session.WriteTensor
    std::map<std::string, std::string> entry;  // of Session.Submit
    spanker_error library;                     // of spanker_tensor_write()
};

std::map<std::string, std::string> read_entry(sd_bus_message* m)
{
    std::map<std::string, std::string> found;
    sd_bus_message_enter_container(m, 'a', "{sv}");
    while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
        const char *key = "", *type = "", *word = "";
        sd_bus_message_read(m, "s", &key);
        sd_bus_message_peek_type(m, nullptr, &type);
        sd_bus_message_enter_container(m, 'v', type);
        std::uint64_t number = 0;
        if (std::string_view(type) == "t" && sd_bus_message_read(m, "t", &number) > 0)
            found[key] = std::to_string(number);
        else if (std::string_view(type) == "s" && sd_bus_message_read(m, "s", &word) > 0)
            found[key] = word;
        else
            sd_bus_message_skip(m, type);
        sd_bus_message_exit_container(m);
        sd_bus_message_exit_container(m);
    }
    sd_bus_message_exit_container(m);
    return found;
}

class status_walk : public lib_stack {
protected:
    status_walk()
        : lib_stack("1"), one_(bus_), session_(bed::open_session(one_)),
          library_(must(link_.open_session())),
          buffer_(must(library_.make_buffer(bytes, SPANKER_ACCESS_READ))),
          tensor_(must(library_.make_tensor(SPANKER_REPLICATED, SPANKER_F32, 1, bytes / 4))),
          memory_(memfd_create("operand", MFD_ALLOW_SEALING | MFD_CLOEXEC))
    {
        EXPECT_EQ(session_.error, "") << session_.text;
        EXPECT_EQ(ftruncate(memory_.get(), bytes), 0);
        EXPECT_EQ(fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
        bus_buffer_ = handle("RegisterBuffer", [&](sd_bus_message* m) {
            sd_bus_message_append(m, "httsa{sv}", memory_.get(), std::uint64_t{0}, bytes, "r", 0);
        });
        bus_tensor_ = handle("AllocTensor", [](sd_bus_message* m) {
            sd_bus_message_append(m, "tssata{sv}", std::uint64_t{0}, "replicated", "f32", 2,
                                  std::uint64_t{1}, bytes / 4, 0);
        });
    }
    bed::answer call(const char* method, const bed::filler& fill)
    {
        return one_.send(session_.path, bed::interface("Session"), method, fill);
    }
    std::uint64_t handle(const char* method, const bed::filler& fill)
    {
        const auto got = call(method, fill);
        EXPECT_TRUE(got) << method << ": " << got.text;
        std::uint64_t out = 0;
        if (got)
            sd_bus_message_read(*got, "t", &out);
        return out;
    }
    void append_write(sd_bus_message* m) const
    {
        sd_bus_message_append(m, "a{sv}", 3, "tensor", "t", bus_tensor_, "buffer", "t", bus_buffer_,
                              "bytes", "t", bytes);
    }
    // A transfer that goes well says on which queue they run now: after some failures the daemon opens the card anew.
    void fail_next(unsigned status)
    {
        EXPECT_EQ(spanker_tensor_write(tensor_.get(), 0, buffer_.get(), 0, bytes, 0, nullptr), 0)
            << "the next request works";
        ASSERT_EQ(bed::inject(one_, 0,
                              "completion_error queue=" + std::to_string(commands(0).back().queue) +
                                  " status=" + std::to_string(status) + " count=1"),
                  "");
    }
    told walk(unsigned status)
    {
        told out;
        fail_next(status);
        out.call_error = call("WriteTensor", [&](sd_bus_message* m) { append_write(m); }).error;
        fail_next(status);
        const auto submitted = call("Submit", [&](sd_bus_message* m) {
            sd_bus_message_open_container(m, 'a', "a{sv}");
            sd_bus_message_append(m, "a{sv}", 4, "op", "s", "write_tensor", "tensor", "t",
                                  bus_tensor_, "buffer", "t", bus_buffer_, "bytes", "t", bytes);
            sd_bus_message_close_container(m);
        });
        EXPECT_TRUE(submitted) << submitted.text;
        if (submitted && sd_bus_message_enter_container(*submitted, 'a', "a{sv}") > 0)
            out.entry = read_entry(*submitted);
        fail_next(status);
        EXPECT_LT(spanker_tensor_write(tensor_.get(), 0, buffer_.get(), 0, bytes, 0, nullptr), 0);
        out.library = *spanker_last_error(library_.get());
        return out;
    }

    bed::client one_;
    bed::opened session_;
    session library_;
    buffer buffer_;
    tensor tensor_;
    spanker::daemon::unique_fd memory_;
    std::uint64_t bus_buffer_ = 0, bus_tensor_ = 0;
};

std::string last_component(const std::string& name) { return name.substr(name.rfind('.') + 1); }

TEST_F(status_walk, every_status_of_a_card_reaches_the_client_as_the_table_says)
{
    for (unsigned status = SPANKER_CARD_OK + 1; status < SPANKER_CARD_RESET; ++status) {
        SCOPED_TRACE(spanker_card_status_name(status));
        const spanker_error_kind kind = spanker_card_status_kind(status);
        const told got = walk(status);
        EXPECT_EQ(last_component(got.call_error), spanker_error_name(kind));
        EXPECT_EQ(got.entry.at("error"), spanker_error_name(kind));
        EXPECT_EQ(got.entry.at("errno"), std::to_string(spanker_error_errno(kind)));
        EXPECT_EQ(got.entry.at("card_status"), spanker_card_status_name(status));
        EXPECT_EQ(got.entry.at("card"), "0");
        EXPECT_EQ(got.library.negative_errno, -spanker_error_errno(kind));
        EXPECT_EQ(static_cast<int>(got.library.kind), static_cast<int>(kind));
        EXPECT_EQ(got.library.card_status, status);
        EXPECT_EQ(got.library.card, 0u);
        EXPECT_STREQ(got.library.name, spanker_error_name(kind));
    }
}

}  // namespace
