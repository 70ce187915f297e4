"""Spikes, and the answers to queries about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, order=True, slots=True)
class SpikeEvent:
    """A spike.

    Attributes:
        layer: Name of the layer, as in `CausalContext.layers`. The inputs of a layer that were not
            recorded as spikes of another one have the name "<layer>.input".
        batch: Row of the batch.
        time: Time step, from 0.
        neuron: Index of the neuron.
    """

    layer: str
    batch: int
    time: int
    neuron: int

    def __str__(self) -> str:
        return f"neuron {self.neuron} of {self.layer!r} at step {self.time}, row {self.batch}"


class Cause(NamedTuple):
    """A spike that contributed to the voltage of another one.

    Attributes:
        event: The spike.
        contribution: Its signed part of the voltage before the reset.
        arrival: Time step at which it arrived, `event.time` plus the delay.
    """

    event: SpikeEvent
    contribution: float
    arrival: int


@dataclass(frozen=True)
class Causes:
    """Decomposition of the voltage of a spike, before its reset.

    `total`, the sum of all parts, equals `voltage` up to rounding.

    Attributes:
        event: The spike.
        voltage: Voltage before the reset.
        threshold: Threshold that it reached.
        spikes: Spikes that contributed, the largest absolute contribution first.
        others: Sum of the contributions of the spikes that `top` left out.
        external: Contribution of the external drive that no recorded spike explains.
        resets: Contribution of the earlier resets of the neuron (with soft reset).
        initial: Contribution of the initial state.
        evicted: Contribution of spikes that were dropped because of `max_events`; 0 if none was.
        magnitude: Sum of all absolute contributions, the denominator of an influence.
    """

    event: SpikeEvent
    voltage: float
    threshold: float
    spikes: tuple[Cause, ...]
    others: float
    external: float
    resets: float
    initial: float
    evicted: float
    magnitude: float

    @property
    def total(self) -> float:
        """Sum of all contributions."""
        parts = sum(cause.contribution for cause in self.spikes)
        return parts + self.others + self.external + self.resets + self.initial + self.evicted

    def __iter__(self) -> Iterator[Cause]:
        return iter(self.spikes)

    def __len__(self) -> int:
        return len(self.spikes)


class Related(NamedTuple):
    """A spike on the way to or from another one.

    Attributes:
        event: The spike.
        influence: Sum over all paths of the product of the shares along the path, from 0 to 1.
    """

    event: SpikeEvent
    influence: float


@dataclass(frozen=True)
class Counterfactual:
    """Result of a rerun without a spike.

    Attributes:
        removed: The spike that was not transmitted.
        event: The spike that was asked about.
        fired: Whether it occurs without the removed one.
        voltage: Its voltage before the reset in the rerun.
        change: `voltage` minus the recorded voltage.
        predicted: Change according to `causes`: minus the direct contribution.
        appeared: Spikes up to `event` that occur only in the rerun.
        vanished: Spikes up to `event` that occur only in the recording, without `removed` itself.
    """

    removed: SpikeEvent
    event: SpikeEvent
    fired: bool
    voltage: float
    change: float
    predicted: float
    appeared: tuple[SpikeEvent, ...]
    vanished: tuple[SpikeEvent, ...]

    @property
    def linear(self) -> bool:
        """Whether no earlier spike differs, so that `change` equals `predicted`."""
        own = (self.event,)
        return not self.appeared and self.vanished in ((), own)
