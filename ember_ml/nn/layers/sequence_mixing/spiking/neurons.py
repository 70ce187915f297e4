"""Layers of leaky integrate-and-fire neurons without synapses."""

from __future__ import annotations

from ember_ml.configs.fields import Count, NonNegative, Positive, Probability, Size, SurrogateField
from ember_ml.nn.layers.sequence_mixing.spiking.base import (
    Reset,
    SpikingLayer,
    per_neuron,
)
from ember_ml.registry import register


@register("layers/lif", aliases=["leaky"])
class LIF(SpikingLayer):
    r"""Leaky integrate-and-fire neurons.

    .. math::
        v'_t = \beta \odot v_{t-1} + x_t, \quad z_t = [v'_t > \theta], \quad
        v_t = v'_t - \theta z_t \text{ (soft) or } v'_t (1 - z_t) \text{ (hard)}

    Args:
        features: Number of neurons. Each takes one input feature as its current.
        beta: Decay of the voltage in one step, 0 to 1; `decay(tau, dt)` computes it from a time
            constant. Default: 0.9.
        threshold: Voltage above which a neuron fires, above 0. Default: 1.
        reset: What a spike does to the voltage: "soft" subtracts the threshold, "hard" sets it to
            0, "none" keeps it. Default: "soft".
        refractory: Number of steps that a neuron rests after a spike: it keeps its voltage, ignores
            its input and does not fire. Default: 0.
        surrogate: Surrogate gradient of spikes, from `ember_ml.nn.surrogates`. Default: "atan".
        learn_beta: Whether `beta` is learned, one value per neuron. Default: False.
        learn_threshold: Whether `threshold` is learned, one value per neuron. Default: False.

    Shape: (batch, time, features) -> (batch, time, features), zeros and ones. The state is a tuple
    of (batch, features): the voltage, and the number of steps left to rest if `refractory` is not
    0.

    Reference: Eshraghian et al., "Training Spiking Neural Networks Using Lessons From Deep
    Learning", 2023.

    Example:
        >>> nn.layers.LIF(1, beta=0.5, reset="hard")(ops.full((1, 5, 1), 0.7))[0, :, 0].tolist()
        [0.0, 1.0, 0.0, 1.0, 0.0]
    """

    def __init__(
        self,
        features: Size,
        beta: Probability = 0.9,
        threshold: Positive = 1.0,
        reset: Reset = "soft",
        refractory: Count = 0,
        surrogate: SurrogateField = "atan",
        learn_beta: bool = False,
        learn_threshold: bool = False,
    ) -> None:
        super().__init__(
            features, beta, threshold, reset, refractory, surrogate, learn_beta, learn_threshold
        )


@register("layers/synaptic", aliases=["cuba", "cuba_lif"])
class Synaptic(SpikingLayer):
    r"""Leaky integrate-and-fire neurons with a synaptic current (current-based, CUBA).

    .. math::
        i_t = \alpha \odot i_{t-1} + x_t, \quad v'_t = \beta \odot v_{t-1} + i_t

    Spikes and resets are those of `LIF`.

    Args:
        features: Number of neurons. Each takes one input feature.
        alpha: Decay of the synaptic current in one step, 0 to 1. Default: 0.8.
        beta: Decay of the voltage in one step, 0 to 1. Default: 0.9.
        threshold: Voltage above which a neuron fires, above 0. Default: 1.
        reset: What a spike does to the voltage: "soft", "hard" or "none"; see `LIF`.
        refractory: Number of steps that a neuron rests after a spike; the synaptic current still
            changes. Default: 0.
        surrogate: Surrogate gradient of spikes, from `ember_ml.nn.surrogates`. Default: "atan".
        learn_alpha: Whether `alpha` is learned, one value per neuron. Default: False.
        learn_beta: Whether `beta` is learned, one value per neuron. Default: False.
        learn_threshold: Whether `threshold` is learned, one value per neuron. Default: False.

    Shape: (batch, time, features) -> (batch, time, features), zeros and ones. The state is a tuple
    of (batch, features): the voltage, the synaptic current, and the number of steps left to rest
    if `refractory` is not 0.

    Example:
        >>> nn.layers.Synaptic(1, alpha=0.5)(ops.full((1, 5, 1), 0.5))[0, :, 0].tolist()
        [0.0, 1.0, 1.0, 0.0, 1.0]
    """

    def __init__(
        self,
        features: Size,
        alpha: Probability = 0.8,
        beta: Probability = 0.9,
        threshold: Positive = 1.0,
        reset: Reset = "soft",
        refractory: Count = 0,
        surrogate: SurrogateField = "atan",
        learn_alpha: bool = False,
        learn_beta: bool = False,
        learn_threshold: bool = False,
    ) -> None:
        super().__init__(
            features, beta, threshold, reset, refractory, surrogate, learn_beta, learn_threshold
        )
        self.alpha = per_neuron(features, alpha, learn_alpha)


@register("layers/alif", aliases=["adaptive_lif"])
class ALIF(SpikingLayer):
    r"""Leaky integrate-and-fire neurons with an adaptive threshold.

    .. math::
        \theta_t = \theta + s \odot a_{t-1}, \quad z_t = [v'_t > \theta_t], \quad
        a_t = \rho \odot a_{t-1} + z_t

    Each spike raises the threshold by s, which then decays: a memory of many steps. Voltages and
    resets are those of `LIF`.

    Args:
        features: Number of neurons. Each takes one input feature as its current.
        beta: Decay of the voltage in one step, 0 to 1. Default: 0.9.
        threshold: Threshold without adaptation, above 0. Default: 1.
        rho: Decay of the adaptation in one step, 0 to 1. Default: 0.98.
        strength: Increase s of the threshold by a spike, at least 0. Default: 0.1.
        reset: What a spike does to the voltage: "soft", "hard" or "none"; see `LIF`.
        refractory: Number of steps that a neuron rests after a spike. Default: 0.
        surrogate: Surrogate gradient of spikes, from `ember_ml.nn.surrogates`. Default: "atan".
        learn_decays: Whether `beta` and `rho` are learned, one value per neuron. Default: False.
        learn_thresholds: Whether `threshold` and `strength` are learned, one value per neuron.
            Default: False.

    Shape: (batch, time, features) -> (batch, time, features), zeros and ones. The state is a tuple
    of (batch, features): the voltage, the adaptation, and the number of steps left to rest if
    `refractory` is not 0.

    Reference: Bellec et al., "Long short-term memory and Learning-to-learn in networks of spiking
    neurons", 2018.

    Example:
        >>> layer = nn.layers.ALIF(1, beta=0.0, strength=0.5, rho=1.0)
        >>> layer(ops.full((1, 5, 1), 1.7))[0, :, 0].tolist()
        [1.0, 1.0, 0.0, 0.0, 0.0]
    """

    def __init__(
        self,
        features: Size,
        beta: Probability = 0.9,
        threshold: Positive = 1.0,
        rho: Probability = 0.98,
        strength: NonNegative = 0.1,
        reset: Reset = "soft",
        refractory: Count = 0,
        surrogate: SurrogateField = "atan",
        learn_decays: bool = False,
        learn_thresholds: bool = False,
    ) -> None:
        super().__init__(
            features, beta, threshold, reset, refractory, surrogate, learn_decays, learn_thresholds
        )
        self.rho = per_neuron(features, rho, learn_decays)
        self.strength = per_neuron(features, strength, learn_thresholds)
