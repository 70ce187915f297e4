"""VJP rule of linear attention and of the delta rule: their adjoint, backward in time."""

from __future__ import annotations

from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.ops.linear_attention import _attend, _attend_adjoint

Tensors = tuple[Tensor, Tensor, Tensor]


@vjp_rule(_attend, native_only=True)
def _(
    g: Tensors,
    out: Tensors,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    decay: Tensor | None = None,
    rate: Tensor | None = None,
    bonus: Tensor | None = None,
    state: Tensor | None = None,
) -> tuple[Tensor, ...]:
    return _attend_adjoint(query, key, value, g[0], g[1], out[2], decay, rate, bonus, state)
