"""Reruns of recorded ops with other values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ember_ml._core import recording, tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml._core.types import Tree
from ember_ml.autodiff.causal import traversal
from ember_ml.autodiff.causal.attribution import Method, attribute
from ember_ml.autodiff.causal.events import Event
from ember_ml.autodiff.causal.operations import OperationRecord
from ember_ml.autodiff.extraction import extract


def reconstruct(
    record: OperationRecord, target: Tensor, sources: Tree[Tensor]
) -> Callable[..., Tensor]:
    """Return the function from values of the sources to the target, by the recorded ops.

    Args:
        record: The recorded ops.
        target: Recorded result.
        sources: Tensors to replace. All other values stay as recorded.
    """
    given = tree.leaves_of(sources)
    events = traversal.ancestors(record, target, None)[::-1]
    steps = [(event.tick, event.step) for event in events if event.step is not None]
    if not steps:
        raise ArgumentError(
            "reconstruct_graph: the target was not computed by a recorded op, or the event was "
            "dropped"
        )
    program, _, constants = extract(steps, given, [target], {})

    def function(*inputs: Tensor) -> Tensor:
        if len(inputs) != len(given):
            raise ArgumentError(
                f"reconstruct_graph: got {len(inputs)} values for {len(given)} sources"
            )
        return program.run(list(inputs), constants, recorded=bool(recording.tapes()))[0]

    return function


def influence(
    record: OperationRecord,
    a: object,
    b: object,
    method: Method | None,
    output: int | tuple[int, ...] | None,
    axis: int | Sequence[int] | None,
    baseline: TensorLike | None,
    steps: int,
) -> Tensor:
    """Return the influence of each part of a recorded tensor on an element of another one.

    The arguments are those of `CausalContext.influence`.
    """
    source, target = _tensor(a), _tensor(b)
    if not any(id(source._data) in event.values for event in record.events):
        raise ArgumentError(
            f"influence: no recorded op reads the source of shape {source.shape}; compute the "
            "result inside the `with` block of the tape, from a watched tensor"
        )
    rerun = reconstruct(record, target, [source])
    if output is None and target.size != 1:
        raise ArgumentError(
            f"influence: the result has shape {target.shape}; name one element, output=(...)"
        )
    index = (0,) * target.ndim if output is None else output

    def function(x: Tensor) -> Tensor:
        return rerun(x)[index]

    return attribute(function, source, method, baseline, axis, steps)


def _tensor(value: object) -> Tensor:
    """Return a tensor, or the result of an event."""
    if isinstance(value, EmberTensor):
        return value
    if isinstance(value, Event) and len(value.outputs) == 1:
        return value.outputs[0]
    raise ArgumentTypeError(
        f"influence: expected two spikes, or tensors and ops with one result, not "
        f"{type(value).__name__}"
    )
