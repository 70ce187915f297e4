"""Scan of a selective state space model."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._composite import in_float32

__all__ = ["selective_scan"]


@composite(rule=rules.REAL_FLOAT)
@in_float32
def selective_scan(
    u: TensorLike,
    dt: TensorLike,
    a: TensorLike,
    b: TensorLike,
    c: TensorLike,
    d: TensorLike | None = None,
) -> Tensor:
    r"""Return the output of a diagonal state space model with data-dependent parameters.

    .. math::
        h_t = e^{\Delta_t A} \odot h_{t-1} + \Delta_t u_t B_t, \qquad y_t = C_t h_t + D \odot u_t

    Args:
        u: Input, (batch, time, channels).
        dt: Step sizes, (batch, time, channels).
        a: Decay rates, (channels, states); negative for a state that decays.
        b: Input projection, (batch, time, states).
        c: Output projection, (batch, time, states).
        d: Skip connection, (channels,). Default: none.

    Example:
        >>> one = ones((1, 3, 1))
        >>> selective_scan(one, one, [[0.0]], one, one).tolist()
        [[[1.0], [2.0], [3.0]]]
    """
    _check(u, dt, a, b, c, d)
    scaled = ops.expand_dims(dt, 2)
    decays = ops.exp(scaled * ops.swapaxes(a, 0, 1))  # (batch, time, states, channels)
    states, _ = ops.linear_recurrence(decays, ops.expand_dims(dt * u, 2) * ops.expand_dims(b, 3))
    y = ops.sum(states * ops.expand_dims(c, 3), axis=2)
    return y if d is None else y + d * u


def _check(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None) -> None:
    if u.ndim == 3 and a.ndim == 2:
        batch, time, channels = u.shape
        states = (batch, time, a.shape[1])
        right = dt.shape == u.shape and a.shape[0] == channels and b.shape == c.shape == states
        if right and (d is None or d.shape == (channels,)):
            return
    shapes = ", ".join(str(x.shape) for x in (u, dt, a, b, c, d) if x is not None)
    raise ShapeError(
        f"selective_scan: got shapes {shapes}; expected u and dt (batch, time, channels), "
        "a (channels, states), b and c (batch, time, states) and d (channels,)"
    )
