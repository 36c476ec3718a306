"""What attention promises beyond the right numbers: exact zeros, rows apart, masks, shifts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import edgegrad.operators as ops
import graphs
from graphs import from_edges
from mha_calls import KINDS, backward, forward, inputs, operator
from tolerances import bfloat16

EVERY = pytest.mark.parametrize("kind", KINDS)
TO_DESTINATION = {"mha_gat": "grad_dst", "mha_gat_v2": "grad_dst", "mha_simple": "grad_query"}


def _rng() -> np.random.Generator:
    return np.random.default_rng(5)


@EVERY
@pytest.mark.parametrize("keep_output", [True, False], ids=["output", "no_output"])
def test_an_only_edge_passes_exactly_zero(
    device: Any, T: Any, kind: str, keep_output: bool
) -> None:
    graph = from_edges(np.arange(6) % 4, np.arange(6), 4, 6, bipartite=True)
    arrays = inputs(kind, graph, 2, 3, _rng(), edges=True)
    arrays["dropout_mask"] = np.full((2, 6), np.float32(1.37))
    struct = graph.make(device, kind="csc")
    saved = forward(device, kind, struct, arrays, T, num_heads=2)
    g = _rng().standard_normal((6, 6))
    found = backward(
        device, kind, struct, arrays, saved, g, T, keep_output=keep_output, num_heads=2
    )
    zeros = {TO_DESTINATION[kind], "grad_edge_bias"}
    zeros |= {"grad_key"} if kind == "mha_simple" else {"grad_edge", "grad_attn_weights"}
    for name in zeros:
        assert not found[name].astype(np.float64).any(), name
    assert found[operator(kind).inputs[2 if kind == "mha_simple" else 0].grad].any()


@EVERY
def test_logits_of_one_row_are_nobody_elses(device: Any, T: Any, kind: str) -> None:
    graph = graphs.make("power_law")
    arrays = inputs(kind, graph, 2, 3, _rng())
    struct = graph.make(device, kind="csc")
    g = _rng().standard_normal((graph.n_dst, 6))
    row = 7
    bias = np.zeros((graph.n_edges, 2))
    ids = graph.edge_ids[graph.offsets[row] : graph.offsets[row + 1]]
    assert len(ids) > 1
    results = []
    for shift in (0.0, 1e4):
        bias[ids] = shift
        given = {**arrays, "edge_bias": bias}
        saved = forward(device, kind, struct, given, T, num_heads=2)
        results.append((saved, backward(device, kind, struct, given, saved, g, T, num_heads=2)))
    others = np.delete(np.arange(graph.n_dst), row)
    for name in ("output_embedding", "attention"):
        a, b = (saved[name] for saved, _ in results)
        keep = others if name == "output_embedding" else np.setdiff1d(np.arange(len(a.T)), ids)
        a, b = (x[keep] if name == "output_embedding" else x[:, keep] for x in (a, b))
        assert a.tobytes() == b.tobytes(), name
    a, b = (found[TO_DESTINATION[kind]][others] for _, found in results)
    assert a.tobytes() == b.tobytes()
    close = np.float32(2e-2 if np.dtype(T).itemsize == 2 else 2e-3)
    outputs = [saved["output_embedding"][row].astype(np.float64) for saved, _ in results]
    np.testing.assert_allclose(*outputs, rtol=close, atol=close)


@EVERY
def test_a_dropped_edge_still_feels_the_others(device: Any, kind: str) -> None:
    graph = from_edges([0, 1, 2], [0, 0, 0], 3, 1, bipartite=True)
    arrays = inputs(kind, graph, 1, 4, _rng())
    mask = np.array([[2.0, 0.0, 2.0]], np.float32)
    arrays["dropout_mask"] = mask
    struct = graph.make(device, kind="csc")
    saved = forward(device, kind, struct, arrays, np.float64, num_heads=1)
    assert saved["attention"][0, 1] == 0
    g = _rng().standard_normal((1, 4))
    delta = backward(device, kind, struct, arrays, saved, g, np.float64, num_heads=1)
    whole = forward(
        device,
        kind,
        struct,
        {k: v for k, v in arrays.items() if k != "dropout_mask"},
        np.float64,
        num_heads=1,
    )
    alpha = whole["attention"][0]
    by_id = np.argsort(graph.edge_ids)
    values = arrays["value" if kind == "mha_simple" else "src_embedding"][graph.indices[by_id]]
    mean = (alpha * mask[0] * (values @ g[0])).sum()
    np.testing.assert_allclose(delta["grad_edge_bias"][1, 0], -alpha[1] * mean, rtol=1e-12)


@EVERY
@pytest.mark.parametrize("keep_output", [True, False], ids=["output", "no_output"])
def test_common_offset_of_bfloat16_features(device: Any, kind: str, keep_output: bool) -> None:
    """Features of mean 100 and spread 1: the shortcut <g, stored output> would be off by 0.77."""
    rng = np.random.default_rng(0)
    n, degree = (400, 16) if device.name == "host" else (40, 16)
    graph = from_edges(rng.integers(0, n, n * degree), np.repeat(np.arange(n), degree), n, n)
    arrays = inputs(kind, graph, 1, 16, rng, mean=100.0)
    small = ("attn_weights", "key", "query")
    arrays = {k: v * 0.05 if k in small else v for k, v in arrays.items()}
    arrays = {k: v.astype(bfloat16).astype(np.float64) for k, v in arrays.items()}
    g = rng.standard_normal((n, 16)).astype(bfloat16).astype(np.float64)
    struct = graph.make(device, kind="csc")
    found = {}
    for dtype in (bfloat16, np.float64):
        saved = forward(device, kind, struct, arrays, dtype, num_heads=1)
        found[dtype] = backward(
            device, kind, struct, arrays, saved, g, dtype, keep_output=keep_output, num_heads=1
        )
    # Logits of such features all have one slope, so destinations of GAT and GATv2 get nothing.
    weighted = "grad_query" if kind == "mha_simple" else "grad_attn_weights"
    for name in (weighted, "grad_edge_bias"):
        exact, got = found[np.float64][name], found[bfloat16][name].astype(np.float64)
        exact, got = (a[:16] if a.ndim == 1 else a for a in (exact, got))
        error = np.linalg.norm(got - exact) / np.linalg.norm(exact)
        assert error < 1e-2, (name, error)


@EVERY
def test_masked_edges_are_never_looked_at(device: Any, T: Any, kind: str) -> None:
    """NaN in the source of an edge with a bias of -inf reaches nothing, in all heads or in one."""
    graph = from_edges([0, 1, 2, 3, 3], [0, 0, 1, 1, 2], 4, 3, bipartite=True)
    struct = graph.make(device, kind="csc")
    arrays = inputs(kind, graph, 2, 3, _rng(), edges=True)
    g = _rng().standard_normal((3, 6))
    bias = np.zeros((5, 2))
    bias[[3, 4]] = -np.inf  # both edges of source 3: destination 2 has no other
    bias[1, 0] = -np.inf  # one head of the edge from source 1
    results = []
    for poison in (0.0, np.nan):
        spoiled = {k: v.copy() for k, v in arrays.items()}
        for name in ("src_embedding", "key", "value"):
            if name in spoiled:
                spoiled[name][3] = poison
                spoiled[name][1, :3] = poison
        spoiled["edge_embedding"][[3, 4]] = poison
        spoiled["edge_embedding"][1, :3] = poison
        spoiled["edge_bias"] = bias
        saved = forward(device, kind, struct, spoiled, T, num_heads=2)
        results.append(
            {**saved, **backward(device, kind, struct, spoiled, saved, g, T, num_heads=2)}
        )
    for name, clean in results[0].items():
        assert clean.tobytes() == results[1][name].tobytes(), name
    assert not results[0]["output_embedding"][2].astype(np.float64).any()
    assert not results[0]["grad_edge_bias"][[3, 4]].astype(np.float64).any()


@EVERY
def test_random_dropout_is_a_mask(device: Any, kind: str) -> None:
    """A seed gives the same as the mask it stands for; that mask is the same everywhere."""
    graph = graphs.make("more_sources")
    struct = graph.make(device, kind="csc")
    arrays = inputs(kind, graph, 3, 2, _rng())
    g = _rng().standard_normal((graph.n_dst, 6))
    options = {"num_heads": 3, "dropout_p": 0.4, "dropout_seed": 2**63 + 12345}
    plain = forward(device, kind, struct, arrays, np.float64, num_heads=3)
    seeded = forward(device, kind, struct, arrays, np.float64, **options)
    kept = seeded["attention"] != 0
    assert 0.3 < kept.mean() < 0.9
    np.testing.assert_allclose(
        seeded["attention"], np.where(kept, plain["attention"] / 0.6, 0), rtol=1e-12
    )
    expected = backward(device, kind, struct, arrays, seeded, g, np.float64, **options)
    for mask in (kept, (kept / 0.6).astype(np.float32), kept / 0.6):
        p = 0.4 if mask.dtype == bool else 0.0
        given, tolerance = {**arrays, "dropout_mask": mask}, 1e-6 if mask.itemsize == 4 else 1e-12
        saved = forward(device, kind, struct, given, np.float64, num_heads=3, dropout_p=p)
        found = backward(
            device, kind, struct, given, saved, g, np.float64, num_heads=3, dropout_p=p
        )
        for name, value in {**seeded, **expected}.items():
            np.testing.assert_allclose({**saved, **found}[name], value, tolerance, tolerance)
    assert "".join(str(int(k)) for k in kept[:, :8].ravel()) == PINNED


# Bits of the generator for the seed above, three heads and edges 0 to 7.
PINNED = "111010011110111010001111"


def test_random_dropout_is_uniform() -> None:
    """Rate, and independence of neighbouring edges, heads and seeds."""
    from devices import Host

    n, heads = 20_000, 4
    graph = from_edges(np.zeros(n, int), np.arange(n), 1, n, bipartite=True)
    struct = graph.make(Host(), kind="csc")
    arrays = inputs("mha_gat", graph, heads, 1, _rng())
    masks = []
    for seed in (0, 1, 2**40):
        saved = forward(
            Host(), "mha_gat", struct, arrays, np.float32,
            num_heads=heads, dropout_p=0.25, dropout_seed=seed,
        )  # fmt: skip
        masks.append(saved["attention"] != 0)
    deviation = np.sqrt(0.25 * 0.75 / n)
    for mask in masks:
        assert np.abs(mask.mean(axis=1) - 0.75).max() < 4 * deviation
        rows = mask - 0.75
        pairs = [(rows[0], rows[1]), (rows[2], rows[3]), (rows[0][1:], rows[0][:-1])]
        for a, b in pairs:
            assert abs((a * b).mean()) < 4 * 0.1875 / np.sqrt(n)
    assert abs(((masks[0] - 0.75) * (masks[1] - 0.75)).mean()) < 4 * 0.1875 / np.sqrt(heads * n)


@EVERY
@pytest.mark.parametrize(
    ("heads", "width"), [(1, 160), (2, 36), (2, 33), (8, 8), (3, 1), (33, 4), (1, 64)]
)
def test_widths(device: Any, T: Any, kind: str, heads: int, width: int) -> None:
    """Tiles of channels, wide and narrow accesses, many heads: the same as head by head."""
    graph = graphs.from_edges([0, 1, 2, 3, 1, 0, 2], [0, 0, 0, 1, 1, 2, 2], 4, 3)
    struct = graph.make(device, kind="csc")
    arrays = inputs(kind, graph, heads, width, _rng(), edges=True)
    arrays = {k: v / np.sqrt(width) for k, v in arrays.items()}
    arrays = {k: v.astype(T).astype(np.float64) for k, v in arrays.items()}
    g = _rng().standard_normal((3, heads * width)).astype(T).astype(np.float64)
    exact = forward(device, kind, struct, arrays, np.float64, num_heads=heads)
    saved = forward(device, kind, struct, arrays, T, num_heads=heads)
    exact |= backward(device, kind, struct, arrays, exact, g, np.float64, num_heads=heads)
    found = saved | backward(device, kind, struct, arrays, saved, g, T, num_heads=heads)
    tolerance = {2: 2e-2, 4: 1e-5, 8: 1e-14}[np.dtype(T).itemsize]
    for name, a in found.items():
        scale = np.abs(exact[name]).max()
        worst = np.abs(a.astype(np.float64) - exact[name]).max()
        assert worst <= tolerance * (scale + 1e-3), name
    if np.float64 == T:
        for h in sorted({0, heads // 2, heads - 1}):
            _same_as_one_head(device, kind, graph, arrays, found, g, h, heads, width)


def _same_as_one_head(
    device: Any,
    kind: str,
    graph: Any,
    arrays: dict[str, Any],
    found: dict[str, Any],
    g: np.ndarray,
    h: int,
    heads: int,
    width: int,
) -> None:
    columns = slice(h * width, (h + 1) * width)

    def cut(name: str, a: np.ndarray) -> np.ndarray:
        if name == "attn_weights":
            return np.concatenate([p[columns] for p in np.split(a, len(a) // (heads * width))])
        return np.ascontiguousarray(a[:, columns])

    one = {k: cut(k, v) for k, v in arrays.items()}
    struct = graph.make(device, kind="csc")
    saved = forward(device, kind, struct, one, np.float64, num_heads=1)
    single = backward(
        device,
        kind,
        struct,
        one,
        saved,
        np.ascontiguousarray(g[:, columns]),
        np.float64,
        num_heads=1,
    )
    np.testing.assert_allclose(
        saved["output_embedding"], found["output_embedding"][:, columns], 1e-12, 1e-13
    )
    np.testing.assert_allclose(saved["attention"][0], found["attention"][h], 1e-12, 1e-13)
    for name in single:
        a = found[name]
        if name == "grad_edge_bias":
            a = a[:, h : h + 1]
        else:
            a = cut("attn_weights" if name == "grad_attn_weights" else name, a)
        np.testing.assert_allclose(single[name], a, 1e-11, 1e-12, err_msg=name)


@EVERY
@pytest.mark.parametrize("T", [np.dtype(np.float16), bfloat16], ids=str)
def test_every_gradient_has_a_precision_of_its_own(device: Any, kind: str, T: Any) -> None:
    graph = graphs.make("bipartite")
    struct = graph.make(device, kind="csc")
    arrays = inputs(kind, graph, 2, 2, _rng(), edges=True)
    g = _rng().standard_normal((graph.n_dst, 4))
    saved = forward(device, kind, struct, arrays, T, num_heads=2)
    names = [a.grad for a in operator(kind).inputs if a.grad]
    low = backward(device, kind, struct, arrays, saved, g, T, num_heads=2)
    for name in names:
        one = {name: np.float32}
        found = backward(device, kind, struct, arrays, saved, g, T, grad_dtypes=one, num_heads=2)
        assert found[name].dtype == np.float32
        assert found[name].astype(T).tobytes() == low[name].tobytes()
        assert all(found[k].tobytes() == low[k].tobytes() for k in names if k != name)


def test_options_are_checked_by_kind() -> None:
    graph = graphs.make("more_sources")
    from devices import Host

    struct = graph.make(Host(), kind="csc")
    arrays = inputs("mha_gat", graph, 2, 3, _rng(), bipartite=False)
    mask = np.ones((2, graph.n_edges), np.float32)
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"num_heads": 2.0}, TypeError, "`num_heads` has type float, expected an int"),
        ({"num_heads": True}, TypeError, "`num_heads` has type bool, expected an int"),
        ({"num_heads": 0}, ValueError, "`num_heads` is 0, expected at least 1"),
        (
            {"num_heads": 4},
            ValueError,
            "has shape (30, 6), expected columns in a multiple of num_heads=4",
        ),
        ({"activation": "gelu"}, ValueError, "`activation` is 'gelu', expected 'linear' or"),
        ({"activation": 3}, TypeError, "`activation` has type int, expected a str"),
        ({"activation_alpha": "x"}, TypeError, "`activation_alpha` has type str, expected a float"),
        ({"concat_heads": 1}, TypeError, "`concat_heads` has type int, expected a bool"),
        ({"dropout_p": 1.5}, ValueError, "`dropout_p` is 1.5, expected 0 <= p <= 1"),
        ({"dropout_p": 0.5}, TypeError, "`dropout_seed` has type NoneType, expected an int"),
        ({"dropout_seed": -1}, ValueError, "`dropout_seed` is -1, expected 0 <= seed < 2"),
        (
            {"dropout_seed": 1, "dropout_mask": mask},
            ValueError,
            "`dropout_seed` is 1, expected None",
        ),
    ]
    for changed, error, message in cases:
        options = {"num_heads": 2, **changed}
        out = np.empty((graph.n_dst, 6))
        x, w = arrays["src_embedding"], arrays["attn_weights"]
        with pytest.raises(error) as caught:
            ops.mha_gat_n2n_fwd(out, None, x, None, w, struct, **options)
        assert message in str(caught.value)
    saved = forward(Host(), "mha_gat", struct, arrays, np.float32, num_heads=np.int64(2))
    assert np.isfinite(saved["output_embedding"]).all()


def test_parts_that_are_missing() -> None:
    from devices import Host

    graph = graphs.make("bipartite")
    struct = graph.make(Host(), kind="csc")
    x, w = np.ones((7, 4)), np.ones(8)
    out, stats = np.empty((19, 4)), np.empty((2, 19, 2))
    with pytest.raises(ValueError, match="`dst_embedding` has the value None, expected an array"):
        ops.mha_gat_n2n_fwd(out, None, x, None, w, struct, 2)
    for grad, array in (("grad_dst", "dst_embedding"), ("grad_edge", "edge_embedding")):
        given = {
            "grad_src": None,
            "grad_dst": None,
            "grad_attn_weights": None,
            grad: np.ones((19, 4)),
        }
        with pytest.raises(ValueError, match=f"`{grad}` has an array, expected None.*`{array}`"):
            ops.mha_gat_n2n_bwd(
                **given, grad_output=out, src_embedding=x, dst_embedding=None, attn_weights=w,
                output_embedding=None, softmax_stats=stats, graph=struct, num_heads=2,
            )  # fmt: skip
    q, edge = np.ones((19, 4)), np.ones((50, 4))
    with pytest.raises(
        ValueError, match=r"`value` has shape \(7, 2\), expected dim_node=4 columns"
    ):
        ops.mha_simple_n2n_fwd(
            np.empty((19, 2)), None, q, x, np.ones((7, 2)), struct, 2, edge_embedding=edge
        )


@EVERY
def test_no_features(device: Any, kind: str) -> None:
    graph = from_edges([0, 1, 1], [0, 0, 1], 2, 2)
    struct = graph.make(device, kind="csc")
    arrays = inputs(kind, graph, 2, 0, _rng(), edges=True)
    saved = forward(device, kind, struct, arrays, np.float32, num_heads=2)
    assert saved["output_embedding"].shape == (2, 0)
    np.testing.assert_allclose(saved["attention"][:, [0, 1, 2]], [[0.5, 0.5, 1]] * 2)
    found = backward(device, kind, struct, arrays, saved, np.zeros((2, 0)), np.float32, num_heads=2)
    assert not found["grad_edge_bias"].any()
