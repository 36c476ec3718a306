from typing import Any

class ArrayView:
    """
    A view of an array: address, shape, strides in elements, dtype, device. Exports itself by DLPack and the array interfaces.
    """

    @property
    def ptr(self) -> int: ...
    @property
    def shape(self) -> tuple: ...
    @property
    def strides(self) -> tuple: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def dtype(self, /) -> str: ...
    @property
    def device(self, /) -> str: ...
    @property
    def readonly(self) -> bool: ...
    def fits(self, axes: tuple, sizes: dict) -> bool:
        """
        Whether every axis has the size known by its name; a size not known yet is added. An axis in brackets may be missing, in all arrays alike: its size is then -1.
        """

    def suits(self, device: str, axes: tuple, sizes: dict, written: bool) -> bool:
        """
        Whether it is on that device, fits, and has rows without gaps that can be written.
        """

    @property
    def rows_contiguous(self) -> bool: ...
    @property
    def self_overlapping(self) -> bool: ...
    @property
    def writable(self) -> bool: ...
    def rows(self, /) -> ArrayView | None:
        """
        The same memory as (rows, columns), trailing axes joined; None where they do not join.
        """

    @property
    def __array_interface__(self) -> dict: ...
    @property
    def __cuda_array_interface__(self) -> dict: ...
    def __dlpack__(self, **kwargs) -> object: ...
    def __dlpack_device__(self) -> tuple: ...
    def columns(self, begin: int, width: int) -> ArrayView:
        """The view of `width` columns (places of the last axis) from `begin` on."""

    def as_column(self) -> ArrayView:
        """The view of a one-axis array as one column."""

    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...

def view(object: object, stream: int = 0, keep: bool = False) -> ArrayView:
    """View an array of any kind without copying it."""

def overlap(a: ArrayView, b: ArrayView) -> bool: ...
def first_overlap(outputs: list, inputs: list) -> tuple[ArrayView, ArrayView] | None:
    """
    The first output that shares memory with an earlier output or an input, and that one.
    """

class Graph:
    """The struct behind edgegrad's graph types."""

    def __init__(
        self,
        offsets: object,
        indices: object,
        map_csc_to_coo: object | None,
        edge_types: object | None,
        src_node_types: object | None,
        dst_node_types: object | None,
        n_src_nodes: int,
        n_dst_nodes: int,
        n_indices: int,
        n_edge_types: int,
        n_node_types: int,
    ) -> None: ...
    @property
    def offsets(self, /) -> ArrayView:
        """(n_dst_nodes + 1,), where each destination's edges begin."""

    @property
    def indices(self, /) -> ArrayView:
        """(n_indices,), the source of each edge."""

    @property
    def map_csc_to_coo(self, /) -> Any:
        """(n_indices,), edge ids, or None."""

    @property
    def edge_types(self, /) -> Any:
        """(n_indices,), int32, CSC order, or None."""

    @property
    def src_node_types(self, /) -> Any:
        """(n_src_nodes,) or None; kept, not used."""

    @property
    def dst_node_types(self, /) -> Any:
        """(n_dst_nodes,) or None; kept, not used."""

    @property
    def n_src_nodes(self) -> int:
        """Number of source rows."""

    @property
    def n_dst_nodes(self) -> int:
        """Number of destination rows."""

    @property
    def n_indices(self) -> int:
        """Number of edges."""

    @property
    def n_edge_types(self) -> int:
        """Number of edge types; 0 without types."""

    @property
    def n_node_types(self) -> int:
        """Number of node types; 0 without types."""

def not_in_range(arg0: ArrayView, arg1: int, arg2: int, /) -> tuple[int, int]: ...
def out_of_range(arg0: ArrayView, arg1: int, /) -> tuple[int, int]: ...
def not_monotone(arg: ArrayView, /) -> tuple[int, int]: ...
def repeated(arg: ArrayView, /) -> tuple[int, int]: ...
def max_degree(arg: ArrayView, /) -> int: ...
def sort_by_key(arg0: ArrayView, arg1: ArrayView, arg2: ArrayView, /) -> None: ...
def expand_rows(arg0: ArrayView, arg1: ArrayView, /) -> None: ...
def take(arg0: ArrayView, arg1: ArrayView, arg2: ArrayView, /) -> None: ...
def order_by_type(arg0: ArrayView, arg1: ArrayView, arg2: ArrayView, /) -> int: ...
def type_groups(
    arg0: ArrayView,
    arg1: ArrayView,
    arg2: ArrayView,
    arg3: ArrayView,
    arg4: ArrayView,
    arg5: ArrayView,
    arg6: int,
    /,
) -> None: ...
def count_pieces(arg0: ArrayView, arg1: int, /) -> int: ...
def plan_pieces(
    arg0: ArrayView, arg1: ArrayView, arg2: ArrayView, arg3: ArrayView, arg4: int, /
) -> None: ...
def agg_hg_basis_forward(
    output: ArrayView,
    input: ArrayView,
    weights: object | None,
    edge_weight: object | None,
    graph: Graph,
    type_degree: object | None,
    concat_own: bool,
    limit: int,
    row: ArrayView,
    begin: ArrayView,
    end: ArrayView,
) -> None: ...
def agg_hg_basis_forward_by_type(
    output: ArrayView,
    input: ArrayView,
    edge_weight: object | None,
    graph: Graph,
    type_degree: object | None,
    concat_own: bool,
    group_offsets: ArrayView,
    location: ArrayView,
    order: ArrayView,
    limit: int,
    row: ArrayView,
    begin: ArrayView,
    end: ArrayView,
) -> None: ...
def agg_hg_basis_grad_input(
    grad_input: ArrayView,
    grad_output: ArrayView,
    weights: object | None,
    edge_weight: object | None,
    graph: Graph,
    type_degree: object | None,
    concat_own: bool,
    rev_offsets: ArrayView,
    rev_dst: ArrayView,
    rev_position: ArrayView,
    limit: int,
    row: ArrayView,
    begin: ArrayView,
    end: ArrayView,
) -> None: ...
def agg_hg_basis_grad_parameters(
    grad_weights: object | None,
    grad_edge_weight: object | None,
    grad_output: ArrayView,
    input: ArrayView,
    weights: object | None,
    edge_weight: object | None,
    graph: Graph,
    type_degree: object | None,
) -> None: ...
def history_check(ids: ArrayView, n_rows: int, rows: object | None) -> tuple[int, int, int]: ...
def history_pull(
    output: ArrayView, store: ArrayView, ids: ArrayView, fill: float
) -> tuple[int, int, int]: ...
def history_take(
    output: ArrayView, store: ArrayView, ids: ArrayView, clear: bool, max_norm: float
) -> tuple[int, int, int]: ...
def history_scatter(
    store: ArrayView,
    ids: ArrayView,
    rows: ArrayView,
    of: int,
    keep: float,
    factor: float,
    age: object | None,
    step: int,
) -> tuple[int, int, int]: ...
def history_stale(
    mask: ArrayView, age: ArrayView, ids: ArrayView, step: int, max_age: int
) -> tuple[int, int, int]: ...
def edge_softmax_forward(
    output: ArrayView,
    logits: ArrayView,
    offsets: ArrayView,
    order: object | None,
    limit: int,
    row: ArrayView,
    begin: ArrayView,
    end: ArrayView,
) -> None: ...
def edge_softmax_backward(
    grad_logits: ArrayView,
    grad_output: ArrayView,
    output: ArrayView,
    offsets: ArrayView,
    order: object | None,
    limit: int,
    row: ArrayView,
    begin: ArrayView,
    end: ArrayView,
) -> None: ...
def sddmm_forward(
    output: ArrayView,
    lhs: object | None,
    rhs: object | None,
    graph: Graph,
    op: int,
    n_heads: int,
    dim: int,
) -> None: ...
def sddmm_gradient(
    result: ArrayView,
    grad_output: ArrayView,
    other: object | None,
    own: object | None,
    offsets: ArrayView,
    other_end: ArrayView,
    position: object | None,
    term: int,
    per_head: int,
    limit: int,
    row: ArrayView,
    begin: ArrayView,
    end: ArrayView,
) -> None: ...

class Edges:
    """Edges grouped by row; see edgegrad.operators.edges."""

    def __init__(
        self,
        offsets: object | None,
        ids: object | None,
        order: object | None,
        map: object | None,
        rows: int,
        count: int,
        limit: int,
        piece_row: object | None,
        piece_begin: object | None,
        piece_end: object | None,
    ) -> None: ...

def gather_reduce(
    reducer: int,
    edges: Edges,
    wide: bool,
    output: ArrayView,
    input: object | None,
    sign: float,
    root: bool,
    extrema: object | None,
    weight: object | None,
    heads: int,
    divide: object | None,
    gathered: object | None,
    start: object | None,
    start_ids: object | None,
    start_count: int,
    centre: object | None,
    deviation: object | None,
    own: object | None,
) -> None: ...
def expand(
    edges: Edges,
    wide: bool,
    output: ArrayView,
    row: object | None,
    source: object | None,
    edge: object | None,
    divide: object | None,
    extrema: object | None,
    centre: object | None,
    deviation: object | None,
    subtrahend: object | None,
    list_offsets: object | None,
    list: object | None,
) -> None: ...
def grad_factor(
    edges: Edges,
    wide: bool,
    result: ArrayView,
    heads: int,
    grad: ArrayView,
    input: ArrayView,
    extrema: object | None,
    divide: object | None,
    mean: object | None,
) -> None: ...
def mha_gat_forward(
    outputs: tuple, inputs: tuple, options: tuple, dropout: tuple, incoming: Edges, wide: bool
) -> None: ...
def mha_gat_backward(
    gradients: tuple,
    read: tuple,
    own: bool,
    inputs: tuple,
    options: tuple,
    dropout: tuple,
    incoming: Edges,
    outgoing: Edges,
    wide: bool,
) -> None: ...
def mha_gat_v2_forward(
    outputs: tuple, inputs: tuple, options: tuple, dropout: tuple, incoming: Edges, wide: bool
) -> None: ...
def mha_gat_v2_backward(
    gradients: tuple,
    read: tuple,
    own: bool,
    inputs: tuple,
    options: tuple,
    dropout: tuple,
    incoming: Edges,
    outgoing: Edges,
    wide: bool,
) -> None: ...
def mha_simple_forward(
    outputs: tuple, inputs: tuple, options: tuple, dropout: tuple, incoming: Edges, wide: bool
) -> None: ...
def mha_simple_backward(
    gradients: tuple,
    read: tuple,
    own: bool,
    inputs: tuple,
    options: tuple,
    dropout: tuple,
    incoming: Edges,
    outgoing: Edges,
    wide: bool,
) -> None: ...
def num_threads() -> int: ...
def set_num_threads(n: int) -> None: ...
def isa() -> str: ...
