// Python face of the host kernels of agg_hg_basis. Arguments have been checked by operator.py.
#include "agg_hg_basis.h"

#include <vector>

#include "bind.h"
#include "common/half.h"
#include "graph.h"

namespace edgegrad {
namespace {

const void* data_or_null(const ArrayView* a) { return a == nullptr ? nullptr : a->data; }

double element(View a, std::int64_t i) {
  switch (a.dtype) {
    case DType::float16:
      return widen(a.as<half_t>()[i]);
    case DType::bfloat16:
      return widen(a.as<bfloat16_t>()[i]);
    case DType::float32:
      return a.as<float>()[i];
    default:
      return a.as<double>()[i];
  }
}

void set_element(View a, std::int64_t i, double value) {
  switch (a.dtype) {
    case DType::float16:
      a.as<half_t>()[i] = to_half(static_cast<float>(value));
      break;
    case DType::bfloat16:
      a.as<bfloat16_t>()[i] = to_bfloat16(static_cast<float>(value));
      break;
    case DType::float32:
      a.as<float>()[i] = static_cast<float>(value);
      break;
    default:
      a.as<double>()[i] = value;
  }
}

// The small matrix of weights in the accumulator's type, C order; doubles also hold the floats.
class Weights {
 public:
  Weights(const ArrayView* a, DType dtype) : double_(dtype == DType::float64) {
    if (a == nullptr) return;
    present_ = true;
    resize(a->shape[0] * a->shape[1]);
    for (std::int64_t r = 0, i = 0; r < a->shape[0]; ++r)
      for (std::int64_t b = 0; b < a->shape[1]; ++b, ++i) {
        const double value = element(*a, r * a->strides[0] + b);
        double_ ? doubles_[i] = value : floats_[i] = static_cast<float>(value);
      }
  }

  // Room for a gradient of the shape of `a`.
  static Weights like(const ArrayView* a, DType dtype) {
    Weights w(nullptr, dtype);
    if (a != nullptr) {
      w.present_ = true;
      w.resize(a->shape[0] * a->shape[1]);
    }
    return w;
  }

  void write_to(View a) const {
    for (std::int64_t r = 0, i = 0; r < a.shape[0]; ++r)
      for (std::int64_t b = 0; b < a.shape[1]; ++b, ++i)
        set_element(a, r * a.strides[0] + b, double_ ? doubles_[i] : floats_[i]);
  }

  void* data() {
    if (!present_) return nullptr;
    return double_ ? static_cast<void*>(doubles_.data()) : static_cast<void*>(floats_.data());
  }

 private:
  // At least one element, so that data() is an address also for an empty matrix.
  void resize(std::int64_t n) {
    const auto size = static_cast<std::size_t>(n > 0 ? n : 1);
    double_ ? doubles_.resize(size) : floats_.resize(size);
  }

  bool double_, present_ = false;
  std::vector<float> floats_;
  std::vector<double> doubles_;
};

AggHgBasis::Problem
problem(const Graph& graph, View input, View output, const ArrayView* weights,
        const ArrayView* edge_weight, const ArrayView* type_degree, bool concat_own) {
  AggHgBasis::Problem p{};
  const auto& offsets = nb::cast<View>(graph.offsets);
  p.dtype = input.dtype;
  p.wide = offsets.dtype == DType::int64;
  p.batch = input.ndim == 3 ? input.shape[0] : 1;
  p.n_src = graph.n_src_nodes;
  p.n_dst = graph.n_dst_nodes;
  p.n_edges = graph.n_indices;
  p.n_types = graph.n_edge_types;
  p.dim = input.shape[input.ndim - 1];
  p.blocks = weights == nullptr ? p.n_types : weights->shape[1];
  p.concat_own = concat_own;
  p.input = rows_of(input);
  p.output = rows_of(output);
  p.edge_weight = data_or_null(edge_weight);
  p.edge_weight_dtype = edge_weight == nullptr ? input.dtype : edge_weight->dtype;
  p.offsets = offsets.data;
  p.indices = nb::cast<View>(graph.indices).data;
  p.edge_types = nb::cast<View>(graph.edge_types).as<std::int32_t>();
  p.type_degree = data_or_null(type_degree);
  return p;
}

void forward(View output, View input, nb::handle weights, nb::handle edge_weight,
             const Graph& graph, nb::handle type_degree, bool concat_own, std::int64_t limit,
             View row, View begin, View end) {
  auto p = problem(graph, input, output, view_or_null(weights), view_or_null(edge_weight),
                   view_or_null(type_degree), concat_own);
  Weights w(view_or_null(weights), p.dtype);
  p.weights = w.data();
  const Pieces cut = pieces_of(limit, row, begin, end);
  const nb::gil_scoped_release release;
  agg_hg_basis_kernels().forward(p, cut);
}

void forward_by_type(View output, View input, nb::handle edge_weight, const Graph& graph,
                     nb::handle type_degree, bool concat_own, View group_offsets, View location,
                     View order, std::int64_t limit, View row, View begin, View end) {
  const auto p = problem(graph, input, output, nullptr, view_or_null(edge_weight),
                         view_or_null(type_degree), concat_own);
  const AggHgBasis::Groups groups{location.size(), group_offsets.data, location.as<std::int64_t>(),
                                  order.data};
  const Pieces cut = pieces_of(limit, row, begin, end);
  const nb::gil_scoped_release release;
  agg_hg_basis_kernels().forward_by_type(p, groups, cut);
}

void grad_input(View result, View grad_output, nb::handle weights, nb::handle edge_weight,
                const Graph& graph, nb::handle type_degree, bool concat_own, View rev_offsets,
                View rev_dst, View rev_position, std::int64_t limit, View row, View begin,
                View end) {
  auto p = problem(graph, result, grad_output, view_or_null(weights), view_or_null(edge_weight),
                   view_or_null(type_degree), concat_own);
  Weights w(view_or_null(weights), p.dtype);
  p.weights = w.data();
  const AggHgBasis::Reverse reverse{rev_offsets.data, rev_dst.data, rev_position.data};
  const Pieces cut = pieces_of(limit, row, begin, end);
  const Rows to = rows_of(result);
  const nb::gil_scoped_release release;
  agg_hg_basis_kernels().grad_input(p, to, reverse, cut);
}

void grad_parameters(nb::handle grad_weights, nb::handle grad_edge_weight, View grad_output,
                     View input, nb::handle weights, nb::handle edge_weight, const Graph& graph,
                     nb::handle type_degree) {
  // Without edge weights their gradient is still defined; its own dtype then says how to store it.
  const ArrayView* factor = view_or_null(edge_weight);
  auto p = problem(graph, input, grad_output, view_or_null(weights), factor,
                   view_or_null(type_degree), false);
  if (factor == nullptr && !grad_edge_weight.is_none())
    p.edge_weight_dtype = view_or_null(grad_edge_weight)->dtype;
  Weights w(view_or_null(weights), p.dtype),
      grad = Weights::like(view_or_null(grad_weights), p.dtype);
  p.weights = w.data();
  void* to_edges = grad_edge_weight.is_none() ? nullptr : view_or_null(grad_edge_weight)->data;
  {
    const nb::gil_scoped_release release;
    agg_hg_basis_kernels().grad_parameters(p, grad.data(), to_edges);
  }
  if (!grad_weights.is_none()) grad.write_to(*view_or_null(grad_weights));
}

}  // namespace

void bind_agg_hg_basis(nb::module_& m) {
  const auto weights = nb::arg("weights").none(), edge_weight = nb::arg("edge_weight").none();
  const auto type_degree = nb::arg("type_degree").none();
  m.def("agg_hg_basis_forward", &forward, nb::arg("output"), nb::arg("input"), weights, edge_weight,
        nb::arg("graph"), type_degree, nb::arg("concat_own"), nb::arg("limit"), nb::arg("row"),
        nb::arg("begin"), nb::arg("end"));
  m.def("agg_hg_basis_forward_by_type", &forward_by_type, nb::arg("output"), nb::arg("input"),
        edge_weight, nb::arg("graph"), type_degree, nb::arg("concat_own"), nb::arg("group_offsets"),
        nb::arg("location"), nb::arg("order"), nb::arg("limit"), nb::arg("row"), nb::arg("begin"),
        nb::arg("end"));
  m.def("agg_hg_basis_grad_input", &grad_input, nb::arg("grad_input"), nb::arg("grad_output"),
        weights, edge_weight, nb::arg("graph"), type_degree, nb::arg("concat_own"),
        nb::arg("rev_offsets"), nb::arg("rev_dst"), nb::arg("rev_position"), nb::arg("limit"),
        nb::arg("row"), nb::arg("begin"), nb::arg("end"));
  m.def("agg_hg_basis_grad_parameters", &grad_parameters, nb::arg("grad_weights").none(),
        nb::arg("grad_edge_weight").none(), nb::arg("grad_output"), nb::arg("input"), weights,
        edge_weight, nb::arg("graph"), type_degree);
}

}  // namespace edgegrad
