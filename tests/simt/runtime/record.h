// Who last touched a piece of memory, in one word, and whether that happened before the present.
#pragma once
#include "machine.h"

namespace simt {

// From the top: valid 1, atomic 1, several 1, lane clock 12, epoch 16, thread 10, block 23 bits.
class Record {
 public:
  Record() = default;
  static Record of(const Thread& t, bool atomic) {
    return Record(kValid | (atomic ? kAtomic : 0) | uint64_t(t.clock & kClockMask) << 49 |
                  uint64_t(machine.epoch & kEpochMask) << 33 | uint64_t(t.linear) << 23 |
                  (machine.block_number & kBlockMask));
  }

  explicit operator bool() const { return bits_; }
  bool atomic() const { return bits_ & kAtomic; }
  uint32_t thread() const { return bits_ >> 23 & 0x3ff; }
  uint32_t block() const { return bits_ & kBlockMask; }
  bool in_current_block() const { return block() == (machine.block_number & kBlockMask); }

  // An atomic on top of an unordered atomic of another thread: program order alone no longer
  // covers what the word stands for.
  void add_unordered_atomic() { bits_ |= kSeveral; }

  // True if `t` is synchronised with the recorded access, so that the two do not race.
  bool happened_before(const Thread& t, bool in_shared_memory) const {
    if (!in_current_block()) return in_shared_memory || released_to_current_block();
    if ((bits_ >> 33 & kEpochMask) != (machine.epoch & kEpochMask)) return true;
    if (thread() == t.linear) return !(bits_ & kSeveral);
    if (thread() / kWarpSize != t.warp) return false;
    const uint32_t seen = machine.warps[t.warp].seen[t.lane][thread() % kWarpSize];
    const uint32_t ahead = (seen - (bits_ >> 49)) & kClockMask;  // modular: clocks wrap around
    return ahead && ahead <= kClockMask / 2;
  }

  std::string text() const;

 private:
  static constexpr uint64_t kValid = 1ull << 63, kAtomic = 1ull << 62, kSeveral = 1ull << 61;
  static constexpr uint32_t kClockMask = 0xfff, kEpochMask = 0xffff, kBlockMask = 0x7fffff;

  explicit Record(uint64_t bits) : bits_(bits) {}
  bool released_to_current_block() const;

  uint64_t bits_ = 0;
};

// Blocks are ordered only by a fence and an atomic there, then an atomic here, as in the
// last-block-reduces pattern. Kept per block, which may miss a race but never invents one.
void forget_releases(uint64_t n_blocks);
void begin_block_ordering();
void note_atomic(const Thread& t);

}  // namespace simt
