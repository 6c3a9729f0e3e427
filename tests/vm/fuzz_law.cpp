// SPDX-License-Identifier: Apache-2.0
//
// A verb is filled by its grammar and then perhaps spoiled: its size, tail, flags, a byte of it, or the memory that it lies
// in. What the law says to that is known beforehand, and so is every byte that may change.
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fuzz_verb.hpp"

namespace fuzz {

namespace {

enum class place { edge, straddling, read_only, nowhere, shared };

struct attempt {
    const verb* what;
    std::size_t size;   // as it says
    std::size_t there;  // bytes of it in memory
    unsigned long request;
    place where = place::edge;
    bool other_node = false;
    std::array<std::uint8_t, 2 * page> image{};
};

place some_place(thread& t)
{
    const auto share = t.draw.below(100);
    return share < 88   ? place::edge
           : share < 91 ? place::straddling
           : share < 94 ? place::read_only
           : share < 97 ? place::nowhere
                        : place::shared;
}

void spoil(thread& t, attempt& a)
{
    const verb& v = *a.what;
    if (t.draw.percent(8))
        a.size = t.draw.of<std::size_t>({0, 4, 8, v.bytes - 1, v.bytes + 8, v.bytes + 100, page,
                                         page + 1, 0x80000000, 0xffffffff});
    if (a.size > v.bytes && t.draw.percent(30))
        a.image[v.bytes + t.draw.below(8)] = 1;
    if (t.draw.percent(3))
        a.image[4 + t.draw.below(4)] |= static_cast<std::uint8_t>(1 << t.draw.below(8));
    if (v.reserved && t.draw.percent(3))
        a.image[v.reserved + t.draw.below(4)] = 1;
    if (t.draw.percent(2))
        a.request = t.draw.percent(50)
                        ? v.request ^ (1ul << _IOC_DIRSHIFT)
                        : v.request ^ (static_cast<unsigned long>(t.draw.below(256)) << 8);
    else if (t.draw.percent(3))
        a.request = v.request + (static_cast<unsigned long>(t.draw.below(64)) << _IOC_SIZESHIFT);
    a.other_node = t.draw.percent(1);
    a.where = some_place(t);
}

std::uint32_t flags_of(const attempt& a)
{
    std::uint32_t flags;
    std::memcpy(&flags, &a.image[4], sizeof(flags));
    return flags;
}

// The errno of the law; 0: the verb itself decides; 1: not foreseen.
int law_of(const attempt& a)
{
    const verb& v = *a.what;
    if (_IOC_NR(a.request) != _IOC_NR(v.request) || _IOC_DIR(a.request) != _IOC_DIR(v.request))
        return 1;
    if (a.other_node)
        return -ENOTTY;
    if (a.where == place::shared)
        return 1;
    if (a.where == place::nowhere)
        return -EFAULT;
    if (a.size < v.bytes)
        return a.where == place::straddling ? 1 : -EINVAL;
    if (a.size > page)
        return a.where == place::straddling ? 1 : -E2BIG;
    if (a.where == place::straddling)
        return -EFAULT;
    for (std::size_t at = v.bytes; at < a.size; at++)
        if (a.image[at])
            return -E2BIG;
    if (flags_of(a) & ~v.known_flags)
        return -EINVAL;
    if (a.where == place::read_only && (_IOC_DIR(v.request) & _IOC_READ))
        return -EFAULT;
    return 0;
}

// Where the struct is put, and what lies before it.
std::uint8_t* put(thread& t, attempt& a)
{
    constexpr std::size_t half = 12;
    a.there = std::max(a.what->bytes, std::min<std::size_t>(a.size, 2 * page - 64));
    auto* at = t.edge + 2 * page - a.there;
    std::memset(t.edge, 0x5c, 2 * page - a.there);
    if (a.where == place::shared)
        at = t.of.shared + 64 * t.draw.below(2);
    else if (a.where == place::straddling)
        at = t.edge + 2 * page - half;
    else if (a.where == place::nowhere)
        return reinterpret_cast<std::uint8_t*>(t.draw.of<std::uintptr_t>(
            {0, to_word(t.edge) + 2 * page, ~0ull - 4095, 0xffff888000000000, ~0ull - 3}));
    std::memcpy(at, a.image.data(),
                a.where == place::straddling ? half
                : a.where == place::shared   ? a.what->bytes
                                             : a.there);
    if (a.where == place::read_only)
        ::mprotect(t.edge, 2 * page, PROT_READ);
    return at;
}

bool may_change(const verb& v, bool failed, std::size_t at)
{
    const auto holds = [at](const range& one) { return one.from <= at && at < one.to; };
    return failed ? std::any_of(v.told.begin(), v.told.end(), holds)
                  : std::any_of(v.out.begin(), v.out.end(), holds);
}

void check_written(thread& t, const attempt& a, int err)
{
    const auto* at = t.edge + 2 * page - a.there;
    for (std::size_t n = 0; n < a.there; n++)
        if (at[n] != a.image[n] && !may_change(*a.what, err != 0, n)) {
            complain(t, "%s answered %d and wrote byte %zu", a.what->name, err, n);
            return;
        }
    for (const auto* before = t.edge; before < at; before++)
        if (*before != 0x5c) {
            complain(t, "%s wrote %td bytes before its struct", a.what->name, at - before);
            return;
        }
}

// A descriptor may be closed, and its number be another file's, at any time.
bool is_of_no_file(int err) { return err == -EBADF || err == -ENOTTY; }

void judge(thread& t, const attempt& a, int err)
{
    const verb& v = *a.what;
    const int law = law_of(a);
    if (law < 0 && err != law && !is_of_no_file(err) && !(a.other_node && err == -EFAULT))
        complain(t, "%s: the law says %d, it answered %d (size %zu, flags %#x, place %d)", v.name,
                 law, err, a.size, flags_of(a), static_cast<int>(a.where));
    if (law == 0 && v.reserved && err == 0) {
        std::uint32_t word;
        std::memcpy(&word, &a.image[v.reserved], sizeof(word));
        if (word)
            complain(t, "%s took a reserved member that is %#x", v.name, word);
    }
    if (err < 0 && !v.errors.known[static_cast<std::size_t>(-err) % 256] && !is_of_no_file(err) &&
        err != -EINVAL && err != -E2BIG && err != -EFAULT && law != 1)
        complain(t, "%s answered %d, which it never should", v.name, err);
}

int attempt_verb(thread& t, const verb& v, slot& file, bool spoiled)
{
    attempt a{.what = &v, .size = v.bytes, .there = 0, .request = v.request};
    v.fill(t, file, a.image.data());
    if (spoiled)
        spoil(t, a);
    if (a.where == place::shared && !(_IOC_DIR(v.request) & _IOC_WRITE))
        a.where = place::edge;
    // Whoever changes a struct under an answer does not learn of a descriptor.
    if (a.where == place::shared &&
        (v.request == SPANKER_IOC_TENSOR_EXPORT || v.request == SPANKER_IOC_GROUP_CREATE))
        a.where = place::edge;
    const auto size = static_cast<std::uint32_t>(a.size);
    std::memcpy(a.image.data(), &size, sizeof(size));
    const int card = file.fd.load(), ctl = t.of.ctl[t.draw.percent(90) ? 0 : 1];
    auto* at = put(t, a);
    const int err = call(v.on_card != a.other_node ? card : ctl, a.request, at);
    if (a.where == place::read_only)
        ::mprotect(t.edge, 2 * page, PROT_READ | PROT_WRITE);
    judge(t, a, err);
    // Another number may be another verb, with answers of its own.
    if ((a.where == place::edge || a.where == place::read_only) &&
        _IOC_NR(a.request) == _IOC_NR(v.request))
        check_written(t, a, err);
    const auto index = static_cast<std::size_t>(&v - verbs.data());
    (err ? t.of.count->refused : t.of.count->done)[index]++;
    t.of.count->why[index][static_cast<std::size_t>(-err) % 256]++;
    if (err == 0 && a.where == place::edge && law_of(a) == 0)
        v.done(t, file, t.edge + 2 * page - a.there);
    // Most acts are to find a card, and one that is this process's.
    if ((err == -ESTALE || err == -EBADF || err == -EPERM) && !t.stranger &&
        &file < &t.of.files[own_slots] && t.draw.percent(25))
        open_slot(t, file);
    return err;
}

}  // namespace

const char* verb_name(unsigned verb) { return verbs[verb].name; }

std::uint64_t some_pointer(thread& t, std::uint8_t* good)
{
    if (t.draw.percent(94))
        return to_word(good);
    return t.draw.of<std::uint64_t>({0, 1, to_word(good) + 1, to_word(t.items + 2 * page),
                                     to_word(t.of.arena + t.draw.below(arena_pages) * page),
                                     to_word(t.of.constant), ~0ull - 127, 0xffff888000000000});
}

void act_verb(thread& t)
{
    // Work is what cards are for.
    constexpr std::array<unsigned, 8> often = {8, 8, 8, 9, 2, 6, 3, 7};
    const bool usual = t.draw.percent(70);
    const verb& v = verbs[usual ? often[t.draw.below(often.size())] : t.draw.below(verb_count)];
    t.doing = v.name;
    attempt_verb(t, v, some_slot(t), t.draw.percent(30));
}

void act_stranger(thread& t)
{
    const verb& v = verbs[t.draw.percent(50) ? 6 : 8];
    t.doing = v.name;
    slot& file = t.of.files[own_slots + t.draw.below(slots - own_slots)];
    if (attempt_verb(t, v, file, t.draw.percent(20)) == 0)
        complain(t, "%s was done for another process than opened the file", v.name);
}

}  // namespace fuzz
