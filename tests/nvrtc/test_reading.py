"""The gate's readers of names and of PTX, and its occupancy: no compiler needed."""

from __future__ import annotations

import pytest

from . import gate, ptx
from .occupancy import occupancy


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("edgegrad::f<float, int, 4>", 16),
        ("edgegrad::f<edgegrad::half_t, long long, 8>", 16),
        ("edgegrad::f<double, int, 1, true>", 8),
        ("edgegrad::f<float>", 0),
        ("edgegrad::f<int, 4>", 0),
        ("edgegrad::f", 0),
    ],
)
def test_width_is_read_from_the_name(kernel: str, expected: int) -> None:
    assert gate.access_bytes(kernel) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ld.global.nc.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1];", 1),
        ("ld.global.L1::no_allocate.v2.b64 {%rd1,%rd2}, [%rd3];", 1),
        ("ld.volatile.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd3];", 1),
        ("ld.global.v8.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, [%rd1];", 1),
        ("ld.global.v4.u16 {%rs1,%rs2,%rs3,%rs4}, [%rd1];", 0),
        ("ld.shared.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1];", 0),
        ("ld.global.f64 %fd1, [%rd1];", 0),
        ("st.global.v4.f32 [%rd1], {%f1,%f2,%f3,%f4};", 0),
    ],
)
def test_wide_loads_are_told_from_the_rest(code: str, expected: int) -> None:
    assert ptx.count_wide(code, "ld") == expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((80, 128, 32, 0), 100),
        ((80, 128, 40, 0), 75),  # 12 blocks of 4 warps fit into the registers
        ((80, 1024, 64, 0), 50),
        ((70, 32, 16, 0), 50),  # 32 blocks of one warp
        ((120, 32, 16, 0), 50),  # 24 of 48
        ((90, 256, 16, 100 << 10), 25),  # two blocks fit into 228 KiB with 1 KiB kept for each
    ],
)
def test_occupancy(limits: tuple[int, int, int, int], expected: int) -> None:
    assert occupancy(*limits) == expected


def stores(*offsets: int, condition: str = "") -> str:
    return "".join(f"{condition}st.global.f32 [%rd1+{x}], %f1;\n" for x in offsets)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (stores(0, 4, 8, 12), ["%rd1"]),
        (stores(28, 24, 20, 16), ["%rd1"]),
        (stores(0, 4, 8, 12, condition="@%p1 "), ["%rd1"]),
        (stores(0, 4, 8), []),
        (stores(4, 8, 12, 16), []),  # not aligned
        (stores(0, 4).replace("rd1", "rd2") + stores(8, 12), []),
        (stores(0, 4) + "$L__BB0_3:\n" + stores(8, 12), []),
        (stores(0, 4) + "@%p1 bra \t$L__BB0_3;\n" + stores(8, 12), []),
        (stores(0, 4) + stores(8, 12, condition="@!%p1 "), []),
    ],
)
def test_split_store_fills_sixteen_aligned_bytes_under_one_condition(
    code: str, expected: list[str]
) -> None:
    assert ptx.split_stores(code) == expected
