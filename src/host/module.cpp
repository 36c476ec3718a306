// The native module edgegrad._host: array views, graph structs, host kernels.
#include <nanobind/nanobind.h>
#include <omp.h>

#include "array.h"
#include "graph.h"
#include "parallel.h"

namespace edgegrad {

// One line per operator family.
void bind_agg_hg_basis(nb::module_& m);
void bind_history(nb::module_& m);
void bind_edge_softmax(nb::module_& m);
void bind_sddmm(nb::module_& m);
void bind_gather_reduce(nb::module_& m);
void bind_per_edge(nb::module_& m);
void bind_mha_gat(nb::module_& m);
void bind_mha_gat_v2(nb::module_& m);
void bind_mha_simple(nb::module_& m);

}  // namespace edgegrad

NB_MODULE(_host, m) {
  using namespace edgegrad;
  // Objects that daemon threads or others' caches hold at exit are no mistake of anybody's.
  nb::set_leak_warnings(false);
  bind_array(m);
  bind_graph(m);
  bind_agg_hg_basis(m);
  bind_history(m);
  bind_edge_softmax(m);
  bind_sddmm(m);
  bind_gather_reduce(m);
  bind_per_edge(m);
  bind_mha_gat(m);
  bind_mha_gat_v2(m);
  bind_mha_simple(m);
  m.def("num_threads", &num_threads);
  m.def("set_num_threads", &set_num_threads, nb::arg("n"));
  m.def("isa", &isa_name);
}
