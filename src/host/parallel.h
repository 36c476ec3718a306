// Threads, instruction sets, and the cutting of work into chunks that do not depend on either.
#pragma once
#include <omp.h>

#include <cstdint>

namespace edgegrad {

// Threads a parallel region may use now; 1 in a child forked after threads were started, since
// OpenMP's pool does not survive a fork and would wait for ever.
int num_threads();
void set_num_threads(int n);  // 0: OpenMP's default

enum class Isa { baseline, avx2, avx512 };
Isa isa();
const char* isa_name();

// Runs body(chunk, thread) for every chunk. Which thread (0 to `threads` - 1) runs which chunk is
// left open: results go to places that belong to the chunk, scratch may belong to the thread.
// Bodies do not throw; scratch is allocated before.
template <typename Body>
void parallel_for(std::int64_t chunks, int threads, const Body& body) {
  // Waking a thread costs about as much as a chunk or two of work.
  const std::int64_t useful = chunks / 2 < threads ? chunks / 2 : threads;
  if (useful <= 1) {
    for (std::int64_t i = 0; i < chunks; ++i) body(i, 0);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(static_cast<int>(useful))
  for (std::int64_t i = 0; i < chunks; ++i) body(i, omp_get_thread_num());
}

}  // namespace edgegrad
