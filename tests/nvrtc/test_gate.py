"""Faults planted in small kernels: a gate that stops finding them must fail."""

from __future__ import annotations

import re

import pytest

from . import cubin, gate, nvrtc
from .gate import Measured

pytestmark = pytest.mark.skipif(nvrtc.missing() is not None, reason=nvrtc.missing() or "")

PARTS = """
template <typename T, int VEC> struct alignas(sizeof(T) * VEC) Vec { T v[VEC]; };

template <typename T, int VEC> __device__ Vec<T, VEC> load(const T* from) {
  return *reinterpret_cast<const Vec<T, VEC>*>(from);
}

template <typename T, int VEC> __device__ void store(T* to, const Vec<T, VEC>& x) {
  *reinterpret_cast<Vec<T, VEC>*>(to) = x;
}
"""


@pytest.fixture(params=nvrtc.ARCHITECTURES, ids="sm_{}".format)
def arch(request: pytest.FixtureRequest) -> int:
    if request.param not in nvrtc.listed():
        pytest.skip(f"NVRTC {nvrtc.version()} does not compile for sm_{request.param}")
    return request.param


def measure_one(code: str, kernel: str, arch: int) -> Measured:
    (measured,), warnings = gate.measure(PARTS + code, "planted.cu", [kernel], arch)
    assert not warnings
    return measured


def faults(code: str, kernel: str, arch: int) -> str:
    return "\n".join(measure_one(code, kernel, arch).faults())


CLEAN = """
template <typename T, int VEC>
__global__ void __launch_bounds__(128) twice(T* __restrict__ to, const T* __restrict__ from) {
  const int c = (blockIdx.x * 128 + threadIdx.x) * VEC;
  Vec<T, VEC> x = load<T, VEC>(from + c);
#pragma unroll
  for (int i = 0; i < VEC; ++i) x.v[i] = x.v[i] + x.v[i];
  store<T, VEC>(to + c, x);
}
"""


@pytest.mark.parametrize(("kernel", "wide"), [("float, 4", 1), ("double, 2", 1), ("float, 2", 0)])
def test_clean_kernel_has_no_fault(kernel: str, wide: int, arch: int) -> None:
    measured = measure_one(CLEAN, f"twice<{kernel}>", arch)
    assert not measured.faults()
    row = measured.row
    assert (row.loads128, row.stores128, row.spills, row.shared) == (wide, wide, 0, 0)
    assert 4 < row.registers < 32
    assert row.occupancy == 100


def test_sixteen_bytes_of_small_elements_are_one_access(arch: int) -> None:
    code = """
    struct half_t { unsigned short bits; };
    template <typename T, int VEC> __global__ void flip(T* __restrict__ to, const T* from) {
      Vec<T, VEC> x = load<T, VEC>(from + threadIdx.x * VEC);
    #pragma unroll
      for (int i = 0; i < VEC; ++i) x.v[i].bits ^= 0x8000;
      store<T, VEC>(to + threadIdx.x * VEC, x);
    }
    """
    row = measure_one(code, "flip<half_t, 8>", arch).row
    assert (row.loads128, row.stores128) == (1, 1)


def test_spill_is_found(arch: int) -> None:
    code = """
    __global__ void __launch_bounds__(1024) spill(float* to, const float* from) {
      float a[96];
    #pragma unroll
      for (int i = 0; i < 96; ++i) a[i] = from[i * 1024 + threadIdx.x];
      __syncthreads();
    #pragma unroll
      for (int i = 0; i < 96; ++i) to[i * 1024 + threadIdx.x] = a[i] * a[(i * 5 + 3) % 96];
    }
    """
    assert re.search(r"^spill spills \d+ bytes$", faults(code, "spill", arch))


def test_local_array_is_found(arch: int) -> None:
    code = """
    __global__ void local(float* to, const float* from, const int* where) {
      float a[40];
      for (int i = 0; i < 40; ++i) a[i] = from[i];
      for (int i = 0; i < 9; ++i) a[where[i]] += 1.0f;
      to[0] = a[where[9]];
    }
    """
    assert faults(code, "local", arch) == "local keeps 160 bytes in local memory"


@pytest.mark.parametrize("real", ["float", "double"])
def test_float_atomic_is_found(real: str, arch: int) -> None:
    code = f"__global__ void add({real}* to, {real} x) {{ atomicAdd(to, x); }}"
    bits = 32 if real == "float" else 64
    assert re.search(rf"adds floats atomically: \w+\.\S*\.f{bits}$", faults(code, "add", arch))


def test_float_atomic_in_a_callee_is_found(arch: int) -> None:
    code = """
    __device__ __noinline__ float add(float* to, float x) { return atomicAdd(to, x); }
    __global__ void outer(float* to) { to[1] = add(to, 2.0f); }
    __global__ void other(float* to) { to[1] = 2.0f; }
    """
    assert "outer adds floats atomically" in faults(code, "outer", arch)
    measured, _ = gate.measure(code, "planted.cu", ["outer", "other"], arch)
    assert [bool(m.float_atomics) for m in measured] == [True, False]


def test_integer_atomic_is_no_fault(arch: int) -> None:
    code = (
        "__global__ void add(int* to, unsigned long long* n) { atomicAdd(to, 2); atomicMax(n, 3); }"
    )
    assert not faults(code, "add", arch)


def test_narrow_loads_are_found(arch: int) -> None:
    code = """
    template <typename T, int VEC> __global__ void narrow(T* __restrict__ to, const T* from) {
      T sum = 0;
      for (int i = 0; i < VEC; ++i) sum += from[threadIdx.x + i * 32];
      to[threadIdx.x] = sum;
    }
    """
    expected = "narrow<float, 4> is made for 16-byte accesses and loads nothing that wide"
    assert faults(code, "narrow<float, 4>", arch) == expected


def test_split_store_is_found(arch: int) -> None:
    code = """
    template <typename T, int VEC> __global__ void split(T* __restrict__ to, const T* from) {
      const Vec<T, VEC> x = load<T, VEC>(from + threadIdx.x * VEC);
      volatile T* each = to + threadIdx.x * VEC;
      for (int i = 0; i < VEC; ++i) each[i] = x.v[i];
    }
    """
    expected = "split<float, 4> splits 1 16-byte stores into narrow ones"
    assert faults(code, "split<float, 4>", arch) == expected


def test_shared_memory_is_what_the_kernel_declares(arch: int) -> None:
    code = """
    __global__ void __launch_bounds__(256) mirror(float* x) {
      __shared__ float s[300];
      s[threadIdx.x] = x[threadIdx.x];
      __syncthreads();
      x[threadIdx.x] = s[255 - threadIdx.x];
    }
    """
    assert measure_one(code, "mirror", arch).row.shared == 1200


def test_registers_are_what_ptxas_reports(arch: int) -> None:
    kernels = ["twice<float, 4>", "twice<double, 2>", "twice<double, 1>"]
    compiled = nvrtc.compile_program(PARTS + CLEAN, "planted.cu", kernels, arch)
    reported = re.findall(r"entry function '(\S+)'.*?Used (\d+) registers", compiled.log, re.DOTALL)
    taken = cubin.resources(compiled.cubin, arch)
    assert {name: r.registers for name, r in taken.items()} == {n: int(r) for n, r in reported}
    assert len(reported) == len(kernels)
    assert {r.max_threads for r in taken.values()} == {128}


def test_error_names_source_architecture_and_line() -> None:
    with pytest.raises(nvrtc.CompileError, match=r"(?s)wrong.cu for sm_80.*wrong.cu\(2\): error"):
        nvrtc.compile_program("\n__global__ void f() { x; }", "wrong.cu", ["f"], 80)


def test_warning_is_found() -> None:
    code = "__global__ void f(int* to) { int unused; to[0] = 1; }"
    _, warnings = gate.measure(code, "planted.cu", ["f"], 80)
    assert len(warnings) == 1
    assert "unused" in warnings[0]
