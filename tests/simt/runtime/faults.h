// What a launch did wrong: each kind of fault once per place, with the number of times it happened.
#pragma once
#include <stdint.h>

#include <string>

namespace simt {

// Where in a kernel something happens: a program counter, which Python turns into a source line,
// or the line itself where a builtin was given it.
struct Site {
  uintptr_t pc = 0;
  const char* file = nullptr;
  int line = 0;
};

std::string format(const char* text, ...) __attribute__((format(printf, 1, 2)));
inline std::string text(const Site& s) { return format("%s:%d", s.file ? s.file : "?", s.line); }

struct Fault {
  std::string kind, message;
  Site site;
  int count = 0;
};

// The fault of this kind at this site, counted; null unless it is new and has yet to be described.
// `detail` tells apart faults of one kind at one site.
Fault* note_fault(const char* kind, const Site& site, uint64_t detail);

// The description is a function because most calls only count: a race repeats thousands of times.
template <typename Describe>
void report(const char* kind, const Site& site, uint64_t detail, Describe describe) {
  if (Fault* fault = note_fault(kind, site, detail)) fault->message = describe();
}

void clear_faults();
int n_faults();

}  // namespace simt
