"""The gradients of a batch, compiled where that is wanted."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core import recording, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import EmberTensor, Tensor, wrap
from ember_ml.autodiff.transforms.compiling import CompileCache
from ember_ml.nn.functional import current_values, differentiate, substitute
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer, Parameter

Compute = Callable[[Any], tuple[Tensor, Any]]


class Found(NamedTuple):
    """What a batch gives."""

    loss: Tensor
    gradients: list[Tensor | None]
    """In the order of the parameters; None of those that are frozen."""
    buffers: list[Tensor]


class Gradients:
    """The loss of a batch and its gradients for some parameters.

    Args:
        compute: batch -> (loss, outputs), through the model.
        parameters: what to differentiate for.
        buffers: what the model may change as it runs.
        modules: the model and all inside of it, which train or not.
        precision: the dtype in which the model computes.
        compiled: whether the framework compiles it.
    """

    def __init__(
        self,
        compute: Compute,
        parameters: Sequence[Parameter],
        buffers: Sequence[Buffer],
        modules: Sequence[Module],
        precision: str = "float32",
        compiled: bool = False,
    ) -> None:
        self.parameters = list(parameters)
        self.buffers = list(buffers)
        self._modules = list(modules)
        self._compute = compute
        self._precision = precision
        self._variants = CompileCache(self._flat, {}) if compiled else None

    def __call__(self, batch: Any, scale: float | None = None) -> Found:
        """The loss, its gradients (times `scale`, if there is one) and what the buffers became."""
        if self._variants is None or recording.tapes():
            return self.find(
                current_values(self.parameters), current_values(self.buffers), batch, scale
            )
        backend = self.parameters[0]._backend
        arrays = [x._data for x in (*self.parameters, *self.buffers)]
        if scale is not None:  # an array: it changes, and the compiled code must not
            arrays.append(convert_to_tensor(scale, dtype="float32", backend=backend)._data)
        made, _ = self._variants(backend, arrays, batch, self.mode())
        loss, *rest = [wrap(data, backend) for data in made]
        chosen = self._chosen()
        grads = dict(zip(chosen, rest, strict=False))
        every = [grads.get(at) for at in range(len(self.parameters))]
        return Found(loss, every, rest[len(chosen) :])

    def mode(self) -> tuple[bool, ...]:
        """What of the model, beside its values, a gradient depends on."""
        flags = [module.training for module in self._modules]
        return (*flags, *[parameter.trainable for parameter in self.parameters])

    def _chosen(self) -> list[int]:
        return [at for at, parameter in enumerate(self.parameters) if parameter.trainable]

    def _flat(self, tensors: list[Tensor], batch: Any) -> list[Tensor]:
        """The same as a function of lists of tensors."""
        first, second = len(self.parameters), len(self.parameters) + len(self.buffers)
        scale = tensors[second] if len(tensors) > second else None
        found = self.find(tensors[:first], tensors[first:second], batch, scale)
        grads = [g for g in found.gradients if g is not None]
        return [found.loss, *grads, *found.buffers]

    def find(
        self, values: list[Tensor], buffers: list[Tensor], batch: Any, scale: Any = None
    ) -> Found:
        """The same as a function of the values of parameters and buffers."""
        batch = self._cast_nest(batch)
        chosen = self._chosen()
        frozen = [at for at, x in enumerate(self.parameters) if not x.trainable]
        still = [self._cast(values[at]) for at in frozen]

        _, loss, found, changed = differentiate(
            functools.partial(self._losses, batch, frozen, still, scale),
            [self.parameters[at] for at in chosen],
            [values[at] for at in chosen],
            self.buffers,
            buffers,
            self._cast,
        )
        grads: list[Tensor | None] = [None] * len(values)
        for at, g in zip(chosen, found, strict=True):
            grads[at] = g
        return Found(loss, grads, changed)

    def _losses(
        self, batch: Any, frozen: list[int], still: list[Tensor], scale: Any
    ) -> tuple[Tensor, Tensor]:
        """Return the scaled loss, which is differentiated, and the loss."""
        with substitute([self.parameters[at] for at in frozen], still):
            loss, _ = self._compute(batch)
        loss = ops.astype(loss, "float32") if self._precision != "float32" else loss
        return (loss if scale is None else loss * scale), loss

    def _cast(self, x: Tensor) -> Tensor:
        wrong = self._precision != "float32" and x.dtype.kind == "float"
        return ops.astype(x, self._precision) if wrong else x

    def _cast_nest(self, batch: Any) -> Any:
        if self._precision == "float32":
            return batch
        return tree.map_leaves(
            lambda leaf: self._cast(leaf) if isinstance(leaf, EmberTensor) else leaf, batch
        )
