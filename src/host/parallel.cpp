#include "parallel.h"

#include <dirent.h>
#include <omp.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace edgegrad {
namespace {

std::atomic<int> configured{0};
std::atomic<bool> threads_at_fork{false};
std::atomic<bool> pool_lost{false};

// OpenMP's pool may have been started by any library, so the process is asked, not ourselves.
bool has_threads() {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return true;
  int n = 0;
  while (const dirent* task = readdir(tasks)) n += task->d_name[0] != '.';
  closedir(tasks);
  return n > 1;
}

Isa best_isa() {
#if defined(EG_HAS_avx2)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return Isa::avx512;
  if (avx2) return Isa::avx2;
#endif
  return Isa::baseline;
}

// EDGEGRAD_ISA lowers the choice; it cannot ask for what the processor lacks.
Isa chosen_isa() {
  const Isa best = best_isa();
  const char* wish = std::getenv("EDGEGRAD_ISA");
  if (wish == nullptr) return best;
  const Isa wanted = std::strcmp(wish, "baseline") == 0 ? Isa::baseline
                     : std::strcmp(wish, "avx2") == 0   ? Isa::avx2
                                                        : best;
  return wanted < best ? wanted : best;
}

[[maybe_unused]] const int registered =
    pthread_atfork([] { threads_at_fork = has_threads(); }, nullptr,
                   [] {
                     if (threads_at_fork) pool_lost = true;
                   });

}  // namespace

int num_threads() {
  if (pool_lost.load(std::memory_order_relaxed)) return 1;
  const int n = configured.load(std::memory_order_relaxed);
  return n > 0 ? n : omp_get_max_threads();
}

void set_num_threads(int n) { configured = n; }

Isa isa() {
  static const Isa choice = chosen_isa();
  return choice;
}

const char* isa_name() {
  static const char* names[] = {"baseline", "avx2", "avx512"};
  return names[static_cast<int>(isa())];
}

}  // namespace edgegrad
