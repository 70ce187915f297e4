"""Arithmetic on lists of tensors, for optimizers. Native tensors in, native tensors out.

Each function takes lists of tensors of any shapes and gives a list. One whose name ends in "_" may
overwrite its first list, which the caller gives up. A factor is a number, or a 0-d tensor while
torch's compiler traces.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ember_ml.backend.torch import DTYPES

Arrays = Sequence[Any]

CHUNK_BYTES: int | None = 64 << 20
"""How many bytes of parameters are renewed at once: so much is held twice for a moment."""


_clone = getattr(torch, "_foreach_clone", lambda xs: [x.clone() for x in xs])  # newer than 2.5


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of (params, grads, state, scalars), made fast; here: without a graph."""

    @functools.wraps(function)
    def call(params: Arrays, grads: Arrays, state: Any, scalars: Sequence[Any]) -> Any:
        if not torch.is_grad_enabled():
            return function(params, grads, state, scalars)
        with torch.no_grad():
            return function(params, grads, state, scalars)

    return call


def shapes(xs: Arrays) -> list[Any]:
    """The shapes, to be compared."""
    return [x.shape for x in xs]


def epsilon(xs: Arrays) -> float:
    """The distance from 1 to the next number, in the dtype of the first."""
    return float(torch.finfo(xs[0].dtype).eps)


def full(like: Any, shape: tuple[int, ...], value: float, dtype: str) -> Any:
    """A new tensor, on the device of another."""
    return torch.full(shape, value, dtype=DTYPES[dtype], device=like.device)


def copy(xs: Arrays) -> list[Any]:
    """Copies with memory of their own."""
    return list(_clone(xs))


def own(xs: Arrays) -> list[Any]:
    """Tensors to overwrite in place of these: copies, or their own memory where nobody sees it.

    Each must be held by one owner, and by this list.
    """
    if not _TELLS_SHARED:
        return copy(xs)
    return [x.clone() if shared else x.detach() for x, shared in zip(xs, _shared(xs), strict=True)]


def _shared(xs: Arrays) -> list[bool]:
    """Whether anybody but one owner and this list can see the memory.

    A name, a container or a graph counts as a reference to the tensor; a view or a NumPy array of
    the same memory as a use of its storage. Memory that came from elsewhere, as NumPy's, is shared.
    """
    found = []
    for x in xs:
        storage = x.untyped_storage()
        alone = sys.getrefcount(x) == _HELD and torch._C._storage_Use_Count(storage._cdata) == 2
        found.append(not (alone and storage.resizable()))
    return found


_HELD = 4
"""References to a tensor that is alone: its owner's, the list's, the loop's, the count's own."""


def _tells_shared() -> bool:
    """Whether this Python and this torch count references as `_shared` takes them to."""
    try:
        alone, named, viewed, saved = (torch.ones(1) for _ in range(4))
        also, view = named, viewed[:]
        with torch.enable_grad():
            graph = torch.ones(1, requires_grad=True) * saved
        found = _shared([alone, named, viewed, saved, torch.from_numpy(np.ones(1))])
        del also, view, graph
    except (AttributeError, RuntimeError):  # these counts are no public part of torch
        return False
    return found == [False, True, True, True, True]


_TELLS_SHARED = _tells_shared()


def cast(xs: Arrays, dtype: str) -> list[Any]:
    """In another dtype; what has it already is given as it is."""
    wanted = DTYPES[dtype]
    return [x if x.dtype is wanted else x.to(wanted) for x in xs]


def scale(xs: Arrays, factor: Any) -> list[Any]:
    """Factor x."""
    return list(torch._foreach_mul(xs, factor))


def scale_(xs: Arrays, factor: Any) -> list[Any]:
    """Factor x."""
    torch._foreach_mul_(xs, factor)
    return list(xs)


def scale_each_(xs: Arrays, factors: Sequence[float]) -> list[Any]:
    """Each with a factor of its own."""
    torch._foreach_mul_(xs, list(factors))
    return list(xs)


def shift_(xs: Arrays, amount: float) -> list[Any]:
    """Amount + x."""
    torch._foreach_add_(xs, amount)
    return list(xs)


def add(xs: Arrays, ys: Arrays, factor: Any = 1.0) -> list[Any]:
    """Factor y + x."""
    if isinstance(factor, torch.Tensor):
        return list(torch._foreach_add(xs, torch._foreach_mul(ys, factor)))
    return list(torch._foreach_add(xs, ys, alpha=factor))


def add_(xs: Arrays, ys: Arrays, factor: Any = 1.0) -> list[Any]:
    """Factor y + x."""
    if isinstance(factor, torch.Tensor):
        torch._foreach_add_(xs, torch._foreach_mul(ys, factor))
    else:
        torch._foreach_add_(xs, ys, alpha=factor)
    return list(xs)


def multiply_(xs: Arrays, ys: Arrays) -> list[Any]:
    """Product; y may be 0-d."""
    torch._foreach_mul_(xs, ys)
    return list(xs)


def divide(xs: Arrays, ys: Arrays) -> list[Any]:
    """Quotient."""
    return list(torch._foreach_div(xs, ys))


def divide_(xs: Arrays, ys: Arrays) -> list[Any]:
    """Quotient; y may be 0-d."""
    torch._foreach_div_(xs, ys)
    return list(xs)


def lerp_(xs: Arrays, ys: Arrays, weight: Any) -> list[Any]:
    """Weight y + (1 - weight) x."""
    if isinstance(weight, torch.Tensor):
        return [x.lerp_(y, weight.to(x.dtype)) for x, y in zip(xs, ys, strict=True)]
    torch._foreach_lerp_(xs, ys, weight)
    return list(xs)


def addcmul_(xs: Arrays, ys: Arrays, zs: Arrays, factor: float) -> list[Any]:
    """Factor y z + x."""
    torch._foreach_addcmul_(xs, ys, zs, factor)
    return list(xs)


def addcdiv_(xs: Arrays, ys: Arrays, zs: Arrays, factor: Any) -> list[Any]:
    """Factor y / z + x."""
    if isinstance(factor, torch.Tensor):
        return add_(xs, torch._foreach_div(ys, zs), factor)
    torch._foreach_addcdiv_(xs, ys, zs, factor)
    return list(xs)


def maximum_(xs: Arrays, ys: Arrays) -> list[Any]:
    """The greater of the two."""
    torch._foreach_maximum_(xs, ys)
    return list(xs)


def clamp_(xs: Arrays, low: float | None = None, high: float | None = None) -> list[Any]:
    """Between two bounds."""
    if low is not None:
        torch._foreach_clamp_min_(xs, low)
    if high is not None:
        torch._foreach_clamp_max_(xs, high)
    return list(xs)


def sqrt(xs: Arrays) -> list[Any]:
    """Square roots."""
    return list(torch._foreach_sqrt(xs))


def sign_(xs: Arrays) -> list[Any]:
    """Signs."""
    torch._foreach_sign_(xs)
    return list(xs)


def norms(xs: Arrays) -> list[Any]:
    """The Euclidean norm of each, as a 0-d tensor."""
    return list(torch._foreach_norm([x.float() if x.dtype.itemsize < 4 else x for x in xs]))


def global_norm(xs: Arrays) -> Any:
    """The Euclidean norm of all together."""
    return torch.linalg.vector_norm(torch.stack(norms(xs)))


def clip_factor(norm: Any, most: float) -> Any:
    """What brings a norm, a 0-d array, down to the most allowed; at most 1.

    The small number is torch's, against a division by zero.
    """
    return torch.clamp(most / (norm + 1e-6), max=1.0)


def scale_by(xs: Arrays, factor: Any) -> list[Any]:
    """Factor x, of a 0-d array; the dtypes stay."""
    return list(torch._foreach_mul(xs, factor))


def trust_ratios(xs: Arrays, ys: Arrays) -> list[Any]:
    """x / y of 0-d tensors; 1 where one of them is zero."""
    tops, bottoms = torch.stack(list(xs)), torch.stack(list(ys))
    ones = torch.ones_like(tops)
    return list(torch.where((tops > 0) & (bottoms > 0), tops / bottoms, ones).unbind())


def mean_squares(xs: Arrays, axis: int) -> list[Any]:
    """The mean of the squares along an axis, which stays with length 1."""
    return [(x * x).mean(dim=axis, keepdim=True) for x in xs]


def means(xs: Arrays, axis: int) -> list[Any]:
    """The mean along an axis, which stays with length 1."""
    return [x.mean(dim=axis, keepdim=True) for x in xs]


def matmul(xs: Arrays, ys: Arrays) -> list[Any]:
    """Matrix products."""
    return [x @ y for x, y in zip(xs, ys, strict=True)]


def addmm(xs: Arrays, ys: Arrays, zs: Arrays, scale: float, factor: float) -> list[Any]:
    """Scale x + factor (y z), of matrices."""
    return [
        torch.addmm(x, y, z, beta=scale, alpha=factor) for x, y, z in zip(xs, ys, zs, strict=True)
    ]


def transpose(xs: Arrays) -> list[Any]:
    """The transposes of matrices."""
    return [x.T for x in xs]


def root_mean_square(xs: Arrays) -> list[Any]:
    """The root of the mean of the squares, as a 0-d tensor."""
    return [norm / math.sqrt(max(x.numel(), 1)) for norm, x in zip(norms(xs), xs, strict=True)]


def fused(rule: str) -> Callable[..., Any] | None:
    """A kernel (params, grads, state, options, scalars) that replaces a rule's arithmetic."""
    return _FUSED.get(rule)


def _dense(xs: Arrays) -> list[Any]:
    # The fused kernels walk through memory and do not look at strides.
    return [x if x.is_contiguous() else x.contiguous() for x in xs]


def _steps(params: Arrays, step: float) -> list[Any]:
    return [torch.full((), step, device=params[0].device)] * len(params)


def _fused_adam(
    kernel: Callable[..., Any],
    params: Arrays,
    grads: Arrays,
    state: dict[str, Any],
    options: Any,
    scalars: Sequence[float],
) -> tuple[list[Any], dict[str, Any]]:
    *_, rate, step = scalars
    beta1, beta2 = options["betas"]
    params = _dense(params)
    kernel(
        params,
        _dense(grads),
        state["exp_avg"],
        state["exp_avg_sq"],
        state.get("max_exp_avg_sq", []),
        _steps(params, step),
        lr=rate,
        beta1=beta1,
        beta2=beta2,
        weight_decay=options["weight_decay"],
        eps=options["eps"],
        amsgrad=options["amsgrad"],
        maximize=False,
    )
    return params, state


def _fused_sgd(
    params: Arrays,
    grads: Arrays,
    state: dict[str, Any],
    options: Any,
    scalars: Sequence[float],
) -> tuple[list[Any], dict[str, Any]]:
    rate, share = scalars
    params = _dense(params)
    torch._fused_sgd_(
        params,
        _dense(grads),
        state.get("momentum_buffer", []),
        weight_decay=options["weight_decay"],
        momentum=options["momentum"],
        lr=-rate,
        dampening=1.0 - share,
        nesterov=options["nesterov"],
        maximize=False,
        is_first_step=False,
    )
    return params, state


def _fused_adagrad(
    params: Arrays,
    grads: Arrays,
    state: dict[str, Any],
    options: Any,
    scalars: Sequence[float],
) -> tuple[list[Any], dict[str, Any]]:
    (rate,) = scalars  # the decay of the rate is in it already
    params = _dense(params)
    torch._fused_adagrad_(
        params,
        _dense(grads),
        state["sum"],
        _steps(params, 1.0),
        lr=-rate,
        lr_decay=0.0,
        weight_decay=options["weight_decay"],
        eps=options["eps"],
        maximize=False,
    )
    return params, state


_FUSED: dict[str, Callable[..., Any]] = {
    "adam": functools.partial(_fused_adam, torch._fused_adam_),
    "adamw": functools.partial(_fused_adam, torch._fused_adamw_),
    "sgd": _fused_sgd,
    "adagrad": _fused_adagrad,
}
