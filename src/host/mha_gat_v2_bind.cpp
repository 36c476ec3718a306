// Python face of the host kernels of mha_gat_v2.
#include "attention_bind.h"

namespace edgegrad {

void bind_mha_gat_v2(nb::module_& m) {
  bind_attention<mha_gat_v2_kernels>(m, "mha_gat_v2_forward", "mha_gat_v2_backward");
}

}  // namespace edgegrad
