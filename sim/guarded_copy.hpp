// SPDX-License-Identifier: Apache-2.0
//
// Copies from and to memory that another process may take away at any moment: a shared file that is truncated under its
// mapping. The SIGBUS of such an access ends the copy and not the process.
//
// Any thread. The first use installs a handler for SIGBUS that leaves signals of other origin to whoever stood there before.
#pragma once

#include <cstddef>

namespace spanker::sim {

// False when a page was not there; what was copied before it stays copied.
// An aligned word of 1, 2, 4 or 8 bytes is written at once, after everything written before.
bool guarded_read(std::byte* to, const std::byte* from_shared, std::size_t bytes);
bool guarded_write(std::byte* to_shared, const std::byte* from, std::size_t bytes);

}  // namespace spanker::sim
