from typing import Any

class ArrayView:
    """
    A view of an array: address, shape, strides in elements, dtype, device.device. Exports itself by DLPack and the array interfaces.
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
    @property
    def facts(self) -> tuple: ...
    def fits(self, axes: tuple, sizes: dict) -> bool:
        """
        Whether every axis has the size known by its name; a size not known yet is added.
        """

    @property
    def rows_contiguous(self) -> bool: ...
    @property
    def self_overlapping(self) -> bool: ...
    @property
    def writable(self) -> bool: ...
    @property
    def __array_interface__(self) -> dict: ...
    @property
    def __cuda_array_interface__(self) -> dict: ...
    def __dlpack__(self, **kwargs) -> object: ...
    def __dlpack_device__(self) -> tuple: ...
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...

def view(object: object, stream: int = 0) -> ArrayView:
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
def mha_gat_forward(
    outputs: tuple, inputs: tuple, options: tuple, dropout: tuple, graph: Graph, pieces: tuple
) -> None: ...
def mha_gat_backward(
    gradients: tuple,
    read: tuple,
    own: bool,
    inputs: tuple,
    options: tuple,
    dropout: tuple,
    graph: Graph,
    reverse: tuple,
    by_dst: tuple,
    by_src: tuple,
) -> None: ...
def mha_gat_v2_forward(
    outputs: tuple, inputs: tuple, options: tuple, dropout: tuple, graph: Graph, pieces: tuple
) -> None: ...
def mha_gat_v2_backward(
    gradients: tuple,
    read: tuple,
    own: bool,
    inputs: tuple,
    options: tuple,
    dropout: tuple,
    graph: Graph,
    reverse: tuple,
    by_dst: tuple,
    by_src: tuple,
) -> None: ...
def mha_simple_forward(
    outputs: tuple, inputs: tuple, options: tuple, dropout: tuple, graph: Graph, pieces: tuple
) -> None: ...
def mha_simple_backward(
    gradients: tuple,
    read: tuple,
    own: bool,
    inputs: tuple,
    options: tuple,
    dropout: tuple,
    graph: Graph,
    reverse: tuple,
    by_dst: tuple,
    by_src: tuple,
) -> None: ...
def num_threads() -> int: ...
def set_num_threads(n: int) -> None: ...
def isa() -> str: ...
