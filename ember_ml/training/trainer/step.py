"""The step of a trainer: from a batch to updated parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from ember_ml import ops
from ember_ml._core import recording, runtime, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import float32
from ember_ml._core.tensor import EmberTensor, Tensor, native_arrays
from ember_ml.autodiff.transforms.compiling import CompileCache
from ember_ml.backend.interface import Array
from ember_ml.nn._exclusive import exclusive
from ember_ml.nn.functional import current_values, differentiate, substitute
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.training.clipping import clip_by_norm, clip_by_value
from ember_ml.training.optimizer import Optimizer

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer

Compute: TypeAlias = Callable[[object], tuple[Tensor, object]]
"""batch -> (loss, outputs)."""
Gradients: TypeAlias = list[Tensor | None]
"""In the order of the parameters; None for frozen parameters."""
CompletedStep: TypeAlias = tuple[float, Callable[[], dict[str, Tensor]]]
"""The loss, and a function that returns the gradients by name."""

T = TypeVar("T")


class BatchResult(NamedTuple):
    """Loss and gradients of a batch, and the new values of the buffers."""

    loss: Tensor
    gradients: Gradients
    buffers: list[Tensor]


class LossGradients:
    """The loss of a batch and its gradients with respect to parameters, as a function.

    Args:
        compute: Function batch -> (loss, outputs) that runs the model.
        parameters: Parameters to differentiate with respect to.
        buffers: Buffers that the model may update.
        modules: The model and its submodules, whose modes affect the result.
        precision: Dtype in which the model computes.
        compiled: Whether to compile the function.
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
        self._compiled = CompileCache(self._flat, {}) if compiled else None

    def __call__(self, batch: object, scale: float | None = None) -> BatchResult:
        """Return the loss, its gradients and the new values of the buffers.

        Args:
            batch: The batch.
            scale: Factor on the gradients.
        """
        if self._compiled is None or recording.tapes():
            return self.differentiate(
                current_values(self.parameters), current_values(self.buffers), batch, scale
            )
        backend = self.parameters[0].backend
        arrays = native_arrays((*self.parameters, *self.buffers))
        if scale is not None:  # an array: a change does not compile again
            arrays.append(convert_to_tensor(scale, dtype="float32", backend=backend).native)
        results, _ = self._compiled(backend, arrays, batch, self.mode())
        loss, *rest = [Tensor.from_native(data, backend) for data in results]
        trainable = self._trainable()
        grads = dict(zip(trainable, rest, strict=False))
        ordered = [grads.get(at) for at in range(len(self.parameters))]
        return BatchResult(loss, ordered, rest[len(trainable) :])

    def mode(self) -> tuple[bool, ...]:
        """Return the modes of the modules and which parameters are trainable."""
        flags = [module.training for module in self._modules]
        return (*flags, *[parameter.trainable for parameter in self.parameters])

    def _trainable(self) -> list[int]:
        return [at for at, parameter in enumerate(self.parameters) if parameter.trainable]

    def _flat(self, tensors: list[Tensor], batch: object) -> list[Tensor]:
        """Compute the result as a function of flat lists of tensors, for the compiler."""
        first, second = len(self.parameters), len(self.parameters) + len(self.buffers)
        scale = tensors[second] if len(tensors) > second else None
        result = self.differentiate(tensors[:first], tensors[first:second], batch, scale)
        grads = [g for g in result.gradients if g is not None]
        return [result.loss, *grads, *result.buffers]

    def differentiate(
        self,
        values: list[Tensor],
        buffers: list[Tensor],
        batch: object,
        scale: float | Tensor | None = None,
    ) -> BatchResult:
        """Compute the result as a function of the values of parameters and buffers."""
        batch = self._cast_tree(batch)
        trainable = self._trainable()
        frozen = [at for at, x in enumerate(self.parameters) if not x.trainable]
        frozen_values = [self._cast(values[at]) for at in frozen]

        _, loss, gradients, new_buffers = differentiate(
            functools.partial(self._losses, batch, frozen, frozen_values, scale),
            [self.parameters[at] for at in trainable],
            [values[at] for at in trainable],
            self.buffers,
            buffers,
            self._cast,
        )
        grads: Gradients = [None] * len(values)
        for at, g in zip(trainable, gradients, strict=True):
            grads[at] = g
        return BatchResult(loss, grads, new_buffers)

    def _losses(
        self,
        batch: object,
        frozen: list[int],
        frozen_values: list[Tensor],
        scale: float | Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Return the scaled loss, which is differentiated, and the loss."""
        with substitute([self.parameters[at] for at in frozen], frozen_values):
            loss, _ = self._compute(batch)
        loss = ops.astype(loss, "float32") if self._precision != "float32" else loss
        return (loss if scale is None else loss * scale), loss

    def _cast(self, x: Tensor) -> Tensor:
        wrong = self._precision != "float32" and x.dtype.kind == "float"
        return ops.astype(x, self._precision) if wrong else x

    def _cast_tree(self, batch: object) -> object:
        if self._precision == "float32":
            return batch
        return tree.map_leaves(
            lambda leaf: self._cast(leaf) if isinstance(leaf, EmberTensor) else leaf, batch
        )


class CompiledStep:
    """A whole step, compiled: gradients, clipping and update.

    Args:
        gradients: The loss and its gradients.
        optimizer: Optimizer of the same parameters.
        clip: Function that clips the gradients.
    """

    def __init__(
        self,
        gradients: LossGradients,
        optimizer: Optimizer,
        clip: Callable[[Gradients], Gradients],
    ) -> None:
        self._gradients = gradients
        self._optimizer = optimizer
        self._clip = clip
        self._backend = gradients.parameters[0].backend
        self._scalars: list[tuple[float, Array]] = []
        self._compiled = CompileCache(self._flat, {})

    def is_applicable(self) -> bool:
        """Return whether all parameters are trainable and no tape records."""
        trainable = all(parameter.trainable for parameter in self._gradients.parameters)
        return trainable and not recording.tapes()

    def __call__(self, batch: object) -> Tensor:
        """Update the parameters and buffers, and return the loss."""
        optimizer, gradients = self._optimizer, self._gradients
        state = optimizer.state_arrays()
        scalars = self._as_arrays(optimizer.scalars())
        variables = native_arrays((*gradients.parameters, *gradients.buffers))
        self._counts = len(gradients.parameters), len(gradients.buffers), len(state)
        arrays = [*variables, *state, *scalars]
        (loss, *rest), _ = self._compiled(self._backend, arrays, batch, gradients.mode())
        params, buffers, state = self._split(rest)[:3]
        for buffer, data in zip(gradients.buffers, buffers, strict=True):
            buffer.become(Tensor.from_native(data, self._backend))
        optimizer.commit(params, state)
        return Tensor.from_native(loss, self._backend)

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

    def _flat(self, tensors: list[Tensor], batch: object) -> list[Tensor]:
        params, buffers, state, scalars = self._split(tensors)
        result = self._gradients.differentiate(params, buffers, batch)
        gradients = [g for g in self._clip(result.gradients) if g is not None]
        new_params, new_state = self._optimizer.update(
            native_arrays(params),
            native_arrays(gradients),
            native_arrays(state),
            native_arrays(scalars),
        )
        new = [Tensor.from_native(data, self._backend) for data in (*new_params, *new_state)]
        count = len(new_params)
        return [result.loss, *new[:count], *result.buffers, *new[count:]]


GROWTH_STEPS = 2000
"""Number of steps without overflow after which the loss scale doubles."""


class LossScale:
    """Loss scale for float16: halved when a gradient overflows, doubled after many good steps.

    Reference: Micikevicius et al., "Mixed Precision Training", 2018.
    """

    def __init__(self, first: float = 2.0**15) -> None:
        self.value = first
        self._good = 0

    def succeeded(self) -> None:
        """Count a step without overflow; double the scale after many."""
        self._good += 1
        if self._good >= GROWTH_STEPS:
            self.value = min(self.value * 2.0, 2.0**24)
            self._good = 0

    def overflowed(self) -> None:
        """Halve the scale after a step with gradients that are not finite."""
        self.value = max(self.value / 2.0, 1.0)
        self._good = 0

    def state_dict(self) -> dict[str, float]:
        """Return the scale and the number of steps since it changed."""
        return {"value": self.value, "good": self._good}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Restore a state that `state_dict` returned."""
        self.value, self._good = float(state["value"]), int(state["good"])


class StepRunner:
    """Runs the batches of a trainer; updates the parameters after every `accumulate` batches."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._config = trainer.config
        self._optimizer = trainer.optimizer
        self._buffers = trainer.model.buffers()
        self.scale = LossScale() if self._config.precision == "float16" else None
        self._sum: Gradients | None = None
        self._losses: list[Tensor] = []
        self._prepare_for(self._trainer.backend)

    def _prepare_for(self, backend: str) -> None:
        """Prepare for the backend of the model, which may have moved."""
        trainer, config = self._trainer, self._config
        engine = runtime.load(backend).autodiff
        wanted = engine.COMPILES_QUICKLY if config.compile is None else config.compile
        compiles = wanted and not engine.COMPILE_UNAVAILABLE
        self._gradients = LossGradients(
            lambda batch: trainer.compute(batch),
            self._optimizer.parameters,
            self._buffers,
            list(trainer.model.modules()),
            config.precision,
            compiles,
        )
        whole = compiles and config.accumulate == 1 and self.scale is None
        self._whole = (
            CompiledStep(self._gradients, self._optimizer, self._clipped) if whole else None
        )
        self._backend = backend
        self._evaluate = engine.evaluate
        variables = (*self._optimizer.parameters, *self._buffers)
        self._evaluate(native_arrays(variables))  # for any thread

    def __call__(self, batch: object) -> CompletedStep | None:
        """Return the mean loss and a function for the gradients, if the batch completed a step."""
        with exclusive([*self._optimizer.parameters, *self._buffers]):
            return self._run(batch)

    def _run(self, batch: object) -> CompletedStep | None:
        if self._trainer.backend != self._backend:
            self._prepare_for(self._trainer.backend)
        if self._whole is not None and self._whole.is_applicable():
            loss = self._whole(batch)
            self._evaluate(native_arrays((*self._optimizer.parameters, loss)))
            return float(loss), lambda: self._named(self._gradients(batch).gradients)
        result = self._gradients(batch, self.scale.value if self.scale else None)
        for buffer, value in zip(self._buffers, result.buffers, strict=True):
            buffer.become(value)
        self._accumulate(result)
        if len(self._losses) < self._config.accumulate:
            return None
        return self._update(*self._take_accumulated())

    def _take_accumulated(self) -> tuple[Gradients, list[Tensor]]:
        """Return the mean gradients of the batches and their losses, and start again."""
        grads, losses = self._sum or [], self._losses
        self.drop_remainder()
        factor = 1.0 / (len(losses) * (self.scale.value if self.scale else 1.0))
        if factor != 1.0:
            grads = [None if g is None else g * factor for g in grads]
        return grads, losses

    def _update(self, grads: Gradients, losses: list[Tensor]) -> CompletedStep:
        if self._are_finite(grads):
            self._optimizer.step(self._clipped(grads))
        self._evaluate(native_arrays((*self._optimizer.parameters, *losses)))
        mean = sum(float(loss) for loss in losses) / len(losses)
        return mean, lambda: self._named(grads)

    def _named(self, grads: Gradients) -> dict[str, Tensor]:
        named = zip(self._optimizer.names, grads, strict=True)
        return {name: grad for name, grad in named if grad is not None}

    def _accumulate(self, result: BatchResult) -> None:
        if self._sum is None:
            self._sum = result.gradients
        else:
            pairs = zip(self._sum, result.gradients, strict=True)
            self._sum = [b if a is None else a if b is None else a + b for a, b in pairs]
        self._losses.append(result.loss)

    def _are_finite(self, grads: Gradients) -> bool:
        """Return whether the scaled gradients are finite, and adapt the loss scale."""
        if self.scale is None:
            return True
        finite = all(bool(ops.isfinite(g).all()) for g in grads if g is not None)
        if finite:
            self.scale.succeeded()
        else:
            self.scale.overflowed()
        return finite

    def _clipped(self, grads: Gradients) -> Gradients:
        if self._config.clip_value is not None:
            grads = clip_by_value(grads, self._config.clip_value)
        if self._config.clip_norm is not None:
            grads = clip_by_norm(grads, self._config.clip_norm)
        return grads

    def drop_remainder(self) -> None:
        """Discard accumulated gradients."""
        self._sum, self._losses = None, []
