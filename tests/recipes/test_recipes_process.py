"""R29: a bare environment, fork, pickle and spawn, a home that cannot be written."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgegrad
from graphs import G0, GraphData, make, permuted_g0
from recipes.calls import (
    PLAIN,
    WEIGHTED,
    WEIGHTED_DW,
    WEIGHTED_DX,
    G,
    W,
    X,
    backward,
    forward,
)

SECONDS = 60

# The weighted sum of R13 without the test-suite; `check(graph)` raises if a number is off.
PRELUDE = f"""
import sys
import numpy as np
import edgegrad
from edgegrad.operators import agg_hg_basis_n2n_post_bwd, agg_hg_basis_n2n_post_fwd

x, g = np.array({X.tolist()}), np.array({G.tolist()})
w = np.array({W.tolist()})[{PLAIN.edge_ids.tolist()}]

def make():
    offsets, indices = np.array({PLAIN.offsets.tolist()}), np.array({PLAIN.indices.tolist()})
    return edgegrad.make_csc_hg(offsets, indices, 0, 1, None, np.zeros(6, np.int32))

def check(graph):
    out, dx, dw = (np.full(s, np.nan) for s in ((4, 2), (4, 2), 6))
    agg_hg_basis_n2n_post_fwd(out, x, None, graph, edge_weight=w)
    agg_hg_basis_n2n_post_bwd(dx, None, g, x, None, graph, edge_weight=w, grad_edge_weight=dw)
    assert out.tolist() == {WEIGHTED}, out
    assert dx.tolist() == {WEIGHTED_DX}, dx
    assert dw.tolist() == {np.array(WEIGHTED_DW)[PLAIN.edge_ids].tolist()}, dw
"""


def _run(code: str, *options: str, env: dict[str, str] | None = None) -> str:
    """Run a script; it must end well, in time and without a word on stderr. Returns stdout."""
    ran = subprocess.run(
        [sys.executable, *options, "-c", PRELUDE + textwrap.dedent(code)],
        env=env,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


# ---- (a)


def test_r29a_bare_environment() -> None:
    code = """
        check(make())
        assert not {"cupy", "torch", "jax", "scipy"} & set(sys.modules)
        print("done")
    """
    assert _run(code, "-W", "error", env={"PATH": os.environ["PATH"]}) == "done\n"


NEEDS_GPU = {
    "graph to the GPU": "make().to('cuda')",
    "graph of GPU arrays": "edgegrad.make_csc(Device(), Device())",
    "GPU features": "agg_hg_basis_n2n_post_fwd(Device(), x, None, make())",
}


@pytest.mark.parametrize("call", NEEDS_GPU.values(), ids=NEEDS_GPU)
def test_r29a_gpu_call_without_cupy_says_what_is_missing(call: str) -> None:
    code = f"""
        sys.modules["cupy"] = None  # as if it were not installed

        class Device:
            __cuda_array_interface__ = dict(shape=(2,), typestr="<i4", data=(4096, False))

        try:
            {call}
        except edgegrad.BackendError as error:
            assert isinstance(error, RuntimeError)
            print(error)
        check(make())
    """
    message = _run(code, env={"PATH": os.environ["PATH"]})
    assert message.startswith("CuPy cannot be imported")
    assert "pip install 'edgegrad[cuda12]'" in message


def test_r29a_no_driver_says_what_is_missing(tmp_path: Path) -> None:
    # A CuPy that is installed on a machine without a driver answers like this.
    (tmp_path / "cupy.py").write_text(
        textwrap.dedent("""
            from types import SimpleNamespace

            def getDeviceCount():
                raise RuntimeError("cudaErrorInsufficientDriver")

            cuda = SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=getDeviceCount))
        """)
    )
    code = """
        try:
            make().to("cuda")
        except edgegrad.BackendError as error:
            print(error)
        check(make())
        edgegrad.show_config()
    """
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    message = _run(code, env=env)
    assert message.startswith("no CUDA driver answers (cudaErrorInsufficientDriver): install the")


# ---- (c)

FORK = """
    import os
    edgegrad.set_num_threads({threads})
    rng = np.random.default_rng(0)
    n, edges = 2000, 40000
    types = rng.integers(0, 3, edges).astype(np.int32)
    ends = rng.integers(0, n, (2, edges))
    graph = edgegrad.from_coo(*ends, n, edge_types=types, n_edge_types=3)
    features, weights = rng.standard_normal((n, 16)), rng.standard_normal((3, 2))

    def run(graph):
        out, dx = np.full((n, 32), np.nan), np.full((n, 16), np.nan)
        dw = np.full((3, 2), np.nan)
        agg_hg_basis_n2n_post_fwd(out, features, weights, graph, norm_by_out_degree=True)
        agg_hg_basis_n2n_post_bwd(dx, dw, out, features, weights, graph, norm_by_out_degree=True)
        return out.tobytes() + dx.tobytes() + dw.tobytes()

    def in_child(work):
        child = os.fork()
        if child == 0:
            same = False
            try:
                same = work()
            finally:
                os._exit(0 if same else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def child():
        check(make())
        same = run(graph) == expected
        edgegrad.set_num_threads({threads})
        again = edgegrad.from_coo(*ends, n, edge_types=types, n_edge_types=3)
        return same and run(again) == expected

    if {before}:
        expected = run(graph)
        in_child(child)
        in_child(lambda: in_child(child) is None)
        assert run(graph) == expected
    else:  # the child is the first to use threads
        in_child(lambda: (globals().update(expected=run(graph)) or child()))
    print("done")
"""


@pytest.mark.parametrize("before", [True, False], ids=["used before", "not used before"])
@pytest.mark.parametrize("threads", [1, 4])
def test_r29c_fork_after_threads_were_used(threads: int, before: bool) -> None:
    # Python 3.12 warns of any fork of a process with threads, which is what this is about.
    code = FORK.replace("{threads}", str(threads)).replace("{before}", str(before))
    assert _run(code, "-W", "ignore::DeprecationWarning") == "done\n"


# ---- (d)


@pytest.mark.parametrize("IdxT", [np.int32, np.int64])
@pytest.mark.parametrize("kind", ["csc", "csc_hg"])
@pytest.mark.parametrize("name", ["g0", "permuted", "bipartite", "more_sources", "no_edges"])
@pytest.mark.parametrize("through", [lambda a: pickle.loads(pickle.dumps(a)), copy.deepcopy])
def test_r29d_pickled_graph_is_the_same(
    device: Any, through: Any, name: str, kind: str, IdxT: Any
) -> None:
    named: dict[str, GraphData] = {"g0": G0, "permuted": permuted_g0()}
    data = named[name] if name in named else make(name)
    struct = data.make(device, IdxT, kind)
    struct.build_reverse()
    again = through(struct)
    assert type(again) is type(struct)
    assert again is not struct
    assert not again.has_reverse
    for attribute in ("sizes", "device", "index_dtype", "nbytes", "max_in_degree"):
        assert getattr(again, attribute) == getattr(struct, attribute)
    if kind == "csc":
        return
    rng = np.random.default_rng(29)
    x = device.array(rng.standard_normal((data.n_src, 3)))
    g = device.array(rng.standard_normal((data.n_dst, 3 * data.n_types)))
    np.testing.assert_array_equal(forward(device, again, x), forward(device, struct, x))
    first, second = (backward(device, s, g, x) for s in (struct, again))
    np.testing.assert_array_equal(second.x, first.x)
    np.testing.assert_array_equal(second.edges, first.edges)


def test_r29d_pickle_holds_arrays_alone() -> None:
    n = 10_000
    ids = np.zeros(n, np.int32)
    struct = edgegrad.make_csc_hg(np.array([0, n], np.int32), ids, 0, 1, None, ids)
    before = len(pickle.dumps(struct))
    out = np.full((1, 1), np.nan)
    edgegrad.operators.agg_hg_basis_n2n_post_fwd(
        out, np.ones((1, 1)), None, struct, norm_by_out_degree=True
    )
    struct.build_reverse()
    assert out.item() == 1
    assert len(pickle.dumps(struct)) == before < 2 * ids.nbytes + 2000


def test_r29d_spawned_process_gets_the_graph(tmp_path: Path) -> None:
    script = tmp_path / "spawned.py"
    main = """
        import multiprocessing

        if __name__ == "__main__":
            graph = make()
            check(graph)  # what is cached by now does not travel
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                pool.apply_async(check, (graph,)).get(50)
                pool.apply_async(check, (pool.apply_async(make).get(50),)).get(50)
            print("done")
    """
    script.write_text(PRELUDE + textwrap.dedent(main))
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=SECONDS)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


# ---- (f)


def test_r29f_home_and_cache_that_cannot_be_written(tmp_path: Path) -> None:
    nowhere = "/dev/null/home"  # not even root can make this folder
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict.fromkeys(("HOME", "XDG_CACHE_HOME", "CUPY_CACHE_DIR", "TMPDIR"), nowhere),
    }
    tmp_path.chmod(0o555)
    code = f"""
        import os
        os.chdir({str(tmp_path)!r})
        check(make())
        edgegrad.show_config()
        assert os.listdir(".") == []
    """
    # The host needs no cache, so there is nothing to warn of.
    assert "edgegrad" in _run(code, "-W", "error", env=env)
