"""VJP rules of normalization over trailing axes."""

from __future__ import annotations

from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.ops import nn
from ember_ml.ops.nn import adjoints


@vjp_rule(nn.layer_norm)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    axis: int = -1,
) -> tuple[Tensor | None, ...]:
    of_x, of_weight, of_bias = adjoints.layer_norm_adjoint(g, x, weight, eps, axis)
    return of_x, None if weight is None else of_weight, None if bias is None else of_bias


@vjp_rule(nn.rms_norm)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-6,
    axis: int = -1,
) -> tuple[Tensor | None, ...]:
    of_x, of_weight = adjoints.rms_norm_adjoint(g, x, weight, eps, axis)
    return of_x, None if weight is None else of_weight
