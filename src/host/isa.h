// How a family of host kernels is compiled once per instruction set and chosen at run time.
//
// A family has a table of function pointers, `struct Family`. Its .cpp is compiled for every
// instruction set with EG_ISA naming it, and defines `const Family& EG_ISA::family()`.
// EG_DECLARE_FAMILY(Family, family) declares them all and `family_kernels()`, the one to call.
#pragma once
#include "parallel.h"

#if defined(EG_HAS_avx512)
#define EG_DECLARE_FAMILY(Type, name)               \
  namespace baseline {                              \
  const Type& name();                               \
  }                                                 \
  namespace avx2 {                                  \
  const Type& name();                               \
  }                                                 \
  namespace avx512 {                                \
  const Type& name();                               \
  }                                                 \
  inline const Type& name##_kernels() {             \
    return isa() == Isa::avx512 ? avx512::name()    \
           : isa() == Isa::avx2 ? avx2::name()      \
                                : baseline::name(); \
  }
#else
#define EG_DECLARE_FAMILY(Type, name) \
  namespace baseline {                \
  const Type& name();                 \
  }                                   \
  inline const Type& name##_kernels() { return baseline::name(); }
#endif
