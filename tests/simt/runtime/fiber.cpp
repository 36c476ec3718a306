// The context switch for x86-64 and AArch64: callee-saved registers and the stack pointer.
#include "fiber.h"

#include <string.h>
#include <sys/mman.h>

namespace simt {

#if defined(__x86_64__)
asm(R"(.text
.globl simt_switch
.type simt_switch,@function
simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_switch,.-simt_switch)");

// What simt_switch pops: six registers, the entry point, and a null return address of the entry.
static void* initial_frame(uintptr_t top, void (*entry)()) {
  void** frame = reinterpret_cast<void**>(top) - 8;
  memset(frame, 0, 8 * sizeof(void*));
  frame[6] = reinterpret_cast<void*>(entry);
  return frame;
}

#elif defined(__aarch64__)
asm(R"(.text
.globl simt_switch
.type simt_switch,%function
simt_switch:
  sub sp, sp, #176
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #176
  ret
.size simt_switch,.-simt_switch)");

static void* initial_frame(uintptr_t top, void (*entry)()) {
  void** frame = reinterpret_cast<void**>(top) - 22;
  memset(frame, 0, 22 * sizeof(void*));
  frame[11] = reinterpret_cast<void*>(entry);  // x30, the return address
  return frame;
}

#else
#error "the CPU runner has a context switch for x86-64 and AArch64 only"
#endif

static Fiber fibers[kMaxThreads];
static uintptr_t stacks;
constexpr size_t kGuardBytes = 64 << 10;  // a multiple of every usual page size
constexpr size_t kSlotBytes = kStackBytes + kGuardBytes;
constexpr size_t kStacksBytes = kMaxThreads * kSlotBytes;

static void map_stacks() {
  void* mapping = mmap(nullptr, kStacksBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  stacks = reinterpret_cast<uintptr_t>(mapping);
  for (int i = 0; i < kMaxThreads; ++i) {
    char* slot = static_cast<char*>(mapping) + i * kSlotBytes;
    mprotect(slot, kGuardBytes, PROT_NONE);
    fibers[i].stack = slot + kGuardBytes;
  }
}

Fiber& fiber(int i) {
  if (!stacks) map_stacks();
  return fibers[i];
}

void start(Fiber& f, void (*entry)()) {
  // Tops at different offsets in their pages, or all frames would compete for one cache set.
  const uintptr_t stagger = (&f - fibers) * 7 % 31 * 320;
  const uintptr_t top = reinterpret_cast<uintptr_t>(f.stack) + kStackBytes - stagger;
  f.stack_pointer = initial_frame(top & ~uintptr_t{15}, entry);
}

bool on_fiber_stack(uintptr_t address) { return address - stacks < kStacksBytes; }

bool below_fiber_stack(uintptr_t address) {
  return on_fiber_stack(address) && (address - stacks) % kSlotBytes < kGuardBytes;
}

}  // namespace simt
