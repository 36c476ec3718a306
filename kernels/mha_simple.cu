// mha_simple: l_e = <q_i, k_j + f_e> * alpha, values v_j + f_e (Shi et al. 2021).
#include "common/attention_bwd.cuh"
#include "common/attention_fwd.cuh"

namespace edgegrad {

struct DotScore {
  static constexpr bool kPerHead = false, kHasWeights = false, kEdgeInValue = true;
  static constexpr int kForwardBlocks = 3;  // 80 registers
  static constexpr bool kSeparateValues = true;

  template <typename A, int VEC>
  __device__ __forceinline__ static A sum(const Channels<A, VEC>& c, int, A alpha) {
    A total = A(0);
#pragma unroll
    for (int v = 0; v < VEC; ++v) total += c.y[v] * (c.x[v] + c.f[v]);
    return total * alpha;
  }

  template <typename A>
  __device__ __forceinline__ static Activated<A> logit(A sum, int, A) {
    return {sum, A(1)};
  }

  template <typename A, int VEC>
  __device__ __forceinline__ static void
  by_destination(const Channels<A, VEC>& c, int, A alpha, A (&to)[VEC]) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) to[v] = (c.x[v] + c.f[v]) * alpha;
  }
  template <typename A, int VEC>
  __device__ __forceinline__ static void
  by_source(const Channels<A, VEC>& c, int, A alpha, A (&to)[VEC]) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) to[v] = c.y[v] * alpha;
  }
};

}  // namespace edgegrad
