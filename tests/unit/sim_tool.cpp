// SPDX-License-Identifier: Apache-2.0
//
// The program spanker-sim: its command line, what it tells QEMU, how it starts and ends.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/unix_socket.hpp"
#include "tests/unit/manual_page.hpp"
#include "tools/spanker-sim/ask.hpp"
#include "tools/spanker-sim/directory.hpp"
#include "tools/spanker-sim/options.hpp"
#include "tools/spanker-sim/qemu_args.hpp"

namespace spanker::sim_tool {
namespace {

struct outcome {
    parsed line;
    std::string complaint;
};

outcome read(std::vector<const char*> words)
{
    words.insert(words.begin(), "spanker-sim");
    testing::internal::CaptureStderr();
    outcome out;
    out.line = parse(static_cast<int>(words.size()), words.data());
    out.complaint = testing::internal::GetCapturedStderr();
    return out;
}

// ---- the command line ----

TEST(sim_options, a_directory_is_all_that_is_needed)
{
    const outcome got = read({"--dir", "d"});
    ASSERT_TRUE(got.line.go_on) << got.complaint;
    const options& what = got.line.what;
    EXPECT_EQ(what.directory, "d");
    ASSERT_EQ(what.fabric.cards.size(), 1u);
    EXPECT_EQ(what.fabric.cards[0].ddr_bytes, std::uint64_t{4} << 30);
    EXPECT_TRUE(what.fabric.cards[0].msix);
    EXPECT_EQ(what.fabric.speed, sim::pace::fast);
    EXPECT_EQ(what.guest_memory_bytes, std::uint64_t{2} << 30);
}

TEST(sim_options, every_option_has_its_effect)
{
    const outcome got =
        read({"--cards=3", "--topology=mesh", "--dir=d", "--card-memory=64M", "--guest-memory=1G",
              "--pace=real", "--interrupts=msix1", "--dma-bits=36", "--queues=3", "--accel=tcg"});
    ASSERT_TRUE(got.line.go_on) << got.complaint;
    const options& what = got.line.what;
    ASSERT_EQ(what.fabric.cards.size(), 3u);
    EXPECT_EQ(what.fabric.cables.size(), 3u);
    EXPECT_EQ(what.fabric.cards[2].ddr_bytes, 64u << 20);
    EXPECT_EQ(what.fabric.cards[2].vectors, 1u);
    EXPECT_EQ(what.fabric.cards[2].dma_bits, 36u);
    EXPECT_EQ(what.fabric.cards[2].queues, 3u);
    EXPECT_EQ(what.fabric.speed, sim::pace::real);
    EXPECT_EQ(what.guest_memory_bytes, 1u << 30);
    EXPECT_EQ(what.accel, acceleration::tcg);
    EXPECT_FALSE(read({"--dir=d", "--interrupts=msi"}).line.what.fabric.cards[0].msix);
}

TEST(sim_options, a_wrong_word_is_named_with_its_cure)
{
    const struct {
        std::vector<const char*> words;
        const char* named;
        const char* cure;
    } table[] = {
        {{}, "--dir", "name a directory"},
        {{"--dir=d", "--cards=0"}, "--cards", "1 to 16"},
        {{"--dir=d", "--cards=17"}, "--cards", "1 to 16"},
        {{"--dir=d", "--cards=two"}, "--cards", "two"},
        {{"--dir=d", "--topology=star"}, "star", "ring, line, mesh"},
        {{"--dir=d", "--cards=10", "--topology=mesh"}, "mesh", "at most 8"},
        {{"--dir=d", "--card-memory=1"}, "--card-memory", "1M or more"},
        {{"--dir=d", "--card-memory=1X"}, "--card-memory", "Allowed values"},
        {{"--dir=d", "--guest-memory=1M"}, "--guest-memory", "64M"},
        {{"--dir=d", "--pace=slow"}, "--pace", "fast"},
        {{"--dir=d", "--interrupts=intx"}, "--interrupts", "msix"},
        {{"--dir=d", "--queues=1"}, "--queues", "2 to 16"},
        {{"--dir=d", "--dma-bits=16"}, "--dma-bits", "32 to 64"},
        {{"--dir=d", "--accel=magic"}, "--accel", "kvm"},
        {{"--dir=d", "--defect=magic"}, "magic", "CARD:DEFECT"},
        {{"--dir=d", "--defect=1:magic"}, "card 1", "0 to 0"},
        {{"--dir=d", "--defect=0:rust"}, "rust", "uncalibrated"},
        {{"--dir=d", "--defect=0:serial-duplicate"}, "card 0", "before it"},
        {{"--dir=d", "--bogus"}, "--bogus", "--help"},
        {{"time"}, "time", "--control DIR"},
        {{"--control=d", "--cards=2", "time"}, "--cards", "--control"},
    };
    for (const auto& row : table) {
        const outcome got = read(row.words);
        EXPECT_FALSE(got.line.go_on) << row.named;
        EXPECT_EQ(got.line.exit_code, 2) << row.named;
        EXPECT_NE(got.complaint.find(row.named), std::string::npos) << got.complaint;
        EXPECT_NE(got.complaint.find(row.cure), std::string::npos) << got.complaint;
    }
}

TEST(sim_options, the_manual_has_every_option_and_every_defect)
{
    testing::internal::CaptureStdout();
    EXPECT_FALSE(read({"--help"}).line.go_on);
    const std::string help = testing::internal::GetCapturedStdout();
    const std::string page = test::manual_page("spanker-sim.1");
    const auto documented = test::options_in(page);
    for (const std::string& option : test::options_in(help))
        EXPECT_TRUE(documented.contains(option)) << option;
    std::istringstream lines(help.substr(help.find("Defects:")));
    std::string line;
    std::size_t defects = 0;
    for (std::getline(lines, line); std::getline(lines, line) && !line.empty(); defects++) {
        std::string name;
        std::istringstream(line) >> name;
        EXPECT_NE(page.find(name), std::string::npos) << name;
    }
    EXPECT_EQ(defects, 9u);
}

TEST(sim_options, each_defect_is_in_the_card_named_alone)
{
    const auto with = [](const char* defect) {
        const outcome got = read({"--dir=d", "--cards=3", "--defect", defect});
        EXPECT_TRUE(got.line.go_on) << got.complaint;
        return got.line.what;
    };
    EXPECT_EQ(with("1:magic").lies[1].at(0).offset, std::uint32_t{SPK_REG_MAGIC});
    EXPECT_NE(with("1:magic").lies[1].at(0).value, std::uint32_t{SPK_MAGIC});
    EXPECT_TRUE(with("1:magic").lies[0].empty());
    EXPECT_EQ(with("1:abi").lies[1].at(0).value >> 16, SPK_ABI_MAJOR + 1u);
    EXPECT_EQ(with("2:serial-zero").lies[2].size(), 2u);
    EXPECT_EQ(with("1:not-ready").lies[1].at(0).offset, std::uint32_t{SPK_REG_STATUS});
    EXPECT_EQ(with("1:no-queues").lies[1].at(0).offset, std::uint32_t{SPK_REG_CAP_QUEUES});
    EXPECT_EQ(with("1:uncalibrated").faults.at(0).card, 1u);
    EXPECT_EQ(with("1:uncalibrated").faults.at(0).kind, sim::fault_kind::ddr_uncalibrated);
    EXPECT_EQ(with("1:short-bar").fabric.cards[1].bar_bytes, 4096u);
    EXPECT_FALSE(with("1:short-bar").fabric.cards[1].msix);
    EXPECT_EQ(with("1:no-bar").fabric.cards[1].bar_bytes, 0u);
    EXPECT_EQ(with("1:no-bar").fabric.cards[0].bar_bytes, std::uint32_t{SPK_BAR_BYTES});
    const options twins = with("2:serial-duplicate");
    EXPECT_NE(twins.fabric.cards[1].serial, 0u);
    EXPECT_EQ(twins.fabric.cards[1].serial, twins.fabric.cards[2].serial);
    EXPECT_EQ(twins.fabric.cards[0].serial, 0u) << "given by the fabric";
}

// ---- what QEMU is told ----

TEST(sim_qemu_args, every_word_survives_the_shell)
{
    const options what = read({"--dir=d", "--cards=2", "--accel=tcg"}).line.what;
    const std::string text = qemu_args(what, {"/x/card0.sock", "/x/card1.sock"}, "/x/control");
    EXPECT_EQ(text.find_first_of(" \t*?['\\"), std::string::npos) << text;
    for (const char* line :
         {"-accel\ntcg\n", "memory-backend-memfd,id=spanker-memory,share=on,size=2048M\n",
          "-m\n2048M\n", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off\n",
          "pcie-root-port,id=spanker-port1,chassis=2,slot=2\n",
          "{\"driver\":\"vfio-user-pci\",\"id\":\"spanker1\",\"bus\":\"spanker-port1\",\"socket\":{"
          "\"type\":\"unix\",\"path\":\"/x/card1.sock\"},\"x-msg-timeout\":60000}\n",
          "socket,id=spanker-control,path=/x/control\n"})
        EXPECT_NE(text.find(line), std::string::npos) << line;
}

// ---- its directory ----

class sim_directory : public testing::Test {
protected:
    std::string path = [] {
        std::string name = ::testing::TempDir() + "sim-XXXXXX";
        return std::string(::mkdtemp(name.data()));
    }();
    ~sim_directory() override { std::filesystem::remove_all(path); }

    std::size_t files() const
    {
        const std::filesystem::directory_iterator all(path);
        return static_cast<std::size_t>(std::distance(begin(all), end(all)));
    }
};

TEST_F(sim_directory, is_made_for_its_owner_and_left_empty)
{
    const std::string made = path + "/new";
    {
        directory it(made);
        const auto socket = it.listen(it.card_socket(0));
        it.publish("text\n");
        EXPECT_TRUE(std::filesystem::exists(made + "/qemu.args"));
        EXPECT_TRUE(std::filesystem::exists(made + "/card0.sock"));
        struct stat info = {};
        ASSERT_EQ(::stat(made.c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777, 0700u);
    }
    EXPECT_TRUE(std::filesystem::is_empty(made));
}

TEST_F(sim_directory, belongs_to_one_process_at_a_time)
{
    directory it(path);
    try {
        directory second(path);
        FAIL();
    } catch (const std::invalid_argument& wrong) {
        EXPECT_NE(std::string(wrong.what()).find("another spanker-sim serves"), std::string::npos);
    }
}

TEST_F(sim_directory, leaves_what_it_did_not_make)
{
    std::ofstream(path + "/mine") << "mine";
    {
        directory it(path);
        EXPECT_THROW(it.listen(path + "/mine"), std::invalid_argument);
    }
    EXPECT_TRUE(std::filesystem::exists(path + "/mine"));
}

TEST_F(sim_directory, a_name_that_the_shell_or_qemu_would_split_is_refused)
{
    for (const char* name : {"/a b", "/a,b", "/a*", "/a\"b", "/a'b", "/a\nb"})
        EXPECT_THROW(directory(path + name), std::invalid_argument) << name;
    EXPECT_EQ(files(), 0u);
}

// ---- the program ----

class sim_program : public sim_directory {
protected:
    pid_t pid = -1;

    void start(std::vector<std::string> words)
    {
        words.insert(words.begin(), {"spanker-sim", "--dir", path});
        std::vector<char*> raw;
        for (std::string& one : words)
            raw.push_back(one.data());
        raw.push_back(nullptr);
        pid = ::fork();
        if (pid == 0) {
            const std::string out = path + ".out";
            if (std::freopen(out.c_str(), "w", stdout) != nullptr &&
                std::freopen(out.c_str(), "a", stderr) != nullptr)
                ::execv(SPANKER_BIN_DIR "/spanker-sim", raw.data());
            ::_exit(127);
        }
    }
    bool serves() const
    {
        for (int n = 0; n < 2000; n++) {
            if (std::filesystem::exists(path + "/qemu.args"))
                return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return false;
    }
    int end(int signal)
    {
        int status = -1;
        if (signal != 0)
            ::kill(pid, signal);
        ::waitpid(pid, &status, 0);
        pid = -1;
        return status;
    }
    std::string printed() const
    {
        std::ifstream file(path + ".out");
        return {std::istreambuf_iterator<char>(file), {}};
    }
    ~sim_program() override
    {
        if (pid > 0)
            end(SIGKILL);
        std::filesystem::remove(path + ".out");
    }
};

TEST_F(sim_program, prints_what_qemu_needs_answers_and_ends_clean_on_sigterm)
{
    start({"--cards=2", "--card-memory=16M"});
    ASSERT_TRUE(serves()) << printed();
    std::ifstream file(path + "/qemu.args");
    const std::string args{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(args.find(path + "/card1.sock"), std::string::npos);
    std::istringstream nothing;
    testing::internal::CaptureStdout();
    EXPECT_EQ(ask(path, "card 1 gone", nothing), 0);
    EXPECT_EQ(ask(path, "card 2 gone", nothing), 1);
    std::istringstream lines("time\n\n{\"an\":\"echo\"}\ntopology\n");
    EXPECT_EQ(ask(path, "", lines), 0);
    const std::string answers = testing::internal::GetCapturedStdout();
    EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 4) << answers;
    const int status = end(SIGTERM);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_EQ(files(), 0u);
    EXPECT_EQ(printed().rfind(args, 0), 0u) << printed();
    EXPECT_THROW(ask(path, "time", nothing), std::runtime_error);
}

TEST_F(sim_program, starts_over_what_one_that_was_killed_left)
{
    start({});
    ASSERT_TRUE(serves());
    end(SIGKILL);
    EXPECT_TRUE(std::filesystem::exists(path + "/card0.sock"));
    {
        const directory next(path);
        EXPECT_FALSE(std::filesystem::exists(path + "/qemu.args")) << "would be taken for its own";
    }
    start({});
    ASSERT_TRUE(serves()) << printed();
    EXPECT_TRUE(sim::connect_to(path + "/card0.sock"));
    EXPECT_TRUE(WIFEXITED(end(SIGINT)));
    EXPECT_EQ(files(), 0u);
}

TEST_F(sim_program, a_second_one_in_the_same_directory_says_so_and_disturbs_nothing)
{
    start({});
    ASSERT_TRUE(serves());
    const pid_t first = pid;
    start({});
    const int status = end(0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    EXPECT_NE(printed().find("another spanker-sim serves"), std::string::npos) << printed();
    pid = first;
    EXPECT_TRUE(sim::connect_to(path + "/card0.sock"));
    EXPECT_TRUE(WIFEXITED(end(SIGTERM)));
}

}  // namespace
}  // namespace spanker::sim_tool
