"""Compilation: the cache, options, headers, and what is read from the source."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import simt

from . import cache, source, toolchain
from . import cupy_standin as cp

CODE = """
#include "value.cuh"
extern "C" __global__ void get(int* to) { to[0] = VALUE; }
"""


def value(folder: Path, *options: str) -> int:
    module = cp.RawModule(code=CODE, options=(f"-I{folder}", "-std=c++17", *options))
    y = cp.empty(1, np.int32)
    module.get_function("get")((1,), (1,), (y,))
    return int(y[0])


def test_edited_header_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "value.cuh").write_text('#include "deep/number.h"\n#define VALUE NUMBER\n')
    (tmp_path / "deep" / "number.h").write_text("#define NUMBER 3\n")
    assert value(tmp_path) == 3
    (tmp_path / "deep" / "number.h").write_text("#define NUMBER 4\n")
    simt.module.load.cache_clear()  # as a new process would
    assert value(tmp_path) == 4


def test_options(tmp_path: Path) -> None:
    (tmp_path / "value.cuh").write_text("#ifndef VALUE\n#define VALUE __CUDA_ARCH__\n#endif\n")
    assert value(tmp_path) == 800
    assert value(tmp_path, "--gpu-architecture=sm_90") == 900
    assert value(tmp_path, "-DVALUE=12") == 12
    with pytest.raises(ValueError, match="--use_fast_math"):
        value(tmp_path, "--use_fast_math")


def test_compile_error_shows_the_line() -> None:
    module = cp.RawModule(code='\nextern "C" __global__ void f(int* x) { x[0] = undeclared; }')
    with pytest.raises(cp.cuda.compiler.CompileException, match=r"kernel\.cu:2.*undeclared"):
        module.compile()


def test_missing_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEGRAD_SIMT_CXX", "no-such-compiler")
    with pytest.raises(simt.CompileError, match="no-such-compiler is not installed"):
        cp.RawModule(code='extern "C" __global__ void missing(int*) {}').compile()


def test_namespaces_and_templates() -> None:
    code = """
    namespace a::b {
    template <typename T, int N> __global__ void __launch_bounds__(32) f(T* __restrict__ to) {
      extern __shared__ T staged[];
      __shared__ T one;
      staged[threadIdx.x] = T(N);
      one = T(1);
      __syncthreads();
      to[threadIdx.x] = staged[threadIdx.x] + one;
    }
    }
    """
    names = ("a::b::f<float, 3>", "a::b::f<long long, 7>")
    for name, dtype, expected in zip(names, (np.float32, np.int64), (4, 8), strict=True):
        y = cp.empty(1, dtype)
        module = cp.RawModule(code=code, name_expressions=(name,))
        module.get_function(name)((1,), (1,), (y.data.ptr,), shared_mem=32)
        assert y.get()[0] == expected


def test_many_processes_with_a_cold_cache(tmp_path: Path) -> None:
    program = """if True:
    import numpy as np
    from simt import cupy_standin as cp
    y = cp.empty(1, np.int32)
    code = 'extern "C" __global__ void f(int* to) { to[0] = 5; }'
    cp.RawModule(code=code).get_function("f")((1,), (1,), (y,))
    assert int(y[0]) == 5
    """
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": str(Path(simt.__file__).parents[1]),
        "EDGEGRAD_SIMT_CACHE": str(tmp_path),
    }
    # The runtime takes longest to compile, and is renamed into place by the same code as the rest.
    shutil.copy(toolchain.build_runtime(), tmp_path)
    command = [sys.executable, "-c", program]
    processes = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    left = sorted(path.name.split("-")[0] for path in tmp_path.iterdir())
    assert left == ["kernel", "libsimt", "shim"]


def test_failed_build_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)

    def build(scratch: Path) -> Path:
        (scratch / "half").write_text("half")
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        cache.cached("thing", build)
    assert list(tmp_path.iterdir()) == []


def test_parameter_names() -> None:
    code = """
    // __global__ void f(int wrong) {}
    template <typename T> __global__ void __launch_bounds__(256) f(
        Pair<T, int>* __restrict__ pairs, const T *values /* , int no */, unsigned long long n) {
    """
    assert source.parameter_names(code, "ns::f<float, Pair<int, 2>>") == ["pairs", "values", "n"]
    assert source.parameter_names(code, "g") == []


def test_plain_kernels() -> None:
    code = """
    extern "C" __global__ void a(int x);
    extern "C" __global__ void __launch_bounds__(64) b(int x) {}
    /* extern "C" __global__ void c(int x) {} */
    template <typename T> __global__ void d(T x) {}
    """
    assert source.plain_kernels(code) == ["a", "b"]
