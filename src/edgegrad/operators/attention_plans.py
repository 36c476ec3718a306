"""Launch plans of attention; kernels/common/attention.cuh says what its kernels expect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgegrad.backends import cuda, rows
from edgegrad.graph import Graph, build
from edgegrad.interop import ArrayView
from edgegrad.operator import FLOATS, Call

_SHARED = "attention.cu"
_WALKS = ("attention_fwd", "attention_bwd_dst", "attention_bwd_src")
_COEFFICIENTS = "attention_coefficients"
# Accesses of four elements: with more, the registers of backward spill. Doubles go one by one.
_WIDE = {"float16": 4, "bfloat16": 4, "float32": 4, "float64": 1}
_MASKS = {"float32": 1, "float64": 2, "bool": 3}
_RANDOM = 4
# Blocks that add up weight gradients: their teams' sums are scratch.
_WEIGHT_BLOCKS = 1024

SHARED_KERNELS = tuple(
    (_SHARED, cuda.instance(name, t))
    for name in (
        "attention_merge_fwd",
        "attention_merge_dst",
        "attention_scores",
        "attention_dst_scores",
        "attention_weights",
    )
    for t in FLOATS
)


def kernels(name: str, score: str) -> tuple[tuple[str, str], ...]:
    """Return the kernels of a family, whose logits `score` makes in kernels/<name>.cu."""
    wanted = [(w, t, v) for w in _WALKS for t in FLOATS for v in sorted({1, _WIDE[t]})]
    wanted += [(_COEFFICIENTS, t, 1) for t in FLOATS]
    return tuple((f"{name}.cu", cuda.instance(*w, f"edgegrad::{score}")) for w in wanted)


class Memory:
    """Scratch of a plan, handed out in order."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, n: int, itemsize: int) -> cuda.Scratch:
        """Return room for n numbers."""
        place = cuda.Scratch(self.size)
        self.size += -(-n * itemsize // 256) * 256
        return place


class Planner:
    """One call: its shape, what every walk is given, and the launches so far."""

    def __init__(self, family: Any, call: Call, graph: Graph, options: Any, stream_id: int) -> None:
        self.family, self.call, self.graph, self.options = family, call, graph, options
        self.inputs = family.inputs(call)
        src, _, value, edge = self.inputs[:4]
        self.heads: int = options.heads
        self.dtype: str = src.dtype
        self.width = src.shape[-1] // self.heads
        self.value_width = value.shape[-1] // self.heads
        self.edge_width = 0 if edge is None else edge.shape[-1] // self.heads
        self.directions = 1 if family.per_head else self.width
        self.n_src, self.n_dst = graph.n_src_nodes, graph.n_dst_nodes
        self.itemsize = rows.accumulator_size(self.dtype)
        self.vec = self._vec()
        self.lanes = cuda.lanes(max(self.width, self.value_width), self.vec)
        self.memory = Memory()
        self.launches: list[cuda.Launch] = []
        self.scores: tuple[Any, Any] = (0, 0)
        self.cut = build.pieces(graph, "rows", graph.offsets, rows.PIECE_EDGES, stream_id)

    def _vec(self) -> int:
        wide = _WIDE[self.dtype]
        arrays = [a for a in self.call.arrays.values() if a is not None and a.dtype in FLOATS]
        featured = [a for a in arrays if a.ndim == 2 and a.shape[-1] % self.heads == 0]
        widths = (self.width, self.value_width, self.edge_width)
        fits = all(w % wide == 0 for w in widths) and all(
            a.ptr % (wide * cuda.ITEM_SIZES[a.dtype]) == 0 and a.strides[0] % wide == 0
            for a in featured
            if a not in self._by_number()
        )
        return wide if fits else 1

    def _by_number(self) -> tuple[Any, ...]:
        """Arrays that are read and written one number at a time."""
        names = ("edge_bias", "grad_edge_bias", "dropout_mask", "attention", "grad_attention")
        return tuple(self.call.arrays.get(name) for name in names)

    def room(self, n: int) -> cuda.Scratch:
        """Return scratch for n accumulators."""
        return self.memory.take(n, self.itemsize)

    @property
    def tiles(self) -> int:
        """Tiles of channels that a head has; one without any, since there is a softmax still."""
        return max(1, -(-max(self.width, self.value_width) // (self.lanes * self.vec)))

    def shared(
        self,
        name: str,
        items: int,
        lanes: int,
        args: tuple[Any, ...],
        blocks: int | None = None,
    ) -> None:
        """Launch a kernel of attention.cu."""
        grid = rows.grid(items, lanes) if blocks is None else (blocks, 1, 1)
        self.launches.append(
            cuda.Launch(_SHARED, cuda.instance(name, self.dtype), grid, rows.block(lanes), args)
        )

    def walk(
        self,
        name: str,
        args: tuple[Any, ...],
        units: int,
        pieces: rows.PieceArgs,
        *,
        per_unit: int,
        tiles: int | None = None,
        blocks: int | None = None,
        vec: int = 0,
    ) -> None:
        """Launch a walk over rows or pieces."""
        grid = rows.grid(units * per_unit, self.lanes, self.tiles if tiles is None else tiles)
        if blocks is not None:
            grid = (blocks, *grid[1:])
        self.launches.append(
            cuda.Launch(
                f"{self.family.name}.cu",
                cuda.instance(name, self.dtype, vec or self.vec, f"edgegrad::{self.family.score}"),
                grid,
                rows.block(self.lanes),
                (*args, *pieces, *self.common()),
            )
        )

    def short(self, n: int, cut: build.Pieces) -> rows.PieceArgs:
        """Return the piece arguments of a launch over short rows."""
        return 0, 0, 0, np.int64(n), np.int64(cut.limit)

    def long(self, cut: build.Pieces) -> rows.PieceArgs:
        """Return the piece arguments of a launch over pieces."""
        n = np.int64(len(cut.row))
        return cut.row.ptr, cut.begin.ptr, cut.end.ptr, n, np.int64(cut.limit)

    def common(self) -> tuple[Any, ...]:
        """Return EG_ATTENTION_PARAMETERS."""
        src, dst, value, edge, weights, bias = self.inputs
        mask = self.call.arrays["dropout_mask"]
        scale, seed, threshold = self.options.dropout
        kind = _MASKS[mask.dtype] if mask is not None else _RANDOM if threshold else 0
        graph = self.graph
        return (
            *_rows(src), *_rows(dst), *_rows(value), *_rows(edge),
            *rows.companion_args(weights),
            cuda.pointer(bias), _stride(bias), rows.is_float(bias), *self.scores,
            np.int32(kind), cuda.pointer(mask), _stride(mask), np.float64(scale),
            np.uint64(seed), np.uint64(threshold),
            graph.offsets.ptr, graph.indices.ptr, cuda.pointer(graph.map_csc_to_coo),
            np.int32(graph.index_dtype == "int64"), np.int32(self.heads), np.int32(self.width),
            np.int32(self.value_width), np.int32(self.edge_width),
            np.int32(self.options.concat), np.int32(self.options.activation),
            np.float64(self.options.alpha),
        )  # fmt: skip

    def make_scores(self) -> None:
        """Launch what a score takes from each end, where it is a sum over ends."""
        if not self.family.per_head:
            return
        src, dst, _, _, weights, _ = self.inputs
        found = []
        for a, n, first in ((src, self.n_src, 0), (dst, self.n_dst, self.heads * self.width)):
            scores = self.room(n * self.heads)
            args = (
                scores, *_rows(a), *rows.companion_args(weights), np.int64(first), np.int64(n),
                np.int32(self.heads), np.int32(self.width),
            )  # fmt: skip
            self.shared("attention_scores", n * self.heads, cuda.lanes(self.width, 1), args)
            found.append(scores)
        self.scores = (found[0], found[1])

    def teams(self, items: int, lanes: int) -> tuple[int, int]:
        """Return blocks, and their teams, such that a team's items are all of one head."""
        per_block = cuda.BLOCK_THREADS // lanes
        step = self.heads // math.gcd(self.heads, per_block)
        blocks = min(_WEIGHT_BLOCKS, -(-items // per_block))
        blocks = -(-max(blocks, 1) // step) * step
        return blocks, blocks * per_block

    def add_up_weights(self, first: int, sums: cuda.Scratch, n_teams: int, width: int) -> None:
        """Launch the sum over teams of a part of the weight gradient."""
        a = self.call.arrays["grad_attn_weights"]
        args = (
            *rows.companion_args(a), np.int64(first), sums, np.int64(n_teams),
            np.int32(self.heads), np.int32(width),
        )  # fmt: skip
        blocks = cuda.blocks(self.heads * width, cuda.WARP)
        self.shared("attention_weights", 0, cuda.WARP, args, blocks)

    def plan(self) -> cuda.Plan:
        """Return everything that was launched."""
        return cuda.Plan(tuple(self.launches), self.memory.size)


def _rows(a: ArrayView | None) -> tuple[Any, ...]:
    return cuda.pointer(a), _stride(a)


def _stride(a: ArrayView | None) -> np.int64:
    return np.int64(0 if a is None else a.strides[0])


def stats_args(a: ArrayView | None) -> tuple[Any, ...]:
    """Return the arguments of softmax statistics: address, stride of planes and of rows."""
    if a is None:
        return 0, np.int64(0), np.int64(0)
    return a.ptr, np.int64(a.strides[0]), np.int64(a.strides[1])


def by_edge(a: ArrayView | None) -> tuple[Any, ...]:
    """Return the arguments of an array (heads, edges): address, row, whether it holds doubles."""
    return cuda.pointer(a), _stride(a), np.int32(a is not None and a.dtype == "float64")


def forward(family: Any, call: Call, graph: Graph, options: Any, stream_id: int) -> None:
    """Enqueue the forward call."""
    p = Planner(family, call, graph, options, stream_id)
    output, attention = call.arrays["output_embedding"], call.arrays["attention"]
    stats = stats_args(call.arrays["softmax_stats"])
    if attention is not None and call.arrays["softmax_stats"] is None:
        n = p.n_dst * p.heads
        stats = (p.room(2 * n), np.int64(n), np.int64(p.heads))
    p.make_scores()
    head = (*_rows(output), *stats)
    per_row = p.heads if options.concat else 1
    n_long = len(p.cut.first) - 1
    p.walk("attention_fwd", (*head, 0), p.n_dst, p.short(p.n_dst, p.cut), per_unit=per_row)
    if n_long:
        n = len(p.cut.row)
        partials = p.room(n * p.heads * (p.value_width + 2))
        p.walk("attention_fwd", (*head, partials), n, p.long(p.cut), per_unit=p.heads)
        args = (
            *head, partials, p.cut.row.ptr, p.cut.first.ptr, np.int64(n_long), np.int64(n),
            np.int32(p.heads), np.int32(p.value_width), np.int32(options.concat),
        )  # fmt: skip
        p.shared("attention_merge_fwd", n_long * per_row, cuda.lanes(p.value_width, 1), args)
    if attention is not None:
        args = (*by_edge(attention), *stats)
        walks = [(p.n_dst, p.short(p.n_dst, p.cut)), (len(p.cut.row), p.long(p.cut))]
        for units, pieces in walks[: 1 + (n_long > 0)]:
            p.walk(_COEFFICIENTS, args, units, pieces, per_unit=p.heads, tiles=1, vec=1)
    cuda.run(p.plan(), call.device, stream_id)


def backward(family: Any, call: Call, graph: Graph, options: Any, stream_id: int) -> None:
    """Enqueue the gradients asked for."""
    p = Planner(family, call, graph, options, stream_id)
    fields = p.room(4 * p.n_dst * p.heads)
    p.make_scores()
    to_dst, own = _destination_gradient(p)
    _walk_destinations(p, fields, to_dst)
    if family.per_head:
        _destination_scores(p, to_dst[0])
    a = call.arrays
    names = family.written
    if any(a[name] is not None for name in names if name and name != family.gradients[1]):
        _walk_sources(p, fields, own, stream_id)
    cuda.run(p.plan(), call.device, stream_id)


def _gradient(a: ArrayView | None, dtype: str) -> tuple[Any, ...]:
    accumulator = "float64" if dtype == "float64" else "float32"
    return *_rows(a), np.int32(a is not None and a.dtype == accumulator)


def _destination_gradient(p: Planner) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return where the destinations' gradient goes, and as what sources read it there."""
    a, graph = p.call.arrays, p.graph
    to_src, to_dst = (a[name] for name in p.family.gradients[:2])
    owner = to_src if a[p.family.dst] is None else None
    nothing = (0, np.int64(0), np.int64(0))
    if p.family.per_head:
        row = np.int64(p.heads)
        slopes = p.room(p.n_dst * p.heads)
        return (slopes, row, np.int32(1)), (
            slopes,
            row,
            np.int64(p.n_dst),
        ) if owner is not None else nothing
    if owner is None:
        return _gradient(to_dst, p.dtype), nothing
    row = owner.strides[0]
    place: Any = owner.ptr
    if not _gradient(owner, p.dtype)[2]:
        row = p.heads * p.width
        place = p.room(graph.n_dst_nodes * row)
    return (place, np.int64(row), np.int32(1)), (place, np.int64(row), np.int64(p.n_dst))


def _walk_destinations(p: Planner, fields: cuda.Scratch, to_dst: tuple[Any, ...]) -> None:
    a = p.call.arrays
    read = (
        *_rows(a["grad_output"]), *_rows(a["output_embedding"]),
        *stats_args(a["softmax_stats"]), *by_edge(a["grad_attention"]),
    )  # fmt: skip
    name, tiles = "attention_bwd_dst", 1 if p.family.per_head else None
    args = (*to_dst, fields, 0, *read)
    p.walk(name, args, p.n_dst, p.short(p.n_dst, p.cut), per_unit=p.heads, tiles=tiles)
    n, n_long = len(p.cut.row), len(p.cut.first) - 1
    if not n_long:
        return
    partials = p.room(n * p.heads * (2 * p.directions + 1))
    args = (*to_dst, fields, partials, *read)
    p.walk(name, args, n, p.long(p.cut), per_unit=p.heads, tiles=tiles)
    merged = (
        *to_dst, fields, partials, p.cut.row.ptr, p.cut.first.ptr, np.int64(n_long),
        np.int64(n), np.int32(p.heads), np.int32(p.directions),
    )  # fmt: skip
    p.shared("attention_merge_dst", n_long * p.heads, cuda.lanes(p.directions, 1), merged)


def _destination_scores(p: Planner, slopes: Any) -> None:
    """Launch what the gradients of destinations' scores are gradients of."""
    a, dim = p.call.arrays, p.heads * p.width
    grad_dst, grad_weights = a["grad_dst"], a["grad_attn_weights"]
    if grad_dst is None and grad_weights is None:
        return
    lanes = cuda.lanes(p.width, 1)
    blocks, n_teams = p.teams(p.n_dst * p.heads, lanes)
    sums = None if grad_weights is None else p.room(n_teams * p.width)
    args = (
        *_gradient(grad_dst, p.dtype), sums or 0, slopes, *_rows(p.inputs[1]),
        *rows.companion_args(a["attn_weights"]), np.int64(dim), np.int64(p.n_dst),
        np.int32(p.heads), np.int32(p.width),
    )  # fmt: skip
    p.shared("attention_dst_scores", 0, lanes, args, blocks)
    if sums is not None:
        p.add_up_weights(dim, sums, n_teams, p.width)


def _walk_sources(p: Planner, fields: cuda.Scratch, own: tuple[Any, ...], stream_id: int) -> None:
    a, graph, family = p.call.arrays, p.graph, p.family
    rev = build.reverse(graph, stream_id)
    cut = build.pieces(graph, "reverse", rev.offsets, rows.PIECE_EDGES, stream_id)
    to_src, _, to_value, to_weights = (a[n] if n else None for n in family.gradients)
    n = len(cut.row)
    short_blocks, short_teams = p.teams(p.n_src * p.heads, p.lanes)
    long_blocks, long_teams = p.teams(n * p.heads, p.lanes) if n else (0, 0)
    teams = short_teams + long_teams
    weighted = to_weights is not None
    sums = p.room(teams * p.width).offset if weighted else 0
    edge_sums = p.room(teams * p.edge_width).offset if weighted and family.per_head else 0
    partial_width = p.width + (p.value_width if to_value is not None or family.separate else 0)
    partials = p.room(n * p.heads * partial_width)

    def launch(first_team: int, units: int, pieces: Any, place: Any, blocks: int) -> None:
        def of_team(offset: int, width: int, wanted: bool) -> Any:
            return cuda.Scratch(offset + first_team * width * p.itemsize) if wanted else 0

        args = (
            *_gradient(to_src, p.dtype), *_gradient(to_value, p.dtype),
            *_gradient(a["grad_edge"], p.dtype), *_gradient(a["grad_edge_bias"], p.dtype),
            of_team(sums, p.width, weighted),
            of_team(edge_sums, p.edge_width, weighted and family.per_head and p.edge_width > 0),
            place, *own, fields, *_rows(a["grad_output"]), *by_edge(a["grad_attention"]),
            rev.offsets.ptr, rev.dst.ptr, rev.position.ptr,
        )  # fmt: skip
        p.walk(
            "attention_bwd_src", args, units, pieces,
            per_unit=p.heads, blocks=blocks if weighted else None,
        )  # fmt: skip

    launch(0, p.n_src, p.short(p.n_src, cut), 0, short_blocks)
    if n:
        launch(short_teams, n, p.long(cut), partials, long_blocks)
        first = partials.offset
        if to_src is not None:
            p.launches.append(rows.merge(cut, to_src, p.heads * p.width, partials=partials))
        if to_value is not None:
            apart = cuda.Scratch(first + n * p.heads * p.width * p.itemsize)
            p.launches.append(rows.merge(cut, to_value, p.heads * p.value_width, partials=apart))
    if weighted:
        p.add_up_weights(0, cuda.Scratch(sums), teams, p.width)
        if family.per_head and p.edge_width:
            first_edge = 2 * p.heads * p.width
            p.add_up_weights(first_edge, cuda.Scratch(edge_sums), teams, p.edge_width)
