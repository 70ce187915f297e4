"""Linear attention with decay, and the recurrence of the delta rule over chunks."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.backend import linear_attention as shared

__all__ = ["delta_recurrence", "gated_linear_attention"]


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
    decay = None if decay is None else ops.maximum(decay, shared.MIN_LOG_DECAY)
    strict = bonus is not None
    y, state = shared.attend(ARRAYS, query, key, value, decay, strict, state)
    if bonus is None:
        return y, state
    own = ops.sum(query * key * ops.expand_dims(bonus, 1), axis=-1, keepdims=True)
    return y + own * value, state


def _pad(x: Tensor, count: int) -> Tensor:
    return ops.pad(x, ((0, 0), (0, 0), (0, count), (0, 0)))


ARRAYS = shared.Arrays(ops, _pad, lambda *args, **options: ops.linear_recurrence(*args, **options))
"""The ops as an array library."""


@composite(rule=rules.REAL_FLOAT)
def delta_recurrence(
    value: TensorLike,
    key: TensorLike,
    scores: TensorLike,
    query: TensorLike,
    writes: TensorLike,
    decay: TensorLike,
    state: TensorLike | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Return the outputs of the delta rule in chunks, and the last state.

    .. math:: E_c = V_c - K_c S_{c-1}, \quad O_c = A_c E_c + Q_c S_{c-1}, \quad
        S_c = \gamma_c S_{c-1} + W_c E_c

    Args:
        value: Corrections V without a state, (batch, heads, chunks, size, value features).
        key: What they lose to the state, K, (batch, heads, chunks, size, key features).
        scores: Weights A within a chunk, (batch, heads, chunks, size, size).
        query: Queries Q, decayed to the start of the chunk, in the shape of `key`.
        writes: Keys W, decayed to the end of the chunk, (batch, heads, chunks, key features, size).
        decay: Decay over each chunk, (batch, heads, chunks, 1, 1).
        state: State before the first chunk, (batch, heads, key features, value features).
            Default: zeros.

    Returns:
        The outputs, in the shape of `value`, and the state after the last chunk.

    Reference: Yang et al., "Parallelizing Linear Transformers with the Delta Rule over Sequence
    Length", 2024.
    """
    parts = (value, key, scores, query, writes, decay)
    if any(part.ndim != 5 or part.shape[:3] != value.shape[:3] for part in parts):
        shapes = ", ".join(str(part.shape) for part in parts)
        raise ShapeError(
            f"delta_recurrence: got shapes {shapes}; expected six arrays with five axes that start "
            "with (batch, heads, chunks)"
        )
    outputs: list[Tensor] = []
    for v, k, a, q, w, factor in zip(*(ops.unstack(part, 2) for part in parts), strict=True):
        v = v if state is None else v - ops.matmul(k, state)
        output = ops.matmul(a, v)
        outputs.append(output if state is None else output + ops.matmul(q, state))
        update = ops.matmul(w, v)
        state = update if state is None else factor * state + update
    return ops.stack(outputs, axis=2), state
