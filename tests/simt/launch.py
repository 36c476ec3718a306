"""The execution of one launch: memory map, schedules, faults, and the record that tests read."""

from __future__ import annotations

import ctypes as c
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arguments import Bound, Reach, bind, merged
from .errors import Fault, SimtError
from .memory import Allocation
from .module import Module, demangle
from .runtime_library import LaunchResult, LaunchSpec, SiteStats, library
from .settings import Settings, settings

_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_BLOCK_LIMITS = (1024, 1024, 64)
_MAX_THREADS = 1024
_OPERATIONS = ("load", "store", "atomic", "volatile load", "volatile store")
_SECTOR, _SHARED_PASS = 32, 128  # bytes

_machine_in_use = threading.Lock()  # the runtime simulates one multiprocessor


@dataclass(frozen=True)
class AccessStats:
    """How the warps of a launch accessed memory from one source line.

    ``per_request`` is the mean number of 32-byte sectors (global memory) or of passes (shared
    memory) that one access of a warp took, ``ideal`` what its bytes would take when packed.
    """

    where: str
    operation: str
    bytes: int
    space: str
    requests: int
    lanes: float
    per_request: float
    ideal: float


@dataclass(frozen=True)
class LaunchRecord:
    """A launch that was made. The counts are those of the first seed, and 0 in fast mode."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_mem: int
    stream: int
    accesses: int  # to global and shared memory, a vector counting once
    work_max: int  # accesses of the block that made most
    work_mean: float  # accesses per block
    stats: tuple[AccessStats, ...]


# Every launch since the list was last cleared, which `install` does for each test.
launches: list[LaunchRecord] = []


def dimensions(what: str, given: Any) -> tuple[int, int, int]:
    """Three dimensions within CUDA's limits. An empty grid is an error, unlike in CuPy."""
    extents = (int(given),) if np.ndim(given) == 0 else tuple(map(int, given))
    x, y, z = (*extents, 1, 1)[:3]
    limits = _GRID_LIMITS if what == "grid" else _BLOCK_LIMITS
    within = all(1 <= n <= limit for n, limit in zip((x, y, z), limits, strict=True))
    if len(extents) > 3 or not within or (what == "block" and x * y * z > _MAX_THREADS):
        raise RuntimeError(f"CUDA_ERROR_INVALID_VALUE: {what} dimensions {extents}")
    return x, y, z


def run(
    kernel: str,
    module: Module,
    args: Sequence[Any],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared_mem: int,
    stream: int,
) -> None:
    """Execute a kernel once per seed and append to `launches`; raise what is wrong with it."""
    options, entry = settings(), module.entries[kernel]
    bound = bind(kernel, entry.parameters, args)
    spec = _spec(options, entry.thunk, bound, grid, block, shared_mem)
    what = f"{kernel}<<<{grid}, {block}, {shared_mem}>>>"
    written = _Written(bound.reaches) if len(options.seeds) > 1 else None
    with _machine_in_use:
        for i, seed in enumerate(options.seeds):
            if written and i:
                written.restore()
            spec.seed = seed
            result = _execute(f"{what} seed={seed}", module, spec, bound.reaches)
            if i == 0:
                stats = _access_stats(module) if options.stats else ()
                work = (result.accesses, result.block_accesses, result.accesses / math.prod(grid))
                record = LaunchRecord(kernel, grid, block, shared_mem, stream, *work, stats)
                launches.append(record)
            if written and options.compare_seeds is not None:
                written.compare(what, options.compare_seeds, (options.seeds[0], seed))


def _spec(
    options: Settings,
    thunk: int,
    bound: Bound,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared_mem: int,
) -> LaunchSpec:
    return LaunchSpec(
        thunk=thunk,
        args=c.addressof(bound.pointers),
        grid=grid,
        block=block,
        shared_bytes=shared_mem,
        check=options.check,
        strict_exit=options.strict_exit,
        strict_shuffle=options.strict_shuffle,
        stats=options.stats and options.check,
        preempt=options.preempt if options.check else 0,
        step_limit=options.step_limit,
        timeout_ms=options.timeout_ms,
    )


def _execute(what: str, module: Module, spec: LaunchSpec, reaches: list[Reach]) -> LaunchResult:
    _map_memory(module, spec, reaches)
    result = LaunchResult()
    library().simt_launch(spec, *module.code, result)
    if result.n_faults:
        raise SimtError(what, _faults(module, result.n_faults))
    damaged = [r for r in reaches if r.allocation.damage()]
    if damaged:
        text = "bytes next to the array of `{}` were overwritten"
        raise SimtError(what, [Fault("canary", text.format(r.name)) for r in damaged])
    if not spec.check:  # nobody has seen what the kernel wrote
        for r in reaches:
            if not r.read_only:
                r.allocation.define_range(r.lo, r.hi)
    return result


def _map_memory(module: Module, spec: LaunchSpec, reaches: list[Reach]) -> None:
    runtime = library()
    runtime.simt_clear_memory(*module.code)
    for r in merged(reaches) if spec.check else ():
        a = r.allocation
        undefined = (a.shift, a.undefined.ctypes.data)
        extent = (r.lo, r.hi, a.address, r.shift)
        runtime.simt_add_global(*extent, *undefined, r.read_only, r.name.encode())
    if module.shared_arrays or module.dynamic_shared:
        runtime.simt_set_shared(module.shared_address(), module.shared_bytes)
    for symbol in module.shared_arrays:
        runtime.simt_add_shared(symbol.offset, symbol.size, symbol.name.encode())
    if module.dynamic_shared and spec.shared_bytes:
        offset = module.dynamic_shared.offset
        runtime.simt_add_shared(offset, spec.shared_bytes, b"dynamic shared")


def _where(module: Module, pc: int, file: bytes | None, line: int) -> str:
    return f"{file.decode()}:{line}" if file else module.line_of(pc)


def _faults(module: Module, count: int) -> list[Fault]:
    faults = []
    for i in range(count):
        kind, message, file = c.c_char_p(), c.c_char_p(), c.c_char_p()
        pc, line = c.c_size_t(), c.c_int()
        times = library().simt_fault(i, kind, message, pc, file, line)
        assert kind.value is not None
        assert message.value is not None
        where = _where(module, pc.value, file.value, line.value)
        faults.append(Fault(kind.value.decode(), demangle(message.value.decode()), where, times))
    return faults


def _access_stats(module: Module) -> tuple[AccessStats, ...]:
    sites = (SiteStats * library().simt_stats(None, 0))()
    library().simt_stats(sites, len(sites))
    stats = [
        AccessStats(
            where=_where(module, s.pc, s.file, s.line),
            operation=_OPERATIONS[s.kind],
            bytes=s.bytes,
            space="shared" if s.shared else "global",
            requests=s.requests,
            lanes=s.lanes / s.requests,
            per_request=s.units / s.requests,
            ideal=max(1.0, s.total_bytes / s.requests / (_SHARED_PASS if s.shared else _SECTOR)),
        )
        for s in sites
        if s.requests
    ]
    return tuple(sorted(stats, key=lambda s: -s.requests * s.per_request))


def _agree(a: Allocation, old: np.ndarray, new: np.ndarray, tolerance: str | float) -> bool:
    if old.tobytes() == new.tobytes():
        return True
    if isinstance(tolerance, str):
        return False
    if a.raw:  # not known to be numbers; what comes of them ends in an array that is compared
        return True
    values = (old.astype(np.float64), new.astype(np.float64))
    return np.allclose(*values, rtol=tolerance, atol=tolerance, equal_nan=True)


class _Written:
    """The memory a kernel may write: as it was before, and as the first schedule left it."""

    def __init__(self, reaches: list[Reach]) -> None:
        allocations: dict[int, Allocation] = {}
        self.names: dict[int, str] = {}
        for r in reaches:
            if not r.read_only:
                allocations[r.allocation.address] = r.allocation
                self.names[r.allocation.address] = r.name
        self.allocations = list(allocations.values())
        self.before = [(a.host_view().copy(), a.undefined.copy()) for a in self.allocations]
        self.first: list[np.ndarray] | None = None

    def restore(self) -> None:
        for a, (values, undefined) in zip(self.allocations, self.before, strict=True):
            a.host_view()[...] = values
            a.undefined[...] = undefined

    def compare(self, what: str, tolerance: str | float, seeds: tuple[int, int]) -> None:
        now = [a.host_view().copy() for a in self.allocations]
        if self.first is None:
            self.first = now
            return
        for a, old, new in zip(self.allocations, self.first, now, strict=True):
            if _agree(a, old, new, tolerance):
                continue
            message = f"`{self.names[a.address]}` differs between seeds {seeds[0]} and {seeds[1]}"
            raise SimtError(what, [Fault("nondeterministic", message)])
