"""What enters a wiring of blocks, and how it is built for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.wirings import _flow, _plan, _running, _shapes
from ember_ml.nn.wirings.base import WiringError

if TYPE_CHECKING:
    from ember_ml.nn.wirings.blocks import BlockWiring

Values = dict[str, Tensor]


def by_name(wiring: BlockWiring, x: Any) -> dict[str, Any]:
    """The inputs by name."""
    owner, names = type(wiring).__name__, wiring.inputs
    if not isinstance(x, Mapping):
        if len(names) > 1:
            raise WiringError(f"{owner} takes a dict of the inputs {_shapes.joined(names)}")
        return {names[0]: x}
    _plan.check_known(f"{owner}: inputs", x, names)
    missing = [name for name in names if name not in x]
    if missing:
        raise WiringError(f"{owner}: the input {missing[0]!r} is missing")
    return {name: x[name] for name in names}


def check_mask(wiring: BlockWiring, mask: Tensor | None, given: Values) -> None:
    """Raise a ShapeError if a mask is not that of the inputs."""
    shape = next(iter(given.values())).shape[:2]
    if mask is not None and mask.shape != shape:
        raise ShapeError(
            f"{type(wiring).__name__} takes a mask of (batch, time) = {shape}, not {mask.shape}"
        )


def prepare(wiring: BlockWiring, given: Values, lead: int) -> None:
    """Build the wiring, if it is not built, and check that the inputs are those it is for."""
    if not wiring.is_built and wiring.features is None:
        _build(wiring, given, {name: _width(x, lead) for name, x in given.items()})
    elif not wiring.is_built:
        _build(wiring, given, wiring.features)
    for name, x in given.items():
        wanted = wiring.features[name] if wiring.features else None
        if _width(x, lead) != wanted or x.ndim != lead + (wanted != "tokens"):
            axes = ["batch", "time"][:lead] + ([] if wanted == "tokens" else [str(wanted)])
            raise ShapeError(
                f"{type(wiring).__name__} takes ({', '.join(axes)}) at {name!r}; the input has the "
                f"shape {x.shape}"
            )


def _width(x: Tensor, lead: int) -> Any:
    """The features of an input that has so many axes before them."""
    if x.ndim == lead and not x.dtype.is_floating:
        return "tokens"
    return x.shape[-1] if x.ndim else None


def build(wiring: BlockWiring, features: Any) -> None:
    """Check the shapes, for so many features."""
    features = wiring.features if features is None else features
    if features is None:
        raise WiringError(
            f"{type(wiring).__name__} is not built: say how many features the input has, as in "
            "build(16)"
        )
    like = next((p for p in wiring.parameters() if p.dtype.is_floating), None)
    features = by_name(wiring, named(wiring.inputs, features))
    _build(wiring, dict.fromkeys(wiring.inputs, like), features)


def named(inputs: Sequence[str], features: Any) -> dict[str, Any]:
    """Features by the names of the inputs; a number alone is that of each."""
    return dict(features) if isinstance(features, Mapping) else dict.fromkeys(inputs, features)


def _build(wiring: BlockWiring, likes: Mapping[str, Any], features: Any) -> None:
    """Run each block once, with zeros, and keep what is found."""
    wiring.widths = {}
    plan = wiring.plan
    examples = {name: _example(features[name], likes[name]) for name in wiring.inputs}
    try:
        with _shapes.unnoticed(wiring):
            found = _shapes.trace(wiring, examples)
            _make_gates(wiring, found)
            wiring.widths = {name: y.shape[-1] if y.ndim else 0 for name, y in found.items()}
            if plan.loops:  # which so far ran as if they were none
                _running.sequence(wiring, examples, None, None)
    except BaseException:
        wiring.widths = {}
        raise
    wiring.features = dict(features)


def _example(width: Any, like: Tensor | None) -> Tensor:
    """Zeros of batch 1 and time 2."""
    if width == "tokens":
        return _flow.zeros((1, 2), like).astype("int64")
    return _flow.zeros((1, 2, width), like)


def _make_gates(wiring: BlockWiring, found: Values) -> None:
    """One parameter a block at which gates meet, (connections, features)."""
    gates = {}
    for name, edges in wiring.plan.into.items():
        if wiring.rule(name) != "gate" or len(edges) < 2:
            continue
        like = found[edges[0].source]
        shape = (len(edges), like.shape[-1])
        old = wiring.gates.get(name)
        if old is None or old.shape != shape:
            old = Parameter(_flow.zeros(shape, like), decay=False, name=f"gates.{name}")
        gates[name] = old
    wiring.gates = gates
