// Python face of the host kernels of mha_gat.
#include "attention_bind.h"

namespace edgegrad {

void bind_mha_gat(nb::module_& m) {
  bind_attention<mha_gat_kernels>(m, "mha_gat_forward", "mha_gat_backward");
}

}  // namespace edgegrad
