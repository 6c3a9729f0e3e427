// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/graph.hpp"

#include <algorithm>

namespace spanker::daemon::collective {

const graph_card* graph::find(std::uint32_t number) const
{
    const auto same = [number](const graph_card& card) { return card.number == number; };
    const auto found = std::find_if(cards.begin(), cards.end(), same);
    return found == cards.end() ? nullptr : &*found;
}

}  // namespace spanker::daemon::collective
