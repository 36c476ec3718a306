// Read-only loads and atomics. Their bodies are kept out of the compiler's instrumentation and
// announce themselves instead, so that each counts as one access of its own kind.
#pragma once
#include "simt_warp.h"

#define SIMT_UNHOOKED \
  static inline __attribute__((noinline, no_sanitize("thread"), no_sanitize("undefined"), unused))

namespace simt {

template <typename T> SIMT_UNHOOKED T announced_load(const T* p, const char* file, int line) {
  ::simt_memory_event(p, sizeof(T), SIMT_LOAD, file, line);
  return *p;
}

// All CUDA threads share one thread of the operating system and change places only inside the
// runtime: after the event, read-modify-write is atomic as it stands.
template <typename T, typename F>
SIMT_UNHOOKED T read_modify_write(T* p, F update, const char* file, int line) {
  ::simt_memory_event(p, sizeof(T), SIMT_ATOMIC, file, line);
  const T old = *p;
  *p = update(old);
  return old;
}

template <typename T>
SIMT_UNHOOKED void announced_store(T* p, T value, const char* file, int line) {
  ::simt_memory_event(p, sizeof(T), SIMT_STORE, file, line);
  *p = value;
}

}  // namespace simt

// The built-in vectors that kernels move whole words with.
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

#ifdef SIMT_CHECK
template <typename T> SIMT_FN void __stwb(T* p, T value, SIMT_SITE) {
  simt::announced_store(p, value, simt_file, simt_line);
}
#else
template <typename T> SIMT_FN void __stwb(T* p, T value) { *p = value; }
#endif

#ifdef SIMT_CHECK
template <typename T> SIMT_FN T __ldg(const T* p, SIMT_SITE) {
  return simt::announced_load(p, simt_file, simt_line);
}
#else
template <typename T> SIMT_FN T __ldg(const T* p) { return *p; }
#endif

#define SIMT_ATOMIC(name, T, expression)                                       \
  SIMT_FN T name(T* p, T value, SIMT_SITE) {                                   \
    return simt::read_modify_write(                                            \
        p, [=](T old) -> T { return (T)(expression); }, simt_file, simt_line); \
  }
#define SIMT_INTEGER_ATOMICS(T)                                                              \
  SIMT_ATOMIC(atomicAdd, T, old + value)                                                     \
  SIMT_ATOMIC(atomicMin, T, value < old ? value : old)                                       \
  SIMT_ATOMIC(atomicMax, T, value > old ? value : old)                                       \
  SIMT_ATOMIC(atomicAnd, T, old& value)                                                      \
  SIMT_ATOMIC(atomicOr, T, old | value)                                                      \
  SIMT_ATOMIC(atomicXor, T, old ^ value)                                                     \
  SIMT_ATOMIC(atomicExch, T, value)                                                          \
  SIMT_FN T atomicCAS(T* p, T expected, T value, SIMT_SITE) {                                \
    return simt::read_modify_write(                                                          \
        p, [=](T old) -> T { return old == expected ? value : old; }, simt_file, simt_line); \
  }
SIMT_INTEGER_ATOMICS(int)
SIMT_INTEGER_ATOMICS(unsigned)
SIMT_INTEGER_ATOMICS(unsigned long long)
SIMT_ATOMIC(atomicSub, int, old - value)
SIMT_ATOMIC(atomicSub, unsigned, old - value)
SIMT_ATOMIC(atomicAdd, float, old + value)
SIMT_ATOMIC(atomicAdd, double, old + value)
