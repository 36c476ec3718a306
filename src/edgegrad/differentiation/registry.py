"""One registration per differentiable operator: what its declaration cannot say."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from edgegrad import operators
from edgegrad.errors import flag, wrong_option, wrong_type
from edgegrad.operator import Arg, Operator
from edgegrad.operators.agg_op import AggOp, agg_op

Options = Mapping[str, Any]
Sizes = Mapping[str, int]
# Inputs in which a term of the output is linear each; the output is the sum of its terms.
Term = frozenset[str]

_REDUCTIONS = ("aggregation_operation", "reduce")


@dataclass(frozen=True)
class Derivatives:
    """What front ends know of an operator beyond its declaration.

    `sizes` are the numbers that shapes follow from beyond those of the graph and the arrays.
    Edge arrays are by edge id, but for those `by_position`, which are in CSC order. `terms` are
    given for options that make the operator a sum of multilinear terms; the input `own` is then
    also appended as it is, as the last columns. Otherwise `rule` names the second derivative, if
    there is one.
    """

    op: Operator
    sizes: Callable[[Sizes, Options], Sizes] = lambda counts, options: {}
    by_position: tuple[str, ...] = ()
    terms: Callable[[Options], tuple[Term, ...]] = lambda options: ()
    own: str = ""
    rule: Callable[[Options], str] = lambda options: ""

    @property
    def name(self) -> str:
        """Name of the operator, and of the functions of the front ends."""
        return self.op.name

    @cached_property
    def fwd(self) -> Callable[..., None]:
        """The public forward function."""
        return getattr(operators, self.op.functions["fwd"])

    @cached_property
    def bwd(self) -> Callable[..., None]:
        """The public backward function."""
        return getattr(operators, self.op.functions["bwd"])

    @cached_property
    def variables(self) -> tuple[Arg, ...]:
        """The inputs that have a gradient."""
        return tuple(a for a in self.op.inputs if a.grad)

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """Inputs and outputs that backward may read, whatever the options."""
        return (*self.op.keeps, *self.op.may_keep)

    @cached_property
    def options(self) -> dict[str, inspect.Parameter]:
        """The options of both halves, in order; their defaults are those of the operator."""
        others = {a.name for a in self.op.fwd} | {"graph", "stream_id"}
        others |= {name for sizes in self.op.sizes.values() for name in sizes}
        parameters = inspect.signature(self.fwd).parameters
        return {name: p for name, p in parameters.items() if name not in others}

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Default of every option that has one, in the form of `normalised`."""
        found = {n: p.default for n, p in self.options.items() if p.default is not p.empty}
        return self.normalised(found)

    @cached_property
    def usual(self) -> tuple[Any, ...]:
        """The value of every option where all have a default and none is given."""
        return tuple(self.defaults.values())

    def values(self, options: Options) -> tuple[Any, ...]:
        """Return the value of every option, in order."""
        return tuple(options[name] for name in self.options)

    def normalised(self, options: Options) -> dict[str, Any]:
        """Return options in plain types, checked; an aggregation by its name in lower case."""
        return {
            name: _plain(self.name, name, self.options[name].annotation, value)
            for name, value in options.items()
        }

    def saves(self, options: Options) -> tuple[str, ...]:
        """Names of the arrays that forward has to save for backward with these options."""
        op = reduction(options)
        return tuple(a.name for a in self.op.saved if _is_saved(a, op))

    def reads(self, options: Options) -> tuple[str, ...]:
        """Names of the kept inputs and outputs that backward reads with these options."""
        op, terms = reduction(options), self.terms(options)
        if op is None:
            # Gradients of what is linear in all inputs together do not depend on them.
            free = {a.name for a in self.variables} if all(len(t) == 1 for t in terms) else set()
            return tuple(n for n in self.kept if not (terms and n in free))
        outputs = {a.name for a in self.op.outputs}
        divides = any(a.dtype != "Idx" for a in self.op.saved)  # by a sum of weights
        reads_output = op is AggOp.Std or (op is AggOp.Mean and divides)
        late = (n for n in self.op.may_keep if (reads_output if n in outputs else op.is_spread))
        return (*self.op.keeps, *late)


_WHOLE: Any = numbers.Integral


def _plain(where: str, name: str, annotation: str, value: Any) -> Any:
    if name in _REDUCTIONS:
        return agg_op(where, name, value).value
    if annotation == "bool":
        return flag(where, name, value)
    if annotation in ("int", "float"):
        kind: Any = _WHOLE if annotation == "int" else numbers.Real
        if isinstance(value, bool) or not isinstance(value, kind):
            has = f"type {type(value).__name__}"
            raise wrong_type(where, name, has, f"{'an int' if annotation == 'int' else 'a float'}")
        if name == "num_heads" and value < 1:  # shapes are divided by it
            raise wrong_option(where, name, value, "at least 1")
        return int(value) if annotation == "int" else float(value)
    if annotation == "int | None" and value is not None:
        # Tracers have numbers of 64 bits with a sign.
        if isinstance(value, bool) or not isinstance(value, _WHOLE):
            raise wrong_type(where, name, f"type {type(value).__name__}", "an int or None")
        if not 0 <= value < 2**63:
            raise wrong_option(where, name, value, "a number in [0, 2**63)")
        return int(value)
    return value


def reduction(options: Options) -> AggOp | None:
    """Return how options aggregate, None if they do not say."""
    for name in _REDUCTIONS:
        if name in options:
            return AggOp(options[name])
    return None


def _is_saved(a: Arg, op: AggOp | None) -> bool:
    if op is None or not a.optional:
        return True
    return op.has_winner if a.dtype == "Idx" else op is AggOp.Mean


def derivatives(name: str) -> Derivatives:
    """Return the registration of the operator of that name."""
    return _BY_NAME[name]


# ---- the registrations


def _linear(options: Options) -> bool:
    return reduction(options) in (AggOp.Sum, AggOp.Mean)


def _separate(op: Operator, when: Callable[[Options], bool] = lambda options: True) -> Any:
    """Every input is a term of its own: the output is linear in all of them together."""
    terms = tuple(frozenset((a.name,)) for a in op.inputs if a.grad)
    return lambda options: terms if when(options) else ()


def _product(op: Operator, when: Callable[[Options], bool] = lambda options: True) -> Any:
    """One term, linear in each of the inputs."""
    terms = (frozenset(a.name for a in op.inputs if a.grad),)
    return lambda options: terms if when(options) else ()


def _is_sum(options: Options) -> bool:
    return reduction(options) is AggOp.Sum


def _aggregation(op: Operator, own: str = "", **more: Any) -> Derivatives:
    return Derivatives(op, terms=_separate(op, _linear), own=own, **more)


def _matrix_sides(counts: Sizes, options: Options) -> Sizes:
    sides = ("n_columns", "n_rows") if options["transpose"] else ("n_rows", "n_columns")
    return {sides[0]: counts["n_dst_nodes"], sides[1]: counts["n_src_nodes"]}


def _sddmm_terms(options: Options) -> tuple[Term, ...]:
    both = (frozenset(("lhs",)), frozenset(("rhs",)))
    if options["op"] in ("dot", "mul"):
        return (both[0] | both[1],)
    return {"copy_lhs": both[:1], "copy_rhs": both[1:], "div": ()}.get(options["op"], both)


def _registrations() -> tuple[Derivatives, ...]:
    declared = {op.name: op for op in operators.OPERATORS}
    basis, softmax = declared["agg_hg_basis_n2n_post"], declared["edge_softmax"]
    weighted, concat = declared["agg_weighted_n2n"], declared["agg_concat_weighted_n2n"]
    dmpnn, sddmm, spmm = declared["agg_dmpnn_e2e"], declared["sddmm"], declared["spmm"]
    made = [
        Derivatives(
            basis,
            sizes=lambda counts, options: {"concat_own": int(options["concat_own"])},
            by_position=("edge_weight",),
            terms=_product(basis),
            own="input_embedding",
        ),
        Derivatives(weighted, by_position=("edge_weight",), terms=_product(weighted, _is_sum)),
        Derivatives(
            concat,
            by_position=("edge_weight",),
            terms=_product(concat, _is_sum),
            own="input_embedding",
        ),
        Derivatives(
            dmpnn,
            sizes=lambda counts, options: {"concat_own": int(options["concat_own"])},
            terms=_separate(dmpnn),
        ),
        Derivatives(
            spmm, sizes=_matrix_sides, by_position=("values",), terms=_product(spmm, _linear)
        ),
        Derivatives(
            sddmm,
            sizes=lambda counts, options: {"is_dot": int(options["op"] == "dot")},
            by_position=("output",),
            terms=_sddmm_terms,
            rule=lambda options: "quotient",
        ),
        Derivatives(softmax, by_position=("logits", "output"), rule=lambda options: "softmax"),
    ]
    made += [_attention(declared[name]) for name in _ATTENTION if name in declared]
    known = {d.name for d in made}
    for op in operators.OPERATORS:
        if op.name not in known and any(a.grad for a in op.inputs):
            edges_only = op.name.startswith("update_efeat")
            made.append(Derivatives(op, terms=_separate(op)) if edges_only else _aggregation(op))
    return tuple(made)


_ATTENTION = ("mha_gat_n2n", "mha_gat_v2_n2n", "mha_simple_n2n")


def _attention(op: Operator) -> Derivatives:
    return Derivatives(
        op,
        sizes=lambda counts, options: {
            "2": 2,
            "num_heads": options["num_heads"],
            "concat_heads": int(options["concat_heads"]),
        },
        rule=lambda options: "attention" if options["dropout_seed"] is None else "",
    )


DIFFERENTIABLE = _registrations()
_BY_NAME = {d.name: d for d in DIFFERENTIABLE}
