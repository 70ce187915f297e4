"""VJP rule of the scan of spiking neurons: its adjoint, backward in time."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.ops.nn.spiking import _spiking_scan_adjoint

Tensors = tuple[Tensor, Tensor, Tensor]


@vjp_rule(ops.spiking_scan)
def _(
    g: Tensors,
    out: Tensors,
    x: Tensor,
    state: Tensor,
    beta: Tensor,
    threshold: Tensor,
    alpha: Tensor | None = None,
    rho: Tensor | None = None,
    strength: Tensor | None = None,
    taps: Tensor | None = None,
    history: Tensor | None = None,
    mask: Tensor | None = None,
    reset: str = "soft",
    refractory: int = 0,
    surrogate: str = "atan",
    slope: float = 2.0,
) -> tuple[Tensor | None, ...]:
    if not x.shape[1]:
        parameters = (beta, threshold, alpha, rho, strength, taps, history)
        zeros = [None if each is None else ops.zeros_like(each) for each in parameters]
        return g[0] + g[1], g[2], *zeros, None
    required = (x, state, beta, threshold, *out[:2], *g)
    optional = (alpha, rho, strength, taps, history, mask)
    options: dict[str, Any] = {"reset": reset, "refractory": refractory}
    options |= {"surrogate": surrogate, "slope": slope}
    return *_spiking_scan_adjoint(*required, *optional, **options), None
