// mha_gat_v2: l_e = <w, act(x_j + y_i + f_e)>, values x_j (Brody et al. 2022).
#include "common/attention_bwd.cuh"
#include "common/attention_fwd.cuh"

namespace edgegrad {

struct GatV2Score {
  static constexpr bool kPerHead = false, kHasWeights = true, kEdgeInValue = false;
  static constexpr int kForwardBlocks = 2;  // 128 registers: the activations
  static constexpr bool kSeparateValues = false;

  template <typename A, int VEC>
  __device__ __forceinline__ static Activated<A>
  at(const Channels<A, VEC>& c, int v, int activation, A alpha) {
    return activate<ScalarExp>(activation, c.x[v] + c.y[v] + c.f[v], alpha);
  }

  template <typename A, int VEC>
  __device__ __forceinline__ static A sum(const Channels<A, VEC>& c, int activation, A alpha) {
    A total = A(0);
#pragma unroll
    for (int v = 0; v < VEC; ++v) total += c.w[v] * at(c, v, activation, alpha).value;
    return total;
  }

  template <typename A>
  __device__ __forceinline__ static Activated<A> logit(A sum, int, A) {
    return {sum, A(1)};
  }

  // Both ends enter alike.
  template <typename A, int VEC>
  __device__ __forceinline__ static void
  by_destination(const Channels<A, VEC>& c, int activation, A alpha, A (&to)[VEC]) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) to[v] = c.w[v] * at(c, v, activation, alpha).slope;
  }
  template <typename A, int VEC>
  __device__ __forceinline__ static void
  by_source(const Channels<A, VEC>& c, int activation, A alpha, A (&to)[VEC]) {
    by_destination(c, activation, alpha, to);
  }

  template <typename A, int VEC>
  __device__ __forceinline__ static void
  add_weights(const Channels<A, VEC>& c, int activation, A alpha, A delta, A (&sums)[VEC]) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) sums[v] += delta * at(c, v, activation, alpha).value;
  }
};

}  // namespace edgegrad
