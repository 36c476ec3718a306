// Fibers: one stack and one saved stack pointer for each CUDA thread that is under way.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace simt {

constexpr int kMaxThreads = 1024;
constexpr size_t kStackBytes = 64 << 10;

struct Fiber {
  void* stack_pointer;
  char* stack;  // its lowest usable byte; what is below it is not accessible
};

// Saves the current context in `*save` and continues in `load`.
extern "C" void simt_switch(void** save, void* load);

// The fibers of one block; their stacks lie in one mapping that is made on first use.
Fiber& fiber(int i);
// Makes `f` begin with `entry` when it is switched to.
void start(Fiber& f, void (*entry)());
bool on_fiber_stack(uintptr_t address);
// True for the guard below a stack, which only an overflow can reach.
bool below_fiber_stack(uintptr_t address);

}  // namespace simt
