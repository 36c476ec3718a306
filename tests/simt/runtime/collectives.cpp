// Warp collectives and the block barrier.
//
// A `*_sync` is a rendezvous keyed by (mask, operation): the last lane to arrive computes the
// results of all of them. Complete means that every live lane of the mask has arrived, so that
// exited lanes count as CUDA says, and disjoint divergent groups of a warp do not disturb each
// other. Lockstep would be simpler and would hide every missing __syncwarp.
#include <string.h>

#include <algorithm>

#include "scheduler.h"

namespace simt {

// What a shuffle from an absent lane yields in float and in double: a NaN that can be recognised.
constexpr uint64_t kPoison = 0x7ff7dead7fc0deadull;

// The lane a shuffle reads; its own where CUDA says the value stays unchanged.
static int source_lane(int op, const Thread& t) {
  const int width = t.width, first = t.lane & ~(width - 1), end = first + width;
  const int operand = static_cast<int>(t.operand);
  int source = t.lane;
  switch (op) {
    case SIMT_SHFL_IDX:
      return first | (operand & (width - 1));
    case SIMT_SHFL_UP:
      source = t.lane - operand;
      break;
    case SIMT_SHFL_DOWN:
      source = t.lane + operand;
      break;
    case SIMT_SHFL_XOR:
      source = t.lane ^ operand;
      break;
  }
  const bool outside = (op == SIMT_SHFL_UP && source < first) || source >= end;
  return outside ? t.lane : source;
}

static void shuffle(const Rendezvous& group, Thread* lanes) {
  for_each_lane(group.arrived, [&](int l) {
    Thread& t = lanes[l];
    const int source = source_lane(group.op, t);
    if (group.arrived >> (source & 31) & 1) {
      t.result = lanes[source].value;
      return;
    }
    t.result = kPoison;
    if (!machine.spec.strict_shuffle) return;
    report("shuffle", t.site, 0, [&] {
      return format("reads lane %d, which takes no part (lanes %08x do): undefined value for %s",
                    source, group.arrived, name_of(t).c_str());
    });
  });
}

static void ballot(const Rendezvous& group, Thread* lanes) {
  uint32_t votes = 0;
  for_each_lane(group.arrived, [&](int l) { votes |= uint32_t(lanes[l].value != 0) << l; });
  for_each_lane(group.arrived, [&](int l) { lanes[l].result = votes; });
}

// Everything the participants have seen or done so far happened before what they do next.
static void merge_clocks(Warp& warp, const Rendezvous& group, Thread* lanes) {
  uint32_t merged[kWarpSize] = {};
  for_each_lane(group.arrived, [&](int l) {
    for (int j = 0; j < kWarpSize; ++j) merged[j] = std::max(merged[j], warp.seen[l][j]);
  });
  for_each_lane(group.arrived, [&](int l) { merged[l] = ++lanes[l].clock; });
  for_each_lane(group.arrived, [&](int l) { memcpy(warp.seen[l], merged, sizeof merged); });
}

static void complete(Warp& warp, int which) {
  const Rendezvous group = warp.pending[which];
  warp.pending[which] = warp.pending[--warp.n_pending];
  Thread* lanes = machine.threads + (&warp - machine.warps) * kWarpSize;
  if (group.op == SIMT_SYNCWARP) {
    if (machine.spec.check) merge_clocks(warp, group, lanes);
  } else if (group.op == SIMT_BALLOT) {
    ballot(group, lanes);
  } else {
    shuffle(group, lanes);
  }
  for_each_lane(group.arrived, [&](int l) {
    if (lanes[l].state == State::kWaitsForWarp) make_ready(lanes[l]);
  });
}

static bool is_complete(const Warp& warp, const Rendezvous& group) {
  return group.arrived && (group.mask & warp.live) == group.arrived;
}

void exit_leaves_warp(Warp& warp) {
  for (int i = 0; i < warp.n_pending;) {
    if (is_complete(warp, warp.pending[i])) {
      complete(warp, i);
    } else {
      ++i;
    }
  }
}

static void check_collective(const Thread& t) {
  if (!(t.mask >> t.lane & 1)) {
    fail("mask", t.site, [&] {
      return format("collective with mask %08x executed by a lane it does not name: %s", t.mask,
                    name_of(t).c_str());
    });
  }
  if (t.width == 0 || (t.width & (t.width - 1)) || t.width > kWarpSize) {
    fail("mask", t.site,
         [&] { return format("shuffle width %u is not a power of two up to 32", t.width); });
  }
}

// Two groups that name each other's waiting lanes can never complete: say so before the deadlock.
static void check_mutual_wait(const Warp& warp, const Thread& t) {
  for (int i = 0; i < warp.n_pending; ++i) {
    const Rendezvous& other = warp.pending[i];
    const uint32_t awaited = t.mask & other.arrived;
    if (!(other.mask >> t.lane & 1) || !awaited) continue;
    const Thread& waiting = machine.threads[t.warp * kWarpSize + __builtin_ctz(awaited)];
    fail("mask", t.site, [&] {
      return format(
          "%s starts a collective with mask %08x, but lane %u, which it names, waits for it in "
          "another one, mask %08x, at %s",
          name_of(t).c_str(), t.mask, waiting.lane, waiting.mask, text(waiting.site).c_str());
    });
  }
}

static int join(Warp& warp, const Thread& t, int op) {
  int which = 0;
  const auto matches = [&](const Rendezvous& r) { return r.mask == t.mask && r.op == op; };
  while (which < warp.n_pending && !matches(warp.pending[which])) ++which;
  if (which == warp.n_pending) {
    check_mutual_wait(warp, t);
    warp.pending[warp.n_pending++] = {t.mask, 0, op};
  }
  warp.pending[which].arrived |= 1u << t.lane;
  return which;
}

// The barrier of the block: who is in it, and which textual barrier the first to arrive was at.
static struct {
  int arrived, id;
  Site site;
} barrier;

void reset_barrier() { barrier = {}; }

static void release_barrier() {
  for (int i = 0; i < machine.n_threads; ++i) {
    Thread& t = machine.threads[i];
    if (t.state == State::kWaitsForBlock) make_ready(t);
  }
  barrier.arrived = 0;
  ++machine.epoch;
}

void exit_leaves_block() {
  if (!barrier.arrived) return;
  if (machine.spec.strict_exit) {
    report("barrier", barrier.site, 1, [] {
      return format("%s exits while %d threads wait in this __syncthreads",
                    name_of(*machine.current).c_str(), barrier.arrived);
    });
  }
  if (barrier.arrived == machine.live) release_barrier();
}

static void check_barrier(const Thread& t, int id) {
  if (machine.spec.strict_exit && machine.live != machine.n_threads) {
    report("barrier", t.site, 2, [&] {
      return format("__syncthreads reached by %s after %d threads of the block have exited",
                    name_of(t).c_str(), machine.n_threads - machine.live);
    });
  }
  if (barrier.arrived && (barrier.id != id || barrier.site.line != t.site.line)) {
    report("barrier", t.site, 3, [&] {
      return format(
          "divergent: %s arrives at this __syncthreads while %d threads wait in another one at "
          "%s",
          name_of(t).c_str(), barrier.arrived, text(barrier.site).c_str());
    });
  }
}

extern "C" uint64_t simt_warp_op(int op, unsigned mask, uint64_t value, unsigned operand,
                                 unsigned width, const char* file, int line) {
  Thread& t = *machine.current;
  Warp& warp = machine.warps[t.warp];
  t.site = {0, file, line};
  count_step(t.site);
  t.mask = mask;
  t.value = value;
  t.operand = operand;
  t.width = width;
  check_collective(t);
  const int which = join(warp, t, op);
  if (is_complete(warp, warp.pending[which])) {
    complete(warp, which);
    if (machine.shuffled() && machine.random() & 1) simt_yield();
  } else {
    t.state = State::kWaitsForWarp;
    wait_until_ready();
  }
  return t.result;
}

extern "C" void simt_block_barrier(const char* file, int line, int id) {
  Thread& t = *machine.current;
  t.site = {0, file, line};
  t.mask = 0;
  count_step(t.site);
  check_barrier(t, id);
  if (!barrier.arrived) {
    barrier.id = id;
    barrier.site = t.site;
  }
  if (++barrier.arrived == machine.live) {
    release_barrier();
    if (machine.shuffled()) simt_yield();
  } else {
    t.state = State::kWaitsForBlock;
    wait_until_ready();
  }
}

}  // namespace simt
