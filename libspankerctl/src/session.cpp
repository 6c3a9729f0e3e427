// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace spanker::lib {
namespace {

constexpr std::uint32_t default_sq_entries = 64;
constexpr std::uint32_t max_sq_entries = SPANKER_RINGS_MAX_ENTRIES;

int open(spanker_connection* connection, const spanker_session_options* options,
         spanker_session** out)
{
    spanker_session_options known = {};
    if (const int r = read_options(connection, "spanker_session_options", options, known); r < 0)
        return r;
    if (known.sq_entries == 0)
        known.sq_entries = default_sq_entries;
    if (!std::has_single_bit(known.sq_entries) || known.sq_entries > max_sq_entries)
        return fail(connection, SPANKER_KIND_INVALID,
                    fmt::format("sq_entries is {}; it must be a power of two up to {}",
                                known.sq_entries, max_sq_entries));
    if (known.cards == nullptr && known.card_count != 0)
        return fail(connection, SPANKER_KIND_INVALID, "card_count is set but cards is NULL");
    if (known.card_count > SPK_MAX_CARDS)
        return fail(connection, SPANKER_KIND_INVALID,
                    fmt::format("card_count is {}; a session has at most {} cards",
                                known.card_count, SPK_MAX_CARDS));
    auto session = std::make_unique<spanker_session>(connection);
    session->sq_entries = known.sq_entries;
    session->cards.assign(known.cards, known.cards + known.card_count);
    if (const int r = session_attach(session.get(), connection); r < 0)
        return r;
    *out = session.release();
    return 0;
}

}  // namespace
}  // namespace spanker::lib

using namespace spanker::lib;

spanker_session::~spanker_session()
{
    session_end_flights(this);
    ring.close();  // end-of-file on control ends the session in the daemon
}

int spanker_session_open(spanker_connection* connection, const spanker_session_options* options,
                         spanker_session** out)
{
    if (connection == nullptr || out == nullptr)
        return fail_null(connection, connection == nullptr ? "connection" : "out");
    return guarded(connection, [&] { return open(connection, options, out); });
}

void spanker_session_close(spanker_session* session) { delete session; }

int spanker_session_cards(const spanker_session* session, std::uint32_t* cards, std::size_t max)
{
    if (session == nullptr || (cards == nullptr && max != 0))
        return fail_null(session, session == nullptr ? "session" : "cards");
    std::copy_n(session->cards.begin(), std::min(max, session->cards.size()), cards);
    return static_cast<int>(session->cards.size());
}
