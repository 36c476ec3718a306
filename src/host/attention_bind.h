// Python face that the attention families share. Arguments have been checked by operator.py.
#pragma once
#include "attention.h"
#include "bind.h"

namespace edgegrad {
namespace {

inline Attention::Array array_of(nb::handle a) {
  const ArrayView* view = view_or_null(a);
  if (view == nullptr) return {};
  // A vector is a matrix of one row.
  return {{view->data, view->ndim > 1 ? view->strides[view->ndim - 2] : 0, 0}, view->dtype};
}

inline std::int64_t columns(nb::handle a) {
  const ArrayView* view = view_or_null(a);
  return view == nullptr ? 0 : view->shape[view->ndim - 1];
}

inline Dropout
dropout_of(nb::handle mask, double scale, std::uint64_t seed, std::uint64_t threshold) {
  const ArrayView* view = view_or_null(mask);
  if (view == nullptr)
    return {threshold > 0 ? kRandom : kKeepAll, nullptr, 0, scale, seed, threshold};
  const int kind = view->dtype == DType::boolean   ? kMaskBool
                   : view->dtype == DType::float64 ? kMaskDouble
                                                   : kMaskFloat;
  return {kind, view->data, view->strides[0], scale, 0, 0};
}

// (mask, scale, seed, threshold); see operators/attention.py.
inline Dropout dropout_of(const nb::tuple& t) {
  return dropout_of(t[0], nb::cast<double>(t[1]), nb::cast<std::uint64_t>(t[2]),
                    nb::cast<std::uint64_t>(t[3]));
}

// inputs: src, dst, value, edge, weights, bias; options: heads, concat, activation, alpha
inline Attention::Problem problem(const nb::tuple& inputs, const nb::tuple& options,
                                  const nb::tuple& dropout, const Edges& edges, bool wide) {
  Attention::Problem p{};
  View src = nb::cast<View>(inputs[0]);
  p.dtype = src.dtype;
  p.n_src = src.shape[0];
  p.n_dst = edges.rows;
  p.n_edges = edges.count;
  p.dim = columns(inputs[0]);
  p.value_dim = columns(inputs[2]);
  p.edge_dim = columns(inputs[3]);
  p.src = rows_of(src);
  p.dst = rows_or_null(inputs[1]);
  p.value = rows_or_null(inputs[2]);
  p.edge = rows_or_null(inputs[3]);
  p.weights = array_of(inputs[4]);
  p.bias = array_of(inputs[5]);
  p.heads = nb::cast<std::int64_t>(options[0]);
  p.concat = nb::cast<bool>(options[1]);
  p.activation = nb::cast<int>(options[2]);
  p.alpha = nb::cast<double>(options[3]);
  p.dropout = dropout_of(dropout);
  p.offsets = {edges.offsets, wide};
  p.indices = {edges.ids, wide};
  p.edge_ids = {edges.map, wide};
  return p;
}

// outputs: output, stats, attention. Kernels is the family's `<family>_kernels`.
template <const Attention& (*Kernels)()>
void attention_forward(const nb::tuple& outputs, const nb::tuple& inputs, const nb::tuple& options,
                       const nb::tuple& dropout, const BoundEdges& incoming, bool wide) {
  const Attention::Problem p = problem(inputs, options, dropout, incoming.edges, wide);
  const Attention::Forward out{rows_or_null(outputs[0]), rows_or_null(outputs[1]),
                               array_of(outputs[2])};
  const nb::gil_scoped_release release;
  Kernels().forward(p, out, incoming.pieces);
}

// gradients: src, dst, value, weights, edge, bias; read: grad_output, output, stats, grad_attention
template <const Attention& (*Kernels)()>
void attention_backward(const nb::tuple& gradients, const nb::tuple& read, bool own,
                        const nb::tuple& inputs, const nb::tuple& options, const nb::tuple& dropout,
                        const BoundEdges& incoming, const BoundEdges& outgoing, bool wide) {
  const Attention::Problem p = problem(inputs, options, dropout, incoming.edges, wide);
  const auto at = [&](int i) { return array_of(gradients[i]); };
  const Edges& reverse = outgoing.edges;
  const Attention::Backward out{at(0),
                                at(1),
                                at(2),
                                at(3),
                                at(4),
                                at(5),
                                rows_or_null(read[0]),
                                rows_or_null(read[1]),
                                rows_or_null(read[2]),
                                array_of(read[3]),
                                own,
                                {reverse.offsets, wide},
                                {reverse.ids, wide},
                                {reverse.order, wide}};
  const nb::gil_scoped_release release;
  Kernels().backward(p, out, incoming.pieces, outgoing.pieces);
}

template <const Attention& (*Kernels)()>
void bind_attention(nb::module_& m, const char* forward, const char* backward) {
  m.def(forward, &attention_forward<Kernels>, nb::arg("outputs"), nb::arg("inputs"),
        nb::arg("options"), nb::arg("dropout"), nb::arg("incoming"), nb::arg("wide"));
  m.def(backward, &attention_backward<Kernels>, nb::arg("gradients"), nb::arg("read"),
        nb::arg("own"), nb::arg("inputs"), nb::arg("options"), nb::arg("dropout"),
        nb::arg("incoming"), nb::arg("outgoing"), nb::arg("wide"));
}

}  // namespace
}  // namespace edgegrad
