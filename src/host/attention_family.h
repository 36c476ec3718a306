// The table of an attention family: its score with every type. Included only by its .cpp.
#pragma once
#include "attention_backward.h"
#include "attention_forward.h"

namespace edgegrad::EG_ISA {
namespace {

template <typename Call> void with_types(const Attention::Problem& p, const Call& call) {
  switch (p.dtype) {
    case DType::float16:
      return call(half_t{});
    case DType::bfloat16:
      return call(bfloat16_t{});
    case DType::float32:
      return call(float{});
    default:
      return call(double{});
  }
}

template <template <typename> class ScoreOf>
constexpr Attention kAttention = {
    [](const Attention::Problem& p, const Attention::Forward& out, const Pieces& pieces) {
      with_types(p, [&](auto t) { AttentionForward<decltype(t), ScoreOf>{p, out}.run(pieces); });
    },
    [](const Attention::Problem& p, const Attention::Backward& out, const Pieces& by_dst,
       const Pieces& by_src) {
      with_types(
          p, [&](auto t) { AttentionBackward<decltype(t), ScoreOf>{p, out}.run(by_dst, by_src); });
    },
};

// Attention weights in accumulators, each of their parts padded.
template <typename T> class Weights {
 public:
  using A = accum_t<T>;
  Weights(const Attention::Problem& p, std::int64_t at, std::int64_t n) : data_(padded<A>(n)) {
    for (std::int64_t c = 0; c < padded<A>(n); ++c)
      data_[c] = c >= n ? A(0)
                 : p.weights.dtype == p.dtype
                     ? A(widen(p.weights.rows.template at<T>(0, 0)[at + c]))
                     : A(p.weights.rows.template at<float>(0, 0)[at + c]);
  }
  const A* get() const { return data_.get(); }

 private:
  Scratch<A> data_;
};

}  // namespace
}  // namespace edgegrad::EG_ISA
