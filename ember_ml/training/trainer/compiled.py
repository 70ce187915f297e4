"""A whole step as one compiled function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml._core import recording, runtime
from ember_ml._core.dtype import float32
from ember_ml._core.tensor import Tensor, wrap
from ember_ml.autodiff.transforms.compiling import CompileCache
from ember_ml.training.optimizer import Optimizer
from ember_ml.training.trainer.gradients import Gradients

Clip = Callable[[list[Tensor | None]], list[Tensor | None]]


class CompiledStep:
    """Gradients, clipping and update, compiled together.

    Args:
        gradients: of what.
        optimizer: of the same parameters.
        clip: limits the gradients.
    """

    def __init__(self, gradients: Gradients, optimizer: Optimizer, clip: Clip) -> None:
        self._gradients = gradients
        self._optimizer = optimizer
        self._clip = clip
        self._backend = gradients.parameters[0]._backend
        self._scalars: list[tuple[float, Any]] = []
        self._variants = CompileCache(self._flat, {})

    def suits(self) -> bool:
        """Whether it can be used: all parameters learn, and no tape wants to see the ops."""
        every = all(parameter.trainable for parameter in self._gradients.parameters)
        return every and not recording.tapes()

    def __call__(self, batch: Any) -> Tensor:
        """Change the parameters and buffers; the loss before."""
        optimizer, gradients = self._optimizer, self._gradients
        state = optimizer.state_arrays()
        scalars = self._as_arrays(optimizer.scalars())
        variables = [x._data for x in (*gradients.parameters, *gradients.buffers)]
        self._counts = len(gradients.parameters), len(gradients.buffers), len(state)
        arrays = [*variables, *state, *scalars]
        (loss, *rest), _ = self._variants(self._backend, arrays, batch, gradients.mode())
        params, buffers, state = self._split(rest)[:3]
        for buffer, data in zip(gradients.buffers, buffers, strict=True):
            buffer.become(wrap(data, self._backend))
        optimizer.commit(params, state)
        return wrap(loss, self._backend)

    def _as_arrays(self, scalars: list[float]) -> list[Any]:
        """The numbers as arrays, those of the last step where they are the same."""
        last = dict(enumerate(self._scalars))
        self._scalars = [
            last[at] if at in last and last[at][0] == value else (value, self._array(value))
            for at, value in enumerate(scalars)
        ]
        return [array for _, array in self._scalars]

    def _array(self, value: float) -> Any:
        like = self._gradients.parameters[0]
        native = runtime.native_dtype(self._backend, float32)
        return runtime.LOADED[self._backend].scalar(value, native, like.device)

    def _split(self, parts: list[Any]) -> list[list[Any]]:
        """The parameters', the buffers' and the state's part, and the rest."""
        ends = [sum(self._counts[: at + 1]) for at in range(3)]
        return [parts[a:b] for a, b in zip([0, *ends], [*ends, len(parts)], strict=True)]

    def _flat(self, tensors: list[Tensor], batch: Any) -> list[Tensor]:
        params, buffers, state, scalars = self._split(tensors)
        found = self._gradients.find(params, buffers, batch)
        new_params, new_state = self._optimizer.update(
            _natives(params),
            _natives(self._clip(found.gradients)),
            _natives(state),
            _natives(scalars),
        )
        made = [wrap(data, self._backend) for data in (*new_params, *new_state)]
        count = len(new_params)
        return [found.loss, *made[:count], *found.buffers, *made[count:]]


def _natives(tensors: Sequence[Any]) -> list[Any]:
    return [x._data for x in tensors]
