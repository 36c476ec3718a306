// Independent thread scheduling: lanes run freely until a collective, in a fixed order for seed 0
// and in a random one, with preemption inside the memory hooks, for every other seed.
#include "scheduler.h"

#include <vector>

namespace simt {

Machine machine;

static void* main_stack_pointer;
static std::vector<Fiber*> free_fibers;
static int n_fibers;

std::string name_of(const Thread& t) {
  const simt_u3 &b = machine.block_index, &i = t.index;
  return format("block (%u,%u,%u) thread (%u,%u,%u) [warp %u lane %u]", b.x, b.y, b.z, i.x, i.y,
                i.z, t.warp, t.lane);
}

void abort_launch() {
  machine.aborted = true;
  void* abandoned;
  simt_switch(&abandoned, main_stack_pointer);
  __builtin_unreachable();
}

void count_step(const Site& site) {
  if (__builtin_expect(++machine.steps <= machine.spec.step_limit, 1)) return;
  fail("timeout", site, [] {
    const std::string who = name_of(*machine.current);
    if (machine.timed_out) return format("time limit exceeded by %s", who.c_str());
    return format("limit of %llu steps exceeded by %s",
                  static_cast<unsigned long long>(machine.spec.step_limit), who.c_str());
  });
}

void make_ready(Thread& t) {
  t.state = State::kReady;
  machine.warps[t.warp].ready |= 1u << t.lane;
  machine.runnable_warps |= 1u << t.warp;
}

static int random_bit(uint32_t bits) {
  for (int skip = machine.random() % __builtin_popcount(bits); skip > 0; --skip) bits &= bits - 1;
  return __builtin_ctz(bits);
}

// Staying in a warp for a while makes intra-warp interleavings as likely as those between warps.
static int next_warp() {
  const uint32_t runnable = machine.runnable_warps;
  const int here = machine.current ? machine.current->warp : 0;
  const bool may_stay = runnable >> here & 1;
  if (!machine.shuffled()) return may_stay ? here : __builtin_ctz(runnable);
  return may_stay && machine.random() & 3 ? here : random_bit(runnable);
}

// Takes the next runnable thread out of the ready sets; null if there is none.
static Thread* take_next() {
  if (!machine.runnable_warps) return nullptr;
  const int w = next_warp();
  Warp& warp = machine.warps[w];
  const uint32_t lanes = warp.ready | warp.unstarted;
  const int lane = machine.shuffled() ? random_bit(lanes) : __builtin_ctz(lanes);
  Thread& t = machine.threads[w * kWarpSize + lane];
  t.state = warp.unstarted >> lane & 1 ? State::kUnstarted : State::kRunning;
  warp.ready &= ~(1u << lane);
  warp.unstarted &= ~(1u << lane);
  if (!(warp.ready | warp.unstarted)) machine.runnable_warps &= ~(1u << w);
  return &t;
}

static bool blocked(const Thread& t) {
  return t.state == State::kWaitsForWarp || t.state == State::kWaitsForBlock;
}

// Neighbouring threads that wait in the same place, as one line of text each.
static std::string blocked_threads() {
  constexpr int kMaxLines = 12;
  std::string list;
  for (int i = 0, lines = 0; i < machine.n_threads && lines < kMaxLines; ++i) {
    const Thread& first = machine.threads[i];
    if (!blocked(first)) continue;
    const auto waits_too = [&](const Thread& t) {
      return t.state == first.state && t.site.line == first.site.line && t.mask == first.mask;
    };
    int last = i;
    while (last + 1 < machine.n_threads && waits_too(machine.threads[last + 1])) ++last;
    const bool at_barrier = first.state == State::kWaitsForBlock;
    list += format(
        "\n    threads %d..%d wait in %s at %s", i, last,
        at_barrier ? "__syncthreads" : format("a warp collective, mask %08x,", first.mask).c_str(),
        text(first.site).c_str());
    ++lines;
    i = last;
  }
  return list;
}

[[noreturn]] static void deadlock() {
  fail("deadlock", {}, [] {
    const simt_u3& b = machine.block_index;
    return format("block (%u,%u,%u): %d of %d threads have exited, the others are blocked:", b.x,
                  b.y, b.z, machine.n_threads - machine.live, machine.n_threads) +
           blocked_threads();
  });
}

static void run_threads();

static Fiber* new_fiber() {
  Fiber* f;
  if (free_fibers.empty()) {
    f = &fiber(n_fibers++);
  } else {
    f = free_fibers.back();
    free_fibers.pop_back();
  }
  start(*f, run_threads);
  return f;
}

static void switch_to(Thread& next, Fiber& from) {
  if (next.state == State::kUnstarted) next.fiber = new_fiber();
  next.state = State::kRunning;
  machine.current = &next;
  simt_switch(&from.stack_pointer, next.fiber->stack_pointer);
}

static void suspend_for(Thread& next) {
  Thread& me = *machine.current;
  switch_to(next, *me.fiber);
  machine.current = &me;
  me.state = State::kRunning;
}

void wait_until_ready() {
  Thread* next = take_next();
  if (!next) deadlock();
  suspend_for(*next);
}

// The body of every fiber. A thread that never waits costs no switch: its fiber takes the next.
static void run_threads() {
  Fiber& self = *machine.current->fiber;
  for (;;) {
    Thread& t = *machine.current;
    t.fiber = &self;
    t.state = State::kRunning;
    machine.spec.thunk(machine.spec.args);
    t.state = State::kExited;
    --machine.live;
    Warp& warp = machine.warps[t.warp];
    warp.live &= ~(1u << t.lane);
    exit_leaves_warp(warp);
    exit_leaves_block();
    void* finished;
    if (!machine.live) simt_switch(&finished, main_stack_pointer);
    Thread* next = take_next();
    if (!next) deadlock();
    machine.current = next;
    if (next->state == State::kUnstarted) continue;
    free_fibers.push_back(&self);
    simt_switch(&finished, next->fiber->stack_pointer);
  }
}

static void reset_threads() {
  const simt_u3& dim = machine.block_dim;
  for (int i = 0; i < machine.n_threads; ++i) {
    const unsigned u = i;
    Thread& t = machine.threads[i];
    t = Thread{};
    t.index = {u % dim.x, u / dim.x % dim.y, u / (dim.x * dim.y)};
    t.linear = i;
    t.warp = i / kWarpSize;
    t.lane = i % kWarpSize;
  }
  for (int w = 0; w < machine.n_warps; ++w) {
    Warp& warp = machine.warps[w];
    warp = Warp{};
    warp.live = warp.unstarted = lane_bits(machine.n_threads - w * kWarpSize);
  }
  machine.live = machine.n_threads;
  machine.runnable_warps = lane_bits(machine.n_warps);
}

void run_block() {
  reset_threads();
  reset_barrier();
  free_fibers.clear();
  n_fibers = 0;
  machine.current = nullptr;
  Thread* first = take_next();
  first->fiber = new_fiber();
  machine.current = first;
  machine.in_block = true;
  simt_switch(&main_stack_pointer, first->fiber->stack_pointer);
  machine.in_block = false;
}

extern "C" void simt_yield() {
  if (!machine.in_block) return;
  count_step({});
  Thread* next = take_next();
  if (!next) return;
  make_ready(*machine.current);
  suspend_for(*next);
}

}  // namespace simt
