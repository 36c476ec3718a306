// Python face of the host kernels of gather_reduce. Arguments have been checked by operator.py.
#include "gather_reduce.h"

#include "bind.h"

namespace edgegrad {
namespace {

void init_edges(BoundEdges* self, nb::object offsets, nb::object ids, nb::object order,
                nb::object map, std::int64_t rows, std::int64_t count, std::int64_t limit,
                nb::object piece_row, nb::object piece_begin, nb::object piece_end) {
  const Edges edges{rows,
                    count,
                    data_or_null(offsets),
                    data_or_null(ids),
                    data_or_null(order),
                    data_or_null(map)};
  const Pieces pieces = piece_row.is_none()
                            ? Pieces{}
                            : pieces_of(limit, nb::cast<View>(piece_row),
                                        nb::cast<View>(piece_begin), nb::cast<View>(piece_end));
  new (self) BoundEdges{std::move(offsets),
                        std::move(ids),
                        std::move(order),
                        std::move(map),
                        std::move(piece_row),
                        std::move(piece_begin),
                        std::move(piece_end),
                        edges,
                        pieces};
}

Start start_of(nb::handle start, nb::handle start_ids, DType dtype, std::int64_t count) {
  if (start.is_none()) return {};
  const auto& rows = nb::cast<View>(start);
  return {rows_of(rows), rows.dtype != dtype, data_or_null(start_ids), count};
}

void reduce(int reducer, const BoundEdges& edges, bool wide, View output, nb::handle input,
            double sign, bool root, nb::handle extrema, nb::handle weight, std::int64_t heads,
            nb::handle divide, nb::handle gathered, nb::handle start, nb::handle start_ids,
            std::int64_t start_count, nb::handle centre, nb::handle deviation, nb::handle own) {
  GatherReduce::Problem p{};
  p.reducer = static_cast<GatherReduce::Reducer>(reducer);
  p.dtype = input.is_none() ? output.dtype : nb::cast<View>(input).dtype;
  p.wide = wide;
  p.batch = output.ndim == 3 ? output.shape[0] : 1;
  p.dim = output.shape[output.ndim - 1];
  p.heads = heads;
  p.edges = edges.edges;
  p.input = rows_or_null(input);
  p.output = rows_of(output);
  p.output_is_accumulator = output.dtype != p.dtype;
  p.sign = sign;
  p.extrema = rows_or_null(extrema);
  p.weight = factor_of(weight);
  p.divide = divisor_of(divide);
  p.gathered = divisor_of(gathered);
  p.root = root;
  p.start = start_of(start, start_ids, p.dtype, start_count);
  p.centre = rows_or_null(centre);
  p.deviation = rows_or_null(deviation);
  p.own = rows_or_null(own);
  const nb::gil_scoped_release release;
  gather_reduce_kernels().reduce(p, edges.pieces);
}

}  // namespace

void bind_gather_reduce(nb::module_& m) {
  nb::class_<BoundEdges>(m, "Edges", "Edges grouped by row; see edgegrad.operators.edges.")
      .def("__init__", &init_edges, nb::arg("offsets").none(), nb::arg("ids").none(),
           nb::arg("order").none(), nb::arg("map").none(), nb::arg("rows"), nb::arg("count"),
           nb::arg("limit"), nb::arg("piece_row").none(), nb::arg("piece_begin").none(),
           nb::arg("piece_end").none());
  m.def("gather_reduce", &reduce, nb::arg("reducer"), nb::arg("edges"), nb::arg("wide"),
        nb::arg("output"), nb::arg("input").none(), nb::arg("sign"), nb::arg("root"),
        nb::arg("extrema").none(), nb::arg("weight").none(), nb::arg("heads"),
        nb::arg("divide").none(), nb::arg("gathered").none(), nb::arg("start").none(),
        nb::arg("start_ids").none(), nb::arg("start_count"), nb::arg("centre").none(),
        nb::arg("deviation").none(), nb::arg("own").none());
}

}  // namespace edgegrad
