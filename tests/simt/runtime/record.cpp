#include "record.h"

#include <algorithm>
#include <vector>

namespace simt {

constexpr uint64_t kMaxOrderedBlocks = 1 << 22;
static std::vector<bool> released;  // by block number: a fence, then an atomic
static bool acquired;               // the current block has executed an atomic

void forget_releases(uint64_t n_blocks) {
  released.assign(std::min(n_blocks, kMaxOrderedBlocks), false);
}

void begin_block_ordering() { acquired = false; }

void note_atomic(const Thread& t) {
  acquired = true;
  if (t.fenced && machine.block_number < released.size()) released[machine.block_number] = true;
}

bool Record::released_to_current_block() const {
  return acquired && block() < released.size() && released[block()];
}

std::string Record::text() const {
  const char* suffix = atomic() ? " (atomic)" : "";
  if (!in_current_block()) {
    return format("thread %u of the block executed as number %u%s", thread(), block(), suffix);
  }
  return format("thread %u [warp %u lane %u] of the same block%s", thread(), thread() / kWarpSize,
                thread() % kWarpSize, suffix);
}

}  // namespace simt
