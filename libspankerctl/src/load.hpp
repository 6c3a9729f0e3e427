// SPDX-License-Identifier: Apache-2.0
//
// Loads of weights: LoadWeights, then looking at its job until that ends.
//
// In the caller's thread, or in one of the library's for an asynchronous load, whose request is told the end. The
// weights own that thread: freeing them ends the load. No lock is held between two looks.
#pragma once

#include "tensor.hpp"

namespace spanker::lib {

int load_here(spanker_weights& w, int fd, std::uint64_t offset);
// Refusals come from this call, what goes wrong later from the request.
int load_aside(spanker_weights& w, int fd, std::uint64_t offset, spanker_request& request);
// True if the request was a load's that goes on; it ends soon.
bool load_cancel(spanker_session* s, spanker_request& request);
// Until no thread works on the weights; `cancel` makes that soon.
void load_finish(spanker_weights& w, bool cancel);
bool load_goes_on(spanker_weights& w);

}  // namespace spanker::lib
