"""What comes into a spiking run: input spikes and the state before the first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.causal.spikes.dynamics import Array
from ember_ml.autodiff.causal.spikes.host import host

if TYPE_CHECKING:
    from ember_ml.autodiff.causal.spikes.run import SpikeRun


@dataclass(frozen=True)
class InputLink:
    """Linear map from input spikes to the external drive of a layer.

    Attributes:
        inputs: Input of the map, (batch, time, inputs).
        weight: (neurons, inputs); None for the identity.
        source: Run whose output `inputs` is; None for inputs from outside.
        name: Name of the layer of the inputs.
    """

    inputs: Tensor
    weight: Array | None
    source: SpikeRun | None
    name: str

    def host_inputs(self) -> Array:
        """Return the inputs as a host array."""
        return host(self.inputs)


@dataclass(frozen=True)
class InitialState:
    """State before the first step; None for zeros.

    Attributes:
        voltage: (batch, neurons), after the reset.
        current: Synaptic current, (batch, neurons).
        adaptation: Adaptation of the threshold, (batch, neurons).
        resting: Remaining refractory steps, (batch, neurons).
        spikes: Spikes before the first step, the oldest first, (batch, steps, neurons).
    """

    voltage: Array | None = None
    current: Array | None = None
    adaptation: Array | None = None
    resting: Array | None = None
    spikes: Array | None = None
