"""A whole training step in one compiled program, and the policy when to compile."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from ember_ml import ops
from ember_ml._core import recording, runtime, tree
from ember_ml._core.dtype import float32
from ember_ml._core.tensor import EmberTensor, Tensor, native_arrays, wrap_all
from ember_ml.autodiff.transforms.compiling import CompileCache, Template
from ember_ml.backend.interface import Array
from ember_ml.training.clipping import global_norm
from ember_ml.training.optimizer import Optimizer
from ember_ml.training.optimizer.plan import kernels
from ember_ml.training.trainer.gradients import Gradients, LossGradients

T = TypeVar("T")

HELD = 2**24
"""Maximum total size of the parameters, in elements, for which a step keeps the old arrays."""
REPEATS = 50
"""Number of uncompiled batches of the same shapes before the first compiled one."""
REMAINING = 200
"""Number of steps that must be left, if the end is known, for compilation to pay off."""


class CompiledStep:
    """A whole step, compiled: gradients, clipping and update.

    Parameters, buffers and optimizer state change only if the loss and the norm of the gradients
    are finite. For small models the old arrays stay until both are known. For large ones, whose
    memory the new arrays reuse, the program selects between the old and the new values.

    Args:
        gradients: The loss and its gradients.
        optimizer: Optimizer of the same parameters.
        clip: Function that clips gradients of a given norm.
        clips_norm: Whether it uses the norm.
    """

    def __init__(
        self,
        gradients: LossGradients,
        optimizer: Optimizer,
        clip: Callable[[Gradients, Tensor | None], Gradients],
        clips_norm: bool,
    ) -> None:
        self._gradients = gradients
        self._optimizer = optimizer
        self._clip = clip
        self._clips_norm = clips_norm
        self._backend = gradients.parameters[0].backend
        self._kernels = kernels(self._backend)
        self._evaluate = runtime.load(self._backend).autodiff.evaluate
        self._selects = sum(parameter.size for parameter in gradients.parameters) > HELD
        self._scalar_dtype = runtime.native_dtype(self._backend, float32)
        self._scalars: list[tuple[float, Array]] = []
        self._compiled = CompileCache(self._flat, {})

    def is_applicable(self) -> bool:
        """Return whether all parameters are trainable, no tape records and `step` is inherited.

        A compiled step would unpack all of an optimizer's 8-bit state at once.
        """
        if self._optimizer.overrides_step() or recording.tapes():
            return False
        if not self._optimizer.storage.is_plain:
            return False
        return all(parameter.trainable for parameter in self._gradients.parameters)

    def __call__(self, batch: object) -> tuple[float, float, object, dict[str, Tensor]]:
        """Update everything if the loss and the norm of the gradients are finite.

        Returns:
            The loss, the norm, the model's outputs, None if they are not needed, and the named
            losses.
        """
        arrays, template = self._run(batch)
        params, buffers, state, (loss, *rest) = self._split(arrays)
        if self._selects:
            self._store(params, buffers, state)  # the program may overwrite the old arrays
        self._evaluate(arrays)
        parts = len(template.structure.parts[1].parts)
        value = float(Tensor.from_native(loss, self._backend))
        norm = self._kernels.read_norm(rest[:parts])
        if math.isfinite(value) and math.isfinite(norm):
            if not self._selects:
                self._store(params, buffers, state)
            self._optimizer.count_step()
        if len(rest) == parts:
            return value, norm, None, {}
        _, _, outputs, terms = template.fill(wrap_all(arrays, self._backend))
        return value, norm, outputs, terms

    def _run(self, batch: object) -> tuple[list[Array], Template]:
        """Return the results of the program, not yet evaluated, and their template."""
        optimizer, gradients = self._optimizer, self._gradients
        state = optimizer.state_arrays()
        scalars = self._as_arrays(optimizer.scalars())
        variables = native_arrays((*gradients.parameters, *gradients.buffers))
        self._counts = len(gradients.parameters), len(gradients.buffers), len(state)
        mode = (*gradients.mode(), *optimizer.lags())
        arrays = [*variables, *state, *scalars]
        results, template = self._compiled(self._backend, arrays, batch, mode)
        return list(results), template

    def _store(self, params: list[Array], buffers: list[Array], state: list[Array]) -> None:
        for buffer, data in zip(self._gradients.buffers, buffers, strict=True):
            buffer.become(Tensor.from_native(data, self._backend))
        self._optimizer.commit(params, state, count=False)

    def _as_arrays(self, scalars: list[float]) -> list[Array]:
        """Return numbers as 0-d arrays, reusing those of the last step that are the same."""
        if len(self._scalars) != len(scalars):
            self._scalars = [(math.nan, None)] * len(scalars)
        scalar, dtype = runtime.LOADED[self._backend].scalar, self._scalar_dtype
        device = self._gradients.parameters[0].device
        self._scalars = [
            old if old[0] == value else (value, scalar(value, dtype, device))
            for old, value in zip(self._scalars, scalars, strict=True)
        ]
        return [array for _, array in self._scalars]

    def _split(self, parts: list[T]) -> list[list[T]]:
        """Split a flat list into parameters, buffers, state and the rest."""
        ends = [sum(self._counts[: at + 1]) for at in range(3)]
        return [parts[a:b] for a, b in zip([0, *ends], [*ends, len(parts)], strict=True)]

    def _flat(
        self, tensors: list[Tensor], batch: object
    ) -> tuple[list[Tensor], list[Tensor], object, dict[str, Tensor]]:
        params, buffers, state, scalars = self._split(tensors)
        result = self._gradients.differentiate(params, buffers, batch)
        norm = global_norm(result.gradients) if self._selects or self._clips_norm else None
        clipped = self._clip(result.gradients, norm)
        gradients = [g for g in clipped if g is not None]
        new_params, new_state = self._optimizer.update(
            native_arrays(params),
            native_arrays(gradients),
            native_arrays(state),
            native_arrays(scalars),
        )
        new = [*wrap_all(new_params, self._backend), *result.buffers]
        new += wrap_all(new_state, self._backend)
        if self._selects and norm is not None:
            finite = ops.logical_and(ops.isfinite(result.loss), ops.isfinite(norm))
            old = (*params, *buffers, *state)
            new = [ops.where(finite, x, y) for x, y in zip(new, old, strict=True)]
        parts = self._kernels.norm_parts(result.arrays()) if norm is None else [norm.native]
        norms = wrap_all(parts, self._backend)
        return [*new, result.loss], norms, result.outputs, result.terms


class CompilePolicy:
    """Compiles a step only after batches of the same shapes have repeated, if enough steps remain.

    Compiling takes seconds to a minute, which does not pay off for short runs or changing shapes.

    Args:
        at_once: Whether to compile from the first batch on.
    """

    def __init__(self, at_once: bool) -> None:
        self._at_once = at_once
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._compiled: set[tuple[object, ...]] = set()

    def compiles(self, batch: object, remaining: int | None) -> bool:
        """Return whether to compile the step of a batch.

        Args:
            batch: The batch.
            remaining: Number of steps that are left; None if it is unknown.
        """
        if self._at_once:
            return True
        shapes = shapes_of(batch)
        if shapes in self._compiled:
            return True
        self._seen[shapes] += 1
        pays = self._seen[shapes] > REPEATS and (remaining is None or remaining >= REMAINING)
        if pays:
            self._compiled.add(shapes)
        return pays


def shapes_of(batch: object) -> tuple[object, ...]:
    """Return what the work of a step depends on: shapes and dtypes of the tensors of a batch.

    Args:
        batch: The batch.
    """
    return tuple([_kind(leaf) for leaf in tree.leaves_of(batch)])


def _kind(leaf: object) -> object:
    return (leaf.shape, leaf.dtype.name) if isinstance(leaf, EmberTensor) else type(leaf)
