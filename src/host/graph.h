// The graph struct behind the eight public types, and what is built from its arrays on the host.
#pragma once
#include "array.h"

namespace edgegrad {

// Compressed sparse columns by destination. Arrays are ArrayView objects (None when absent); the
// struct keeps them, and through them their owners, alive.
struct Graph {
  nb::object offsets, indices, map_csc_to_coo, edge_types, src_node_types, dst_node_types;
  std::int64_t n_src_nodes = 0, n_dst_nodes = 0, n_indices = 0, n_edge_types = 0, n_node_types = 0;
};

void bind_graph(nb::module_& m);

}  // namespace edgegrad
