"""Muon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal, Unpack

from pydantic import Field

from ember_ml._core import runtime
from ember_ml._core.convert import as_dtype
from ember_ml.backend.interface import Arrays, Optimization
from ember_ml.configs.fields import Below1, Count, NonNegative, Positive, Real, Unconfigured
from ember_ml.nn import Parameter
from ember_ml.registry import register
from ember_ml.training.optimizer.adam import AdamValues, adam_step, adam_values
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.groups import MatchedGroups, Options, ParametersLike
from ember_ml.training.optimizer.lion import DecayedValues
from ember_ml.training.optimizer.plan import Shape, Slot, State
from ember_ml.training.optimizer.storage import StateOptions


@register("optimizers/muon")
class Muon(Optimizer):
    r"""Orthogonalized momentum for matrices; AdamW for all other parameters.

    .. math:: b \leftarrow \mu b + (1 - \mu) g, \quad
        p \leftarrow (1 - \gamma \lambda) p - \gamma\, r\, \mathrm{orthogonal}((1 - \mu) g + \mu b)

    On matrices it is torch.optim.Muon. Embeddings and the last layer are better trained by AdamW:
    put them into a group with `matrices=False`.

    Args:
        params: A module, parameters, or groups.
        learning_rate: Step size.
        weight_decay: Decoupled weight decay coefficient; multiplied by the learning rate.
        momentum: Decay rate of the moving average of the gradients.
        nesterov: Whether to use Nesterov momentum.
        coefficients: Coefficients of the odd polynomial of the Newton-Schulz iteration.
        eps: Minimum of the norm that a matrix is divided by.
        iterations: Number of Newton-Schulz iterations.
        adjust: Factor r on the steps of a matrix: "original" is sqrt(max(1, rows / columns)),
            "match_rms_adamw" is 0.2 sqrt(max(rows, columns)), for steps as large as AdamW's.
        precision: Dtype of the iteration; "bfloat16" is torch's choice, for accelerators.
        matrices: Whether matrices get orthogonalized steps.
        adamw_factor: Factor on the learning rate, for AdamW.
        betas: Decay rates of AdamW's moving averages.
        groups: Options of parameters by name: {"match": patterns, option: value}.
        storage: `state_bits` and `state_device`, as in `Optimizer`.

    Reference: Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.
    """

    def __init__(
        self,
        params: Unconfigured[ParametersLike],
        learning_rate: NonNegative = 1e-3,
        weight_decay: NonNegative = 0.1,
        momentum: Below1 = 0.95,
        nesterov: bool = True,
        coefficients: tuple[Real, Real, Real] = (3.4445, -4.775, 2.0315),
        eps: Positive = 1e-7,
        iterations: Annotated[Count, Field(lt=100)] = 5,
        adjust: Literal["original", "match_rms_adamw"] = "original",
        precision: Literal["float32", "bfloat16"] = "float32",
        matrices: bool = True,
        adamw_factor: NonNegative = 1.0,
        betas: tuple[Below1, Below1] = (0.9, 0.999),
        groups: MatchedGroups = (),
        **storage: Unpack[StateOptions],
    ) -> None:
        super().__init__(
            params,
            groups,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            momentum=momentum,
            nesterov=nesterov,
            coefficients=coefficients,
            eps=eps,
            iterations=iterations,
            adjust=adjust,
            precision=precision,
            matrices=matrices,
            adamw_factor=adamw_factor,
            betas=betas,
            **storage,
        )

    def options_for(self, parameter: Parameter, options: Options) -> Options:
        """Return the group's options for a matrix, and those of AdamW for other parameters."""
        # An error here if the backend does not have the dtype.
        runtime.native_dtype(parameter.backend, as_dtype(options["precision"]))
        if parameter.ndim == 2 and options["matrices"]:
            return options
        adamw = {name: options[name] for name in ("betas", "weight_decay", "adamw_factor")}
        return {**adamw, "eps": 1e-8, "amsgrad": False, "matrices": False}

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """Return the momentum of a matrix, or the moving averages of AdamW."""
        if options["matrices"]:
            return {"momentum_buffer": Slot(shape)}
        return {"exp_avg": Slot(shape), "exp_avg_sq": Slot(shape, is_positive=True)}

    def step_values(
        self, options: Options, learning_rate: float, step: int
    ) -> DecayedValues | AdamValues:
        """Return the numbers of a step."""
        if not options["matrices"]:
            return adam_values(options, learning_rate * options["adamw_factor"], step)
        return DecayedValues(learning_rate, 1.0 - learning_rate * options["weight_decay"])

    def update_step(
        self,
        k: Optimization,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        values: DecayedValues | AdamValues,
    ) -> tuple[Arrays, State]:
        """Return the updated parameters and their state."""
        if isinstance(values, AdamValues):
            return adam_step(k, params, grads, state, options, values, decoupled=True)
        momentum = options["momentum"]
        buffer = k.lerp_(state["momentum_buffer"], grads, 1.0 - momentum)
        change = k.lerp_(k.copy(grads), buffer, momentum) if options["nesterov"] else k.copy(buffer)
        change = k.cast(orthogonalize(k, change, options), "float32")
        change = k.scale_each_(change, [_scale(s, options["adjust"]) for s in k.shapes(params)])
        if options["weight_decay"]:
            params = k.scale_(params, values.decay)
        return k.add_(params, change, -values.learning_rate), {"momentum_buffer": buffer}


def orthogonalize(k: Optimization, xs: Arrays, options: Options) -> Arrays:
    """Return matrices close to the nearest orthogonal ones, by Newton-Schulz iteration.

    Singular values end between about 0.7 and 1.2, which is close enough for Muon.
    """
    a, b, c = options["coefficients"]
    xs = k.cast(xs, options["precision"])
    tall = [shape[0] > shape[1] for shape in k.shapes(xs)]
    xs = _transpose_where(k, xs, tall)
    xs = k.divide(xs, k.cast(k.clamp_(k.norms(xs), low=options["eps"]), options["precision"]))
    for _ in range(options["iterations"]):
        gram = k.matmul(xs, k.transpose(xs))
        xs = k.addmm(xs, k.addmm(gram, gram, gram, b, c), xs, a, 1.0)
    return _transpose_where(k, xs, tall)


def _transpose_where(k: Optimization, xs: Arrays, tall: Sequence[bool]) -> Arrays:
    transposed = k.transpose(xs)
    return [t if is_tall else x for x, t, is_tall in zip(xs, transposed, tall, strict=True)]


def _scale(shape: Shape, adjust: str) -> float:
    """Return the factor r on the steps of a matrix."""
    rows, columns = shape
    if adjust == "original":
        return math.sqrt(max(1.0, rows / columns))
    return 0.2 * math.sqrt(max(rows, columns))
