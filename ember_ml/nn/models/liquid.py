"""Liquid neurons from observations to actions."""

from __future__ import annotations

from typing import Any

from ember_ml._core.tensor import Tensor
from ember_ml.configs.models.named import LiquidModelConfig
from ember_ml.nn.layers.sequence_mixing.recurrent import LTC, CfC, Recurrent, WiredCfC
from ember_ml.nn.models.base import Model
from ember_ml.nn.sequence_module import State
from ember_ml.nn.wirings import AutoNCP
from ember_ml.registry import register


@register("models/liquid", config=LiquidModelConfig, aliases=["ncp"])
class LiquidModel(Model):
    """A neural circuit policy: a few wired neurons that turn observations into actions.

    It minds the time between observations, and goes step by step in a control loop.

    Args:
        in_features: the numbers of an observation.
        out_features: the numbers of an action.
        units: how many neurons there are, the outputs among them.
        cell: "wired_cfc" (closed form, quick), "ltc" (the differential equation), or "cfc" (closed
            form without a wiring).
        sparsity_level: the share of synapses that the wiring leaves out.
        mixed_memory: whether an LSTM holds what the neurons forget.
        seed: of the wiring.

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
        in_features: int,
        out_features: int,
        units: int = 32,
        cell: str = "wired_cfc",
        sparsity_level: float = 0.5,
        mixed_memory: bool = False,
        seed: int = 22222,
    ) -> None:
        self.circuit: Recurrent
        if cell == "cfc":
            self.circuit = CfC(
                in_features, units, proj_size=out_features, mixed_memory=mixed_memory
            )
            return
        wiring = AutoNCP(units, out_features, sparsity_level, seed)
        made: Any = LTC if cell == "ltc" else WiredCfC
        self.circuit = made(in_features, wiring, mixed_memory=mixed_memory)

    def forward(self, x: Tensor, mask: Tensor | None = None, timespans: Any = None) -> Tensor:
        """The actions.

        Args:
            x: (batch, time, in_features).
            mask: (batch, time), False where there is padding.
            timespans: the time since the observation before: a number, (time,) or (batch, time).
        """
        return self.circuit(x, mask, timespans)

    def initial_state(self, batch: int) -> State:
        """The state before the first observation."""
        return self.circuit.initial_state(batch)

    def step(self, x: Tensor, state: State, timespan: Any = 1.0) -> tuple[Tensor, State]:
        """The action after one more observation, and the state."""
        return self.circuit.step(x, state, timespan)
