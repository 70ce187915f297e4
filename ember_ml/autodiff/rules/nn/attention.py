"""VJP rules of attention and rotary embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.ops.nn import adjoints
from ember_ml.ops.nn.attention import attend
from ember_ml.ops.nn.positions import rope, rotary_heads


@vjp_rule(attend)
def _(
    g: Tensor,
    out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:
    operands = (g, query, key, value, mask)
    grads = adjoints.attend_adjoint(*operands, causal=causal, window=window, scale=scale)
    if mask is None or not mask.dtype.is_floating:
        return *grads, None
    return *grads, adjoints.scores_gradient(*operands, causal, window, scale)[1]


@vjp_rule(rope)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    positions: Tensor | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    interleaved: bool = False,
    frequencies: Sequence[float] | None = None,
) -> tuple[Tensor, None]:
    """Rotate back."""
    if frequencies is None:
        pairs = x.shape[-1] // 2
        frequencies = [base ** (-pair / pairs) for pair in range(pairs)]
    back = [-frequency for frequency in frequencies]
    return rope(g, positions, offset=offset, interleaved=interleaved, frequencies=back), None


@vjp_rule(rotary_heads)
def _(
    g: tuple[Tensor, Tensor, Tensor],
    out: tuple[Tensor, Tensor, Tensor],
    x: Tensor,
    num_heads: int,
    num_kv_heads: int | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    frequencies: Sequence[float] | None = None,
) -> Tensor:
    return adjoints.rotary_heads_adjoint(*g, base=base, offset=offset, frequencies=frequencies)
