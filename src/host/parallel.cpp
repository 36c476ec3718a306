#include "parallel.h"

#include <omp.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace edgegrad {
namespace {

std::atomic<int> configured{0};
std::atomic<bool> pool_started{false};
std::atomic<bool> pool_lost{false};

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
    pthread_atfork(nullptr, nullptr, [] { pool_lost = pool_started.load(); });

}  // namespace

int num_threads() {
  if (pool_lost.load(std::memory_order_relaxed)) return 1;
  const int n = configured.load(std::memory_order_relaxed);
  const int threads = n > 0 ? n : omp_get_max_threads();
  if (threads > 1) pool_started.store(true, std::memory_order_relaxed);
  return threads;
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
