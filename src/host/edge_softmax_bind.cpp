// Python face of the host kernels of edge_softmax. Arguments have been checked by operator.py;
// arrays are rows x columns.
#include "edge_softmax.h"

#include "bind.h"

namespace edgegrad {
namespace {

EdgeSoftmax::Problem problem(View edges, View offsets, nb::handle order) {
  EdgeSoftmax::Problem p{};
  p.dtype = edges.dtype;
  p.wide = offsets.dtype == DType::int64;
  p.n_rows = offsets.size() - 1;
  p.n_heads = edges.shape[1];
  p.offsets = offsets.data;
  p.order = order.is_none() ? nullptr : nb::cast<View>(order).data;
  return p;
}

void forward(View output, View logits, View offsets, nb::handle order, std::int64_t limit, View row,
             View begin, View end) {
  const auto p = problem(output, offsets, order);
  const Rows y = rows_of(output), x = rows_of(logits);
  const Pieces cut = pieces_of(limit, row, begin, end);
  const nb::gil_scoped_release release;
  edge_softmax_kernels().forward(p, y, x, cut);
}

void backward(View grad_logits, View grad_output, View output, View offsets, nb::handle order,
              std::int64_t limit, View row, View begin, View end) {
  const auto p = problem(output, offsets, order);
  const Rows dx = rows_of(grad_logits), dy = rows_of(grad_output), y = rows_of(output);
  const Pieces cut = pieces_of(limit, row, begin, end);
  const nb::gil_scoped_release release;
  edge_softmax_kernels().backward(p, dx, dy, y, cut);
}

}  // namespace

void bind_edge_softmax(nb::module_& m) {
  m.def("edge_softmax_forward", &forward, nb::arg("output"), nb::arg("logits"), nb::arg("offsets"),
        nb::arg("order").none(), nb::arg("limit"), nb::arg("row"), nb::arg("begin"),
        nb::arg("end"));
  m.def("edge_softmax_backward", &backward, nb::arg("grad_logits"), nb::arg("grad_output"),
        nb::arg("output"), nb::arg("offsets"), nb::arg("order").none(), nb::arg("limit"),
        nb::arg("row"), nb::arg("begin"), nb::arg("end"));
}

}  // namespace edgegrad
