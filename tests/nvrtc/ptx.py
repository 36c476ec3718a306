"""What PTX says of a kernel: how wide it loads and stores, and whether it adds floats atomically.

PTX and not SASS, because no disassembler on PyPI reads sm_70. ptxas never widens an access (the
counts of wide and of narrow stores in PTX and in SASS agree on sm_80, sm_90 and sm_100); what it
does is unroll, so a count here is of places in the code, not of instructions executed.
"""

from __future__ import annotations

import re
from collections import defaultdict

WIDE_BITS = 128

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEAD = re.compile(r"\.(entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)")
_ACCESS = re.compile(
    r"\b(ld|st)\.(?:[\w:]+\.)*?global(?:\.[\w:]+)*?(?:\.v([248]))?\.[busf](8|16|32|64|128)\b"
)
_SCALAR_STORE = re.compile(
    r"(@!?%\w+\s+)?\bst\.(?:[\w:]+\.)*?global(?:\.[\w:]+)*?\.[busf](8|16|32|64)\s+\[(%\w+)(?:\+(-?\d+))?\]"
)
_BLOCK_END = re.compile(r"^\s*[$\w]+:|\bbra\b[^;]*;", re.MULTILINE)
_FLOAT_ATOMIC = re.compile(r"\b(?:red|atom)\.\S*\.b?f(?:16|32|64)(?:x2)?\b")


def kernels(ptx: str) -> dict[str, str]:
    """Return the code of each kernel, that of the functions it calls included."""
    entries, functions = {}, {}
    ptx = _COMMENT.sub("", ptx)
    for head in _HEAD.finditer(ptx):
        start = re.compile(r"[{;]").search(ptx, head.end())
        if start and start[0] == "{":
            bodies = entries if head[1] == "entry" else functions
            bodies[head[2]] = ptx[start.end() : _closing(ptx, start.end())]
    return {name: _with_callees(body, functions) for name, body in entries.items()}


def _closing(text: str, start: int) -> int:
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    raise ValueError("PTX ends within a function")


def _with_callees(body: str, functions: dict[str, str]) -> str:
    seen, parts, waiting = set(), [], [body]
    while waiting:
        parts.append(part := waiting.pop())
        called = {f for f in functions if re.search(rf"\bcall\b[^;]*\b{re.escape(f)}\b", part)}
        waiting += [functions[f] for f in called - seen]
        seen |= called
    return "\n".join(parts)


def count_wide(code: str, kind: str) -> int:
    """Count the global accesses of `kind` ("ld" or "st") that move 16 bytes or more."""
    found = (m for m in _ACCESS.finditer(code) if m[1] == kind)
    return sum(int(m[2] or 1) * int(m[3]) >= WIDE_BITS for m in found)


def float_atomics(code: str) -> list[str]:
    """Return the atomic operations on floating-point memory: their sum depends on the order."""
    return sorted(set(_FLOAT_ATOMIC.findall(code)))


def split_stores(code: str) -> list[str]:
    """Return the address registers below which narrow stores fill 16 aligned bytes piece by piece.

    All under one condition, that is a vector store which the compiler took apart. NVRTC 12.9 does
    so on sm_70 to sm_90 where it loses the alignment of an address inside a loop; inline PTX is
    what it leaves alone.
    """
    return [register for block in _BLOCK_END.split(code) for register in _split_in_block(block)]


def _split_in_block(block: str) -> list[str]:
    filled: dict[tuple[str, str], set[int]] = defaultdict(set)
    for condition, bits, register, offset in _SCALAR_STORE.findall(block):
        start = int(offset or 0)
        filled[condition, register] |= set(range(start, start + int(bits) // 8))
    width = WIDE_BITS // 8
    return [
        register
        for (_, register), taken in filled.items()
        if any(taken.issuperset(range(s, s + width)) for s in taken if s % width == 0)
    ]
