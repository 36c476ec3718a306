// validate_csc: the first position at which each rule of a compressed graph is broken.
//
// found[rule] starts at the largest value and receives the lowest offending position by an integer
// atomic, whose result does not depend on order. Rules, in the order of `found`: offsets begin at
// 0; offsets end at n_indices; offsets do not decrease; indices in [0, n_src_nodes); edge types in
// [0, n_edge_types); map in [0, n_indices); map without repetition: `seen` keeps the first position
// of every id, so that whatever the order, the lowest report is the second position of some id.
// Launch: any one-dimensional grid. Reading past a bad offset is avoided by never following one.
#include "common/portable.h"

namespace edgegrad {

constexpr unsigned long long kNowhere = ~0ull;

enum Rule { kFirst, kLast, kMonotone, kIndex, kEdgeType, kMap, kRepeated };

template <typename IdxT>
__global__ void __launch_bounds__(256)
validate_csc(unsigned long long* __restrict__ found, unsigned long long* __restrict__ seen,
             const IdxT* __restrict__ offsets, const IdxT* __restrict__ indices,
             const int* __restrict__ edge_types, const IdxT* __restrict__ map_csc_to_coo,
             index_t n_dst_nodes, index_t n_indices, index_t n_src_nodes, int n_edge_types) {
  const index_t stride = static_cast<index_t>(gridDim.x) * blockDim.x;
  const index_t first = static_cast<index_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const auto report = [&](Rule rule, index_t position) {
    atomicMin(&found[rule], static_cast<unsigned long long>(position));
  };
  if (first == 0) {
    if (offsets[0] != 0) report(kFirst, 0);
    if (offsets[n_dst_nodes] != n_indices) report(kLast, n_dst_nodes);
  }
  for (index_t r = first; r < n_dst_nodes; r += stride)
    if (offsets[r + 1] < offsets[r]) report(kMonotone, r + 1);
  for (index_t e = first; e < n_indices; e += stride) {
    if (indices[e] < 0 || indices[e] >= n_src_nodes) report(kIndex, e);
    if (edge_types && (edge_types[e] < 0 || edge_types[e] >= n_edge_types)) report(kEdgeType, e);
    if (!map_csc_to_coo) continue;
    const index_t id = map_csc_to_coo[e];
    if (id < 0 || id >= n_indices) {
      report(kMap, e);
    } else {
      const unsigned long long position = e, other = atomicMin(&seen[id], position);
      if (other != kNowhere) report(kRepeated, other > position ? other : position);
    }
  }
}

}  // namespace edgegrad
