"""Inputs of a block wiring: names, checks, and building for their widths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.wirings import _flow, _plan, _running, _shapes
from ember_ml.nn.wirings._fields import Features
from ember_ml.nn.wirings.base import WiringError

if TYPE_CHECKING:
    from ember_ml.nn.wirings.blocks import BlockWiring

T = TypeVar("T")
Values = dict[str, Tensor]
Width = int | str | None


def by_name(wiring: BlockWiring, x: T | Mapping[str, T]) -> dict[str, T]:
    """Return the inputs by name."""
    owner, names = type(wiring).__name__, wiring.inputs
    if not isinstance(x, Mapping):
        if len(names) > 1:
            raise WiringError(f"{owner}: pass a dict of the inputs {_shapes.joined(names)}")
        return {names[0]: x}
    _plan.check_known(f"{owner}: inputs", x, names)
    missing = [name for name in names if name not in x]
    if missing:
        raise WiringError(f"{owner}: the input {missing[0]!r} is missing")
    return {name: x[name] for name in names}


def check_mask(wiring: BlockWiring, mask: Tensor | None, given: Values) -> None:
    """Raise a ShapeError if the mask does not have the shape of the inputs."""
    shape = next(iter(given.values())).shape[:2]
    if mask is not None and mask.shape != shape:
        raise ShapeError(
            f"{type(wiring).__name__}: expected a mask of shape (batch, time) = {shape}, got "
            f"{mask.shape}"
        )


def prepare(wiring: BlockWiring, given: Values, lead: int) -> None:
    """Build the wiring if necessary, and check the shapes of the inputs."""
    if not wiring.is_built:
        widths = {name: _width(x, lead) for name, x in given.items()}
        _build(wiring, given, wiring.features or widths)
    for name, x in given.items():
        wanted = wiring.features[name] if wiring.features else None
        if _width(x, lead) != wanted or x.ndim != lead + (wanted != "tokens"):
            axes = ["batch", "time"][:lead] + ([] if wanted == "tokens" else [str(wanted)])
            raise ShapeError(
                f"{type(wiring).__name__}: expected shape ({', '.join(axes)}) for the input "
                f"{name!r}, got {x.shape}"
            )


def _width(x: Tensor, lead: int) -> Width:
    """Return the number of features after `lead` axes; "tokens" for integers without features."""
    if x.ndim == lead and not x.dtype.is_floating:
        return "tokens"
    return x.shape[-1] if x.ndim else None


def build(wiring: BlockWiring, features: Features | None) -> None:
    """Check the shapes for a number of features of the inputs."""
    features = wiring.features if features is None else features
    if features is None:
        raise WiringError(
            f"{type(wiring).__name__} is not built: pass the number of input features, as in "
            "build(16)"
        )
    like = next((p for p in wiring.parameters() if p.dtype.is_floating), None)
    widths: dict[str, Width] = by_input(wiring.inputs, features)
    widths = by_name(wiring, widths)
    _build(wiring, dict.fromkeys(wiring.inputs, like), widths)


def by_input(inputs: Sequence[str], features: Features) -> dict[str, Width]:
    """Return the numbers of features by input; a single number applies to each."""
    return dict(features) if isinstance(features, Mapping) else dict.fromkeys(inputs, features)


def _build(
    wiring: BlockWiring, likes: Mapping[str, Tensor | None], features: Mapping[str, Width]
) -> None:
    """Run each block once with zeros, and store the widths of the outputs."""
    wiring.widths = {}
    plan = wiring.plan
    examples = {name: _example(features[name], likes[name]) for name in wiring.inputs}
    try:
        with _shapes.without_side_effects(wiring):
            outputs = _shapes.trace(wiring, examples)
            _create_gates(wiring, outputs)
            wiring.widths = {name: y.shape[-1] if y.ndim else 0 for name, y in outputs.items()}
            if plan.loops:  # trace ran them as if they were not loops
                _running.sequence(wiring, examples, None, None)
    except BaseException:
        wiring.widths = {}
        raise
    wiring.features = dict(features)


def _example(width: Width, like: Tensor | None) -> Tensor:
    """Return zeros of batch 1 and time 2."""
    if width == "tokens":
        return _flow.zeros((1, 2), like).astype("int64")
    if not isinstance(width, int):
        raise ShapeError("the inputs of a wiring need a batch axis and a time axis")
    return _flow.zeros((1, 2, width), like)


def _create_gates(wiring: BlockWiring, outputs: Values) -> None:
    """Create a parameter of shape (connections, features) for each block with gates."""
    gates = {}
    for name, edges in wiring.plan.into.items():
        if wiring.rule(name) != "gate" or len(edges) < 2:
            continue
        like = outputs[edges[0].source]
        shape = (len(edges), like.shape[-1])
        gate = wiring.gates.get(name)
        if gate is None or gate.shape != shape:
            gate = Parameter(_flow.zeros(shape, like), decay=False, name=f"gates.{name}")
        gates[name] = gate
    wiring.gates = gates
