"""The liquid time-constant cell."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn import initializers
from ember_ml.nn.layers.sequence_mixing.recurrent._stages import LiquidWeights, Staged
from ember_ml.nn.layers.sequence_mixing.recurrent._synapses import Strengths, Synapses
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import (
    HoistedCell,
    Mask,
    Timespan,
    varying_timespans,
)
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.wirings.base import NeuronWiring

Mapping: TypeAlias = Literal["affine", "linear", "none"]
_RANGES = {
    "gleak": (0.001, 1.0),
    "vleak": (-0.2, 0.2),
    "cm": (0.4, 0.6),
    "w": (0.001, 1.0),
    "sigma": (3.0, 8.0),
    "mu": (0.3, 0.8),
}
"""Ranges of the initial values."""


class LTCCell(HoistedCell[LiquidWeights, Tensor]):
    r"""Liquid time-constant cell: leaky neurons, and synapses that open with their source.

    The synapse e from i to j has the conductance :math:`s_e = w_e \sigma(\sigma_e (v_i - \mu_e))`
    and the reversal potential :math:`E_e`. Inputs have synapses of the same kind. A step of time
    :math:`\Delta` has `ode_unfolds` substeps of time d. Each substep computes

    .. math::
        v_j \leftarrow \frac{c_j v_j + d (g_j v^{leak}_j + \sum_e s_e E_e)}
        {c_j + d (g_j + \sum_e s_e + \epsilon)}

    There is one parameter per synapse of the wiring, ordered by source and then by destination. The
    output is the potential of the first `output_dim` neurons.

    Over a sequence, only neurons in loops of the wiring are computed step by step. The others are
    linear recurrences, given the neurons that they read.

    Args:
        in_features: Number of input features.
        wiring: Neurons and synapses. It is copied.
        input_mapping: Map of the inputs: "affine" (scale and shift per feature), "linear" (scale)
            or "none". Default: "affine".
        output_mapping: Map of the outputs: "affine", "linear" or "none". Default: "affine".
        ode_unfolds: Number of substeps per step. Default: 6.
        epsilon: Value added to the denominator. Default: 1e-8.
        implicit_param_constraints: Whether conductances and capacities are the softplus of their
            parameters. Otherwise they are the parameters, clipped at 0. Default: True.

    Shape: (batch, in_features), v (batch, units) -> (batch, output_dim), the new v.

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
        wiring: NeuronWiring,
        input_mapping: Mapping = "affine",
        output_mapping: Mapping = "affine",
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
            setattr(self, name, _uniform(name, units))

    def _add_synapses(self, prefix: str, synapses: list[tuple[int, int, int]]) -> None:
        for name in ("w", "sigma", "mu"):
            setattr(self, prefix + name, _uniform(name, len(synapses)))
        signs = [float(sign) for _, _, sign in synapses]
        setattr(self, f"{prefix}erev", Parameter(signs, dtype="float32", decay=False))

    def _add_mapping(self, name: str, features: int, kind: Mapping) -> None:
        scale = None if kind == "none" else Parameter(ops.ones((features,)), decay=False)
        shift = Parameter(ops.zeros((features,)), decay=False) if kind == "affine" else None
        setattr(self, f"{name}_w", scale)
        setattr(self, f"{name}_b", shift)

    def _connect(self) -> None:
        """Create the groups of synapses: all, those of the inputs, and those of the stages."""
        units = self.wiring.units
        edges = [(src, dest) for src, dest, _ in self.wiring.synapses()]
        sensory = [(src, dest) for src, dest, _ in self.wiring.sensory_synapses()]
        self.synapses = Synapses(edges, range(len(edges)), units, units)
        self.sensory_synapses = Synapses(sensory, range(len(sensory)), self.in_features, units)
        self.staged = Staged(units, edges, sensory, self.in_features, self.out_features)

    def positive(self, x: Tensor) -> Tensor:
        """Return a conductance or capacity from its parameter."""
        return ops.softplus(x) if self.implicit_param_constraints else ops.relu(x)

    def gather(self, timespan: Timespan | None) -> LiquidWeights:
        """Return the weights, with the time of a substep multiplied in if it is fixed."""
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

    def prepare(self, x: Tensor, weights: LiquidWeights) -> Tensor:
        """Return the currents and conductances of inputs and leaks, (..., 2 units)."""
        synapses = self.sensory_synapses
        matrices = synapses.gather(weights["sensory_strengths"])
        sums = synapses(_affine(x, *weights["input"]), matrices)
        return sums + ops.concat([weights["current"], weights["conductance"]])

    def advance(
        self, entry: Tensor, state: Tensor, timespan: Timespan, weights: LiquidWeights
    ) -> Tensor:
        """Return the potentials after a step."""
        d = self._substeps(timespan)
        if "matrices" not in weights:  # computed once per sequence
            weights["matrices"] = self.synapses.gather(weights["strengths"])
        capacity, v, units = weights["capacity"], state, self.widths
        for _ in range(self.ode_unfolds):
            sums = entry + self.synapses(v, weights["matrices"])
            sums = sums if d is None else sums * d
            v = (capacity * v + sums[:, :units]) / (capacity + sums[:, units:])
        return v

    def _substeps(self, timespans: Timespan) -> Tensor | None:
        """Return the time of a substep if it varies; otherwise None."""
        spans = varying_timespans(timespans)
        return None if spans is None else spans / self.ode_unfolds

    def output(self, state: Tensor, weights: LiquidWeights) -> Tensor:
        """Return the mapped potentials of the first neurons."""
        return _affine(state[..., : self.out_features], *weights["output"])

    def sweep(
        self, x: Tensor, state: Tensor, timespans: Timespan, mask: Mask, weights: LiquidWeights
    ) -> tuple[Tensor, Tensor]:
        """Compute the whole sequence stage by stage."""
        if not x.shape[1]:
            return super().sweep(x, state, timespans, mask, weights)
        d = self._substeps(timespans)
        x = _affine(x, *weights["input"])
        y, v = self.staged(x, state, d, mask, weights, unfolds=self.ode_unfolds)
        return _affine(y, *weights["output"]), v


def _affine(x: Tensor, scale: Tensor | None, shift: Tensor | None) -> Tensor:
    """Return x times the scale plus the shift, if given."""
    x = x if scale is None else x * scale
    return x if shift is None else x + shift


def _uniform(name: str, size: int) -> Parameter:
    return Parameter(initializers.Uniform(*_RANGES[name])((size,)), decay=False)
