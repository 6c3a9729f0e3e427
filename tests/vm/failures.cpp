// SPDX-License-Identifier: Apache-2.0
//
// What the module does when memory is refused. Each verb runs with its first allocation refused, then with its second, and
// so on until it has none left to refuse; it must answer -ENOMEM (or -EFAULT where user memory was out of reach) or do its
// work, and afterwards work. What it leaves behind, the kernel's own checkers see; memory of the card, pinned pages and
// descriptors are counted. A probe has hundreds of allocations and takes long: of those after the 16th every STRIDEth is
// refused; of the thousands of loading the module, tests of its core included, fewer still.
//
//   vm_failures NODE BIND ADDRESS STRIDE MODULE
//   e.g.  vm_failures /dev/spanker0 /sys/bus/pci/drivers/spanker/bind 0000:01:00.0 1 /modules/spanker.ko
//
// Prints TAP. The card is bound when the program starts and when it ends. Needs a kernel with fault injection that also
// refuses allocations which may sleep (ignore-gfp-wait is N).
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "card_file.hpp"
#include "machine_state.hpp"

namespace {

using spanker_vm::card_file;

constexpr int most_allocations = 2000;

// The kernel refuses the nth allocation of this thread and counts down to it.
class refusal {
public:
    refusal() : fd_{open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC)} {}
    ~refusal() { close(fd_); }
    refusal(const refusal&) = delete;
    refusal& operator=(const refusal&) = delete;

    bool is_possible() const { return fd_ >= 0; }
    void arm(int nth) { set(nth); }

    // Whether an allocation was refused since.
    bool disarm()
    {
        char text[16] = {};
        const bool happened = pread(fd_, text, sizeof(text) - 1, 0) > 0 && std::atoi(text) == 0;
        set(0);
        return happened;
    }

private:
    void set(int nth) const
    {
        const std::string text = std::to_string(nth);
        if (pwrite(fd_, text.data(), text.size(), 0) < 0 && nth != 0) {
            std::printf("Bail out! fail-nth: %s\n", std::strerror(errno));
            std::exit(1);
        }
    }

    int fd_;
};

int write_word(const char* path, const char* word)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const int error = write(fd, word, std::strlen(word)) < 0 ? -errno : 0;
    close(fd);
    return error;
}

int load_module(const char* path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const int error = syscall(SYS_finit_module, fd, "", 0) != 0 ? -errno : 0;
    close(fd);
    return error;
}

// One that is not loaded is well.
int unload_module()
{
    return syscall(SYS_delete_module, "spanker", O_NONBLOCK) != 0 && errno != ENOENT ? -errno : 0;
}

long open_descriptors()
{
    long count = 0;
    DIR* all = opendir("/proc/self/fd");
    while (all != nullptr && readdir(all) != nullptr)
        count++;
    if (all != nullptr)
        closedir(all);
    return count;
}

// What the verbs take: empty, or what is not as it was.
std::string missing(const spanker_vm::machine_state& before, long descriptors)
{
    std::string what;
    spanker_vm::eventually([&] {
        const auto now = spanker_vm::look_at_machine();
        what = now.card_free_bytes != before.card_free_bytes ? "memory of a card is missing"
               : now.pinned_pages != before.pinned_pages     ? "pages are pinned"
                                                             : "";
        return what.empty();
    });
    return what.empty() && open_descriptors() != descriptors ? "descriptors are open" : what;
}

struct operation {
    const char* name;
    std::function<int(card_file&)> before;  // not refused anything
    std::function<int(card_file&)> act;
    std::function<int(card_file&)> after;  // when it worked; not refused anything
    bool any_error = false;                // the answer is somebody else's
    int stride = 1;                        // from the 16th allocation on
    bool may_allocate_nothing = false;
    std::function<int(card_file&)> again = {};  // when it was refused: nothing is lost
};

// Empty, or what was wrong.
std::string try_all(const operation& operation, refusal& refusal, int& refused)
{
    refused = 0;
    for (int nth = 1; nth <= most_allocations; nth += nth < 16 ? 1 : operation.stride) {
        card_file card;
        int error = operation.before(card);
        if (error != 0)
            return "cannot be prepared: " + std::string{std::strerror(-error)};
        refusal.arm(nth);
        error = operation.act(card);
        const bool happened = refusal.disarm();
        if (error == 0)
            error = operation.after(card);
        else if (happened && (operation.any_error || error == -ENOMEM || error == -EFAULT))
            error = operation.again ? operation.again(card) : 0;
        if (error != 0)
            return "allocation " + std::to_string(nth) + (happened ? " refused" : " not refused") +
                   ": " + std::strerror(-error);
        if (!happened)
            return {};
        refused++;
    }
    return operation.stride == 1 ? "allocations do not end" : "";
}

}  // namespace

int main(int count, char** words)
{
    const int probe_stride = count == 6 ? std::atoi(words[4]) : 0;
    if (probe_stride < 1) {
        std::fprintf(stderr, "usage: vm_failures NODE BIND ADDRESS STRIDE MODULE\n");
        return 2;
    }
    const char* node = words[1];
    const char* bind = words[2];
    const char* address = words[3];
    const char* module = words[5];
    const std::string unbind = std::string{bind, std::strlen(bind) - 4} + "unbind";

    refusal refusal;
    if (!refusal.is_possible()) {
        std::printf("1..0 # SKIP this kernel has no fault injection\n");
        return 0;
    }

    const auto nothing = [](card_file&) { return 0; };
    const auto opened = [node](card_file& card) { return card.open(node); };
    const auto queued = [opened](card_file& card) {
        const int error = opened(card);
        return error != 0 ? error : card.create_queue();
    };
    // Or the faults of its pages would be the most that is refused.
    const auto mapped = [queued](card_file& card) {
        const int error = queued(card);
        return error != 0 ? error : card.map_memory();
    };
    const auto holding = [queued](card_file& card) {
        int error = queued(card);
        if (error == 0)
            error = card.alloc_tensor();
        return error != 0 ? error : card.register_buffer();
    };
    const auto exporting = [holding](card_file& card) {
        const int error = holding(card);
        return error != 0 ? error : card.export_tensor();
    };
    const auto working = [holding](card_file& card) {
        const int error = holding(card);
        return error != 0 ? error : card.submit();
    };
    const auto waiting = [holding](card_file& card) {
        const int error = holding(card);
        return error != 0 ? error : card.submit(7);
    };
    const auto reading = [](card_file& card) {
        int error = -EAGAIN;
        while (error == -EAGAIN)
            error = card.read_record();
        return error;
    };
    const auto cancelled = [](card_file& card) {
        int error = card.cancel();
        error = error == 0 ? card.wait() : error;
        return error == -ECANCELED ? 0 : error;
    };
    const auto waited = [](card_file& card) {
        const int error = card.wait();
        return error == 0 && !card.is_copied() ? -EBADMSG : error;
    };

    const std::vector<operation> operations = {
        {"open", nothing, opened, nothing},
        {"QUEUE_CREATE", opened, [](card_file& card) { return card.create_queue(); }, nothing},
        {"TENSOR_ALLOC", queued, [](card_file& card) { return card.alloc_tensor(); }, nothing},
        {"TENSOR_EXPORT", holding, [](card_file& card) { return card.export_tensor(); }, nothing},
        {"BUFFER_REGISTER", mapped, [](card_file& card) { return card.register_buffer(); },
         nothing},
        {"WORK_SUBMIT", holding, [](card_file& card) { return card.submit(); }, waited},
        {"TENSOR_IMPORT", exporting, [](card_file& card) { return card.import_tensor(); }, nothing},
        {"WORK_WAIT", working, [](card_file& card) { return card.wait(); }, nothing, false, 1, true,
         waited},
        {"read", working, reading, nothing, false, 1, true, reading},
        {"WORK_CANCEL", waiting, [](card_file& card) { return card.cancel(); }, cancelled, false, 1,
         true, cancelled},
        {"GROUP_CREATE", queued,
         [](card_file& card) { return card.create_group("/dev/spankerctl"); }, nothing},
        {"a probe",
         [&](card_file&) {
             const int error = write_word(unbind.c_str(), address);
             return error == -ENODEV ? 0 : error;  // the probe before was refused
         },
         [&](card_file&) { return write_word(bind, address); }, nothing, true, probe_stride},
        {"loading the module", [](card_file&) { return unload_module(); },
         [&](card_file&) { return load_module(module); }, nothing, true, 8 * probe_stride},
    };

    const auto before = spanker_vm::look_at_machine();
    const long descriptors = open_descriptors();
    int number = 0;
    bool good = true;
    for (const operation& operation : operations) {
        int refused = 0;
        std::string wrong = try_all(operation, refusal, refused);
        if (wrong.empty() && refused == 0 && !operation.may_allocate_nothing)
            wrong = "nothing was refused";
        if (wrong.empty() && !operation.any_error)
            wrong = missing(before, descriptors);
        // A probe that failed leaves the card unbound.
        if (operation.any_error && !wrong.empty())
            write_word(bind, address);
        std::printf("%sok %d - %s is clean whichever of its allocations is refused%s\n",
                    wrong.empty() ? "" : "not ", ++number, operation.name,
                    operation.stride == 1 ? "" : " (a sample)");
        std::printf("# %d refused; %s\n", refused, wrong.c_str());
        std::fflush(stdout);
        good = good && wrong.empty();
    }
    std::printf("1..%d\n", number);
    return good ? 0 : 1;
}
