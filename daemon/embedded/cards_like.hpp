// SPDX-License-Identifier: Apache-2.0
//
// Embedded cards that are not the reference card: other bandwidths, latencies, sizes. Card memory
// is as embedded_options say, whatever the pattern has.
#pragma once

#include "daemon/backend.hpp"
#include "sim/card.hpp"

namespace spanker::daemon {

result<std::unique_ptr<backend>> make_embedded_backend(const embedded_options& options,
                                                       sim::card_config pattern);

}  // namespace spanker::daemon
