#include "memory.h"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "scheduler.h"
#include "stats.h"

namespace simt {

constexpr int kSharedShift = 1;  // 2-byte granules: a half is the smallest thing kernels share

static std::vector<Region> global_regions;  // sorted by address, disjoint
static std::vector<Region> shared_regions;
static std::vector<uint8_t> shared_undefined;
static uintptr_t shared_lo, shared_hi;  // the module's thread-local block
static uintptr_t module_lo, module_hi;  // its constants and static tables
static size_t last_region;              // of the previous access: the next is usually there too

const char* text(Kind kind) {
  constexpr const char* kTexts[] = {"load", "store", "atomic", "volatile load", "volatile store"};
  return kTexts[kind];
}

// Mapped, not allocated: untouched cells of a huge array cost nothing and are zero.
static void map_cells(Region& r) {
  r.n_cells = r.cell_of(r.hi) + 2;
  void* memory = mmap(nullptr, r.n_cells * sizeof(Cell), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  r.cells = static_cast<Cell*>(memory);
}

void clear_regions() {
  for (auto* regions : {&global_regions, &shared_regions}) {
    for (Region& r : *regions) munmap(r.cells, r.n_cells * sizeof(Cell));
    regions->clear();
  }
  shared_lo = shared_hi = 0;
  last_region = 0;
}

void begin_shared_memory() {
  for (Region& r : shared_regions) {
    memset(reinterpret_cast<void*>(r.lo), 0xFF, r.hi - r.lo);
    memset(r.undefined, 1, (r.hi - r.lo + 1) >> kSharedShift);
  }
}

static Region* find_global(uintptr_t address) {
  if (last_region < global_regions.size() && global_regions[last_region].contains(address)) {
    return &global_regions[last_region];
  }
  const auto after = std::upper_bound(global_regions.begin(), global_regions.end(), address,
                                      [](uintptr_t a, const Region& r) { return a < r.lo; });
  if (after == global_regions.begin() || !after[-1].contains(address)) return nullptr;
  last_region = after - global_regions.begin() - 1;
  return &global_regions[last_region];
}

static Region* find_shared(uintptr_t address) {
  for (Region& r : shared_regions) {
    if (r.contains(address)) return &r;
  }
  return nullptr;
}

// --- faults ---------------------------------------------------------------------------------

static std::string subject(size_t bytes, Kind kind) {
  return format("%zu-byte %s by %s", bytes, text(kind), name_of(*machine.current).c_str());
}

[[noreturn]] static void
outside_shared(uintptr_t address, size_t bytes, Kind kind, const Site& site) {
  fail("oob", site, [&] {
    return format("%s outside every shared array, at +%zu (dynamic shared memory: %u bytes)",
                  subject(bytes, kind).c_str(), size_t(address - shared_lo),
                  machine.spec.shared_bytes);
  });
}

[[noreturn]] static void
outside_global(uintptr_t address, size_t bytes, Kind kind, const Site& site) {
  const auto distance = [&](const Region& r) {
    return address < r.lo ? r.lo - address : address - r.hi;
  };
  const auto nearest =
      std::min_element(global_regions.begin(), global_regions.end(),
                       [&](const Region& a, const Region& b) { return distance(a) < distance(b); });
  fail("oob", site, [&] {
    const std::string what = subject(bytes, kind);
    const void* where = reinterpret_cast<void*>(address);
    if (nearest == global_regions.end()) {
      return format("%s at %p: the launch was given no memory", what.c_str(), where);
    }
    return format("%s at %p, which no argument covers: %zu bytes %s '%s'", what.c_str(), where,
                  size_t(distance(*nearest)), address < nearest->lo ? "before" : "past the end of",
                  nearest->name.c_str());
  });
}

static void
check_extent(const Region& r, uintptr_t address, size_t bytes, Kind kind, const Site& site) {
  if (bytes > r.hi - address) {
    fail("oob", site, [&] {
      return format("%s overruns '%s' (%zu bytes) at +%zu", subject(bytes, kind).c_str(),
                    r.name.c_str(), size_t(r.hi - r.lo), size_t(address - r.lo));
    });
  }
  if (r.read_only && writes(kind)) {
    report("read-only", site, 0, [&] {
      return format("%s to '%s', a pointer to const", subject(bytes, kind).c_str(), r.name.c_str());
    });
  }
}

static void check_alignment(uintptr_t address, size_t bytes, Kind kind, const Site& site) {
  const bool vector = bytes <= 16 && (bytes & (bytes - 1)) == 0;
  if (!vector || (address & (bytes - 1)) == 0) return;
  fail("misaligned", site, [&] {
    return format("%s at %p, %zu bytes off", subject(bytes, kind).c_str(),
                  reinterpret_cast<void*>(address), size_t(address & (bytes - 1)));
  });
}

static void check_stack(uintptr_t address, size_t bytes, Kind kind, const Site& site) {
  const auto stack = reinterpret_cast<uintptr_t>(machine.current->fiber->stack);
  if (address - stack < kStackBytes) return;
  report("local", site, 0, [&] {
    return format("%s in the local memory of another thread", subject(bytes, kind).c_str());
  });
}

static void
race(const char* hazard, const Record& other, const Region& r, size_t cell, const Site& site) {
  report("race", site, hazard[0] << 8 | hazard[2], [&] {
    const size_t offset = r.origin + (cell << r.shift) - r.lo;
    return format("%s hazard in %s memory '%s'+%zu: %s conflicts with %s, nothing orders them",
                  hazard, r.shared ? "shared" : "global", r.name.c_str(), offset,
                  name_of(*machine.current).c_str(), other.text().c_str());
  });
}

// --- one access -----------------------------------------------------------------------------

static inline void touch(Region& r, size_t cell, Kind kind, const Site& site) {
  const Thread& t = *machine.current;
  Cell& c = r.cells[cell];
  if (reads(kind) && r.is_undefined(cell)) {
    report("uninit", site, 0, [&] {
      return format("%s of '%s'+%zu, which was never written, by %s", text(kind), r.name.c_str(),
                    size_t(cell << r.shift), name_of(t).c_str());
    });
  }
  const auto conflicts = [&](const Record& other) {
    return other && !(other.atomic() && marked(kind)) && !other.happened_before(t, r.shared);
  };
  if (conflicts(c.write)) race(writes(kind) ? "WAW" : "RAW", c.write, r, cell, site);
  Record now = Record::of(t, marked(kind));
  if (!writes(kind)) {
    const Record& first = c.readers[0];
    const bool replace = !first || first.thread() == t.linear || first.happened_before(t, r.shared);
    c.readers[replace ? 0 : 1] = now;
    return;
  }
  for (const Record& reader : c.readers) {
    if (conflicts(reader)) race("WAR", reader, r, cell, site);
  }
  if (now.atomic() && c.write && c.write.atomic() && !c.write.happened_before(t, r.shared)) {
    now.add_unordered_atomic();
  }
  c = Cell{now, {}};
  r.define(cell);
}

static inline Region& region_of(uintptr_t address, size_t bytes, Kind kind, const Site& site) {
  if (address - shared_lo < shared_hi - shared_lo) {
    if (Region* r = find_shared(address)) return *r;
    outside_shared(address, bytes, kind, site);
  }
  if (Region* r = find_global(address)) return *r;
  outside_global(address, bytes, kind, site);
}

static inline void maybe_preempt() {
  if (!machine.shuffled() || !machine.spec.preempt) return;
  if (machine.random() % machine.spec.preempt == 0) simt_yield();
}

void access(uintptr_t address, size_t bytes, Kind kind, const Site& site) {
  if (!machine.in_block) return;
  if (on_fiber_stack(address)) return check_stack(address, bytes, kind, site);
  if (address - module_lo < module_hi - module_lo) return;
  count_step(site);
  ++machine.accesses;
  check_alignment(address, bytes, kind, site);
  if (kind == kAtomic) note_atomic(*machine.current);
  Region& r = region_of(address, bytes, kind, site);
  check_extent(r, address, bytes, kind, site);
  if (machine.spec.stats) count_access(address, bytes, kind, r.shared, site);
  const size_t end = r.cell_of(address + bytes - 1) + 1;
  for (size_t cell = r.cell_of(address); cell < end; ++cell) touch(r, cell, kind, site);
  maybe_preempt();
}

// --- the map, as Python describes it ----------------------------------------------------------

extern "C" void simt_clear_memory(uintptr_t module_begin, uintptr_t module_end) {
  clear_regions();
  module_lo = module_begin;
  module_hi = module_end;
}

extern "C" void
simt_add_global(uintptr_t lo, uintptr_t hi, uintptr_t origin, int shift, int undefined_shift,
                uint8_t* undefined, int read_only, const char* name) {
  Region r{lo,   hi,        origin,  shift, undefined_shift, read_only != 0, false,
           name, undefined, nullptr, 0};
  map_cells(r);
  const auto after = std::upper_bound(global_regions.begin(), global_regions.end(), lo,
                                      [](uintptr_t a, const Region& q) { return a < q.lo; });
  global_regions.insert(after, r);
}

// `bytes` is the whole thread-local block, in which simt_add_shared names the arrays.
extern "C" void simt_set_shared(uintptr_t lo, size_t bytes) {
  shared_lo = lo;
  shared_hi = lo + bytes;
  shared_undefined.resize(std::max(shared_undefined.size(), (bytes >> kSharedShift) + 2));
}

extern "C" void simt_add_shared(size_t offset, size_t bytes, const char* name) {
  const uintptr_t lo = shared_lo + offset;
  uint8_t* undefined = shared_undefined.data() + (offset >> kSharedShift);
  Region r{lo,        lo + bytes, lo, kSharedShift, kSharedShift, false, true, name,
           undefined, nullptr,    0};
  map_cells(r);
  shared_regions.push_back(r);
}

}  // namespace simt
