"""Liquid time-constant cells."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn import initializers
from ember_ml.nn.layers.sequence_mixing.base import State
from ember_ml.nn.layers.sequence_mixing.recurrent._stages import Staged
from ember_ml.nn.layers.sequence_mixing.recurrent._synapses import Strengths, Synapses
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import HoistedCell, Timespan, is_scalar
from ember_ml.nn.parameter import Parameter

_RANGES = {
    "gleak": (0.001, 1.0),
    "vleak": (-0.2, 0.2),
    "cm": (0.4, 0.6),
    "w": (0.001, 1.0),
    "sigma": (3.0, 8.0),
    "mu": (0.3, 0.8),
}


class LTCCell(HoistedCell):
    r"""A liquid time-constant cell: neurons with leaks, and synapses that open with their source.

    The synapse e from i to j has the conductance :math:`s_e = w_e \sigma(\sigma_e (v_i - \mu_e))`
    and the reversal potential :math:`E_e`; inputs have synapses likewise. In a step of the time
    :math:`\Delta`, each of the `ode_unfolds` parts, of the time d, does

    .. math::
        v_j \leftarrow \frac{c_j v_j + d (g_j v^{leak}_j + \sum_e s_e E_e)}
        {c_j + d (g_j + \sum_e s_e + \epsilon)}

    Parameters are held for the synapses that the wiring has, in its order (by source, then by
    destination). The output is that of the first `output_dim` neurons.

    Over a sequence, only neurons in loops of the wiring are computed step by step; the others are
    linear recurrences, given those they read.

    Args:
        in_features: the features of x.
        wiring: the neurons and their synapses.
        input_mapping: how x is mapped: "affine" (a gain and a shift a feature), "linear" or "none".
        output_mapping: how the outputs are mapped, likewise.
        ode_unfolds: in how many parts a step is computed.
        epsilon: keeps the denominator from zero.
        implicit_param_constraints: whether conductances and capacities are the softplus of their
            parameters; else the parameters themselves, where they are above zero.

    Shape: (batch, in_features), (batch, units) -> (batch, output_dim), (batch, units).

    Reference: Hasani et al., "Liquid time-constant networks", 2021.

    Example:
        >>> cell = nn.layers.LTCCell(3, nn.wirings.AutoNCP(16, 4))
        >>> y, v = cell(ops.ones((2, 3)))
        >>> y.shape, v.shape
        ((2, 4), (2, 16))
    """

    gleak: Parameter
    vleak: Parameter
    cm: Parameter
    input_w: Parameter | None
    input_b: Parameter | None
    output_w: Parameter | None
    output_b: Parameter | None

    def __init__(
        self,
        in_features: int,
        wiring: Any,
        input_mapping: str = "affine",
        output_mapping: str = "affine",
        ode_unfolds: int = 6,
        epsilon: float = 1e-8,
        implicit_param_constraints: bool = True,
    ) -> None:
        self.wiring = wiring.copy().build(in_features)
        self.in_features = in_features
        self.out_features: int = self.wiring.output_dim
        self.widths: int = self.wiring.units
        self.ode_unfolds = ode_unfolds
        self.epsilon = epsilon
        self.implicit_param_constraints = implicit_param_constraints
        self._add_neurons(self.wiring.units)
        self._add_synapses("", self.wiring.synapses())
        self._add_synapses("sensory_", self.wiring.sensory_synapses())
        self._add_mapping("input", in_features, input_mapping)
        self._add_mapping("output", self.out_features, output_mapping)
        self._connect()

    def _add_neurons(self, units: int) -> None:
        for name in ("gleak", "vleak", "cm"):
            setattr(self, name, _drawn(name, units))

    def _add_synapses(self, prefix: str, synapses: list[tuple[int, int, int]]) -> None:
        for name in ("w", "sigma", "mu"):
            setattr(self, prefix + name, _drawn(name, len(synapses)))
        signs = [float(sign) for _, _, sign in synapses]
        setattr(self, f"{prefix}erev", Parameter(signs, dtype="float32", decay=False))

    def _add_mapping(self, name: str, features: int, kind: str) -> None:
        gain = None if kind == "none" else Parameter(ops.ones((features,)), decay=False)
        shift = Parameter(ops.zeros((features,)), decay=False) if kind == "affine" else None
        setattr(self, f"{name}_w", gain)
        setattr(self, f"{name}_b", shift)

    def _connect(self) -> None:
        """The groups of synapses: all, those of the inputs, and those that stages read."""
        units = self.wiring.units
        edges = [(src, dest) for src, dest, _ in self.wiring.synapses()]
        sensory = [(src, dest) for src, dest, _ in self.wiring.sensory_synapses()]
        self.synapses = Synapses(edges, range(len(edges)), units, units)
        self.sensory_synapses = Synapses(sensory, range(len(sensory)), self.in_features, units)
        self.staged = Staged(units, edges, sensory, self.in_features, self.out_features)

    def positive(self, x: Tensor) -> Tensor:
        """A conductance or capacity, of its parameter."""
        return ops.softplus(x) if self.implicit_param_constraints else ops.relu(x)

    def gather(self, timespan: Timespan) -> Any:
        """What the neurons and synapses are, with the time of a part of a step multiplied in."""
        d = 1.0 if timespan is None else timespan / self.ode_unfolds
        leak = self.positive(self.gleak)
        return {
            "capacity": self.positive(self.cm),
            "current": leak * self.vleak * d,
            "conductance": (leak + self.epsilon) * d,
            "input": (self.input_w, self.input_b),
            "output": (self.output_w, self.output_b),
            "strengths": self._strengths("", d),
            "sensory_strengths": self._strengths("sensory_", d),
        }

    def _strengths(self, prefix: str, d: Timespan) -> Strengths:
        w, sigma, mu, erev = (getattr(self, prefix + name) for name in ("w", "sigma", "mu", "erev"))
        conductance = self.positive(w) * d
        return Strengths(sigma, sigma * mu, conductance * erev, conductance)

    def prepare(self, x: Tensor, made: Any) -> Any:
        """What the inputs and leaks give: (..., 2 units), and the matrices of the synapses."""
        group = self.sensory_synapses
        sums = group(mapped(x, *made["input"]), group.gather(made["sensory_strengths"]))
        return sums + ops.concat([made["current"], made["conductance"]])

    def advance(self, entry: Any, state: State, timespan: Timespan, made: Any) -> State:
        """The potentials after a step."""
        d = None if is_scalar(timespan) else timespan / self.ode_unfolds
        if "matrices" not in made:  # once a sequence
            made["matrices"] = self.synapses.gather(made["strengths"])
        capacity, v, units = made["capacity"], state, self.widths
        for _ in range(self.ode_unfolds):
            sums = entry + self.synapses(v, made["matrices"])
            sums = sums if d is None else sums * d
            v = (capacity * v + sums[:, :units]) / (capacity + sums[:, units:])
        return v

    def output(self, state: State, made: Any) -> Tensor:
        """The potentials of the first neurons, mapped."""
        return mapped(state[..., : self.out_features], *made["output"])

    def sweep(
        self, x: Tensor, state: State, timespans: Timespan, mask: Tensor | None, made: Any
    ) -> tuple[Tensor, State]:
        """Stage by stage over the whole sequence."""
        if not x.shape[1]:
            return super().sweep(x, state, timespans, mask, made)
        d = None if is_scalar(timespans) else timespans / self.ode_unfolds
        y, v = self.staged(
            mapped(x, *made["input"]), state, d, mask, made, unfolds=self.ode_unfolds
        )
        return mapped(y, *made["output"]), v


def mapped(x: Tensor, gain: Tensor | None, shift: Tensor | None) -> Tensor:
    """X times the gain, plus the shift, where there are such."""
    x = x if gain is None else x * gain
    return x if shift is None else x + shift


def _drawn(name: str, size: int) -> Parameter:
    return Parameter(initializers.Uniform(*_RANGES[name])((size,)), decay=False)
