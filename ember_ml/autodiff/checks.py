"""What a tape is asked for, checked and brought into lists."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor


def targets_of(target: Any, one: str = "") -> list[Tensor]:
    """The targets of a derivative; only one for a method that is named."""
    targets = tree.leaves_of(target)
    for x in targets:
        if not isinstance(x, EmberTensor):
            raise ArgumentTypeError(
                f"a target must be a tensor that was computed on the tape, not {x!r}"
            )
    if one and len(targets) != 1:
        raise ArgumentError(f"{one} takes one target, not {len(targets)}")
    return targets


def check_sources(sources: list[Any]) -> None:
    """Refuse what is no tensor."""
    for at, x in enumerate(sources):
        if not isinstance(x, EmberTensor):
            raise ArgumentTypeError(f"source {at} must be a tensor, not {type(x).__name__}")


def check_unconnected(value: str) -> None:
    """Refuse a word that means nothing."""
    if value not in ("none", "zero"):
        raise ArgumentError(f"Unknown value for unconnected_gradients: {value!r}")


def cotangents_of(targets: list[Tensor], given: Any) -> list[Tensor]:
    """The factors on the targets: ones, unless given."""
    if given is None:
        return [ops.ones_like(x) for x in targets]
    factors = tree.leaves_of(given)
    if len(factors) != len(targets):
        raise ArgumentError(
            f"output_gradients: {len(factors)} given for {len(targets)} targets; give one for each"
        )
    result = []
    for at, (g, x) in enumerate(zip(factors, targets, strict=True)):
        if g is None:
            g = ops.ones_like(x)
        elif not isinstance(g, EmberTensor):
            g = convert_to_tensor(g, dtype=x.dtype, backend=x._backend)
        if g.shape != x.shape:
            raise ShapeError(
                f"output_gradients: the shape {g.shape} for target {at} of the shape {x.shape}"
            )
        result.append(g if g.dtype is x.dtype else ops.astype(g, x.dtype))
    return result
