"""The loss of a batch and its gradients, as a function that can be compiled; loss scaling."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from ember_ml import ops
from ember_ml._core import recording, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, Tensor, native_arrays
from ember_ml.autodiff.transforms.compiling import CompileCache
from ember_ml.backend.interface import Array
from ember_ml.nn.auxiliary_losses import swap_terms
from ember_ml.nn.functional import current_values, differentiate, substitute
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.training.losses.base import reported_weights

T = TypeVar("T")
Compute: TypeAlias = Callable[[object], tuple[Tensor, object]]
"""batch -> (loss, outputs)."""
Weigh: TypeAlias = Callable[[object], Tensor | float]
"""batch -> weight of its loss, for losses that do not report it."""
Gradients: TypeAlias = list[Tensor | None]
"""In the order of the parameters; None for frozen parameters."""
GROWTH_STEPS = 2000
"""Number of steps without overflow after which the loss scale doubles, as in PyTorch."""
MAX_SCALE = 2.0**24
"""Largest loss scale."""
SUM = -math.inf
"""Weight of a batch whose loss is a sum."""


_PLAIN: contextlib.nullcontext[None] = contextlib.nullcontext()


class Losses(NamedTuple):
    """Loss of a batch and what is computed with it."""

    loss: Tensor
    weight: Tensor | None
    """Weight of the loss in a mean over batches; negative for a sum. None if it is not needed."""
    outputs: object
    """Outputs of the model, if they are needed."""
    terms: dict[str, Tensor]
    """Named losses that modules reported, which are parts of the loss."""


class BatchResult(NamedTuple):
    """Loss and gradients of a batch, and the new values of the buffers."""

    loss: Tensor
    weight: Tensor | None
    """Weight of the loss in a mean over batches; negative for a sum. None if it is not needed."""
    gradients: Gradients
    buffers: list[Tensor]
    outputs: object
    """Outputs of the model, if they are needed."""
    terms: dict[str, Tensor]
    """Named losses that modules reported, which are parts of the loss."""

    def arrays(self) -> list[Array]:
        """Return the native arrays of the gradients."""
        return native_arrays([g for g in self.gradients if g is not None])


class LossGradients:
    """The loss of a batch and its gradients with respect to parameters, as a function.

    Args:
        compute: Function batch -> (loss, outputs) that runs the model.
        parameters: Parameters to differentiate with respect to.
        buffers: Buffers that the model may update.
        modules: The model and its submodules, whose modes affect the result.
        precision: Dtype in which the model computes.
        compiled: Whether the function can be compiled.
        weigh: Function batch -> weight, for losses that do not report their weight. Default: no
            weights are computed.
        keep_outputs: Whether to return the outputs of the model.
    """

    def __init__(
        self,
        compute: Compute,
        parameters: Sequence[Parameter],
        buffers: Sequence[Buffer],
        modules: Sequence[Module],
        precision: str = "float32",
        compiled: bool = False,
        weigh: Weigh | None = None,
        keep_outputs: bool = False,
    ) -> None:
        self.parameters = list(parameters)
        self.buffers = list(buffers)
        self._modules = list(modules)
        self._compute = compute
        self._precision = precision
        self._weigh = weigh
        self._keep_outputs = keep_outputs
        self._compiled = CompileCache(self._flat, {}) if compiled else None

    def __call__(
        self, batch: object, scale: float | None = None, compiled: bool = False
    ) -> BatchResult:
        """Return the loss, its gradients and the new values of the buffers.

        Args:
            batch: The batch.
            scale: Factor on the gradients.
            compiled: Whether to use the compiled function, if there is one.
        """
        if self._compiled is None or not compiled or recording.tapes():
            return self.differentiate(
                current_values(self.parameters), current_values(self.buffers), batch, scale
            )
        backend = self.parameters[0].backend
        arrays = native_arrays((*self.parameters, *self.buffers))
        if scale is not None:  # an array: a change does not compile again
            arrays.append(convert_to_tensor(scale, dtype="float32", backend=backend).native)
        results, template = self._compiled(backend, arrays, batch, self.mode())
        tensors = [Tensor.from_native(data, backend) for data in results]
        (loss, *rest), outputs, terms = template.fill(tensors)
        weight = None if self._weigh is None else rest.pop(0)
        trainable = self._trainable()
        grads = dict(zip(trainable, rest, strict=False))
        ordered = [grads.get(at) for at in range(len(self.parameters))]
        return BatchResult(loss, weight, ordered, rest[len(trainable) :], outputs, terms)

    def mode(self) -> tuple[bool, ...]:
        """Return the modes of the modules and which parameters are trainable."""
        flags = [module.training for module in self._modules]
        return (*flags, *[parameter.trainable for parameter in self.parameters])

    def _trainable(self) -> list[int]:
        trainable = [at for at, parameter in enumerate(self.parameters) if parameter.trainable]
        if not trainable:
            raise ArgumentError(
                "Trainer: all parameters are frozen; unfreeze some of them to train"
            )
        return trainable

    def _flat(
        self, tensors: list[Tensor], batch: object
    ) -> tuple[list[Tensor], object, dict[str, Tensor]]:
        """Compute the result as a function of a flat list of tensors, for the compiler."""
        first, second = len(self.parameters), len(self.parameters) + len(self.buffers)
        scale = tensors[second] if len(tensors) > second else None
        result = self.differentiate(tensors[:first], tensors[first:second], batch, scale)
        grads = [g for g in result.gradients if g is not None]
        weight = [] if result.weight is None else [result.weight]
        flat = [result.loss, *weight, *grads, *result.buffers]
        return flat, result.outputs, result.terms

    def differentiate(
        self,
        values: list[Tensor],
        buffers: list[Tensor],
        batch: object,
        scale: float | Tensor | None = None,
    ) -> BatchResult:
        """Compute the result as a function of the values of parameters and buffers."""
        batch = self.cast_batch(batch)
        trainable = self._trainable()
        frozen = [at for at, x in enumerate(self.parameters) if not x.trainable]
        frozen_values = [self._cast(values[at]) for at in frozen]

        _, (loss, weight, outputs, terms), gradients, new_buffers = differentiate(
            functools.partial(self._losses, batch, frozen, frozen_values, scale),
            [self.parameters[at] for at in trainable],
            [values[at] for at in trainable],
            self.buffers,
            buffers,
            None if self._precision == "float32" else self._cast,
        )
        grads: Gradients = [None] * len(values)
        for at, g in zip(trainable, gradients, strict=True):
            grads[at] = g
        if weight is not None:
            weight = _separate(weight)
        if self._keep_outputs:
            outputs = tree.map_leaves(lambda x: _separate(x) if _is_float(x) else x, outputs)
        terms = {name: _separate(x) for name, x in terms.items()}
        return BatchResult(loss, weight, grads, new_buffers, outputs, terms)

    def losses(self, batch: object) -> tuple[Tensor, Losses]:
        """Return the loss of a batch, for differentiation by others; again with weight and outputs.

        Args:
            batch: The batch.
        """
        return self._losses(self.cast_batch(batch), [], [], None)

    def _losses(
        self,
        batch: object,
        frozen: list[int],
        frozen_values: list[Tensor],
        scale: float | Tensor | None,
    ) -> tuple[Tensor, Losses]:
        """Return the scaled loss, which is differentiated; the loss, its weight, the outputs."""
        weight: Tensor | None = None
        terms: dict[str, Tensor] = {}
        with contextlib.ExitStack() if frozen or self._weigh else _PLAIN as stack:
            if stack is not None:
                stack.enter_context(
                    substitute([self.parameters[at] for at in frozen], frozen_values)
                )
                weights = stack.enter_context(reported_weights())
            outer = swap_terms(terms)
            try:
                loss, outputs = self._compute(batch)
            finally:
                swap_terms(outer)
        if not isinstance(loss, EmberTensor):
            raise ArgumentTypeError(
                f"Trainer: the loss must be a scalar tensor, not {type(loss).__name__}; a number "
                "has no gradient"
            )
        outputs = self.widened(outputs) if self._keep_outputs else None
        loss = self.widened(loss)
        if self._weigh is not None:
            weight = self.weight_of(batch, weights, loss)
        return (loss if scale is None else loss * scale), Losses(loss, weight, outputs, terms)

    def widened(self, outputs: T) -> T:
        """Return outputs or a loss in float32 if the model computes in another dtype.

        Args:
            outputs: Tree of tensors.
        """
        if self._precision == "float32":
            return outputs
        return tree.map_leaves(lambda x: ops.astype(x, "float32") if _is_float(x) else x, outputs)

    def weight_of(
        self, batch: object, weights: list[Tensor | float | None], loss: Tensor
    ) -> Tensor:
        """Return the reported weight of the loss, or the batch's if none is reported.

        Args:
            batch: The batch.
            weights: Weights that losses have reported; None for a sum.
            loss: The loss.
        """
        means = [weight for weight in weights if weight is not None]
        if weights and not means:
            total: Tensor | float = SUM
        elif means:
            total = functools.reduce(lambda a, b: a + b, means)
        else:
            assert self._weigh is not None
            total = self._weigh(batch)
        return ops.stop_gradient(convert_to_tensor(total, dtype="float32", backend=loss.backend))

    def _cast(self, x: Tensor) -> Tensor:
        wrong = self._precision != "float32" and x.dtype.kind == "float"
        return ops.astype(x, self._precision) if wrong else x

    def cast_batch(self, batch: object) -> object:
        """Return a batch in the dtype in which the model computes.

        Args:
            batch: Tree of tensors.
        """
        if self._precision == "float32":
            return batch
        return tree.map_leaves(
            lambda leaf: self._cast(leaf) if isinstance(leaf, EmberTensor) else leaf, batch
        )


def numbers(terms: Mapping[str, Tensor]) -> dict[str, float]:
    """Return named scalars as numbers.

    Args:
        terms: Scalars by name.
    """
    return {name: float(x) for name, x in terms.items()}


def _separate(x: Tensor) -> Tensor:
    """Return a result of its own: MLX cannot return a value that it merges with an equal one."""
    return x * 1.0


def _is_float(leaf: object) -> bool:
    return isinstance(leaf, EmberTensor) and leaf.dtype.kind == "float"


class LossScale:
    """Loss scale for float16: halved when a gradient overflows, doubled after many good steps.

    Reference: Micikevicius et al., "Mixed Precision Training", 2018.

    Args:
        first: Initial scale.
    """

    def __init__(self, first: float = 2.0**15) -> None:
        self.value = first
        self._good = 0

    def can_shrink(self) -> bool:
        """Return whether an overflow may be due to the scale."""
        return self.value > 1.0

    def succeeded(self) -> None:
        """Count a step without overflow; double the scale after many."""
        self._good += 1
        if self._good >= GROWTH_STEPS:
            self.value = min(self.value * 2.0, MAX_SCALE)
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
