"""Spiking neurons over a whole sequence."""

from __future__ import annotations

from collections.abc import Callable

from ember_ml import ops
from ember_ml._core.dispatch import MaskLike, composite
from ember_ml._core.rules import DTypeRule
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.backend import spiking
from ember_ml.backend.spiking_adjoint import adjoint
from ember_ml.ops._composite import in_float32

__all__ = ["spiking_scan"]

_RULE = DTypeRule("real floating", frozenset({"float"}), lift=True, contraction=True)


@composite(rule=_RULE)
@in_float32
def spiking_scan(
    x: TensorLike,
    state: TensorLike,
    beta: TensorLike,
    threshold: TensorLike,
    alpha: TensorLike | None = None,
    rho: TensorLike | None = None,
    strength: TensorLike | None = None,
    taps: TensorLike | None = None,
    history: TensorLike | None = None,
    mask: MaskLike | None = None,
    reset: str = "soft",
    refractory: int = 0,
    surrogate: str = "atan",
    slope: float = 2.0,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return the spikes and voltages of leaky integrate-and-fire neurons.

    .. math::
        i_t &= \alpha \odot i_{t-1} + x_t + \sum_d W_d \, z_{t-d} \\
        v'_t &= \beta \odot v_{t-1} + i_t, \quad
        \theta_t = \theta + s \odot a_{t-1}, \quad z_t = [v'_t > \theta_t] \\
        v_t &= v'_t - \theta_t z_t \text{ (soft) or } v'_t (1 - z_t) \text{ (hard)}, \quad
        a_t = \rho \odot a_{t-1} + z_t

    A spike's derivative by :math:`u = v' - \theta` is a surrogate; the spikes in the reset are
    constants. After a spike a neuron rests for `refractory` steps: it keeps its voltage, ignores
    its input and does not fire.

    Args:
        x: Input currents, (batch, time, neurons).
        state: Initial state, (batch, rows, neurons): the voltages v, then the synaptic currents i
            if `alpha` is given, the adaptations a if `rho` is given, and the number of steps left
            to rest if `refractory` is not 0.
        beta: Decay of the voltage, (neurons,).
        threshold: Threshold of the voltage, (neurons,).
        alpha: Decay of the synaptic current, (neurons,). Default: none; i is the input of the step.
        rho: Decay of the adaptation, (neurons,). Default: no adaptation.
        strength: Increase of the threshold by one unit of adaptation, (neurons,), with `rho`.
        taps: Recurrent weights, (delays, neurons, neurons): `taps[d - 1, i, j]` from neuron j to
            neuron i with a delay of d steps. Default: none.
        history: Spikes before the first step, the oldest first, (batch, delays, neurons), with
            `taps`.
        mask: (batch, time), False where the state does not change and no neuron fires.
        reset: "soft" subtracts the threshold, "hard" sets the voltage to 0, "none" keeps it.
        refractory: Number of steps that a neuron rests after a spike.
        surrogate: "fast_sigmoid", 1 / (1 + k |u|)^2; "atan", k / 2 / (1 + (pi k u / 2)^2);
            "sigmoid", the derivative of sigmoid(k u); "triangle", k max(0, 1 - |u|);
            "straight_through", k.
        slope: The parameter k of the surrogate.

    Returns:
        The spikes, 0 or 1, and the voltages before the reset, both (batch, time, neurons), and the
        state after the last step.

    Example:
        >>> x, one = ops.ones((1, 4, 1)), ops.ones((1,))
        >>> z, v, _ = spiking_scan(x, ops.zeros((1, 1, 1)), 0.5 * one, 1.4 * one, reset="hard")
        >>> z[0, :, 0].tolist(), v[0, :, 0].tolist()
        ([0.0, 1.0, 0.0, 1.0], [1.0, 1.5, 1.0, 1.5])
    """
    arrays = (x, state, beta, threshold, alpha, rho, strength, taps, history, mask)
    options = spiking.Options(reset, refractory, surrogate, slope)
    spiking.check(spiking.Operands(*arrays), options)
    if not x.shape[1]:
        return x, x, state
    return spiking.scan(
        ops,
        spiking.Operands(*arrays),
        options,
        surrogate_fire(lambda u: spiking.smooth_of(ops, u, surrogate, slope)),
        ops.stop_gradient,
    )


@composite(rule=_RULE)
@in_float32
def _spiking_scan_adjoint(
    x: TensorLike,
    state: TensorLike,
    beta: TensorLike,
    threshold: TensorLike,
    spikes: TensorLike,
    voltages: TensorLike,
    g_spikes: TensorLike,
    g_voltages: TensorLike,
    g_last: TensorLike,
    alpha: TensorLike | None = None,
    rho: TensorLike | None = None,
    strength: TensorLike | None = None,
    taps: TensorLike | None = None,
    history: TensorLike | None = None,
    mask: MaskLike | None = None,
    reset: str = "soft",
    refractory: int = 0,
    surrogate: str = "atan",
    slope: float = 2.0,
) -> tuple[Tensor, ...]:
    """Return the gradients of all operands of `spiking_scan` except the mask; zeros for None.

    At least one step; `g_...` are the gradients of the results.
    """
    operands = spiking.Operands(
        x, state, beta, threshold, alpha, rho, strength, taps, history, mask
    )
    options = spiking.Options(reset, refractory, surrogate, slope)
    spiking.check(operands, options)
    grads = adjoint(
        ops,
        operands,
        options,
        (spikes, voltages),
        (g_spikes, g_voltages, g_last),
        ops.stop_gradient,
    )
    return tuple(ops.zeros_like(beta) if g is None else g for g in grads[:9])


def surrogate_fire(smooth: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a function that is 1 for positive numbers, otherwise 0, with a smooth derivative.

    Args:
        smooth: Function that has the derivative.
    """
    return spiking.smooth_fire(ops, ops.stop_gradient, smooth)


def stepwise_scan(
    fire: Callable[[Tensor], Tensor], *arrays: Tensor | None, reset: str, refractory: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the results of `spiking_scan` for a custom surrogate gradient, in one op per step.

    Args:
        fire: Function of the distance to the threshold that returns spikes.
        arrays: Tensors of `spiking_scan`, in its order.
        reset: As in `spiking_scan`.
        refractory: As in `spiking_scan`.
    """
    operands = spiking.Operands(*arrays)
    options = spiking.Options(reset, refractory)
    spiking.check(operands, options)
    if not operands.x.shape[1]:
        return operands.x, operands.x, operands.state
    return spiking.scan(ops, operands, options, fire, ops.stop_gradient)
