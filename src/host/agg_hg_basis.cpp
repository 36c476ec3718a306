// Host kernels of agg_hg_basis; the maths is explained in kernels/agg_hg_basis.cu.
//
// Rows are worked on in blocks of edges whose feature rows stay in the first-level cache while
// register tiles of kBases output blocks x kVectors packs walk over them.
#include "agg_hg_basis.h"

#include "dispatch.h"
#include "row_loop.h"
#include "simd.h"

namespace edgegrad::EG_ISA {
namespace {

using Problem = AggHgBasis::Problem;

constexpr int kBlockEdges = 32;
constexpr int kBases = 4;
constexpr int kVectors = 2;
constexpr std::int64_t kPrefetchEdges = 16;

template <typename T, typename I> struct Kernels {
  using A = accum_t<T>;
  using P = Pack<A>;
  static constexpr int kWidth = kLanes<A>;

  // ---- what one edge is multiplied by

  static A edge_weight(const Problem& p, std::int64_t e) {
    if (p.edge_weight == nullptr) return A(1);
    if (p.edge_weight_dtype == p.dtype) return widen(static_cast<const T*>(p.edge_weight)[e]);
    return A(static_cast<const float*>(p.edge_weight)[e]);
  }

  static A norm(const Problem& p, std::int64_t e) {
    return p.type_degree == nullptr ? A(1) : A(1) / A(static_cast<const I*>(p.type_degree)[e]);
  }

  // ---- out[b] (+)= sum over n edges of k[e][b] * x[e], for up to kBases blocks b

  template <int NB, int NV, bool kPart>
  static EG_INLINE void tile(A* const* out, const T* const* x, const A (*k)[kBases], int n,
                             std::int64_t c, int part, bool first) {
    P acc[NB][NV];
    for (int b = 0; b < NB; ++b)
      for (int v = 0; v < NV; ++v) {
        const A* from = out[b] + c + v * kWidth;
        acc[b][v] = first ? P{} : kPart ? load_part(from, part) : load(from);
      }
    for (int e = 0; e < n; ++e) {
      P features[NV];
      for (int v = 0; v < NV; ++v)
        features[v] = kPart ? load_part(x[e] + c, part) : load(x[e] + c + v * kWidth);
      for (int b = 0; b < NB; ++b)
        for (int v = 0; v < NV; ++v) acc[b][v] += k[e][b] * features[v];
    }
    for (int b = 0; b < NB; ++b)
      for (int v = 0; v < NV; ++v) {
        A* to = out[b] + c + v * kWidth;
        if (kPart) {
          store_part(to, acc[b][v], part);
        } else {
          store(to, acc[b][v]);
        }
      }
  }

  template <int NB>
  static void add_edges(A* const* out, const T* const* x, const A (*k)[kBases], int n,
                        std::int64_t dim, bool first) {
    std::int64_t c = 0;
    for (; c + kVectors * kWidth <= dim; c += kVectors * kWidth)
      tile<NB, kVectors, false>(out, x, k, n, c, 0, first);
    for (; c + kWidth <= dim; c += kWidth) tile<NB, 1, false>(out, x, k, n, c, 0, first);
    if (c < dim) tile<NB, 1, true>(out, x, k, n, c, static_cast<int>(dim - c), first);
  }

  static void add_edges(int blocks, A* const* out, const T* const* x, const A (*k)[kBases], int n,
                        std::int64_t dim, bool first) {
    switch (blocks) {
      case 1:
        return add_edges<1>(out, x, k, n, dim, first);
      case 2:
        return add_edges<2>(out, x, k, n, dim, first);
      case 3:
        return add_edges<3>(out, x, k, n, dim, first);
      default:
        return add_edges<kBases>(out, x, k, n, dim, first);
    }
  }

  // sum over edges [begin, end) of a destination, blocks side by side in `out` (accumulators).
  // `order` maps edge numbers to CSC positions (null: they are CSC positions); without weights
  // there is one block.
  static void gather(const Problem& p, std::int64_t batch, std::int64_t begin, std::int64_t end,
                     const I* order, bool normalise, A* out) {
    const I* indices = static_cast<const I*>(p.indices);
    const A* weights = static_cast<const A*>(p.weights);
    const std::int64_t blocks = weights == nullptr ? 1 : p.blocks;
    const auto at = [&](std::int64_t e) { return order == nullptr ? e : std::int64_t(order[e]); };
    if (begin == end) {
      for (std::int64_t c = 0; c < blocks * p.dim; ++c) out[c] = A(0);
      return;
    }
    for (std::int64_t first = begin; first < end; first += kBlockEdges) {
      const int n = static_cast<int>(end - first < kBlockEdges ? end - first : kBlockEdges);
      const T* x[kBlockEdges];
      const A* w[kBlockEdges];
      A coefficient[kBlockEdges], k[kBlockEdges][kBases];
      for (int i = 0; i < n; ++i) {
        const std::int64_t e = at(first + i);
        x[i] = p.input.at<T>(batch, indices[e]);
        coefficient[i] = edge_weight(p, e) * (normalise ? norm(p, e) : A(1));
        w[i] = weights + (weights == nullptr ? 0 : p.edge_types[e] * blocks);
      }
      const std::int64_t ahead = first + n + kPrefetchEdges;
      for (std::int64_t e = ahead - n; e < ahead && e < p.n_edges; ++e)
        prefetch_row(p.input.at<T>(batch, indices[at(e)]), p.dim);
      for (std::int64_t b = 0; b < blocks; b += kBases) {
        const int nb = static_cast<int>(blocks - b < kBases ? blocks - b : kBases);
        A* to[kBases];
        for (int j = 0; j < nb; ++j) to[j] = out + (b + j) * p.dim;
        for (int i = 0; i < n; ++i)
          for (int j = 0; j < nb; ++j)
            k[i][j] = weights == nullptr ? coefficient[i] : coefficient[i] * w[i][b + j];
        add_edges(nb, to, x, k, n, p.dim, first == begin);
      }
    }
  }

  static void forward(const Problem& p, const Pieces& pieces) {
    const std::int64_t width = p.blocks * p.dim;
    for (std::int64_t batch = 0; batch < p.batch; ++batch) {
      for_rows<A>(
          static_cast<const I*>(p.offsets), p.n_dst, pieces, width,
          [&](std::int64_t, std::int64_t begin, std::int64_t end, A* out) {
            gather(p, batch, begin, end, nullptr, true, out);
          },
          [&](std::int64_t r) { return in_place<T>(p.output.at<T>(batch, r)); },
          [&](std::int64_t r, const A* sums) {
            T* to = p.output.at<T>(batch, r);
            if (static_cast<const void*>(to) != sums) write_row(to, sums, width, A(1));
            if (p.concat_own) copy_row(to + width, p.input.at<T>(batch, r), p.dim);
          });
    }
  }

  // Without weights every (destination, type) is a row of its own; blocks between are zero.
  static void
  forward_by_type(const Problem& p, const AggHgBasis::Groups& groups, const Pieces& pieces) {
    const I* offsets = static_cast<const I*>(groups.offsets);
    for (std::int64_t batch = 0; batch < p.batch; ++batch) {
      const auto block = [&](std::int64_t location) {
        return p.output.at<T>(batch, location / p.n_types) + location % p.n_types * p.dim;
      };
      const auto scale = [&](std::int64_t g) {
        return p.type_degree == nullptr ? A(1) : A(1) / A(offsets[g + 1] - offsets[g]);
      };
      for_each_row(p.n_dst, [&](std::int64_t r) {
        T* to = p.output.at<T>(batch, r);
        std::memset(static_cast<void*>(to), 0,
                    static_cast<std::size_t>(p.blocks * p.dim) * sizeof(T));
        if (p.concat_own) copy_row(to + p.blocks * p.dim, p.input.at<T>(batch, r), p.dim);
      });
      for_rows<A>(
          offsets, groups.count, pieces, p.dim,
          [&](std::int64_t, std::int64_t begin, std::int64_t end, A* out) {
            gather(p, batch, begin, end, static_cast<const I*>(groups.order), false, out);
          },
          [&](std::int64_t g) { return in_place<T>(block(groups.location[g])); },
          [&](std::int64_t g, const A* sums) {
            write_row(block(groups.location[g]), sums, p.dim, scale(g));
          });
    }
  }

  // ---- backward

  // sum over reverse edges [begin, end) of a source: k[e][b] * G_{dst, b}
  static void gather_grad(const Problem& p, std::int64_t batch, const AggHgBasis::Reverse& reverse,
                          std::int64_t n_edges, std::int64_t begin, std::int64_t end, A* out) {
    const I* dst = static_cast<const I*>(reverse.dst);
    const I* position = static_cast<const I*>(reverse.position);
    const A* weights = static_cast<const A*>(p.weights);
    const std::int64_t blocks = weights == nullptr ? 1 : p.blocks;
    for (std::int64_t first = begin; first < end; first += kBases) {
      const int n = static_cast<int>(end - first < kBases ? end - first : kBases);
      const T* g[kBases];
      const A* w[kBases];
      A coefficient[kBases];
      const A one = A(1);
      for (int i = 0; i < n; ++i) {
        const std::int64_t e = position[first + i], type = p.edge_types[e];
        coefficient[i] = edge_weight(p, e) * norm(p, e);
        g[i] = p.output.at<T>(batch, dst[first + i]) + (weights == nullptr ? type * p.dim : 0);
        w[i] = weights == nullptr ? &one : weights + type * blocks;
      }
      for (std::int64_t r = first + n; r < first + 2 * n && r < n_edges; ++r) {
        const std::int64_t type = weights == nullptr ? p.edge_types[position[r]] : 0;
        prefetch_row(p.output.at<T>(batch, dst[r]) + type * p.dim, blocks * p.dim);
      }
      std::int64_t c = 0;
      for (; c + kVectors * kWidth <= p.dim; c += kVectors * kWidth)
        grad_tile<kVectors, false>(out, g, w, coefficient, n, blocks, p.dim, c, 0);
      for (; c + kWidth <= p.dim; c += kWidth)
        grad_tile<1, false>(out, g, w, coefficient, n, blocks, p.dim, c, 0);
      if (c < p.dim)
        grad_tile<1, true>(out, g, w, coefficient, n, blocks, p.dim, c,
                           static_cast<int>(p.dim - c));
    }
  }

  template <int NV, bool kPart>
  static EG_INLINE void
  grad_tile(A* out, const T* const* g, const A* const* w, const A* coefficient, int n,
            std::int64_t blocks, std::int64_t dim, std::int64_t c, int part) {
    P acc[NV];
    for (int v = 0; v < NV; ++v)
      acc[v] = kPart ? load_part(out + c, part) : load(out + c + v * kWidth);
    for (int e = 0; e < n; ++e)
      for (std::int64_t b = 0; b < blocks; ++b) {
        const T* from = g[e] + b * dim + c;
        const A k = coefficient[e] * w[e][b];
        for (int v = 0; v < NV; ++v)
          acc[v] += k * (kPart ? load_part(from, part) : load(from + v * kWidth));
      }
    for (int v = 0; v < NV; ++v) {
      if (kPart) {
        store_part(out + c, acc[v], part);
      } else {
        store(out + c + v * kWidth, acc[v]);
      }
    }
  }

  static void grad_input(const Problem& p, const Rows& result, const AggHgBasis::Reverse& reverse,
                         const Pieces& pieces) {
    const I* offsets = static_cast<const I*>(reverse.offsets);
    for (std::int64_t batch = 0; batch < p.batch; ++batch) {
      for_rows<A>(
          offsets, p.n_src, pieces, p.dim,
          [&](std::int64_t r, std::int64_t begin, std::int64_t end, A* out) {
            // The own part is where the row's sum starts, so it enters once, with the first piece.
            const bool own = p.concat_own && r < p.n_dst && begin == std::int64_t(offsets[r]);
            const T* from = own ? p.output.at<T>(batch, r) + p.blocks * p.dim : nullptr;
            for (std::int64_t c = 0; c < p.dim; ++c) out[c] = own ? widen(from[c]) : A(0);
            gather_grad(p, batch, reverse, p.n_edges, begin, end, out);
          },
          [&](std::int64_t r) { return in_place<T>(result.at<T>(batch, r)); },
          [&](std::int64_t r, const A* sums) {
            T* to = result.at<T>(batch, r);
            if (static_cast<const void*>(to) != sums) write_row(to, sums, p.dim, A(1));
          });
    }
  }

  // <x, g + b * dim> for up to kBases blocks at once, so that x is read once for them.
  template <int NB> static void dots(const T* x, const T* g, std::int64_t dim, A* result) {
    P acc[NB] = {};
    std::int64_t c = 0;
    for (; c + kWidth <= dim; c += kWidth) {
      const P features = load(x + c);
      for (int b = 0; b < NB; ++b) acc[b] += features * load(g + b * dim + c);
    }
    if (c < dim) {
      const int part = static_cast<int>(dim - c);
      const P features = load_part(x + c, part);
      for (int b = 0; b < NB; ++b) acc[b] += features * load_part(g + b * dim + c, part);
    }
    for (int b = 0; b < NB; ++b) result[b] += sum_lanes<A>(acc[b]);
  }

  // q[b] = sum over the batch of <x_src, G_{dst, b}>
  static void edge_dots(const Problem& p, std::int64_t src, std::int64_t dst, std::int64_t type,
                        std::int64_t blocks, A* q) {
    for (std::int64_t b = 0; b < blocks; ++b) q[b] = A(0);
    for (std::int64_t batch = 0; batch < p.batch; ++batch) {
      const T* x = p.input.at<T>(batch, src);
      const T* g = p.output.at<T>(batch, dst) + (p.weights == nullptr ? type * p.dim : 0);
      std::int64_t b = 0;
      for (; b + kBases <= blocks; b += kBases) dots<kBases>(x, g + b * p.dim, p.dim, q + b);
      for (; b < blocks; ++b) dots<1>(x, g + b * p.dim, p.dim, q + b);
    }
  }

  static void grad_parameters(const Problem& p, void* grad_weights, void* grad_edge_weight) {
    const I* offsets = static_cast<const I*>(p.offsets);
    const I* indices = static_cast<const I*>(p.indices);
    const A* weights = static_cast<const A*>(p.weights);
    const std::int64_t blocks = weights == nullptr ? 1 : p.blocks, size = p.n_types * blocks;
    // Chunks are fixed by the problem: their partial sums are added in order at the end.
    constexpr std::int64_t kChunkEdges = 8192, kMaxChunks = 128;
    const std::int64_t wanted = (p.n_edges + kChunkEdges - 1) / kChunkEdges;
    // Their matrices together stay below the output, which bounds the scratch of many types.
    const std::int64_t affordable = p.n_dst * blocks * p.dim / (size > 0 ? size : 1);
    const std::int64_t most = affordable < 1            ? 1
                              : affordable < kMaxChunks ? affordable
                                                        : kMaxChunks;
    const std::int64_t chunks = wanted < most ? wanted : most;
    const int threads = num_threads();
    const Scratch<double> partials(grad_weights == nullptr ? 0 : chunks * size);
    const Scratch<A> dots_of_thread(threads * blocks);
    parallel_for(chunks, threads, [&](std::int64_t chunk, int thread) {
      const std::int64_t begin = p.n_edges * chunk / chunks;
      const std::int64_t end = p.n_edges * (chunk + 1) / chunks;
      A* q = dots_of_thread.get() + thread * blocks;
      double* sums = grad_weights == nullptr ? nullptr : partials.get() + chunk * size;
      if (sums != nullptr) std::memset(sums, 0, static_cast<std::size_t>(size) * sizeof(double));
      std::int64_t dst = row_of_edge(offsets, p.n_dst, begin);
      for (std::int64_t e = begin; e < end; ++e) {
        while (std::int64_t(offsets[dst + 1]) <= e) ++dst;
        if (e + kPrefetchEdges < end)
          prefetch_row(p.input.at<T>(0, indices[e + kPrefetchEdges]), p.dim);
        const std::int64_t type = p.edge_types[e];
        edge_dots(p, indices[e], dst, type, blocks, q);
        const A factor = norm(p, e);
        if (sums != nullptr) {
          const A k = factor * edge_weight(p, e);
          for (std::int64_t b = 0; b < blocks; ++b) sums[type * blocks + b] += double(k * q[b]);
        }
        if (grad_edge_weight != nullptr) {
          A total = weights == nullptr ? q[0] : A(0);
          if (weights != nullptr)
            for (std::int64_t b = 0; b < blocks; ++b) total += weights[type * blocks + b] * q[b];
          write_edge(p, grad_edge_weight, e, factor * total);
        }
      }
    });
    if (grad_weights == nullptr) return;
    for (std::int64_t i = 0; i < size; ++i) {
      double total = 0;
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) total += partials[chunk * size + i];
      static_cast<A*>(grad_weights)[i] = static_cast<A>(total);
    }
  }

  static void write_edge(const Problem& p, void* to, std::int64_t e, A value) {
    if (p.edge_weight_dtype == p.dtype) {
      static_cast<T*>(to)[e] = narrow<T>(value);
    } else {
      static_cast<float*>(to)[e] = static_cast<float>(value);
    }
  }
};

constexpr AggHgBasis kFamily = {
    [](const Problem& p, const Pieces& pieces) {
      with_types<Kernels>(p.dtype, p.wide, [&](auto kernels) { kernels.forward(p, pieces); });
    },
    [](const Problem& p, const AggHgBasis::Groups& groups, const Pieces& pieces) {
      with_types<Kernels>(p.dtype, p.wide,
                          [&](auto kernels) { kernels.forward_by_type(p, groups, pieces); });
    },
    [](const Problem& p, const Rows& grad_input, const AggHgBasis::Reverse& reverse,
       const Pieces& pieces) {
      with_types<Kernels>(p.dtype, p.wide, [&](auto kernels) {
        kernels.grad_input(p, grad_input, reverse, pieces);
      });
    },
    [](const Problem& p, void* grad_weights, void* grad_edge_weight) {
      with_types<Kernels>(p.dtype, p.wide, [&](auto kernels) {
        kernels.grad_parameters(p, grad_weights, grad_edge_weight);
      });
    },
};

}  // namespace

const AggHgBasis& agg_hg_basis() { return kFamily; }

}  // namespace edgegrad::EG_ISA
