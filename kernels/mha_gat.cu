// mha_gat: l_e = act(<w_s, x_j> + <w_d, y_i> + <w_e, f_e>), values x_j (Velickovic et al. 2018).
//
// A score is a sum of numbers of each end, made first (attention_scores): then edges gather one
// number per head for it. The derivatives are numbers per head too; what the ends get of them is
// their product with the weights.
#include "common/attention_bwd.cuh"
#include "common/attention_fwd.cuh"

namespace edgegrad {

struct GatScore {
  static constexpr bool kPerHead = true, kHasWeights = true, kEdgeInValue = false;
  static constexpr int kForwardBlocks = 3;  // 80 registers
  static constexpr bool kSeparateValues = false;

  template <typename A>
  __device__ __forceinline__ static Activated<A> logit(A z, int activation, A alpha) {
    return activate<ScalarExp>(activation, z, alpha);
  }
};

}  // namespace edgegrad
