// Python face of the host kernels of sddmm. Arguments have been checked by operator.py; arrays are
// rows x columns.
#include "sddmm.h"

#include "bind.h"
#include "graph.h"

namespace edgegrad {
namespace {

Rows rows_or_none(nb::handle a) { return a.is_none() ? Rows{} : rows_of(nb::cast<View>(a)); }

void forward(View output, nb::handle lhs, nb::handle rhs, const Graph& graph, int op,
             std::int64_t n_heads, std::int64_t dim) {
  Sddmm::Problem p{};
  const auto& offsets = nb::cast<View>(graph.offsets);
  p.dtype = output.dtype;
  p.wide = offsets.dtype == DType::int64;
  p.n_dst = graph.n_dst_nodes;
  p.n_edges = graph.n_indices;
  p.n_heads = n_heads;
  p.dim = dim;
  p.op = op;
  p.lhs = rows_or_none(lhs);
  p.rhs = rows_or_none(rhs);
  p.output = rows_of(output);
  p.offsets = offsets.data;
  p.indices = nb::cast<View>(graph.indices).data;
  const nb::gil_scoped_release release;
  sddmm_kernels().forward(p);
}

void gradient(View result, View grad_output, nb::handle other, nb::handle own, View offsets,
              View other_end, nb::handle position, int term, std::int64_t per_head,
              std::int64_t limit, View row, View begin, View end) {
  Sddmm::Gradient p{};
  p.dtype = result.dtype;
  p.wide = offsets.dtype == DType::int64;
  p.n_rows = result.shape[0];
  p.n_edges = grad_output.shape[0];
  p.width = result.shape[1];
  p.per_head = per_head;
  p.term = term;
  p.result = rows_of(result);
  p.grad_output = rows_of(grad_output);
  p.other = rows_or_none(other);
  p.own = rows_or_none(own);
  p.offsets = offsets.data;
  p.other_end = other_end.data;
  p.position = position.is_none() ? nullptr : nb::cast<View>(position).data;
  const Pieces cut = pieces_of(limit, row, begin, end);
  const nb::gil_scoped_release release;
  sddmm_kernels().gradient(p, cut);
}

}  // namespace

void bind_sddmm(nb::module_& m) {
  m.def("sddmm_forward", &forward, nb::arg("output"), nb::arg("lhs").none(), nb::arg("rhs").none(),
        nb::arg("graph"), nb::arg("op"), nb::arg("n_heads"), nb::arg("dim"));
  m.def("sddmm_gradient", &gradient, nb::arg("result"), nb::arg("grad_output"),
        nb::arg("other").none(), nb::arg("own").none(), nb::arg("offsets"), nb::arg("other_end"),
        nb::arg("position").none(), nb::arg("term"), nb::arg("per_head"), nb::arg("limit"),
        nb::arg("row"), nb::arg("begin"), nb::arg("end"));
}

}  // namespace edgegrad
