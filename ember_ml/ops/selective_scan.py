"""Scan of a selective state space model."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._composite import in_float32

__all__ = ["selective_scan", "selective_scan_with_state"]


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
    return _scan(u, dt, a, b, c, d, None)[0]


@composite(rule=rules.REAL_FLOAT)
def selective_scan_with_state(
    u: TensorLike,
    dt: TensorLike,
    a: TensorLike,
    b: TensorLike,
    c: TensorLike,
    d: TensorLike,
    state: TensorLike,
) -> tuple[Tensor, Tensor]:
    r"""Return the output of `selective_scan` from a given state, and the state after it.

    .. math::
        h_t = e^{\Delta_t A} \odot h_{t-1} + \Delta_t u_t B_t, \qquad y_t = C_t h_t + D \odot u_t

    Args:
        u: Input, (batch, time, channels).
        dt: Step sizes, (batch, time, channels).
        a: Decay rates, (channels, states); negative for a state that decays.
        b: Input projection, (batch, time, states).
        c: Output projection, (batch, time, states).
        d: Skip connection, (channels,).
        state: State h before the first step, (batch, channels, states).

    Example:
        >>> one = ones((1, 3, 1))
        >>> y, state = selective_scan_with_state(
        ...     one, one, [[0.0]], one, one, [0.0], [[[5.0]]]
        ... )
        >>> y.tolist(), state.tolist()
        ([[[6.0], [7.0], [8.0]]], [[[8.0]]])
    """
    _check(u, dt, a, b, c, d)
    if state.shape != (u.shape[0], *a.shape):
        raise ShapeError(
            f"selective_scan_with_state: state has shape {state.shape}; expected (batch, "
            f"channels, states) = {(u.shape[0], *a.shape)}"
        )
    y, last = _scan(u, dt, a, b, c, d, ops.swapaxes(state, 1, 2))
    return y, ops.swapaxes(last, 1, 2)


def _scan(
    u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the output, and the last state, (batch, states, channels)."""
    scaled = ops.expand_dims(dt, 2)
    decays = ops.exp(scaled * ops.swapaxes(a, 0, 1))  # (batch, time, states, channels)
    update = ops.expand_dims(dt * u, 2) * ops.expand_dims(b, 3)
    states, last = ops.linear_recurrence(decays, update, state)
    y = ops.sum(states * ops.expand_dims(c, 3), axis=2)
    return y if d is None else y + d * u, last


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
