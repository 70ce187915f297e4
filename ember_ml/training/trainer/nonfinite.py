"""Detection of NaN and infinite values in a batch, and the state to which a trainer rolls back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.errors import EmberError
from ember_ml._core.tensor import EmberTensor, Tensor

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer

SHOWN = 5
"""Maximum number of names or indices in a message."""


class NonFiniteError(EmberError, FloatingPointError):
    """Raised before an update if the loss or a gradient is NaN or infinite.

    Parameters, buffers, optimizer state and averages are those before the batch.

    Attributes:
        step: Number of the step.
        parameters: Names of the parameters whose values, or gradients, are not finite.
        indices: Dataset indices of the examples with values that are not finite, or of all
            examples of the batch if its values are finite; None if the loader does not know them.
    """

    def __init__(
        self,
        message: str,
        step: int,
        parameters: Sequence[str] = (),
        indices: Sequence[int] | None = None,
    ) -> None:
        self.step = step
        self.parameters = list(parameters)
        self.indices = None if indices is None else list(indices)
        super().__init__(message)


class NonFiniteWarning(UserWarning):
    """A batch was skipped because its loss or a gradient is NaN or infinite."""


class BatchPlace(NamedTuple):
    """Where a batch comes from."""

    epoch: int
    number: int | None
    """Number of the batch in the epoch, from 0."""
    indices: Sequence[int] | None
    """Dataset indices of its examples."""


def explain(
    step: int,
    loss: float,
    batch: object,
    place: BatchPlace,
    parameters: Mapping[str, Tensor],
    gradients: Callable[[], Mapping[str, Tensor]],
    is_elsewhere: bool = False,
) -> NonFiniteError:
    """Return the error for a batch, which names the non-finite values.

    Args:
        step: Number of the step.
        loss: Loss of the batch.
        batch: The batch.
        place: Where the batch comes from.
        parameters: Values of the parameters by name, before the step.
        gradients: Function that returns the gradients by name.
        is_elsewhere: Whether the loss is finite in this process, but not in another one.
    """
    indices = place.indices
    names: list[str] = []
    rows, leaves = _leaves(batch, indices)
    if leaves:
        reason = f"not finite in this batch: {_listed(leaves)}"
        indices = rows if indices is not None else None
    elif empty := _empty(batch):
        reason = f"the batch has no examples: {_listed(empty)}"
    elif names := not_finite(parameters):
        reason = f"not finite: the values of {_listed(names)}"
    elif is_elsewhere:
        reason = "this process's part of the batch is finite: see the message of another process"
    elif loss != loss or abs(loss) == float("inf"):
        reason = "the batch and all parameters are finite: the model or the loss overflows"
    elif names := not_finite(gradients()):
        reason = f"not finite: the gradients of {_listed(names)}"
    else:
        reason = "the norm of the gradients overflows"
    message = (
        f"the loss is {loss} at step {step} in {_described(place)}; {reason}. No parameter was "
        "changed. Correct the data, use a lower learning rate or clip_norm=1.0, or set "
        "on_nonfinite='skip'"
    )
    return NonFiniteError(message, step, names, indices)


def not_finite(tensors: Mapping[str, Tensor]) -> list[str]:
    """Return the names of the tensors with NaN or infinite elements."""
    return [name for name, x in tensors.items() if not bool(ops.isfinite(x).all())]


def _leaves(batch: object, indices: Sequence[int] | None) -> tuple[list[int], list[str]]:
    """Return the dataset indices and a description of the leaves that are not finite."""
    leaves, structure = tree.flatten(batch)
    rows: set[int] = set()
    described = []
    for name, leaf in zip(_names(batch, structure), leaves, strict=True):
        if not isinstance(leaf, EmberTensor) or leaf.dtype.kind not in ("float", "complex"):
            continue
        wrong = ops.logical_not(ops.isfinite(leaf))
        if not bool(wrong.any()):
            continue
        if leaf.ndim and indices is not None and leaf.shape[0] == len(indices):
            flags = ops.any(ops.reshape(wrong, (leaf.shape[0], -1)), axis=1).tolist()
            bad = [int(index) for index, flag in zip(indices, flags, strict=True) if flag]
            rows.update(bad)
            described.append(f"{name} (dataset index {_listed([str(x) for x in sorted(bad)])})")
        else:
            described.append(name)
    return sorted(rows), described


def _empty(batch: object) -> list[str]:
    """Return a description of the leaves without elements."""
    leaves, structure = tree.flatten(batch)
    return [
        f"{name} of shape {leaf.shape}"
        for name, leaf in zip(_names(batch, structure), leaves, strict=True)
        if isinstance(leaf, EmberTensor) and not leaf.size
    ]


def _names(batch: object, structure: tree.Structure) -> list[str]:
    """Return names of the leaves: the parts of a batch, and their places within them."""
    if isinstance(batch, (tuple, list)) and len(batch) in (2, 3):
        parts = zip(("inputs", "targets", "mask"), structure.parts, strict=False)
        return [f"{part}{path}" for part, inner in parts for path in tree.paths(inner)]
    if isinstance(batch, Mapping):
        keys = zip(structure.keys, structure.parts, strict=True)
        return [f"{key}{path}" for key, inner in keys for path in tree.paths(inner)]
    return [f"batch{path}" for path in tree.paths(structure)]


def _described(place: BatchPlace) -> str:
    if place.number is None:
        return "a batch"
    text = f"batch {place.number} of epoch {place.epoch}"
    if place.indices is None:
        return text
    return f"{text} (dataset indices {_listed([str(index) for index in place.indices])})"


def _listed(names: list[str]) -> str:
    """Return the first names and the number of others."""
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown


class Snapshot:
    """Parameters, buffers, optimizer state and average of a trainer.

    Args:
        trainer: The trainer.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.step = trainer.step
        self._model = trainer.model.state_dict()
        if trainer.parallel is not None:  # which may update the values in place
            self._model = {name: ops.copy(x) for name, x in self._model.items()}
        self._optimizer = trainer.optimizer.state_dict()
        self._ema = None if trainer.ema is None else trainer.ema.state_dict()

    def is_finite(self) -> bool:
        """Return whether all floating-point values of the model are finite."""
        floats = {name: x for name, x in self._model.items() if x.dtype.is_floating}
        return not not_finite(floats)

    def restore(self, trainer: Trainer) -> None:
        """Restore the values; the numbers of steps and epochs and the data's position stay.

        Args:
            trainer: The trainer.
        """
        trainer.model.load_state_dict(self._model)
        trainer.optimizer.load_state_dict(self._optimizer)
        if trainer.ema is not None and self._ema is not None:
            trainer.ema.load_state_dict(self._ema)
