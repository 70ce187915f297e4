"""The base class of layers of spiking neurons."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from ember_ml import ops
from ember_ml._core import runtime, tree
from ember_ml._core.dtype import bool_
from ember_ml._core.errors import ArgumentError
from ember_ml._core.numbers import positive
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.causal.spikes import report_spikes, watch_drive
from ember_ml.configs.fields import ComponentLike
from ember_ml.nn import surrogates
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.sequence_mixing._chunked import zero_state
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, State, last_positions
from ember_ml.nn.parameter import Buffer, Parameter, Variable
from ember_ml.nn.sequence_module import check_state
from ember_ml.ops.nn.spiking import stepwise_scan

Reset = Literal["soft", "hard", "none"]
"""What a spike does to the voltage: subtract the threshold, set it to 0, or nothing."""
SMALLEST_THRESHOLD = 1e-6
"""Lower bound of a learned threshold."""


class SpikingRun(NamedTuple):
    """Results of a layer of spiking neurons; sequences are (batch, time, neurons)."""

    drive: Tensor
    """Input currents."""
    spikes: Tensor
    """Spikes, 0 or 1."""
    voltages: Tensor
    """Voltages before the reset."""
    state: State
    """State after the last position."""


def decay(tau: float, dt: float = 1.0) -> float:
    """Return the factor by which a variable decays in one step: exp(-dt / tau).

    Args:
        tau: Time constant, more than 0.
        dt: Duration of a step, in the unit of `tau`. Default: 1.

    Example:
        >>> from ember_ml.nn.layers.sequence_mixing.spiking import decay
        >>> round(decay(tau=20.0, dt=1.0), 3)
        0.951
    """
    return math.exp(-positive("decay", "dt", dt) / positive("decay", "tau", tau))


def unit_range(decay: Tensor) -> Tensor:
    """Return decay factors, bounded to 0 to 1, at least in float32; the bounds have gradients.

    Args:
        decay: Decay factors.
    """
    decay = upcast_half(decay)
    decay = ops.where(decay > 1.0, ops.ones_like(decay), decay)
    return ops.where(decay < 0.0, ops.zeros_like(decay), decay)


def per_neuron(size: int, value: float, learn: bool) -> Variable:
    """Return a parameter with one value per neuron, or a buffer if it is not learned.

    Args:
        size: Number of neurons.
        value: Initial value.
        learn: Whether it is learned.
    """
    values = ops.full((size,), value)
    return Parameter(values, decay=False) if learn else Buffer(values)


class SpikingLayer(SequenceMixer):
    """Layer of spiking neurons: currents, (batch, time, features), to spikes of the same shape.

    Subclasses set the parameters of further state variables, and define the recurrent synapses.

    Attributes:
        beta: Decay of the voltage, (features,).
        threshold: Threshold of the voltage, (features,).
        alpha: Decay of the synaptic current, (features,); None if there is none.
        rho: Decay of the adaptation, (features,); None if there is none.
        strength: Increase of the threshold by one unit of adaptation, (features,), or None.
        positions: Coordinates of the neurons, (features, dimensions), or None.
    """

    alpha: Variable | None = None
    rho: Variable | None = None
    strength: Variable | None = None
    positions: Tensor | None = None

    def __init__(
        self,
        features: int,
        beta: float,
        threshold: float,
        reset: Reset,
        refractory: int,
        surrogate: ComponentLike,
        learn_beta: bool,
        learn_threshold: bool,
    ) -> None:
        self.features = features
        self.reset = reset
        self.refractory = refractory
        self.surrogate = surrogates.get(surrogate)
        self.beta = per_neuron(features, beta, learn_beta)
        self.threshold = per_neuron(features, threshold, learn_threshold)

    @property
    def out_features(self) -> int:
        """Number of output features."""
        return self.features

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example."""
        return self.features * (self._num_rows + self.num_delays)

    @property
    def _num_rows(self) -> int:
        return 1 + (self.alpha is not None) + (self.rho is not None) + (self.refractory > 0)

    @property
    def num_delays(self) -> int:
        """Largest delay of a recurrent synapse, in steps; 0 without synapses."""
        return 0

    def taps(self) -> Tensor | None:
        """Return the weights by delay, (delays, features, features); None without synapses."""
        return None

    def initial_state(self, batch: int) -> State:
        """Return the state before the first position: zeros.

        It is a tuple of (batch, features): the voltage, and where the layer has them the synaptic
        current, the adaptation and the number of steps left to rest. Recurrent layers add the last
        spikes, (batch, delays, features), the oldest first.
        """
        rows = [zero_state(self.beta, batch, self.features) for _ in range(self._num_rows)]
        if self.num_delays:
            rows.append(zero_state(self.beta, batch, self.num_delays, self.features))
        return tuple(rows)

    def mix(
        self, x: Tensor, mask: Tensor | None, state: State | None
    ) -> tuple[Tensor, State | None]:
        """Return the spikes, and the state after the last position."""
        result = self.run(x, mask, state)
        return result.spikes, None if state is None else result.state

    def run(self, x: Tensor, mask: Tensor | None = None, state: State | None = None) -> SpikingRun:
        """Return the spikes with the voltages, the input currents and the next state.

        Args:
            x: Input currents, (batch, time, features), at least one position long.
            mask: Padding mask, (batch, time), False for padding: there the state does not change,
                and no neuron fires. With a state, padding comes last.
            state: State before the first position. Default: zeros.
        """
        self._check_delays(x, state)
        start = self.initial_state(x.shape[0]) if state is None else state
        self._check_state(x.shape[0], start)
        start = tuple(tree.leaves_of(start))
        x = x if x.dtype.kind not in ("bool", "int", "uint") else ops.astype(x, self.beta.dtype)
        rows, history = (start[:-1], start[-1]) if self.num_delays else (start, None)
        real = None if mask is None else ops.astype(mask, bool_)
        drive = upcast_half(x)
        operands = self._operands(drive, ops.stack(list(rows), axis=1), history, real)
        watch_drive(drive)
        spikes, voltages, last = self._scan(operands)
        self._check_nan(last)
        after = tuple(last[:, at] for at in range(len(rows)))
        if history is not None:
            after = (*after, last_positions(history, spikes, real))
        output = ops.cast(spikes, x.dtype)
        report_spikes(
            self,
            output,
            voltages,
            *operands,
            reset=self.reset,
            refractory=self.refractory,
            positions=self.positions,
        )
        return SpikingRun(drive, output, voltages, after)

    def _operands(
        self, drive: Tensor, rows: Tensor, history: Tensor | None, mask: Tensor | None
    ) -> tuple[Any, ...]:
        """Return the operands of the scan."""
        return (
            drive,
            rows,
            unit_range(self.beta),
            upcast_half(ops.maximum(self.threshold, SMALLEST_THRESHOLD)),
            None if self.alpha is None else unit_range(self.alpha),
            None if self.rho is None else unit_range(self.rho),
            None if self.strength is None else upcast_half(self.strength),
            self.taps(),
            history,
            mask,
        )

    def _scan(self, operands: tuple[Any, ...]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the spikes, the voltages and the last state of a scan."""
        options: dict[str, Any] = {"reset": self.reset, "refractory": self.refractory}
        if self.surrogate.kernel is None:
            return stepwise_scan(self.surrogate, *operands, **options)
        options |= {"surrogate": self.surrogate.kernel, "slope": self.surrogate.slope}
        return ops.spiking_scan(*operands, **options)

    def _check_state(self, batch: int, state: State) -> None:
        """Raise unless a state has the parts of `initial_state`."""
        expected: list[tuple[int, ...]] = [(batch, self.features)] * self._num_rows
        if self.num_delays:
            expected.append((batch, self.num_delays, self.features))
        check_state(self, state, expected)

    def _check_delays(self, x: Tensor, state: State | None) -> None:
        """Raise if a delay is longer than a whole sequence."""
        if state is None and self.num_delays > max(1, x.shape[1]):
            raise ArgumentError(
                f"{type(self).__name__}: the largest delay ({self.num_delays} steps) is longer "
                f"than the sequence ({x.shape[1]} steps); such synapses never transmit. Pass a "
                "longer sequence, smaller delays, or a state if it is a part of a sequence"
            )

    def _check_nan(self, last: Tensor) -> None:
        """Raise if a voltage is NaN. It then stays NaN, so that the last voltages tell.

        Only values on a CPU are checked: elsewhere, reading them would wait for the device.
        """
        if not last.device.startswith("cpu"):
            return
        if runtime.LOADED[last.backend].truth(ops.any(ops.isnan(last[:, 0])).native):
            raise ArgumentError(
                f"{type(self).__name__}: a voltage is NaN: the input currents, the parameters or "
                "the state contain NaN or infinite values, and such neurons never fire. Check the "
                "data and the layers before this one"
            )
