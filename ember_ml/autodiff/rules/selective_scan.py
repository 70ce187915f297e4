"""VJP rule of the selective scan: its adjoint, backward in time."""

from __future__ import annotations

from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.ops.selective_scan import _checkpointed_scan, _checkpointed_scan_adjoint

Tensors = tuple[Tensor, Tensor, Tensor]


@vjp_rule(_checkpointed_scan, native_only=True)
def _(
    g: Tensors,
    out: Tensors,
    u: Tensor,
    dt: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor | None = None,
    state: Tensor | None = None,
) -> tuple[Tensor, ...]:
    return _checkpointed_scan_adjoint(u, dt, a, b, c, out[2], g[0], g[1], d, state)
