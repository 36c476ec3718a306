// Host kernels of edge_softmax; the maths is explained in kernels/edge_softmax.cu.
//
// Packs go over edges and heads at once: with few heads a pack holds several edges, with many one
// edge and a group of its heads. Exponentials are taken twice rather than kept, since a half type
// could not hold them and nothing else has room for an edge array.
#include "edge_softmax.h"

#include "common/softmax.h"
#include "dispatch.h"
#include "row_loop.h"
#include "simd_math.h"

namespace edgegrad::EG_ISA {
namespace {

using Problem = EdgeSoftmax::Problem;

template <typename T, typename I> struct Kernels {
  using A = accum_t<T>;
  using P = Pack<A>;
  static constexpr int kWidth = kLanes<A>;

  // Heads that packs go over together: lane l is head first + head[l] of the edge[l]-th edge.
  struct Group {
    std::int64_t first;
    int heads, edges;
    int edge[kWidth], head[kWidth];
  };

  // All heads, in groups that are made once: rows are often shorter than the divisions take.
  class Groups {
   public:
    explicit Groups(const Problem& p) : count_((p.n_heads + kWidth - 1) / kWidth), groups_(count_) {
      for (std::int64_t i = 0; i < count_; ++i) {
        Group& g = groups_[i];
        g.first = i * kWidth;
        g.heads = p.n_heads - g.first < kWidth ? static_cast<int>(p.n_heads - g.first) : kWidth;
        g.edges = kWidth / g.heads;
        for (int l = 0; l < kWidth; ++l) {
          g.edge[l] = l / g.heads;
          g.head[l] = l % g.heads;
        }
      }
    }
    const Group* begin() const { return groups_.get(); }
    const Group* end() const { return groups_.get() + count_; }

   private:
    std::int64_t count_;
    Scratch<Group> groups_;
  };

  static EG_INLINE std::int64_t position(const Problem& p, std::int64_t e) {
    return p.order == nullptr ? e : std::int64_t(static_cast<const I*>(p.order)[e]);
  }

  // The lanes of a pack lie side by side in memory.
  static EG_INLINE bool is_run(const Problem& p, const Rows& a, const Group& g) {
    return g.edges == 1 || (p.order == nullptr && a.row == g.heads);
  }

  // Values of the edges from e on, up to `end`; lanes without one get `rest`.
  static EG_INLINE P read(const Problem& p, const Rows& a, const Group& g, std::int64_t e,
                          std::int64_t end, A rest) {
    const int n = lanes(g, e, end);
    const T* from = a.at<T>(0, position(p, e)) + g.first;
    const bool run = is_run(p, a, g);
    if (run && n == kWidth) return load(from);
    A lane[kWidth];
    for (int l = 0; l < kWidth; ++l) lane[l] = rest;
    if (run) {
      for (int l = 0; l < n; ++l) lane[l] = widen(from[l]);
    } else {
      for (int l = 0; l < n; ++l)
        lane[l] = widen(a.at<T>(0, position(p, e + g.edge[l]))[g.first + g.head[l]]);
    }
    return load(lane);
  }

  static EG_INLINE void write(const Problem& p, const Rows& a, const Group& g, std::int64_t e,
                              std::int64_t end, P value) {
    const int n = lanes(g, e, end);
    T* to = a.at<T>(0, position(p, e)) + g.first;
    const bool run = is_run(p, a, g);
    if (run && n == kWidth) return store_as(to, value);
    A lane[kWidth];
    store(lane, value);
    if (run) {
      for (int l = 0; l < n; ++l) to[l] = narrow<T>(lane[l]);
    } else {
      for (int l = 0; l < n; ++l)
        a.at<T>(0, position(p, e + g.edge[l]))[g.first + g.head[l]] = narrow<T>(lane[l]);
    }
  }

  static EG_INLINE int lanes(const Group& g, std::int64_t e, std::int64_t end) {
    return static_cast<int>(end - e < g.edges ? end - e : g.edges) * g.heads;
  }

  // f of each head, in the lanes of that head.
  template <typename F> static EG_INLINE P spread(const Group& g, const F& f) {
    A lane[kWidth];
    for (int l = 0; l < kWidth; ++l) lane[l] = f(g.first + g.head[l]);
    return load(lane);
  }

  // set(head, x) with x the lanes of a head joined in order.
  template <typename Join, typename Set>
  static EG_INLINE void fold(const Group& g, P lanes, const Join& join, const Set& set) {
    A lane[kWidth];
    store(lane, lanes);
    for (int h = 0; h < g.heads; ++h) {
      A x = lane[h];
      for (int j = 1; j < g.edges; ++j) x = join(x, lane[j * g.heads + h]);
      set(g.first + h, x);
    }
  }

  static EG_INLINE A add(A a, A b) { return a + b; }

  static void
  forward(const Problem& p, const Rows& output, const Rows& logits, const Pieces& pieces) {
    using Part = SoftmaxPart<A>;
    const Groups groups(p);
    const A none = minus_infinity<A>();
    const auto reduce = [&](std::int64_t, std::int64_t begin, std::int64_t end, Part* parts) {
      for (const Group& g : groups) {
        P max = P{} + none, sum = {};
        for (std::int64_t e = begin; e < end; e += g.edges) {
          const P x = read(p, logits, g, e, end, none);
          max = (x > max) | (x != x) ? x : max;
        }
        fold(g, max, greater<A>, [&](std::int64_t h, A x) { parts[h].max = x; });
        const P shift = spread(g, [&](std::int64_t h) { return shift_of(parts[h].max); });
        for (std::int64_t e = begin; e < end; e += g.edges)
          sum += exp_pack<A>(read(p, logits, g, e, end, none) - shift);
        fold(g, sum, add, [&](std::int64_t h, A x) { parts[h].sum = x; });
      }
    };
    const auto map = [&](std::int64_t, std::int64_t begin, std::int64_t end, const Part* parts) {
      for (const Group& g : groups) {
        const P shift = spread(g, [&](std::int64_t h) { return shift_of(parts[h].max); });
        const P factor = A(1) / spread(g, [&](std::int64_t h) { return parts[h].sum; });
        for (std::int64_t e = begin; e < end; e += g.edges) {
          const P x = read(p, logits, g, e, end, none);
          write(p, output, g, e, end, exp_pack<A>(x - shift) * factor);
        }
      }
    };
    reduce_then_map<Part>(static_cast<const I*>(p.offsets), p.n_rows, pieces, p.n_heads, reduce,
                          map);
  }

  static void backward(const Problem& p, const Rows& grad_logits, const Rows& grad_output,
                       const Rows& output, const Pieces& pieces) {
    using Part = SumPart<A>;
    const Groups groups(p);
    const auto reduce = [&](std::int64_t, std::int64_t begin, std::int64_t end, Part* parts) {
      for (const Group& g : groups) {
        P sum = {};
        for (std::int64_t e = begin; e < end; e += g.edges)
          sum += read(p, output, g, e, end, 0) * read(p, grad_output, g, e, end, 0);
        fold(g, sum, add, [&](std::int64_t h, A x) { parts[h].sum = x; });
      }
    };
    const auto map = [&](std::int64_t, std::int64_t begin, std::int64_t end, const Part* parts) {
      for (const Group& g : groups) {
        const P mean = spread(g, [&](std::int64_t h) { return parts[h].sum; });
        for (std::int64_t e = begin; e < end; e += g.edges) {
          const P y = read(p, output, g, e, end, 0), dy = read(p, grad_output, g, e, end, 0);
          write(p, grad_logits, g, e, end, y * (dy - mean));
        }
      }
    };
    reduce_then_map<Part>(static_cast<const I*>(p.offsets), p.n_rows, pieces, p.n_heads, reduce,
                          map);
  }
};

constexpr EdgeSoftmax kFamily = {
    [](const Problem& p, const Rows& output, const Rows& logits, const Pieces& pieces) {
      with_types<Kernels>(p.dtype, p.wide,
                          [&](auto kernels) { kernels.forward(p, output, logits, pieces); });
    },
    [](const Problem& p, const Rows& grad_logits, const Rows& grad_output, const Rows& output,
       const Pieces& pieces) {
      with_types<Kernels>(p.dtype, p.wide, [&](auto kernels) {
        kernels.backward(p, grad_logits, grad_output, output, pieces);
      });
    },
};

}  // namespace

const EdgeSoftmax& edge_softmax() { return kFamily; }

}  // namespace edgegrad::EG_ISA
