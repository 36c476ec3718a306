// What the compiler's instrumentation and the CUDA built-ins call.
//
// Kernels are compiled with -fsanitize=thread,undefined-checks but linked to this file instead of
// the sanitizers' libraries, as the Linux kernel does for its own race detector: every memory
// access then arrives here, without a compiler pass of our own.
#include "memory.h"
#include "scheduler.h"

namespace simt {

static inline Site here(void* return_address) {
  return {reinterpret_cast<uintptr_t>(return_address), nullptr, 0};
}

static inline uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

#define SIMT_HERE here(__builtin_return_address(0))
#define SIMT_TSAN(name, bytes, kind)                    \
  extern "C" void __tsan_##name##bytes(void* address) { \
    access(number(address), bytes, kind, SIMT_HERE);    \
  }
#define SIMT_TSAN_SIZE(bytes)                                         \
  SIMT_TSAN(read, bytes, kLoad)                                       \
  SIMT_TSAN(write, bytes, kStore)                                     \
  SIMT_TSAN(unaligned_read, bytes, kLoad)                             \
  SIMT_TSAN(unaligned_write, bytes, kStore)                           \
  SIMT_TSAN(volatile_write, bytes, kVolatileStore)                    \
  extern "C" void __tsan_volatile_read##bytes(void* address) {        \
    access(number(address), bytes, kVolatileLoad, SIMT_HERE);         \
    simt_yield(); /* a spinning reader must let the writer come by */ \
  }                                                                   \
  extern "C" void __tsan_read_write##bytes(void* address) {           \
    access(number(address), bytes, kLoad, SIMT_HERE);                 \
    access(number(address), bytes, kStore, SIMT_HERE);                \
  }
SIMT_TSAN_SIZE(1)
SIMT_TSAN_SIZE(2)
SIMT_TSAN_SIZE(4)
SIMT_TSAN_SIZE(8)
SIMT_TSAN_SIZE(16)

// Copies of large structs, which nvcc would split into words as well.
static void access_range(void* address, size_t bytes, Kind kind, const Site& site) {
  constexpr size_t kWord = 4;
  for (size_t i = 0; i < bytes; i += kWord) {
    access(number(address) + i, bytes - i < kWord ? bytes - i : kWord, kind, site);
  }
}
extern "C" void __tsan_read_range(void* address, size_t bytes) {
  access_range(address, bytes, kLoad, SIMT_HERE);
}
extern "C" void __tsan_write_range(void* address, size_t bytes) {
  access_range(address, bytes, kStore, SIMT_HERE);
}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}

// Undefined behaviour. The compiler passes the source line itself.
struct SourceLocation {
  const char* file;
  uint32_t line, column;
};

static void undefined(const char* kind, const SourceLocation* at, const char* what, bool fatal) {
  if (!machine.in_block) return;
  report(kind, {0, at->file, static_cast<int>(at->line)}, at->column,
         [&] { return format("%s by %s", what, name_of(*machine.current).c_str()); });
  if (fatal) abort_launch();
}

#define SIMT_UBSAN(name, what, fatal)                                       \
  extern "C" void __ubsan_handle_##name(SourceLocation* at, void*, void*) { \
    undefined("undefined", at, what, fatal);                                \
  }
SIMT_UBSAN(out_of_bounds, "array index out of bounds", true)
SIMT_UBSAN(divrem_overflow, "integer division by zero", true)
SIMT_UBSAN(shift_out_of_bounds, "shift out of range", false)
SIMT_UBSAN(builtin_unreachable, "unreachable code reached", true)

extern "C" void __ubsan_handle_type_mismatch_v1(SourceLocation* at, void* address) {
  if (!address) undefined("null", at, "access through a null pointer", true);
  undefined("misaligned", at, format("access to %p, which is not aligned,", address).c_str(), true);
}

// Built-in variables and functions.
extern "C" simt_u3 simt_thread_index(void) { return machine.current->index; }
extern "C" simt_u3 simt_block_index(void) { return machine.block_index; }
extern "C" simt_u3 simt_block_dim(void) { return machine.block_dim; }
extern "C" simt_u3 simt_grid_dim(void) { return machine.grid_dim; }

extern "C" void
simt_memory_event(const void* address, size_t bytes, int kind, const char* file, int line) {
  constexpr uint32_t kUncheckedPreempt = 8;
  if (machine.spec.check) {
    access(number(address), bytes, static_cast<Kind>(kind), {0, file, line});
    return;
  }
  count_step({0, file, line});
  if (machine.shuffled() && machine.random() % kUncheckedPreempt == 0) simt_yield();
}

extern "C" void simt_fence(void) {
  machine.current->fenced = true;
  simt_yield();
}

extern "C" void simt_trap(const char* what, const char* file, int line) {
  fail("trap", {0, file, line},
       [&] { return format("%s by %s", what, name_of(*machine.current).c_str()); });
}

}  // namespace simt
