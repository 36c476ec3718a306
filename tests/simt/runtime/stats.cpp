#include "stats.h"

#include <string.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

namespace simt {

constexpr int kSectorShift = 5, kBankShift = 2, kBanks = 32;

// The k-th time the lanes of a warp come by a site is one request, whatever their interleaving.
struct Request {
  uint32_t lanes = 0, bytes = 0;
  std::vector<uintptr_t> units;  // distinct sectors, or 4-byte words of shared memory
};

struct SiteStats {
  simt_site_stats total = {};
  std::vector<Request> open[kMaxWarps];
  uint32_t visits[kMaxThreads] = {};
};

using Key = std::tuple<uintptr_t, const char*, int, Kind>;
static std::map<Key, std::unique_ptr<SiteStats>> sites;

void clear_stats() { sites.clear(); }

static SiteStats& stats_of(const Site& site, Kind kind, size_t bytes, bool shared) {
  auto& entry = sites[{site.pc, site.file, site.line, kind}];
  if (!entry) {
    entry = std::make_unique<SiteStats>();
    entry->total.pc = site.pc;
    entry->total.file = site.file;
    entry->total.line = site.line;
    entry->total.kind = kind;
    entry->total.bytes = bytes;
    entry->total.shared = shared;
  }
  return *entry;
}

void count_access(uintptr_t address, size_t bytes, Kind kind, bool shared, const Site& site) {
  const Thread& t = *machine.current;
  SiteStats& s = stats_of(site, kind, bytes, shared);
  const uint32_t visit = s.visits[t.linear]++;
  auto& open = s.open[t.warp];
  if (open.size() <= visit) open.resize(visit + 1);
  Request& request = open[visit];
  ++request.lanes;
  request.bytes += bytes;
  const int shift = shared ? kBankShift : kSectorShift;
  for (uintptr_t unit = address >> shift; unit <= (address + bytes - 1) >> shift; ++unit) {
    auto& units = request.units;
    // From the back: the neighbour lane has usually just brought the same one.
    if (std::find(units.rbegin(), units.rend(), unit) == units.rend()) units.push_back(unit);
  }
}

// A bank serves one word per pass.
static uint64_t passes(const std::vector<uintptr_t>& words) {
  uint64_t per_bank[kBanks] = {};
  for (uintptr_t word : words) ++per_bank[word % kBanks];
  return *std::max_element(per_bank, per_bank + kBanks);
}

void end_block_stats() {
  for (auto& [key, site] : sites) {
    for (auto& open : site->open) {
      for (const Request& r : open) {
        ++site->total.requests;
        site->total.lanes += r.lanes;
        site->total.total_bytes += r.bytes;
        site->total.units += site->total.shared ? passes(r.units) : r.units.size();
      }
      open.clear();
    }
    memset(site->visits, 0, sizeof site->visits);
  }
}

// Copies the first `capacity` sites to `out`; the number there are.
extern "C" int simt_stats(simt_site_stats* out, int capacity) {
  int i = 0;
  for (const auto& [key, site] : sites) {
    if (i < capacity) out[i] = site->total;
    ++i;
  }
  return i;
}

}  // namespace simt
