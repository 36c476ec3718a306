"""How many warps of a kernel fit on a multiprocessor, as a share of the most it can hold."""

from __future__ import annotations

from typing import NamedTuple

WARP = 32
REGISTERS = 65536  # of a multiprocessor, the same on every architecture here
REGISTER_UNIT = 256  # registers are handed out to warps in this unit
SCHEDULERS = 4  # warps are spread over these, each with its share of the registers


class Multiprocessor(NamedTuple):
    """Limits of one multiprocessor, from the table of compute capabilities in NVIDIA's guide."""

    warps: int
    blocks: int
    shared: int
    shared_unit: int
    shared_reserved: int  # a block


MULTIPROCESSORS = {
    70: Multiprocessor(64, 32, 96 << 10, 256, 0),
    80: Multiprocessor(64, 32, 164 << 10, 128, 1024),
    90: Multiprocessor(64, 32, 228 << 10, 128, 1024),
    100: Multiprocessor(64, 32, 228 << 10, 128, 1024),
    120: Multiprocessor(48, 24, 100 << 10, 128, 1024),
}


def occupancy(arch: int, threads: int, registers: int, shared: int) -> int:
    """Return the percent of warps that are there in blocks of `threads` with `shared` bytes."""
    sm = MULTIPROCESSORS[arch]
    warps = _divide_up(threads, WARP)
    per_warp = _divide_up(registers * WARP, REGISTER_UNIT) * REGISTER_UNIT
    by_registers = REGISTERS // SCHEDULERS // per_warp * SCHEDULERS // warps
    taken = _divide_up(shared + sm.shared_reserved, sm.shared_unit) * sm.shared_unit
    by_shared = sm.shared // taken if taken else sm.blocks
    blocks = min(sm.blocks, sm.warps // warps, by_registers, by_shared)
    return round(100 * blocks * warps / sm.warps)


def _divide_up(value: int, unit: int) -> int:
    return -(-value // unit)
