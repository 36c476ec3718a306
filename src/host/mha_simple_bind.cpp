// Python face of the host kernels of mha_simple.
#include "attention_bind.h"

namespace edgegrad {

void bind_mha_simple(nb::module_& m) {
  bind_attention<mha_simple_kernels>(m, "mha_simple_forward", "mha_simple_backward");
}

}  // namespace edgegrad
