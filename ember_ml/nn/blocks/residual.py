"""A layer that its input goes past."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.blocks.base import ResidualConfig
from ember_ml.nn import sequence_module
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.module import Module
from ember_ml.nn.sequence_module import State
from ember_ml.registry import build, create, register


def norm_of(norm: str, features: int, eps: float | None = None) -> Module | None:
    """The norm of a name; None for "none".

    Args:
        norm: "rms_norm", "layer_norm" or "none".
        features: how many there are.
        eps: keeps the denominator from zero; the norm's own if not given.
    """
    if norm == "none":
        return None
    made: Module = create(f"layers/{norm}", features, **({} if eps is None else {"eps": eps}))
    return made


@register("blocks/residual", config=ResidualConfig)
class ResidualBlock(SequenceMixer):
    r"""A layer, a norm, and the sum with what goes past them.

    ::

        x ──┬── norm ── layer ── dropout ── + ── y      "pre"
            └───────────────────────────────┘
        x ──┬── layer ── dropout ── + ── norm ── y      "post"
            └───────────────────────┘

    Args:
        layer: a layer, or its name or config.
        hidden_size: the features of x and y.
        norm: "rms_norm", "layer_norm" or "none".
        placement: "pre", which trains without a warm-up, or "post".
        dropout: the share of what the layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves the layer out.
        norm_eps: what keeps the norms' denominators from zero; the norm's own if not given.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Xiong et al., "On Layer Normalization in the Transformer Architecture", 2020; Huang
    et al., "Deep Networks with Stochastic Depth", 2016.

    Example:
        >>> block = nn.blocks.ResidualBlock(nn.layers.SwiGLU(8), 8)
        >>> block(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    norm: Module | None

    def __init__(
        self,
        layer: Any,
        hidden_size: int,
        norm: str = "rms_norm",
        placement: str = "pre",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        norm_eps: float | None = None,
    ) -> None:
        self.features = hidden_size
        self.norm = norm_of(norm, hidden_size, norm_eps)
        self.layer: Module = build("", layer)
        self.placement = placement
        self.dropout = dropout
        self.stochastic_depth = stochastic_depth

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether no layer looks ahead."""
        return sequence_module.all_causal([self.layer])

    @property
    def uses_timespans(self) -> bool:  # type: ignore[override]
        """Whether a layer minds the time between positions."""
        return sequence_module.any_uses_timespans([self.layer])

    def forward(self, x: Tensor, mask: Tensor | None = None, timespans: Any = None) -> Tensor:
        """The sequence mapped."""
        self.check_sequence(x, mask)
        return self._around(x, lambda x: sequence_module.run(self.layer, x, mask, timespans))

    def initial_state(self, batch: int) -> State:
        """The layer's."""
        return sequence_module.initial_state(self.layer, batch)

    def step(self, x: Tensor, state: State, timespan: Any = None) -> tuple[Tensor, State]:
        """One position, and the state after it."""
        after: list[State] = []

        def inner(x: Tensor) -> Tensor:
            y, new = sequence_module.step(self.layer, x, state, timespan)
            after.append(new)
            return y

        return self._around(x, inner), after[0]

    def _around(self, x: Tensor, inner: Any) -> Tensor:
        """What `inner` makes of x, with the norm, the dropout and the sum."""
        pre = self.norm is not None and self.placement == "pre"
        y = inner(self.norm(x) if pre else x)  # type: ignore[misc]
        if y.shape != x.shape:
            raise ShapeError(
                f"{type(self).__name__}: {type(self.layer).__name__} makes {y.shape} of {x.shape}; "
                "a layer that its input goes past keeps the shape"
            )
        y = x + (self._dropped(y) if self.training else y)
        return y if pre or self.norm is None else self.norm(y)

    def _dropped(self, y: Tensor) -> Tensor:
        if self.dropout:
            y = ops.dropout(y, self.dropout)
        if self.stochastic_depth:
            each = y[(slice(None), *[slice(1)] * (y.ndim - 1))]  # one number an example
            y = y * ops.dropout(ops.ones_like(each), self.stochastic_depth)
        return y
