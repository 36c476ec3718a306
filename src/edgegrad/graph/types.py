"""The eight graph types: one per kind and index width."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np

from edgegrad import _host

Built = TypeVar("Built")
ARRAYS = (
    "offsets",
    "indices",
    "map_csc_to_coo",
    "edge_types",
    "src_node_types",
    "dst_node_types",
)
COUNTS = ("n_src_nodes", "n_dst_nodes", "n_indices", "n_edge_types", "n_node_types")


class Graph(_host.Graph):
    """A graph in compressed columns by destination; made by `make_csc` and its kind.

    Holds the arrays it was made from (zero copy where their dtypes allow), in CSC order: edge
    positions ``offsets[i]`` to ``offsets[i + 1]`` enter destination ``i`` from sources
    ``indices[e]``. What operators derive from them (the reverse graph, groups by type, how long
    rows are cut) is built once, on first need, under a lock, and kept. Equality is identity.
    Arrays come back as `ArrayView`, which NumPy, CuPy, PyTorch and JAX take without a copy.
    """

    kind: ClassVar[str]
    index_dtype: ClassVar[str]
    sizes: Mapping[str, int]
    device: str
    _lock: threading.RLock
    _cache: dict[Any, Any]
    # Called with every new graph: what a framework's front end must know of one before it traces.
    attachments: ClassVar[list[Callable[[Graph], None]]] = []

    def __init__(self, **parts: Any) -> None:
        self._begin(parts, threading.RLock(), {})
        for attach in Graph.attachments:
            attach(self)

    def _begin(
        self, parts: Mapping[str, Any], lock: threading.RLock, cache: dict[Any, Any]
    ) -> None:
        super().__init__(**parts)
        # Past __setattr__: native code trusts what a graph says of itself.
        self.__dict__.update(
            _lock=lock,
            _cache=cache,
            sizes={name: getattr(self, name) for name in COUNTS},
            device=self.offsets.device,
        )

    def twin(self) -> Graph:
        """Return another graph of the same arrays and cache, without attachments.

        What is attached to a graph may refer to its twin: to the graph itself it would be a cycle,
        which native memory in between keeps from being collected.
        """
        other = type(self).__new__(type(self))
        parts = {name: getattr(self, name) for name in (*ARRAYS, *COUNTS)}
        other._begin(parts, self._lock, self._cache)
        return other

    def attach(self, name: str, value: object) -> None:
        """Set an attribute that is no part of the graph."""
        self.__dict__[name] = value

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"`{name}` cannot be set: a graph does not change")

    def cached(self, key: Any, build: Callable[[], Built]) -> Built:
        """Return what `build` made for `key`, calling it at most once."""
        try:
            return self._cache[key]
        except KeyError:
            with self._lock:
                if key not in self._cache:
                    self._cache[key] = build()
                return self._cache[key]

    @property
    def on_host(self) -> bool:
        """Whether the arrays are in host memory."""
        return self.device == "cpu"

    @property
    def max_in_degree(self) -> int:
        """Most edges that enter one destination; read back once from a GPU."""
        from edgegrad.graph.build import max_degree

        return self.cached("max_in_degree", lambda: max_degree(self.offsets))

    @property
    def has_reverse(self) -> bool:
        """Whether the reverse graph has been built."""
        return "reverse" in self._cache

    @property
    def nbytes(self) -> int:
        """Bytes of the graph's own arrays, without what is cached."""
        arrays = (getattr(self, name) for name in ARRAYS)
        return sum(a.nbytes for a in arrays if a is not None)

    def build_reverse(self, stream_id: int = 0) -> None:
        """Build the reverse graph now rather than in the first backward call."""
        from edgegrad.graph.build import reverse

        reverse(self, stream_id)

    def to(self, device: str) -> Graph:
        """Return the graph on `device` ("cpu", "cuda" or "cuda:<n>"); itself if it is there."""
        from edgegrad.graph.convert import to_device

        return to_device(self, device)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays alone; what is cached is built again where it is needed."""
        from edgegrad.graph.convert import to_numpy

        arrays = {name: to_numpy(getattr(self, name)) for name in ARRAYS}
        counts = {name: getattr(self, name) for name in COUNTS}
        return _restore, (type(self), arrays, counts, self.device)

    def __repr__(self) -> str:
        text = f"{type(self).__name__}(n_src_nodes={self.n_src_nodes}, "
        text += f"n_dst_nodes={self.n_dst_nodes}, n_indices={self.n_indices}"
        if "hg" in self.kind:
            text += f", n_edge_types={self.n_edge_types}, n_node_types={self.n_node_types}"
        return f"{text}, device={self.device!r})"


def _restore(
    cls: type[Graph], arrays: dict[str, np.ndarray | None], counts: dict[str, int], device: str
) -> Graph:
    views = {name: None if a is None else _host.view(a) for name, a in arrays.items()}
    return cls(**views, **counts).to(device)


def graph_type(kind: str, index_dtype: str) -> type[Graph]:
    """Return the type of a kind ("csc", "bipartite_csc_hg", …) and an index dtype."""
    return _TYPES[f"{kind}_{index_dtype}"]


class csc_int32(Graph):
    """Homogeneous graph, int32 ids; destinations are the first source rows."""

    kind, index_dtype = "csc", "int32"


class csc_int64(Graph):
    """Homogeneous graph, int64 ids; destinations are the first source rows."""

    kind, index_dtype = "csc", "int64"


class bipartite_csc_int32(Graph):
    """Bipartite graph, int32 ids; the two sides are independent."""

    kind, index_dtype = "bipartite_csc", "int32"


class bipartite_csc_int64(Graph):
    """Bipartite graph, int64 ids; the two sides are independent."""

    kind, index_dtype = "bipartite_csc", "int64"


class csc_hg_int32(Graph):
    """Graph with edge types, int32 ids; destinations are the first source rows."""

    kind, index_dtype = "csc_hg", "int32"


class csc_hg_int64(Graph):
    """Graph with edge types, int64 ids; destinations are the first source rows."""

    kind, index_dtype = "csc_hg", "int64"


class bipartite_csc_hg_int32(Graph):
    """Bipartite graph with edge types, int32 ids; the two sides are independent."""

    kind, index_dtype = "bipartite_csc_hg", "int32"


class bipartite_csc_hg_int64(Graph):
    """Bipartite graph with edge types, int64 ids; the two sides are independent."""

    kind, index_dtype = "bipartite_csc_hg", "int64"


_TYPES = {cls.__name__: cls for cls in Graph.__subclasses__()}
