"""A whole training step in one compiled program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ember_ml import ops
from ember_ml._core import recording, runtime
from ember_ml._core.dtype import float32
from ember_ml._core.tensor import Tensor, native_arrays
from ember_ml.autodiff.transforms.compiling import CompileCache
from ember_ml.backend.interface import Array
from ember_ml.training.optimizer import Optimizer
from ember_ml.training.trainer.gradients import Gradients, LossGradients

T = TypeVar("T")


class CompiledStep:
    """A whole step, compiled: gradients, clipping and update.

    The program returns the old values of parameters, buffers and optimizer state if the loss or the
    norm of the gradients is not finite.

    Args:
        gradients: The loss and its gradients.
        optimizer: Optimizer of the same parameters.
        clip: Function that clips gradients of a given norm.
    """

    def __init__(
        self,
        gradients: LossGradients,
        optimizer: Optimizer,
        clip: Callable[[Gradients, Tensor], Gradients],
    ) -> None:
        self._gradients = gradients
        self._optimizer = optimizer
        self._clip = clip
        self._backend = gradients.parameters[0].backend
        self._scalars: list[tuple[float, Array]] = []
        self._compiled = CompileCache(self._flat, {})

    def is_applicable(self) -> bool:
        """Return whether all parameters are trainable, no tape records and `step` is inherited."""
        if self._optimizer.overrides_step() or recording.tapes():
            return False
        return all(parameter.trainable for parameter in self._gradients.parameters)

    def __call__(self, batch: object) -> tuple[Tensor, Tensor, object]:
        """Update parameters and buffers; return the loss, the norm of the gradients, the outputs.

        The optimizer does not count the step yet: that depends on whether both are finite.
        """
        optimizer, gradients = self._optimizer, self._gradients
        state = optimizer.state_arrays()
        scalars = self._as_arrays(optimizer.scalars())
        variables = native_arrays((*gradients.parameters, *gradients.buffers))
        self._counts = len(gradients.parameters), len(gradients.buffers), len(state)
        arrays = [*variables, *state, *scalars]
        mode = (*gradients.mode(), *optimizer.lags())
        results, template = self._compiled(self._backend, arrays, batch, mode)
        loss, norm, *rest = results
        params, buffers, state, others = self._split(rest)
        for buffer, data in zip(gradients.buffers, buffers, strict=True):
            buffer.become(Tensor.from_native(data, self._backend))
        optimizer.commit(params, state, count=False)
        loss_tensor, norm_tensor = (Tensor.from_native(x, self._backend) for x in (loss, norm))
        outputs = None
        if others:
            tensors = [Tensor.from_native(data, self._backend) for data in results]
            outputs = template.fill(tensors)[1]
        return loss_tensor, norm_tensor, outputs

    def _as_arrays(self, scalars: list[float]) -> list[Array]:
        """Return numbers as 0-d arrays, reusing those of the last step that are the same."""
        last = dict(enumerate(self._scalars))
        self._scalars = [
            last[at] if at in last and last[at][0] == value else (value, self._array(value))
            for at, value in enumerate(scalars)
        ]
        return [array for _, array in self._scalars]

    def _array(self, value: float) -> Array:
        like = self._gradients.parameters[0]
        native = runtime.native_dtype(self._backend, float32)
        return runtime.LOADED[self._backend].scalar(value, native, like.device)

    def _split(self, parts: list[T]) -> list[list[T]]:
        """Split a flat list into parameters, buffers, state and the rest."""
        ends = [sum(self._counts[: at + 1]) for at in range(3)]
        return [parts[a:b] for a, b in zip([0, *ends], [*ends, len(parts)], strict=True)]

    def _flat(self, tensors: list[Tensor], batch: object) -> tuple[list[Tensor], object]:
        params, buffers, state, scalars = self._split(tensors)
        result = self._gradients.differentiate(params, buffers, batch)
        clipped = self._clip(result.gradients, result.norm)
        gradients = [g for g in clipped if g is not None]
        new_params, new_state = self._optimizer.update(
            native_arrays(params),
            native_arrays(gradients),
            native_arrays(state),
            native_arrays(scalars),
        )
        new = [Tensor.from_native(data, self._backend) for data in (*new_params, *new_state)]
        count = len(new_params)
        new[count:count] = result.buffers
        finite = ops.logical_and(ops.isfinite(result.loss), ops.isfinite(result.norm))
        old = (*params, *buffers, *state)
        selected = [ops.where(finite, x, y) for x, y in zip(new, old, strict=True)]
        return [result.loss, result.norm, *selected], result.outputs
