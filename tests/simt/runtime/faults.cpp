#include "faults.h"

#include <stdarg.h>
#include <stdio.h>

#include <string_view>
#include <unordered_map>
#include <vector>

namespace simt {

// A broken kernel breaks in many places; the first few dozen tell what there is to know.
constexpr size_t kMaxFaults = 32;

static std::vector<Fault> faults;
static std::unordered_map<uint64_t, size_t> known;

std::string format(const char* text, ...) {
  char buffer[1024];
  va_list args;
  va_start(args, text);
  vsnprintf(buffer, sizeof buffer, text, args);
  va_end(args);
  return buffer;
}

static uint64_t mix(uint64_t h, uint64_t value) {
  return (h ^ value) * 0x9E3779B97F4A7C15ull + (h >> 29);
}

Fault* note_fault(const char* kind, const Site& site, uint64_t detail) {
  uint64_t key = std::hash<std::string_view>{}(kind);
  for (uint64_t part : {uint64_t{site.pc}, uint64_t(site.line), detail}) key = mix(key, part);
  const auto [entry, is_new] = known.try_emplace(key, faults.size());
  if (is_new && faults.size() == kMaxFaults) entry->second = kMaxFaults;
  if (entry->second == kMaxFaults) return nullptr;
  if (is_new) faults.push_back({kind, "", site});
  ++faults[entry->second].count;
  return is_new ? &faults.back() : nullptr;
}

void clear_faults() {
  faults.clear();
  known.clear();
}

int n_faults() { return static_cast<int>(faults.size()); }

extern "C" int simt_fault(int i, const char** kind, const char** message, uintptr_t* pc,
                          const char** file, int* line) {
  const Fault& fault = faults[i];
  *kind = fault.kind.c_str();
  *message = fault.message.c_str();
  *pc = fault.site.pc;
  *file = fault.site.file;
  *line = fault.site.line;
  return fault.count;
}

}  // namespace simt
