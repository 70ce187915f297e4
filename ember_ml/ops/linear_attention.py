"""Linear attention with decay, and with the delta rule."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.backend import attention_steps, delta_rule
from ember_ml.backend import linear_attention as shared

__all__ = ["gated_delta_rule", "gated_linear_attention"]


@composite(rule=rules.REAL_FLOAT)
def gated_linear_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    decay: TensorLike | None = None,
    bonus: TensorLike | None = None,
) -> Tensor:
    r"""Return linear attention whose state decays: the core of GLA, RWKV and retention.

    .. math:: S_t = \mathrm{diag}(e^{g_t}) S_{t-1} + k_t v_t^\top, \quad o_t = S_t^\top q_t

    With a bonus u, each position reads the state from before its own update:
    :math:`o_t = (S_{t-1} + \mathrm{diag}(u) k_t v_t^\top)^\top q_t`.

    Args:
        query: Queries, (batch, heads, time, key features).
        key: Keys, in the shape of the queries.
        value: Values, (batch, heads, time, value features).
        decay: Log decays g per key feature, in the shape of the keys, or per head, (batch or 1,
            heads, time, 1). Those below -20 are set to -20. Default: no decay.
        bonus: Weight u of a position's own key and value, (heads, key features). Default: none.

    Reference: Yang et al., "Gated Linear Attention Transformers with Hardware-Efficient Training",
    2024.

    Example:
        >>> one = ops.ones((1, 1, 3, 1))
        >>> gated_linear_attention(one, one, one)[0, 0, :, 0].tolist()
        [1.0, 2.0, 3.0]
    """
    return chunked_attention(query, key, value, decay, bonus, None)[0]


def chunked_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    decay: Tensor | None,
    bonus: Tensor | None,
    state: Tensor | None,
) -> tuple[Tensor, Tensor | None]:
    """Return the outputs and, with a state before the first position, the last state."""
    shared.check("gated_linear_attention", query, key, value, decay, bonus)
    if not query.shape[2]:
        return value, state
    y, last, _ = _attend(query, key, value, decay, None, bonus, state)
    return y, None if state is None else last


def _pad(x: Tensor, count: int) -> Tensor:
    return ops.pad(x, ((0, 0), (0, 0), (0, count), (0, 0)))


def _solve(system: Tensor, right: Tensor) -> Tensor:
    return ops.linalg.solve_triangular(system, right, unit_diagonal=True)


def _recurrence(a: Tensor, b: Tensor, h0: Tensor | None, axis: int) -> tuple[Tensor, Tensor]:
    return ops.linear_recurrence(a, b, h0, axis)


ARRAYS = shared.Arrays(ops, _pad, _recurrence, _solve)
"""The ops as an array library."""


@composite(rule=rules.REAL_FLOAT)
def gated_delta_rule(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    rate: TensorLike,
    decay: TensorLike | None = None,
) -> Tensor:
    r"""Return linear attention whose state is corrected towards each new value.

    .. math:: S_t = e^{g_t} S_{t-1} + \beta_t k_t (v_t - e^{g_t} S_{t-1}^\top k_t)^\top, \quad
        o_t = S_t^\top q_t

    Args:
        query: Queries, (batch, heads, time, key features).
        key: Keys, in the shape of the queries, usually of length 1.
        value: Values, (batch, heads, time, value features).
        rate: Step sizes beta of the corrections, (batch, heads, time, 1).
        decay: Log decays g, (batch, heads, time, 1). Those below -20 are set to -20. Default: no
            decay.

    Reference: Yang et al., "Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024.

    Example:
        >>> one = ops.ones((1, 1, 3, 1))
        >>> gated_delta_rule(one, one, one, 0.5 * one)[0, 0, :, 0].tolist()
        [0.5, 0.75, 0.875]
    """
    return chunked_delta_rule(query, key, value, rate, decay, None)[0]


def chunked_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rate: Tensor,
    decay: Tensor | None,
    state: Tensor | None,
) -> tuple[Tensor, Tensor | None]:
    """Return the outputs and, with a state before the first position, the last state."""
    delta_rule.check(query, key, value, rate, decay)
    if not query.shape[2]:
        return value, state
    y, last, _ = _attend(query, key, value, decay, rate, None, state)
    return y, None if state is None else last


@composite(rule=rules.REAL_FLOAT)
def _attend(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    decay: TensorLike | None = None,
    rate: TensorLike | None = None,
    bonus: TensorLike | None = None,
    state: TensorLike | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the outputs, the last state, and the arrays that kernels store for the gradient.

    With rates, this is the delta rule, without bonus. Without a state, the last one is empty. The
    third result is empty if no kernel computes it; it has no gradient.
    """
    empty = ops.stop_gradient(value[:, :, :0])
    clipped = None if decay is None else ops.maximum(decay, shared.MIN_LOG_DECAY)
    if rate is not None:
        y, last = delta_rule.apply(ARRAYS, query, key, value, rate, clipped, state)
        return y, empty if last is None else last, empty
    y, last = shared.attend(ARRAYS, query, key, value, clipped, bonus is not None, state)
    if bonus is not None:
        own = ops.sum(query * key * ops.expand_dims(bonus, 1), axis=-1, keepdims=True)
        y = y + own * value
    return y, empty if last is None else last, empty


@composite(rule=rules.REAL_FLOAT)
def _attend_adjoint(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    g: TensorLike,
    g_last: TensorLike,
    saved: TensorLike,
    decay: TensorLike | None = None,
    rate: TensorLike | None = None,
    bonus: TensorLike | None = None,
    state: TensorLike | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of the operands of `_attend`; zeros for missing operands.

    The body does not use the saved values, which have no gradient.
    """
    operands = (query, key, value, decay, rate, bonus)
    grads = attention_steps.adjoint(ops, operands, state, g, g_last)
    none = ops.sum(value[:, :, :0])  # zero
    q, k, v, d, r, u, s = (none if x is None else x for x in grads)
    return q, k, v, d, r, u, s
