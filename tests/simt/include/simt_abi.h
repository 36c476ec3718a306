// The C interface between a compiled kernel module and the runtime that executes it.
#pragma once
#include <stddef.h>
#include <stdint.h>

extern "C" {

typedef struct {
  unsigned x, y, z;
} simt_u3;

// Built-in variables. `const` lets the compiler reuse a value inside one CUDA thread, as nvcc does,
// and keeps the calls out of the memory hooks.
__attribute__((const)) simt_u3 simt_thread_index(void);
__attribute__((const)) simt_u3 simt_block_index(void);
__attribute__((const)) simt_u3 simt_block_dim(void);
__attribute__((const)) simt_u3 simt_grid_dim(void);

enum simt_warp_op_code {
  SIMT_SYNCWARP,
  SIMT_SHFL_IDX,
  SIMT_SHFL_UP,
  SIMT_SHFL_DOWN,
  SIMT_SHFL_XOR,
  SIMT_BALLOT
};
uint64_t simt_warp_op(int op, unsigned mask, uint64_t value, unsigned operand, unsigned width,
                      const char* file, int line);
// `id` tells apart two barriers that stand on one line.
void simt_block_barrier(const char* file, int line, int id);

enum simt_access_kind {
  SIMT_LOAD,
  SIMT_STORE,
  SIMT_ATOMIC,
  SIMT_VOLATILE_LOAD,
  SIMT_VOLATILE_STORE
};
// Announces an access that the compiler's own instrumentation does not see.
void simt_memory_event(const void* address, size_t bytes, int kind, const char* file, int line);
void simt_fence(void);
void simt_yield(void);
void simt_trap(const char* what, const char* file, int line);

// What a module says about its kernels.
typedef struct {
  const char* type;       // __PRETTY_FUNCTION__ of a template over the parameter's type
  uint32_t size;          // of the parameter
  uint32_t element_size;  // of what it points to, or of itself
  char is_pointer, is_const;
  char kind;  // of the element: f float, i signed, u unsigned, ? bool, v void, x class
} simt_parameter;

typedef struct {
  const char* name;
  void (*thunk)(void** args);
  int n_parameters;
  const simt_parameter* parameters;
} simt_kernel;

// A launch as the Python side describes it, and what comes back.
typedef struct {
  void (*thunk)(void** args);
  void** args;
  uint32_t grid[3], block[3];
  uint32_t shared_bytes;
  uint32_t check;           // the module is instrumented
  uint32_t strict_exit;     // a thread may not exit before a barrier of its block
  uint32_t strict_shuffle;  // reading from a lane that takes no part is a fault
  uint32_t stats;
  uint32_t preempt;  // mean number of accesses between preemptions, for seed > 0
  uint64_t seed;     // 0: the canonical order
  uint64_t step_limit;
  uint32_t timeout_ms;  // of processor time
} simt_launch_spec;

typedef struct {
  uint64_t accesses;        // to global and shared memory, one per vector
  uint64_t block_accesses;  // the largest number in one block
  uint64_t steps;           // accesses, barriers, collectives and yields
  int32_t n_faults;
} simt_launch_result;

typedef struct {
  uintptr_t pc;
  const char* file;
  int32_t line, kind;
  uint32_t bytes, shared;
  uint64_t requests, lanes, total_bytes, units;  // units: 32-byte sectors or shared-memory passes
} simt_site_stats;

}  // extern "C"
