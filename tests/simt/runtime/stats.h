// How well accesses coalesce: 32-byte sectors and shared-memory passes per warp request.
#pragma once
#include "memory.h"

namespace simt {

void clear_stats();
void count_access(uintptr_t address, size_t bytes, Kind kind, bool shared, const Site& site);
// Closes the requests of the block that has ended.
void end_block_stats();

}  // namespace simt
