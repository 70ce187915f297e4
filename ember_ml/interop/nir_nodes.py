"""Nodes of the Neuromorphic Intermediate Representation (NIR) as Ember layers, and the reverse.

NIR describes neurons by differential equations, which are integrated by Euler steps of length dt,
as snnTorch and Norse do: `tau dv/dt = (v_leak - v) + r i` becomes `v = (1 - dt / tau) v + (r dt /
tau) i` for v_leak = 0. Other factors than 1 at i become a `FeatureScale` before the neurons.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml._core.errors import EmberError
from ember_ml.nn.layers.channel_mixing import Dense, FeatureScale
from ember_ml.nn.layers.sequence_mixing.spiking import (
    LIF,
    LeakyIntegrator,
    RecurrentLIF,
    SpikingLayer,
    Synaptic,
)
from ember_ml.nn.layers.sequence_mixing.spiking.base import Reset
from ember_ml.nn.module import Module

READ = "Affine, Linear, Scale, LIF, IF, CubaLIF, LI, I, Threshold and Flatten"
"""Nodes that are read."""
WRITTEN = (
    "Dense, FeatureScale, LIF, Synaptic, LeakyIntegrator, RecurrentLIF, Spiking and Sequential"
)
"""Layers that are written."""


class NIRError(EmberError, ValueError):
    """Raised for a graph that Ember cannot represent, or a module that NIR cannot."""


def vector(name: str, node: Any, field: str) -> np.ndarray:
    """Return a field of a node as a vector of float64.

    Args:
        name: Name of the node, for errors.
        node: The node.
        field: Name of the field.
    """
    values = np.atleast_1d(np.asarray(getattr(node, field), np.float64))
    if values.ndim != 1:
        raise NIRError(
            f"node {name!r} ({type(node).__name__}): {field} has shape {values.shape}; only one "
            "axis of neurons is supported"
        )
    return values


def _decay(name: str, node: Any, field: str, dt: float) -> np.ndarray:
    """Return 1 - dt / tau, which must be from 0 to 1."""
    tau = vector(name, node, field)
    if not np.all(np.isfinite(tau) & (tau >= dt * (1 - 1e-6))):
        raise NIRError(
            f"node {name!r} ({type(node).__name__}): {field} ({tau.min()} to {tau.max()}) must be "
            f"at least dt ({dt}); pass a smaller dt"
        )
    return np.clip(1.0 - dt / tau, 0.0, 1.0)


def _threshold(name: str, node: Any) -> np.ndarray:
    """Return the threshold above the leak voltage, to which spikes must reset."""
    leak = vector(name, node, "v_leak") if hasattr(node, "v_leak") else np.zeros(1)
    reset = np.zeros(1) if node.v_reset is None else vector(name, node, "v_reset")
    if not np.allclose(leak, reset):
        raise NIRError(
            f"node {name!r} ({type(node).__name__}): v_reset ({reset}) differs from v_leak "
            f"({leak}); Ember's neurons reset to the voltage that they decay to"
        )
    height = vector(name, node, "v_threshold") - leak
    if not np.all(height > 0):
        raise NIRError(
            f"node {name!r} ({type(node).__name__}): v_threshold must be above v_leak, got "
            f"{height.min()} above it"
        )
    return height


def read_neuron(
    name: str, node: Any, dt: float, recurrent: tuple[np.ndarray, np.ndarray] | None = None
) -> list[Module]:
    """Return the layers of a neuron node: neurons, after a scale if their inputs have a factor.

    Args:
        name: Name of the node.
        node: LIF, IF, CubaLIF, LI, I or Threshold.
        dt: Duration of a step.
        recurrent: Weight and bias of recurrent synapses. Default: none.
    """
    kind = type(node).__name__
    if kind in ("LI", "I"):
        return _read_integrator(name, node, dt)
    alpha = None
    if kind == "Threshold":
        height = vector(name, node, "threshold")
        if not np.all(height > 0):
            raise NIRError(
                f"node {name!r} (Threshold): threshold must be above 0, got {height.min()}"
            )
        beta, factor = np.zeros_like(height), np.ones_like(height)
    elif kind == "IF":
        height, factor = _threshold(name, node), dt * vector(name, node, "r")
        beta = np.ones_like(height)
    elif kind == "LIF":
        height, beta = _threshold(name, node), _decay(name, node, "tau", dt)
        factor = vector(name, node, "r") * (1.0 - beta)
    else:
        height, beta = _threshold(name, node), _decay(name, node, "tau_mem", dt)
        alpha = _decay(name, node, "tau_syn", dt)
        factor = vector(name, node, "r") * (1.0 - beta)
        factor = factor * vector(name, node, "w_in") * (1.0 - alpha)
    size = max(len(height), len(beta))
    if recurrent is not None:
        size = len(recurrent[1]) if size == 1 else size
        if recurrent[0].shape != (size, size):
            raise NIRError(
                f"node {name!r} ({kind}): the recurrent weights of {size} neurons must have the "
                f"shape {(size, size)}, got {recurrent[0].shape}"
            )
    layer = _create(kind, size, recurrent, alpha)
    _fill(layer.beta, beta)
    _fill(layer.threshold, height)
    if alpha is not None:
        _fill(layer.alpha, alpha)
    shift = np.zeros(size)
    if recurrent is not None:
        weight, bias = recurrent
        layer.weight.assign((np.broadcast_to(factor, size)[:, None] * weight).astype(np.float32))
        shift = factor * bias
    return [*_scale(np.broadcast_to(factor, size), shift), layer]


def _create(kind: str, size: int, recurrent: Any, alpha: np.ndarray | None) -> Any:
    reset: Reset = "none" if kind == "Threshold" else "hard"
    if recurrent is not None:
        return RecurrentLIF(size, reset=reset, alpha=None if alpha is None else 0.5)
    return LIF(size, reset=reset) if alpha is None else Synaptic(size, reset=reset)


def _read_integrator(name: str, node: Any, dt: float) -> list[Module]:
    if hasattr(node, "v_leak") and np.any(node.v_leak):
        raise NIRError(
            f"node {name!r} ({type(node).__name__}): v_leak must be 0, got {node.v_leak}"
        )
    r = vector(name, node, "r")
    beta = _decay(name, node, "tau", dt) if hasattr(node, "tau") else np.ones_like(r)
    factor = r * (1.0 - beta) if hasattr(node, "tau") else r * dt
    layer = LeakyIntegrator(len(r))
    _fill(layer.beta, beta)
    return [*_scale(factor, np.zeros_like(r)), layer]


def _fill(variable: Any, values: np.ndarray) -> None:
    variable.assign(np.broadcast_to(values, variable.shape).astype(np.float32))


def _scale(factor: np.ndarray, shift: np.ndarray) -> list[Module]:
    """Return a scale layer; none if it would change nothing."""
    if np.allclose(factor, 1.0, rtol=1e-6) and not shift.any():
        return []
    layer = FeatureScale(len(factor), bias=bool(shift.any()))
    _fill(layer.scale, factor)
    if layer.bias is not None:
        _fill(layer.bias, shift)
    return [layer]


def read_linear(name: str, node: Any) -> Module:
    """Return the dense layer of an Affine or Linear node, or the scale of a Scale node.

    Args:
        name: Name of the node, for errors.
        node: Affine, Linear or Scale.
    """
    if hasattr(node, "scale"):
        scale = FeatureScale(np.size(node.scale))
        _fill(scale.scale, np.ravel(node.scale))
        return scale
    weight, bias = matrices(name, node)
    layer = Dense(weight.shape[1], weight.shape[0], bias=hasattr(node, "bias"))
    layer.weight.assign(weight.astype(np.float32))
    if layer.bias is not None:
        _fill(layer.bias, bias)
    return layer


def matrices(name: str, node: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight and the bias of an Affine or Linear node; zeros without a bias.

    Args:
        name: Name of the node, for errors.
        node: Affine or Linear.
    """
    weight = np.asarray(node.weight, np.float64)
    if weight.ndim != 2:
        raise NIRError(
            f"node {name!r} ({type(node).__name__}): weight must be a matrix, got shape "
            f"{weight.shape}"
        )
    bias = np.asarray(getattr(node, "bias", 0.0), np.float64)
    if bias.size != 1 and bias.shape != weight.shape[:1]:
        raise NIRError(
            f"node {name!r} ({type(node).__name__}): bias must have the shape "
            f"{weight.shape[:1]}, got {bias.shape}"
        )
    return weight, np.broadcast_to(bias, weight.shape[:1])


def write_layer(nir: Any, layer: Module, dt: float) -> Any:
    """Return the node of a layer; a graph for recurrent neurons.

    Args:
        nir: The module `nir`.
        layer: The layer.
        dt: Duration of a step.
    """
    if type(layer) is Dense and layer.activation is None:
        weight = layer.weight.numpy()
        return nir.Linear(weight) if layer.bias is None else nir.Affine(weight, layer.bias.numpy())
    if type(layer) is FeatureScale:
        scale = layer.scale.numpy()
        if layer.bias is None:
            return nir.Scale(scale)
        return nir.Affine(np.diag(scale), layer.bias.numpy())
    if type(layer) is LeakyIntegrator:
        tau, r = _time_constants(layer, "beta", dt)
        return nir.LI(tau=tau, r=r, v_leak=np.zeros_like(r))
    if type(layer) in (LIF, Synaptic, RecurrentLIF) and isinstance(layer, SpikingLayer):
        return _write_neurons(nir, layer, dt)
    raise NIRError(
        f"NIR has no node for {type(layer).__name__}: {layer!r:.80}. These layers can be written: "
        f"{WRITTEN}, dense layers without an activation"
    )


def _write_neurons(nir: Any, layer: SpikingLayer, dt: float) -> Any:
    name = type(layer).__name__
    if layer.reset != "hard" or layer.refractory:
        raise NIRError(
            f"{name} has reset={layer.reset!r} and refractory={layer.refractory}; NIR's neurons "
            'have reset="hard" and no refractory period'
        )
    height = layer.threshold.numpy().astype(np.float64)
    zeros = np.zeros_like(height)
    if layer.alpha is None and np.all(layer.beta.numpy() >= 1.0):
        neurons = nir.IF(r=np.full_like(height, 1.0 / dt), v_threshold=height, v_reset=zeros)
    elif layer.alpha is None:
        tau, r = _time_constants(layer, "beta", dt)
        neurons = nir.LIF(tau=tau, r=r, v_leak=zeros, v_threshold=height, v_reset=zeros)
    else:
        tau, r = _time_constants(layer, "beta", dt)
        tau_syn, w_in = _time_constants(layer, "alpha", dt)
        neurons = nir.CubaLIF(
            tau_syn=tau_syn, tau_mem=tau, r=r, v_leak=zeros, v_threshold=height, v_reset=zeros,
            w_in=w_in,
        )  # fmt: skip
    if not isinstance(layer, RecurrentLIF):
        return neurons
    if not np.all(layer.delays.numpy() == 1):
        raise NIRError(
            "RecurrentLIF: NIR has no delay of single synapses; all delays must be 1 step"
        )
    size = np.array([layer.features])
    return nir.NIRGraph(
        nodes={
            "input": nir.Input(input_type=size),
            "lif": neurons,
            "w_rec": nir.Linear(layer.weight.numpy()),
            "output": nir.Output(output_type=size),
        },
        edges=[("input", "lif"), ("lif", "w_rec"), ("w_rec", "lif"), ("lif", "output")],
    )


def _time_constants(layer: Any, field: str, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Return tau = dt / (1 - decay), and tau / dt, the factor that cancels dt / tau."""
    decay = np.clip(getattr(layer, field).numpy().astype(np.float64), 0.0, 1.0)
    if np.any(decay >= 1.0):
        raise NIRError(
            f"{type(layer).__name__}: {field} is 1 for some neurons, which have no time constant"
        )
    return dt / (1.0 - decay), 1.0 / (1.0 - decay)
