// Device arrays: aligned like cudaMalloc's, between canaries and inaccessible pages.
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <deque>

namespace simt {

static const size_t page_bytes = sysconf(_SC_PAGESIZE);
constexpr size_t kAlignment = 256, kTailBytes = 64;
constexpr uint8_t kCanary = 0xFF;
// Freed mappings stay inaccessible for a while, so that a stale pointer points nowhere instead of
// into the next array.
constexpr size_t kMaxQuarantined = 1024;

struct Mapping {
  uint8_t *data, *first, *last;  // of the accessible bytes
};

static Mapping mapping_of(uint8_t* data, size_t bytes) {
  const size_t body = (bytes + kTailBytes + page_bytes - 1) / page_bytes * page_bytes;
  // As far to the end as the alignment allows: overruns are more common than underruns.
  const size_t lead = (body - bytes - kTailBytes) & ~(kAlignment - 1);
  uint8_t* first = data ? data - lead : nullptr;
  return {first + lead, first, first + body};
}

extern "C" void* simt_allocate(size_t bytes, int fill) {
  Mapping m = mapping_of(nullptr, bytes);
  const size_t body = m.last - m.first, lead = m.data - m.first;
  void* base = mmap(nullptr, body + 2 * page_bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  uint8_t* first = static_cast<uint8_t*>(base) + page_bytes;
  if (mprotect(first, body, PROT_READ | PROT_WRITE) != 0) return nullptr;
  memset(first, kCanary, lead);
  if (fill) memset(first + lead, kCanary, bytes);
  memset(first + lead + bytes, kCanary, body - lead - bytes);
  return first + lead;
}

// The number of bytes around the array that have been overwritten.
extern "C" size_t simt_damage(uint8_t* data, size_t bytes) {
  const Mapping m = mapping_of(data, bytes);
  const auto damaged = [](uint8_t byte) { return byte != kCanary; };
  return std::count_if(m.first, m.data, damaged) + std::count_if(m.data + bytes, m.last, damaged);
}

extern "C" void simt_release(uint8_t* data, size_t bytes) {
  static std::deque<std::pair<void*, size_t>> quarantine;
  const Mapping m = mapping_of(data, bytes);
  void* base = m.first - page_bytes;
  const size_t total = m.last - m.first + 2 * page_bytes;
  madvise(base, total, MADV_DONTNEED);
  mprotect(base, total, PROT_NONE);
  quarantine.emplace_back(base, total);
  if (quarantine.size() <= kMaxQuarantined) return;
  munmap(quarantine.front().first, quarantine.front().second);
  quarantine.pop_front();
}

// The extent of the loaded module that `address` lies in.
struct ModuleQuery {
  uintptr_t address, lo, hi;
};

static int match_module(dl_phdr_info* info, size_t, void* data) {
  auto* query = static_cast<ModuleQuery*>(data);
  uintptr_t lo = UINTPTR_MAX, hi = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    lo = std::min<uintptr_t>(lo, begin);
    hi = std::max<uintptr_t>(hi, begin + segment.p_memsz);
  }
  if (query->address < lo || query->address >= hi) return 0;
  query->lo = lo;
  query->hi = hi;
  return 1;
}

extern "C" void simt_module_extent(uintptr_t address, uintptr_t* lo, uintptr_t* hi) {
  ModuleQuery query{address, 0, 0};
  dl_iterate_phdr(match_module, &query);
  *lo = query.lo;
  *hi = query.hi;
}

}  // namespace simt
