"""Scan of a selective state space model."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.backend.native_selective_scan import CHUNK
from ember_ml.backend.selective_scan import check
from ember_ml.ops._composite import in_float32
from ember_ml.ops.recurrence import _linear_recurrence_adjoint

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
    check(u, dt, a, b, c, d)
    return _checkpointed_scan(u, dt, a, b, c, d)[0]


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
    check(u, dt, a, b, c, d)
    if state.shape != (u.shape[0], *a.shape):
        raise ShapeError(
            f"selective_scan_with_state: state has shape {state.shape}; expected (batch, "
            f"channels, states) = {(u.shape[0], *a.shape)}"
        )
    y, last, _ = _checkpointed_scan(u, dt, a, b, c, d, ops.swapaxes(state, 1, 2))
    return y, ops.swapaxes(last, 1, 2)


@composite(rule=rules.REAL_FLOAT)
def _checkpointed_scan(
    u: TensorLike,
    dt: TensorLike,
    a: TensorLike,
    b: TensorLike,
    c: TensorLike,
    d: TensorLike | None = None,
    state: TensorLike | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the output, the last state, and checkpoints of the states for the backward pass.

    States are (batch, states, channels). The third result holds the state after each chunk of
    16 steps, (batch, time // 16, states, channels); it has no gradient.
    """
    scaled = ops.expand_dims(dt, 2)
    decays = ops.exp(scaled * ops.swapaxes(a, 0, 1))  # (batch, time, states, channels)
    update = ops.expand_dims(dt * u, 2) * ops.expand_dims(b, 3)
    states, last = ops.linear_recurrence(decays, update, state)
    y = ops.sum(states * ops.expand_dims(c, 3), axis=2)
    saved = ops.stop_gradient(states[:, CHUNK - 1 :: CHUNK])
    return y if d is None else y + d * u, last, saved


@composite(rule=rules.REAL_FLOAT)
def _checkpointed_scan_adjoint(
    u: TensorLike,
    dt: TensorLike,
    a: TensorLike,
    b: TensorLike,
    c: TensorLike,
    saved: TensorLike,
    g: TensorLike,
    g_last: TensorLike,
    d: TensorLike | None = None,
    state: TensorLike | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of u, dt, a, b, c, d and the state; zeros for missing operands.

    The body does not use the saved states, which have no gradient.
    """
    step, rates = ops.expand_dims(dt, 2), ops.swapaxes(a, 0, 1)
    decays = ops.exp(step * rates)
    write, scaled = ops.expand_dims(b, 3), ops.expand_dims(dt * u, 2)
    states, _ = ops.linear_recurrence(decays, scaled * write, state)
    outer = ops.expand_dims(g, 2)
    last = ops.zeros_like(g_last) if state is None else state
    grad_decays, into, grad_state = _linear_recurrence_adjoint(
        decays, states, outer * ops.expand_dims(c, 3), g_last, last
    )
    exponents = grad_decays * decays
    grad_scaled = ops.sum(into * write, axis=2)
    grad_u, skip = grad_scaled * dt, ops.sum(g * u, axis=(0, 1))
    return (
        grad_u if d is None else grad_u + g * d,
        ops.sum(exponents * rates, axis=2) + grad_scaled * u,
        ops.swapaxes(ops.sum(exponents * step, axis=(0, 1)), 0, 1),
        ops.sum(into * scaled, axis=3),
        ops.sum(states * outer, axis=3),
        skip,
        grad_state,
    )
