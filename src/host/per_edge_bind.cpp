// Python face of the host kernels of per_edge. Arguments have been checked by operator.py.
#include "per_edge.h"

#include "bind.h"

namespace edgegrad {
namespace {

bool holds_other(nb::handle a, DType dtype) {
  return !a.is_none() && nb::cast<View>(a).dtype != dtype;
}

void expand(const BoundEdges& edges, bool wide, View output, nb::handle row, nb::handle source,
            nb::handle edge, nb::handle divide, nb::handle extrema, nb::handle centre,
            nb::handle deviation, nb::handle subtrahend, nb::handle list_offsets, nb::handle list) {
  PerEdge::Expansion p{};
  p.dtype = output.dtype;
  p.wide = wide;
  p.dim = output.shape[1];
  p.edges = edges.edges;
  p.output = rows_of(output);
  p.row = rows_or_null(row);
  p.source = rows_or_null(source);
  p.edge = rows_or_null(edge);
  p.row_is_accumulator = holds_other(row, p.dtype);
  p.source_is_accumulator = holds_other(source, p.dtype);
  p.divide = divisor_of(divide);
  p.extrema = rows_or_null(extrema);
  p.centre = rows_or_null(centre);
  p.deviation = rows_or_null(deviation);
  p.subtrahend = rows_or_null(subtrahend);
  p.list_offsets = data_or_null(list_offsets);
  p.list = data_or_null(list);
  const nb::gil_scoped_release release;
  per_edge_kernels().expand(p);
}

void grad_factor(const BoundEdges& edges, bool wide, View result, std::int64_t heads, View grad,
                 View input, nb::handle extrema, nb::handle divide, nb::handle mean) {
  PerEdge::FactorGradient p{};
  p.dtype = grad.dtype;
  p.wide = wide;
  p.batch = grad.ndim == 3 ? grad.shape[0] : 1;
  p.dim = grad.shape[grad.ndim - 1];
  p.heads = heads;
  p.edges = edges.edges;
  p.grad = rows_of(grad);
  p.input = rows_of(input);
  p.extrema = rows_or_null(extrema);
  p.divide = divisor_of(divide);
  p.mean = rows_or_null(mean);
  p.result = {result.data, result.dtype, result.strides[0]};
  const nb::gil_scoped_release release;
  per_edge_kernels().grad_factor(p);
}

}  // namespace

void bind_per_edge(nb::module_& m) {
  m.def("expand", &expand, nb::arg("edges"), nb::arg("wide"), nb::arg("output"),
        nb::arg("row").none(), nb::arg("source").none(), nb::arg("edge").none(),
        nb::arg("divide").none(), nb::arg("extrema").none(), nb::arg("centre").none(),
        nb::arg("deviation").none(), nb::arg("subtrahend").none(), nb::arg("list_offsets").none(),
        nb::arg("list").none());
  m.def("grad_factor", &grad_factor, nb::arg("edges"), nb::arg("wide"), nb::arg("result"),
        nb::arg("heads"), nb::arg("grad"), nb::arg("input"), nb::arg("extrema").none(),
        nb::arg("divide").none(), nb::arg("mean").none());
}

}  // namespace edgegrad
