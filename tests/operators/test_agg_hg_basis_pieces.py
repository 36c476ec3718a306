"""R-GCN aggregation on long rows, which are cut into pieces and merged; load balance; accesses."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import calls
import devices
import edgegrad
import graphs
import reference
import simt
from edgegrad.backends import cuda, host, rows
from edgegrad.graph import build
from graphs import GraphData
from reference import agg_hg_basis
from tolerances import FLOATS


def _limit(device: Any) -> int:
    return host.PIECE_EDGES if device.location == "cpu" else rows.PIECE_EDGES


def hubs(limit: int) -> GraphData:
    """A long column, a long row of the reverse graph, long groups of one type; some pieces short.

    Node 3 has 2.5 limits of in-edges, two thirds of them of type 1; node 5 as many out-edges.
    """
    rng = np.random.default_rng(1)
    n = 2 * limit + limit // 2
    src = np.concatenate([rng.integers(0, 12, n), np.full(n, 5), rng.integers(0, 12, 40)])
    dst = np.concatenate([np.full(n, 3), rng.integers(0, 12, n), rng.integers(0, 12, 40)])
    graph = graphs.from_edges(src, dst, 12, 12)
    types = np.where(rng.random(graph.n_edges) < 0.67, 1, graph.edge_types).astype(np.int32)
    return GraphData(graph.offsets, graph.indices, types, 12, 3)


def _cases(graph: GraphData, dim: int = 3) -> list[reference.Case]:
    """With and without weights, own rows and norms; edge weights always; batched at the end."""
    found = agg_hg_basis.cases(graph, np.random.default_rng(2), dim=dim, n_bases=2)
    return [c for c in found if c.reads["edge_weight"] is not None]


def test_the_graph_has_long_rows(device: Any) -> None:
    graph, limit = hubs(_limit(device)), _limit(device)
    struct = graph.make(device)
    rev, groups = build.reverse(struct), build.type_groups(struct)
    for name, offsets in (
        ("rows", struct.offsets),
        ("reverse", rev.offsets),
        ("groups", groups.offsets),
    ):
        cut = build.pieces(struct, name, offsets, limit)
        assert len(cut.row) >= 2
        assert len(cut.first) >= 2


def test_merged_rows(device: Any, T: Any, IdxT: Any) -> None:
    if device.name == "simt" and T.itemsize == 2 and IdxT is np.int64:
        pytest.skip("neither the merge nor the half types depend on the width of ids")
    graph = hubs(_limit(device))
    struct = graph.make(device, IdxT)
    for case in _cases(graph):
        ran = reference.run(case, graph, device, T, IdxT, struct=struct)
        assert ran.worst() <= 1, case.name


def test_merged_rows_are_repeatable(device: Any) -> None:
    """Bitwise: another call, another struct, and in the CPU run any schedule."""
    graph = hubs(_limit(device))
    for case in _cases(graph):
        if not all(case.options.values()):
            continue
        results = []
        for seeds in ((0,), (0, 1, 2)):
            made = calls.make(case, graph, device)
            with simt.config(seeds=seeds, compare_seeds="bitwise"):
                results += [made(), made()] if len(seeds) == 1 else [made()]
        for name, a in results[0].items():
            assert all(r[name].tobytes() == a.tobytes() for r in results[1:]), (case.name, name)


@pytest.mark.parametrize("limit", [1, 2, 7])
@pytest.mark.parametrize("name", ["star_hub", "bipartite", "empty", "no_edges"])
def test_other_limits(device: Any, name: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many long rows beside each other, in the least pieces that can be."""
    if device.name == "simt" and name == "star_hub" and limit < 7:
        pytest.skip("as on the smaller graph, at many times the cost")
    monkeypatch.setattr(host, "PIECE_EDGES", limit)
    monkeypatch.setattr(rows, "PIECE_EDGES", limit)
    graph = graphs.make(name)
    struct = graph.make(device)
    for case in _cases(graph):
        ran = reference.run(case, graph, device, np.dtype(np.float32), struct=struct)
        assert ran.worst() <= 1, case.name


@pytest.mark.parametrize(
    ("T", "total"), list(zip(FLOATS, (6000, 6016, 6000, 6000), strict=True)), ids=str
)
@pytest.mark.parametrize("with_weights", [False, True])
def test_hub_of_equal_edges(device: Any, T: Any, total: int, with_weights: bool) -> None:
    """Half types that added up in half types would stop at 2048 or 256."""
    n = 6000
    data = GraphData(np.array([0, n]), np.zeros(n, np.int64), np.zeros(n, np.int32), 1, 1)
    graph, one = data.make(device), np.ones((1, 1), T)
    weights = device.array(one) if with_weights else None
    out, dx = device.poisoned((1, 1), T), device.poisoned((1, 1), T)
    dw = device.poisoned((1, 1), T) if with_weights else None
    given = (device.array(one), weights, graph)
    edgegrad.operators.agg_hg_basis_n2n_post_fwd(out, *given)
    edgegrad.operators.agg_hg_basis_n2n_post_bwd(dx, dw, device.array(one), *given)
    for a in (out, dx, dw):
        assert a is None or float(device.numpy(a)[0, 0]) == total
    edgegrad.operators.agg_hg_basis_n2n_post_fwd(out, *given, norm_by_out_degree=True)
    # The one rounding of half types hides those of the sum.
    bound = {2: 0, 4: n * 2.0**-24, 8: n * 2.0**-53}[T.itemsize]
    assert abs(float(device.numpy(out)[0, 0]) - 1) <= bound


# ---- what only the CPU run can see


@pytest.fixture
def on_simt(monkeypatch: pytest.MonkeyPatch) -> devices.Simt:
    device = devices.Simt()
    device.launches = simt.install(monkeypatch)
    return device


@pytest.mark.parametrize("with_weights", [False, True])
def test_no_block_waits_for_a_hub(on_simt: devices.Simt, with_weights: bool) -> None:
    """A hub with half of all edges: no block makes more than four times the mean of accesses."""
    rng = np.random.default_rng(3)
    n, edges = 2000, 64_000
    src, dst = rng.integers(0, n, edges), rng.integers(0, n, edges)
    dst[: edges // 2], src[edges // 2 :] = 3, 7
    graph = graphs.from_edges(src, dst, n, n)
    case = next(
        c
        for c in agg_hg_basis.cases(graph, rng, dim=32, n_bases=2)
        if c.half == "bwd" and (c.reads["weights_combination"] is not None) == with_weights
    )
    assert case.reads["edge_weight"] is not None
    made = calls.make(case, graph, on_simt)
    out = on_simt.poisoned(made.arrays["grad_output"].shape, np.float32)
    on_simt.launches.clear()
    given = [made.arrays[k] for k in ("input_embedding", "weights_combination")]
    edgegrad.operators.agg_hg_basis_n2n_post_fwd(out, *given, made.struct, **case.options)
    made()
    assert sum("merge_pieces" in r.kernel for r in on_simt.launches) >= 2  # rows were cut
    for record in on_simt.launches:
        assert record.work_max <= 4 * record.work_mean, record


@pytest.mark.parametrize(("T", "dim"), [("float32", 64), ("float16", 128), ("float64", 32)])
def test_aligned_rows_are_read_in_whole_sectors(on_simt: devices.Simt, T: str, dim: int) -> None:
    """Feature rows go in 16-byte accesses that need no more sectors than their bytes fill."""
    graph = graphs.make("more_sources")
    for case in agg_hg_basis.cases(graph, np.random.default_rng(0), dim=dim, n_bases=2):
        if case.reads["edge_weight"] is not None or case.reads["input_embedding"].ndim == 3:
            continue
        made = calls.make(case, graph, on_simt, np.dtype(T))
        on_simt.launches.clear()
        with simt.config(stats=True):
            made()
        for record in on_simt.launches:
            wide = [s for s in record.stats if s.bytes == 16 and s.space == "global"]
            assert wide or "grad_weights" in record.kernel, record.kernel
            for s in wide:
                assert s.per_request <= 1.01 * s.ideal, (record.kernel, s)


def test_every_instantiation_is_reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans over all dtypes, widths of ids and of accesses ask for what KERNELS lists: no more."""
    simt.install(monkeypatch)
    monkeypatch.setattr(rows, "PIECE_EDGES", 2)
    device, asked = devices.Simt(), set()
    graph = graphs.make("multi_edge")
    structs = {i: graph.make(device, i) for i in (np.int32, np.int64)}
    monkeypatch.setattr(cuda, "launch", lambda spec, *_: asked.add((spec.source, spec.kernel)))
    for T, (index_dtype, struct) in itertools.product(FLOATS, structs.items()):
        for dim in (1, 2, 4, 8):
            for case in agg_hg_basis.cases(graph, np.random.default_rng(0), dim, 2):
                calls.make(case, graph, device, T, index_dtype, struct=struct).launch()
    listed = {k for k in edgegrad.operators.kernels() if k[0] in ("agg_hg_basis.cu", "rows.cu")}
    assert asked == listed
