"""Checks of the arguments of a tape's methods."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor


def flatten_targets(target: object) -> list[Tensor]:
    """Return the targets of a derivative as a list."""
    targets = tree.leaves_of(target)
    for x in targets:
        if not isinstance(x, EmberTensor):
            raise ArgumentTypeError(f"a target must be a tensor computed on the tape, not {x!r}")
    return targets


def single_target(target: object, method: str) -> Tensor:
    """Return the only target of a method."""
    targets = flatten_targets(target)
    if len(targets) != 1:
        raise ArgumentError(f"{method} takes one target, not {len(targets)}")
    return targets[0]


def flatten_sources(sources: object) -> list[Tensor]:
    """Return the sources of a derivative as a list."""
    tensors = tree.leaves_of(sources)
    for index, x in enumerate(tensors):
        if not isinstance(x, EmberTensor):
            raise ArgumentTypeError(f"source {index} must be a tensor, not {type(x).__name__}")
    return tensors


def check_unconnected(value: str) -> None:
    """Raise an error if `unconnected_gradients` is not "none" or "zero"."""
    if value not in ("none", "zero"):
        raise ArgumentError(f"Unknown value for unconnected_gradients: {value!r}")


def flatten_cotangents(targets: list[Tensor], output_gradients: object) -> list[Tensor]:
    """Return the gradients of the targets as a list; ones by default."""
    if output_gradients is None:
        return [ops.ones_like(x) for x in targets]
    given = tree.leaves_of(output_gradients)
    if len(given) != len(targets):
        raise ArgumentError(
            f"output_gradients: got {len(given)} gradients for {len(targets)} targets; "
            "pass one per target"
        )
    cotangents = []
    for index, (g, x) in enumerate(zip(given, targets, strict=True)):
        if g is None:
            g = ops.ones_like(x)
        elif not isinstance(g, EmberTensor):
            g = convert_to_tensor(g, dtype=x.dtype, backend=x._backend)
        if g.shape != x.shape:
            raise ShapeError(
                f"output_gradients: the shape {g.shape} must equal the shape {x.shape} of "
                f"target {index}"
            )
        cotangents.append(g if g.dtype is x.dtype else ops.astype(g, x.dtype))
    return cotangents
