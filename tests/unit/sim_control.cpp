// SPDX-License-Identifier: Apache-2.0
//
// What a running spanker-sim answers, and the socket on which it does.
#include "sim/control/desk.hpp"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "sim/control/line_server.hpp"
#include "vfio_user_bench.hpp"

namespace spanker::sim::control {
namespace {

using nlohmann::json;
using vfio_user::bench::client;
using vfio_user::bench::soon;
using vfio_user::bench::stand;

class sim_control : public testing::Test {
protected:
    fabric_config config = stand::small_config(2);
    stand it{config};
    desk us{it.served(), config, {"first.sock", "second.sock"}};

    json ask(const std::string& line) { return json::parse(us.answer(line)); }
    std::string refusal(const std::string& line)
    {
        const json said = ask(line);
        EXPECT_EQ(said.at("ok"), false) << line;
        return said.value("error", "");
    }
};

TEST_F(sim_control, a_fault_is_armed_and_healed_in_words)
{
    client guest = it.agreed(1);
    EXPECT_EQ(ask("card 1 gone").at("ok"), true);
    EXPECT_EQ(guest.reg(SPK_REG_MAGIC), ~std::uint32_t{0});
    EXPECT_EQ(ask("card 1 clear gone").at("ok"), true);
    EXPECT_EQ(guest.reg(SPK_REG_MAGIC), std::uint32_t{SPK_MAGIC});
    EXPECT_EQ(ask("  card  0   temperature millidegrees=90000\r").at("ok"), true);
    EXPECT_EQ(it.agreed(0).reg(SPK_REG_TEMP_MC), 90'000u);
}

TEST_F(sim_control, a_fault_that_lies_ahead_waits_for_work_that_takes_the_clock_there)
{
    client worker = it.agreed(0), guest = it.agreed(1);
    ASSERT_EQ(ask("card 1 gone at_ns=5000").at("ok"), true);
    EXPECT_TRUE(soon([&] { return it.cards().idle(); }));
    EXPECT_LT(it.cards().now_ns(), 5000u);
    EXPECT_EQ(guest.reg(SPK_REG_MAGIC), std::uint32_t{SPK_MAGIC});
    for (client* card : {&worker, &guest})  // to train takes milliseconds
        for (unsigned port : {0u, 1u})
            card->reg(SPK_REG_PORT(port, SPK_P_CTRL), SPK_PCTRL_TRAIN_REQ);
    EXPECT_TRUE(soon([&] { return it.cards().now_ns() >= 5000; }));
    EXPECT_EQ(guest.reg(SPK_REG_MAGIC), ~std::uint32_t{0});
}

TEST_F(sim_control, clear_heals_everything_on_one_card_or_all)
{
    client first = it.agreed(0), second = it.agreed(1);
    for (const char* line : {"card 0 gone", "card 1 gone", "card 1 ddr_uncalibrated"})
        ASSERT_EQ(ask(line).at("ok"), true);
    ask("clear 1");
    EXPECT_EQ(first.reg(SPK_REG_STATUS), ~std::uint32_t{0});
    EXPECT_EQ(second.reg(SPK_REG_STATUS), std::uint32_t{SPK_STATUS_READY | SPK_STATUS_DDR_OK});
    ask("clear");
    EXPECT_EQ(first.reg(SPK_REG_STATUS), std::uint32_t{SPK_STATUS_READY | SPK_STATUS_DDR_OK});
}

TEST_F(sim_control, counters_begin_at_0_again_when_told)
{
    client guest = it.agreed(0);
    guest.reg(SPK_REG_MAGIC);
    guest.reg(SPK_REG_SQ_TAIL(0), 0);
    json card = ask("counters 0").at("cards").at(0);
    EXPECT_EQ(card.at("card"), 0);
    EXPECT_EQ(card.at("register_reads"), 1);
    EXPECT_EQ(card.at("register_writes"), 1);
    EXPECT_EQ(card.at("sq_doorbells"), 1);
    ask("zero 0");
    guest.reg(SPK_REG_MAGIC);
    card = ask("counters 0").at("cards").at(0);
    EXPECT_EQ(card.at("register_reads"), 1);
    EXPECT_EQ(card.at("register_writes"), 0);
    EXPECT_EQ(ask("counters").at("cards").size(), 2u);
    for (const char* name :
         {"cq_doorbells", "interrupts", "dma_reads", "dma_writes", "dma_read_bytes",
          "dma_write_bytes", "dma_faults", "dma_mapped_ranges", "dma_mapped_bytes"})
        EXPECT_EQ(card.at(name), 0) << name;
}

TEST_F(sim_control, topology_names_cards_and_cables)
{
    client guest = it.agreed(1);
    const json said = ask("topology");
    ASSERT_EQ(said.at("cards").size(), 2u);
    EXPECT_EQ(said.at("cards").at(1).at("socket"), "second.sock");
    EXPECT_EQ(said.at("cards").at(0).at("client"), false);
    EXPECT_EQ(said.at("cards").at(1).at("client"), true);
    EXPECT_EQ(said.at("cards").at(0).at("memory_bytes"), 1 << 20);
    EXPECT_NE(said.at("cards").at(0).at("serial"), said.at("cards").at(1).at("serial"));
    ASSERT_EQ(said.at("cables").size(), 2u);
    EXPECT_EQ(said.at("cables").at(0).at("ends"), "0.1-1.0");
    EXPECT_EQ(said.at("cables").at(0).at("lanes"), 4);
}

TEST_F(sim_control, memory_and_trace_can_be_seen)
{
    EXPECT_EQ(ask("snapshot 0 0x10 4").at("hex"), "00000000");
    it.cards().inject({.card = 0, .kind = fault_kind::ddr_bit_flip, .a = 7, .value = 0x11});
    it.served().wake();
    EXPECT_TRUE(soon([&] { return ask("snapshot 0 0x10 4").at("hex") == "00800000"; }));
    EXPECT_EQ(ask("snapshot 0 0 65536").at("hex").get<std::string>().size(), 131072u);
    EXPECT_EQ(ask("trace 1").at("trace").size(), 0u);
    EXPECT_EQ(ask("trace 1 0xffffffffffffffff").at("ok"), true);
}

TEST_F(sim_control, time_and_help)
{
    EXPECT_EQ(ask("time").at("now_ns"), 0);
    EXPECT_EQ(ask("time").at("idle"), true);
    EXPECT_GE(ask("help").at("requests").size(), 9u);
}

TEST_F(sim_control, what_asks_nothing_is_not_answered)
{
    for (const char* line : {"", "   ", "\r", "{\"ok\":true}", " {}"})
        EXPECT_EQ(us.answer(line), "") << line;
}

TEST_F(sim_control, nonsense_is_refused_and_named)
{
    const struct {
        const char* line;
        const char* named;
    } table[] = {
        {"explode", "'explode' is no request; there are card, clear"},
        {"card 2 gone", "there is no card 2; there are 0 to 1"},
        {"card x gone", "'x' is no number"},
        {"card 0", "card N FAULT"},
        {"card 0 explode", "'explode' is no fault"},
        {"card 0 cable_cut", "port=N"},
        {"card -1 gone", "'-1' is no number"},
        {"clear 2", "there is no card 2"},
        {"clear 0 1", "clear [N]"},
        {"trace", "trace N [COUNT]"},
        {"trace 0 many", "'many' is no number"},
        {"snapshot 0 0 65537", "too many"},
        {"snapshot 0 0x100000 1", "0x100000"},
        {"snapshot 0 0xffffffffffffffff 2", "memory from 0"},
        {"snapshot 0 99999999999999999999 1", "is no number"},
        {"topology 1", "topology"},
        {"\xff\xfe", "is no request"},
    };
    for (const auto& row : table)
        EXPECT_NE(refusal(row.line).find(row.named), std::string::npos)
            << row.line << ": " << refusal(row.line);
}

// ---- the socket ----

class line_server_test : public testing::Test {
protected:
    std::string folder = [] {
        std::string name = ::testing::TempDir() + "lines-XXXXXX";
        return std::string(::mkdtemp(name.data()));
    }();
    std::string path = folder + "/control";
    line_server it{listen_at(path), [](std::string_view line) {
                       if (line == "big")
                           return std::string(200'000, 'x');
                       return line.empty() ? std::string() : "<" + std::string(line) + ">";
                   }};
    ~line_server_test() override { std::filesystem::remove_all(folder); }

    static void say(const unique_fd& to, const std::string& text)
    {
        EXPECT_EQ(::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(text.size()));
    }
    // Up to and without the newline, or until the server closes.
    static std::string hear(const unique_fd& from)
    {
        std::string out;
        char one = 0;
        while (::recv(from.get(), &one, 1, 0) == 1 && one != '\n')
            out.push_back(one);
        return out;
    }
};

TEST_F(line_server_test, lines_are_answered_in_order_however_they_come)
{
    const unique_fd us = connect_to(path);
    say(us, "one\ntw");
    EXPECT_EQ(hear(us), "<one>");
    say(us, "o\n\nthree\n");
    EXPECT_EQ(hear(us), "<two>");
    EXPECT_EQ(hear(us), "<three>");
}

TEST_F(line_server_test, many_clients_are_served_side_by_side)
{
    std::vector<unique_fd> all;
    for (int n = 0; n < 32; n++)
        all.push_back(connect_to(path));
    for (std::size_t n = 0; n < all.size(); n++)
        say(all[n], std::to_string(n) + "\n");
    for (std::size_t n = all.size(); n-- > 0;)
        EXPECT_EQ(hear(all[n]), "<" + std::to_string(n) + ">");
}

TEST_F(line_server_test, what_was_asked_before_the_end_is_answered)
{
    const unique_fd us = connect_to(path);
    say(us, "one\ntwo");
    ::shutdown(us.get(), SHUT_WR);
    EXPECT_EQ(hear(us), "<one>");
    EXPECT_EQ(hear(us), "<two>") << "without a newline";
    EXPECT_EQ(hear(us), "") << "closed";
}

TEST_F(line_server_test, a_line_that_is_too_long_is_refused_once_and_skipped)
{
    const unique_fd us = connect_to(path);
    say(us, std::string(3 * line_bytes_max, 'a') + "\nafter\n");
    EXPECT_NE(hear(us).find("at most 4095 characters"), std::string::npos);
    EXPECT_EQ(hear(us), "<after>");
    say(us, std::string(line_bytes_max - 1, 'b') + "\n");
    EXPECT_EQ(hear(us).size(), line_bytes_max + 1) << "the longest";
}

TEST_F(line_server_test, a_client_that_does_not_read_holds_nobody_up)
{
    const unique_fd deaf = connect_to(path);
    for (int n = 0; n < 30; n++)
        say(deaf, "big\nbig\n");
    const unique_fd other = connect_to(path);
    say(other, "hello\n");
    EXPECT_EQ(hear(other), "<hello>");
    std::size_t heard = 0;
    for (std::vector<char> piece(1 << 20); heard < 60 * 200'001;) {
        const ssize_t got = ::recv(deaf.get(), piece.data(), piece.size(), 0);
        ASSERT_GT(got, 0) << heard;
        heard += static_cast<std::size_t>(got);
    }
    say(deaf, "after\n");
    EXPECT_EQ(hear(deaf), "<after>");
}

TEST_F(line_server_test, clients_that_leave_are_forgotten)
{
    for (int n = 0; n < 500; n++) {
        const unique_fd us = connect_to(path);
        if (n % 2 == 0)
            say(us, "big\nbig\n");
    }
    const unique_fd last = connect_to(path);
    say(last, "hello\n");
    EXPECT_EQ(hear(last), "<hello>");
}

TEST(unix_socket, a_dead_socket_is_replaced_and_a_living_one_is_not)
{
    std::string folder = ::testing::TempDir() + "sock-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/s";
    {
        const unique_fd first = listen_at(path);
        EXPECT_THROW(listen_at(path), std::invalid_argument);
        struct stat info = {};
        ASSERT_EQ(::stat(path.c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777, 0600u) << "for its owner alone";
    }
    EXPECT_THROW(connect_to(path), std::system_error);
    const unique_fd again = listen_at(path);
    EXPECT_TRUE(connect_to(path));
    EXPECT_THROW(listen_at(folder), std::invalid_argument) << "no socket";
    EXPECT_THROW(listen_at(folder + "/" + std::string(120, 'x')), std::invalid_argument);
    EXPECT_THROW(listen_at(folder + "/missing/s"), std::system_error);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace spanker::sim::control
