// A launch: blocks one after another, inside handlers that turn a crash into a fault.
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "memory.h"
#include "scheduler.h"
#include "stats.h"

namespace simt {

constexpr int kFatalSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr int kNumFatal = sizeof kFatalSignals / sizeof *kFatalSignals;
constexpr uint64_t kMaxShuffledBlocks = 1 << 22;

static int watchdog_signal() { return SIGRTMIN + 3; }
static pthread_t launch_thread;
static uintptr_t kernel_lo, kernel_hi;  // the code of the module that runs

static uintptr_t program_counter(void* context) {
  const auto* machine_context = &static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return machine_context->gregs[REG_RIP];
#else
  return machine_context->pc;
#endif
}

// The handlers leave by a context switch: nothing needs restoring, since no signal is masked, and
// the frames on the fiber's stack belong to a kernel that has no destructors to run.
static void on_crash(int number, siginfo_t* info, void* context) {
  if (!machine.in_block || !pthread_equal(pthread_self(), launch_thread)) {
    signal(number, SIG_DFL);  // not ours: happens again, and then fatally
    return;
  }
  const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  fail("crash", {program_counter(context)}, [&] {
    const std::string who = name_of(*machine.current);
    if (number == SIGSEGV && below_fiber_stack(address)) {
      return format("more than %zu bytes of local memory by %s", kStackBytes, who.c_str());
    }
    return format("signal %d (%s) at address %p by %s", number, strsignal(number), info->si_addr,
                  who.c_str());
  });
}

// Leaving the runtime or the C library at a random point could leave a lock behind, so the watchdog
// acts only inside the kernel; its next tick, or the next step that is counted, sees to the rest.
static void on_watchdog(int, siginfo_t*, void* context) {
  if (!machine.in_block) return;
  const uintptr_t pc = program_counter(context);
  machine.timed_out = true;
  machine.spec.step_limit = 0;
  if (pc - kernel_lo >= kernel_hi - kernel_lo) return;
  fail("timeout", {pc},
       [] { return format("time limit exceeded by %s", name_of(*machine.current).c_str()); });
}

// Counts the processor time of this thread, so that a busy machine does not fail a test.
class Watchdog {
 public:
  explicit Watchdog(uint32_t milliseconds) {
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = watchdog_signal();
    event._sigev_un._tid = syscall(SYS_gettid);
    timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_);
    itimerspec when = {};
    when.it_value = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    when.it_interval.tv_nsec = 20000000;
    timer_settime(timer_, 0, &when, nullptr);
  }
  ~Watchdog() { timer_delete(timer_); }

 private:
  timer_t timer_;
};

class Handlers {
 public:
  Handlers() {
    stack_t stack = {};
    stack.ss_sp = signal_stack_;
    stack.ss_size = sizeof signal_stack_;
    sigaltstack(&stack, &old_stack_);
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    action.sa_sigaction = on_crash;
    for (int i = 0; i < kNumFatal; ++i) sigaction(kFatalSignals[i], &action, &old_[i]);
    action.sa_sigaction = on_watchdog;
    sigaction(watchdog_signal(), &action, &old_watchdog_);
  }
  ~Handlers() {
    for (int i = 0; i < kNumFatal; ++i) sigaction(kFatalSignals[i], &old_[i], nullptr);
    sigaction(watchdog_signal(), &old_watchdog_, nullptr);
    sigaltstack(&old_stack_, nullptr);
  }

 private:
  inline static char signal_stack_[1 << 16];
  stack_t old_stack_;
  struct sigaction old_[kNumFatal], old_watchdog_;
};

static std::vector<uint32_t> block_order(uint64_t n_blocks) {
  if (!machine.shuffled() || n_blocks > kMaxShuffledBlocks) return {};
  std::vector<uint32_t> order(n_blocks);
  std::iota(order.begin(), order.end(), 0);
  for (uint64_t i = n_blocks; i > 1; --i) std::swap(order[i - 1], order[machine.random() % i]);
  return order;
}

static simt_u3 dimensions(const uint32_t* d) { return {d[0], d[1], d[2]}; }

static void reset(const simt_launch_spec& spec, uint64_t n_blocks) {
  clear_faults();
  clear_stats();
  forget_releases(n_blocks);
  machine.spec = spec;
  machine.grid_dim = dimensions(spec.grid);
  machine.block_dim = dimensions(spec.block);
  machine.n_threads = spec.block[0] * spec.block[1] * spec.block[2];
  machine.n_warps = (machine.n_threads + kWarpSize - 1) / kWarpSize;
  machine.epoch = 0;
  machine.steps = machine.accesses = 0;
  machine.aborted = machine.timed_out = false;
  machine.random_state = spec.seed * 0x9E3779B97F4A7C15ull + 0x1234567;
  launch_thread = pthread_self();
}

static void run_one(uint64_t number, uint64_t linear) {
  const simt_u3& grid = machine.grid_dim;
  machine.block_index = {unsigned(linear % grid.x), unsigned(linear / grid.x % grid.y),
                         unsigned(linear / grid.x / grid.y)};
  machine.block_number = number;
  ++machine.epoch;
  begin_block_ordering();
  begin_shared_memory();
  run_block();
  if (machine.spec.stats) end_block_stats();
}

extern "C" void simt_launch(const simt_launch_spec* spec, uintptr_t module_lo, uintptr_t module_hi,
                            simt_launch_result* result) {
  const uint64_t n_blocks = uint64_t(spec->grid[0]) * spec->grid[1] * spec->grid[2];
  reset(*spec, n_blocks);
  kernel_lo = module_lo;
  kernel_hi = module_hi;
  *result = {};
  const std::vector<uint32_t> order = block_order(n_blocks);
  Handlers handlers;
  Watchdog watchdog(spec->timeout_ms);
  for (uint64_t i = 0; i < n_blocks && !machine.aborted; ++i) {
    const uint64_t before = machine.accesses;
    run_one(i, order.empty() ? i : order[i]);
    result->block_accesses = std::max(result->block_accesses, machine.accesses - before);
  }
  machine.in_block = false;
  result->accesses = machine.accesses;
  result->steps = machine.steps;
  result->n_faults = n_faults();
}

}  // namespace simt
