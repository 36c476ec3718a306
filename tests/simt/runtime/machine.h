// The simulated multiprocessor: one block at a time, on one thread of the operating system.
#pragma once
#include <stdint.h>

#include "../include/simt_abi.h"
#include "faults.h"
#include "fiber.h"

namespace simt {

constexpr int kWarpSize = 32;
constexpr int kMaxWarps = kMaxThreads / kWarpSize;

enum class State : uint8_t { kUnstarted, kReady, kRunning, kWaitsForWarp, kWaitsForBlock, kExited };

struct Thread {
  Fiber* fiber;
  simt_u3 index;    // threadIdx
  uint16_t linear;  // position in the block
  uint8_t warp, lane;
  State state;
  bool fenced;     // has executed __threadfence in this block
  uint32_t clock;  // advanced by every __syncwarp
  // The collective or barrier it is in: what it brought, and what it gets.
  Site site;
  uint32_t mask, operand, width;
  uint64_t value, result;
};

// Lanes that have arrived at one collective; complete when all live lanes of `mask` have.
struct Rendezvous {
  uint32_t mask, arrived;
  int op;
};

struct Warp {
  uint32_t live, ready, unstarted;  // one bit per lane
  int n_pending;
  Rendezvous pending[kWarpSize];
  // seen[i][j]: the clock of lane j up to which its accesses happened before what lane i does now.
  uint32_t seen[kWarpSize][kWarpSize];
};

struct Machine {
  simt_launch_spec spec;
  simt_u3 block_index, block_dim, grid_dim;
  Thread threads[kMaxThreads];
  Warp warps[kMaxWarps];
  int n_threads, n_warps, live;
  uint32_t runnable_warps;  // one bit per warp that has a ready or unstarted lane
  Thread* current;
  uint32_t block_number;  // position of this block in the order of execution
  uint32_t epoch;         // advanced by every block barrier and every block
  bool in_block, aborted, timed_out;
  uint64_t steps, accesses;
  uint64_t random_state;

  bool shuffled() const { return spec.seed != 0; }
  uint32_t random() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return static_cast<uint32_t>(random_state >> 32);
  }
};

extern Machine machine;

std::string name_of(const Thread& t);

// Leaves the launch for good; nothing of the kernel runs after it.
[[noreturn]] void abort_launch();
void count_step(const Site& site);

template <typename Describe>
[[noreturn]] void fail(const char* kind, const Site& site, Describe describe) {
  report(kind, site, 0, describe);
  abort_launch();
}

inline uint32_t lane_bits(int n) { return n >= kWarpSize ? ~0u : (1u << n) - 1; }

template <typename Visit> void for_each_lane(uint32_t lanes, Visit visit) {
  for (; lanes; lanes &= lanes - 1) visit(__builtin_ctz(lanes));
}

}  // namespace simt
