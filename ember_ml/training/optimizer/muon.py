"""Muon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ember_ml._core import runtime
from ember_ml._core.convert import as_dtype
from ember_ml.configs.optimizers import MuonConfig
from ember_ml.registry import register
from ember_ml.training.optimizer.adam import AdamRule
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.rules import Arrays, Options, Rule, Shape, Slot, State
from ember_ml.training.optimizer.store import Layout


def orthogonalized(k: Any, xs: Arrays, options: Options) -> Arrays:
    """Nearly the orthogonal matrices next to these, by Newton-Schulz iterations.

    Singular values end between about 0.7 and 1.2, which is near enough.
    """
    a, b, c = options["coefficients"]
    xs = k.cast(xs, options["precision"])
    tall = [shape[0] > shape[1] for shape in k.shapes(xs)]
    xs = _turned(k, xs, tall)
    xs = k.divide(xs, k.cast(k.clamp_(k.norms(xs), low=options["eps"]), options["precision"]))
    for _ in range(options["iterations"]):
        gram = k.matmul(xs, k.transpose(xs))
        xs = k.addmm(xs, k.addmm(gram, gram, gram, b, c), xs, a, 1.0)
    return _turned(k, xs, tall)


def _turned(k: Any, xs: Arrays, which: Sequence[bool]) -> Arrays:
    turned = k.transpose(xs)
    return [t if turn else x for x, t, turn in zip(xs, turned, which, strict=True)]


class MuonRule(Rule):
    """(1 - rate decay) p - rate (orthogonalised momentum)."""

    name = "muon"

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """The momentum."""
        return {"momentum_buffer": Slot(shape)}

    def scalars(self, options: Options, rate: float, step: int) -> tuple[float, ...]:
        """What decay leaves, and minus the rate."""
        return 1.0 - rate * options["weight_decay"], -rate

    def advance(
        self,
        k: Any,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        scalars: Sequence[Any],
    ) -> tuple[Arrays, State]:
        """A step."""
        kept, rate = scalars
        momentum = options["momentum"]
        buffer = k.lerp_(state["momentum_buffer"], grads, 1.0 - momentum)
        change = k.lerp_(k.copy(grads), buffer, momentum) if options["nesterov"] else k.copy(buffer)
        change = k.cast(orthogonalized(k, change, options), "float32")
        change = k.scale_each_(change, [_ratio(s, options) for s in k.shapes(params)])
        if options["weight_decay"]:
            params = k.scale_(params, kept)
        return k.add_(params, change, rate), {"momentum_buffer": buffer}


def _ratio(shape: Shape, options: Options) -> float:
    """How much larger the step of a matrix is, for its shape."""
    rows, columns = shape
    if options["adjust"] == "original":
        return math.sqrt(max(1.0, rows / columns))
    return 0.2 * math.sqrt(max(rows, columns))


class InnerRule(AdamRule):
    """AdamW, with Muon's options."""

    def read(self, options: Options) -> Options:
        """AdamW's own options."""
        names = ("betas", "weight_decay", "adamw_factor")
        return {**{name: options[name] for name in names}, "eps": 1e-8, "amsgrad": False}

    def scalars(self, options: Options, rate: float, step: int) -> tuple[float, ...]:
        """As AdamW, at a rate of its own."""
        return super().scalars(options, rate * options["adamw_factor"], step)


MUON_RULE = MuonRule()
INNER_RULE = InnerRule("adamw")


@register("optimizers/muon", config=MuonConfig)
class Muon(Optimizer):
    r"""Momentum made orthogonal, for matrices; AdamW for all other parameters.

    .. math:: b \leftarrow \mu b + (1 - \mu) g, \quad
        p \leftarrow (1 - \gamma \lambda) p - \gamma\, r\, \mathrm{orthogonal}((1 - \mu) g + \mu b)

    On matrices it is torch.optim.Muon. Embeddings and the last layer are better left to AdamW: put
    them into a group with `matrices=False`.

    Args:
        params: a module, parameters, or groups.
        weight_decay: what share of a parameter goes at each step, times the learning rate.
        momentum: decay rate of the average of the gradients.
        nesterov: look ahead by one momentum.
        coefficients: of the odd polynomial that is iterated.
        eps: the least norm to divide by.
        iterations: how often it is applied.
        adjust: r: "original" is sqrt(max(1, rows / columns)), "match_rms_adamw" makes the steps as
            large as AdamW's, 0.2 sqrt(max(rows, columns)).
        precision: in which the iteration is computed; bfloat16 is torch's choice, for accelerators.
        matrices: whether matrices get orthogonal steps.
        adamw_factor: on the learning rate, for AdamW.
        betas: of AdamW.

    Reference: Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.
    """

    options_type: ClassVar[Any] = MuonConfig

    def __init__(
        self,
        params: Any,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        iterations: int = 5,
        adjust: str = "original",
        precision: str = "float32",
        matrices: bool = True,
        adamw_factor: float = 1.0,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        super().__init__(
            params,
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
        )

    def _settle(self, layout: Layout, arrays: list[Any]) -> None:
        for group in self.groups:  # an error where the backend has no such dtype
            precision = as_dtype(group.options["precision"])
            runtime.native_dtype(group.parameters[0].backend, precision)
        super()._settle(layout, arrays)

    def rule(self, shape: Shape, options: Options) -> Rule:
        """Orthogonal steps for matrices."""
        return MUON_RULE if len(shape) == 2 and options["matrices"] else INNER_RULE
