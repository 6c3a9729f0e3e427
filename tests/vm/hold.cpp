// SPDX-License-Identifier: Apache-2.0
//
// Holds a card in the middle of work, for tests that take the card away.
//
//   vm_hold NODE          opens the node, takes a queue, memory and a pinned buffer, and submits a batch whose second item
//                         waits for a signal that nobody posts. Says `holding`, waits in poll() and in WORK_WAIT, and says
//                         at the end what came: `ended POLLHUP ENODEV`.
//   vm_hold --batches N NODE
//                         the same without the item that waits: N batches, one after the other, that end well, or exit 1
//                         and why.
//   vm_hold --stay N NODE as --batches, and then keeps its queue until it is killed.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "card_file.hpp"

namespace {

using spanker_vm::card_file;

constexpr std::uint32_t a_signal = 7;

[[noreturn]] void give_up(const char* what)
{
    std::printf("%s: %s\n", what, std::strerror(errno));
    std::exit(1);
}

void must(int error, const char* what)
{
    errno = -error;
    if (error != 0)
        give_up(what);
}

int work(card_file& card, long batches)
{
    for (long n = 0; n < batches; n++) {
        must(card.submit(), "WORK_SUBMIT");
        must(card.wait(), "the batch ended with");
    }
    if (card.is_copied())
        return 0;
    std::printf("what came out of the card is not what went in\n");
    return 1;
}

int stay(card_file& card, long batches)
{
    if (const int failed = work(card, batches))
        return failed;
    for (;;)
        pause();
}

int hold(card_file& card)
{
    must(card.submit(a_signal), "WORK_SUBMIT");
    std::printf("holding\n");
    std::fflush(stdout);

    pollfd waiter{card.get(), POLLIN, 0};
    if (poll(&waiter, 1, -1) != 1)
        give_up("poll");
    const char* name = strerrorname_np(-card.wait());
    std::printf("ended%s %s\n", (waiter.revents & POLLHUP) != 0 ? " POLLHUP" : "",
                name != nullptr ? name : "0");
    return 0;
}

}  // namespace

int main(int count, char** words)
{
    const std::string act = count == 4 ? words[1] : "";
    const bool works = act == "--batches" || act == "--stay";
    const long batches = works ? std::strtol(words[2], nullptr, 10) : 0;
    if ((count != 2 && !works) || (works && batches < 1)) {
        std::fprintf(stderr, "usage: vm_hold [--batches N | --stay N] NODE\n");
        return 2;
    }
    card_file card;
    must(card.open(words[count - 1]), "open");
    must(card.create_queue(), "QUEUE_CREATE");
    must(card.alloc_tensor(), "TENSOR_ALLOC");
    must(card.register_buffer(), "BUFFER_REGISTER");
    return !works ? hold(card) : act == "--stay" ? stay(card, batches) : work(card, batches);
}
