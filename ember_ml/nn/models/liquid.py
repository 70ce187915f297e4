"""Liquid neurons from observations to actions."""

from __future__ import annotations

from typing import Any, Literal

from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Below1, Count, Size
from ember_ml.nn.layers.sequence_mixing.recurrent import LTC, CfC, Recurrent, WiredCfC
from ember_ml.nn.models.base import Model
from ember_ml.nn.sequence_module import State, StatefulCall
from ember_ml.nn.wirings import AutoNCP
from ember_ml.registry import register


@register("models/liquid", aliases=["ncp"])
class LiquidModel(StatefulCall, Model):
    """Neural circuit policy: a few wired liquid neurons that map observations to actions.

    It uses the time between observations, and runs step by step in a control loop.

    Args:
        in_features: Number of features of an observation.
        out_features: Number of features of an action.
        units: Number of neurons, including the outputs.
        cell: "wired_cfc" (closed form, fast), "ltc" (the differential equation) or "cfc" (closed
            form without a wiring).
        sparsity_level: Fraction of the synapses that the wiring omits.
        mixed_memory: Whether an LSTM is added as long-term memory.
        seed: Seed of the wiring.

    Shape: (batch, time, in_features) -> (batch, time, out_features).

    Reference: Lechner et al., "Neural circuit policies enabling auditable autonomy", 2020; Hasani
    et al., "Closed-form continuous-time neural networks", 2022.

    Example:
        >>> policy = nn.models.LiquidModel(3, 2, units=16)
        >>> policy(ops.ones((1, 5, 3)), timespans=ops.ones((1, 5)) * 0.1).shape
        (1, 5, 2)
        >>> action, state = policy.step(ops.ones((1, 3)), policy.initial_state(1), 0.1)
        >>> action.shape
        (1, 2)
    """

    default_loss = "mse"

    def __init__(
        self,
        in_features: Size,
        out_features: Size,
        units: Size = 32,
        cell: Literal["ltc", "cfc", "wired_cfc"] = "wired_cfc",
        sparsity_level: Below1 = 0.5,
        mixed_memory: bool = False,
        seed: Count = 22222,
    ) -> None:
        self.circuit: Recurrent
        if cell == "cfc":
            self.circuit = CfC(
                in_features, units, proj_size=out_features, mixed_memory=mixed_memory
            )
            return
        wiring = AutoNCP(units, out_features, sparsity_level, seed)
        layer_cls = LTC if cell == "ltc" else WiredCfC
        self.circuit = layer_cls(in_features, wiring, mixed_memory=mixed_memory)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        *,
        state: State | None = None,
    ) -> Any:
        """Return the action after each observation, (batch, time, out_features).

        With a state, also return the state after the last observation.

        Args:
            x: Observations of shape (batch, time, in_features).
            mask: Padding mask of shape (batch, time), False at padding.
            timespans: Time since the previous observation: a number, (time,) or (batch, time).
                Default: 1.
            state: State before the first observation. Default: zeros.
        """
        return self.circuit(x, mask, timespans, state=state)

    def initial_state(self, batch: int) -> State:
        """Return the state before the first observation."""
        return self.circuit.initial_state(batch)

    def step(self, x: Tensor, state: State, timespan: TensorLike = 1.0) -> tuple[Tensor, State]:
        """Return the action after one more observation, and the next state."""
        return self.circuit.step(x, state, timespan)
