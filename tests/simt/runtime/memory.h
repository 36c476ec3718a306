// The memory a launch may touch, and the checks of one access to it.
#pragma once
#include <string.h>

#include <string>
#include <vector>

#include "record.h"

namespace simt {

enum Kind { kLoad, kStore, kAtomic, kVolatileLoad, kVolatileStore };
const char* text(Kind kind);
// Volatile accesses count as marked, like atomics: they are how a kernel says that it knows.
inline bool writes(Kind k) { return k == kStore || k == kAtomic || k == kVolatileStore; }
inline bool reads(Kind k) { return k == kLoad || k == kAtomic || k == kVolatileLoad; }
inline bool marked(Kind k) { return k >= kAtomic; }

// What is known of one granule of memory. Two readers are enough to find every race that a later
// write can have with one of them, short of rare three-way interleavings.
struct Cell {
  Record write, readers[2];
};

struct Region {
  uintptr_t lo, hi;     // legal addresses
  uintptr_t origin;     // address of the first cell, at or below lo
  int shift;            // log2 of the unit in which races are looked for
  int undefined_shift;  // the same for `undefined`; not larger
  bool read_only, shared;
  std::string name;
  uint8_t* undefined;  // one byte per unit: 1 = never written
  Cell* cells;
  size_t n_cells;

  size_t cell_of(uintptr_t address) const { return (address - origin) >> shift; }
  bool is_undefined(size_t cell) const { return undefined[cell << (shift - undefined_shift)]; }
  void define(size_t cell) const {
    const int finer = shift - undefined_shift;
    memset(undefined + (cell << finer), 0, size_t{1} << finer);
  }
  bool contains(uintptr_t address) const { return address - lo < hi - lo; }
};

// Empties the map of the previous launch.
void clear_regions();
// Shared memory begins every block undefined and filled with a recognisable pattern.
void begin_shared_memory();

// Checks an access of the current thread, records it, and may hand over to another thread.
void access(uintptr_t address, size_t bytes, Kind kind, const Site& site);

}  // namespace simt
