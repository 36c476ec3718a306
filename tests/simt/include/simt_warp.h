// Block barrier, warp collectives, fences and traps.
#pragma once
#include "simt_abi.h"

#define SIMT_FN static inline __attribute__((always_inline, unused))
// Default arguments that carry the caller's position into a builtin.
#define SIMT_SITE const char *simt_file = __builtin_FILE(), int simt_line = __builtin_LINE()

namespace simt {

template <typename T> SIMT_FN uint64_t bits(T value) {
  static_assert(sizeof(T) <= sizeof(uint64_t), "a warp collective moves at most 8 bytes");
  uint64_t result = 0;
  __builtin_memcpy(&result, &value, sizeof(T));
  return result;
}

template <typename T> SIMT_FN T unbits(uint64_t value) {
  T result;
  __builtin_memcpy(&result, &value, sizeof(T));
  return result;
}

template <typename T>
SIMT_FN T shuffle(int op, unsigned mask, T value, unsigned operand, int width, const char* file,
                  int line) {
  return unbits<T>(::simt_warp_op(op, mask, bits(value), operand, width, file, line));
}

}  // namespace simt

// A macro, because __COUNTER__ is what identifies the textual barrier.
#define __syncthreads() ::simt_block_barrier(__FILE__, __LINE__, __COUNTER__)

SIMT_FN void __syncwarp(unsigned mask = 0xffffffffu, SIMT_SITE) {
  simt_warp_op(SIMT_SYNCWARP, mask, 0, 0, 32, simt_file, simt_line);
}
template <typename T>
SIMT_FN T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_SITE) {
  return simt::shuffle(SIMT_SHFL_IDX, mask, value, source, width, simt_file, simt_line);
}
template <typename T>
SIMT_FN T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE) {
  return simt::shuffle(SIMT_SHFL_UP, mask, value, delta, width, simt_file, simt_line);
}
template <typename T>
SIMT_FN T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE) {
  return simt::shuffle(SIMT_SHFL_DOWN, mask, value, delta, width, simt_file, simt_line);
}
template <typename T>
SIMT_FN T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, SIMT_SITE) {
  return simt::shuffle(SIMT_SHFL_XOR, mask, value, lanes, width, simt_file, simt_line);
}
SIMT_FN unsigned __ballot_sync(unsigned mask, int predicate, SIMT_SITE) {
  return simt_warp_op(SIMT_BALLOT, mask, predicate != 0, 0, 32, simt_file, simt_line);
}
SIMT_FN int __any_sync(unsigned mask, int predicate, SIMT_SITE) {
  return __ballot_sync(mask, predicate, simt_file, simt_line) != 0;
}
SIMT_FN int __all_sync(unsigned mask, int predicate, SIMT_SITE) {
  return __ballot_sync(mask, !predicate, simt_file, simt_line) == 0;
}

SIMT_FN void __threadfence() { simt_fence(); }
SIMT_FN void __threadfence_block() { simt_yield(); }
SIMT_FN void __nanosleep(unsigned) { simt_yield(); }
SIMT_FN void __trap(SIMT_SITE) { simt_trap("__trap()", simt_file, simt_line); }
