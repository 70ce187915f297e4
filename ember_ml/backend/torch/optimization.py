"""Arithmetic on lists of tensors, for optimizers: `ember_ml.backend.interface.Optimization`.

A factor is a number, or a 0-d tensor while torch's compiler traces.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
import torch
from torch._utils import _flatten_dense_tensors

from ember_ml.backend.torch import DTYPES
from ember_ml.backend.torch.state_codes import decode_state as decode_state
from ember_ml.backend.torch.state_codes import encode_state as encode_state

if TYPE_CHECKING:
    from ember_ml.backend.interface import Optimization
    from ember_ml.backend.torch import optimization

    _checked: Optimization = optimization

Arrays: TypeAlias = Sequence[torch.Tensor]
State: TypeAlias = Mapping[str, Arrays]
T = TypeVar("T")

CHUNK_BYTES: int | None = 64 << 20
"""Maximum size of the parameters that one call updates: the extra memory of a step."""


SMALL = 8192
"""Number of elements up to which copying arrays costs less than a call for each of them."""

_clone = getattr(torch, "_foreach_clone", lambda xs: [x.clone() for x in xs])  # newer than 2.5


def compiled(function: Callable[..., T]) -> Callable[..., T]:
    """Return the function of (params, grads, state, values), run without recording a graph."""

    @functools.wraps(function)
    def call(params: Arrays, grads: Arrays, state: State, values: tuple[float, ...]) -> T:
        if not torch.is_grad_enabled():
            return function(params, grads, state, values)
        with torch.no_grad():
            return function(params, grads, state, values)

    return call


def shapes(xs: Arrays) -> list[tuple[int, ...]]:
    """Return the shapes, in a form that can be compared."""
    return [x.shape for x in xs]


def epsilon(xs: Arrays) -> float:
    """Return the machine epsilon of the first array's dtype."""
    return float(torch.finfo(xs[0].dtype).eps)


def full(like: torch.Tensor, shape: tuple[int, ...], value: float, dtype: str) -> torch.Tensor:
    """Return a constant array on the device of `like`."""
    return torch.full(shape, value, dtype=DTYPES[dtype], device=like.device)


def copy(xs: Arrays) -> list[torch.Tensor]:
    """Return copies that share no memory with `xs`."""
    return list(_clone(xs))


def own(xs: Arrays) -> list[torch.Tensor]:
    """Return tensors that may be overwritten: copies if their memory is shared.

    Each tensor must be referenced by one owner and by this list.
    """
    if not _CAN_DETECT_SHARED:
        return copy(xs)
    return [x.clone() if shared else x.detach() for x, shared in zip(xs, _shared(xs), strict=True)]


def _shared(xs: Arrays) -> list[bool]:
    """Return whether each tensor has references other than one owner and this list.

    Names, containers and graphs count as references to the tensor; views and NumPy arrays of the
    same memory as uses of its storage. Memory of other libraries, such as NumPy's, is shared.
    """
    shared = []
    for x in xs:
        storage = x.untyped_storage()
        alone = sys.getrefcount(x) == _HELD and torch._C._storage_Use_Count(storage._cdata) == 2
        shared.append(not (alone and storage.resizable()))
    return shared


_HELD = 4
"""References to a tensor that is not shared: its owner, the list, the loop, getrefcount."""


def _can_detect_shared() -> bool:
    """Return whether this Python and this torch count references as `_shared` expects."""
    try:
        alone, named, viewed, saved = (torch.ones(1) for _ in range(4))
        also, view = named, viewed[:]
        with torch.enable_grad():
            graph = torch.ones(1, requires_grad=True) * saved
        shared = _shared([alone, named, viewed, saved, torch.from_numpy(np.ones(1))])
        del also, view, graph
    except (AttributeError, RuntimeError):  # these counts are not a public API of torch
        return False
    return shared == [False, True, True, True, True]


_CAN_DETECT_SHARED = _can_detect_shared()


def cast(xs: Arrays, dtype: str) -> list[torch.Tensor]:
    """Return the arrays in a dtype; those that have it already are returned as they are."""
    wanted = DTYPES[dtype]
    return [x if x.dtype is wanted else x.to(wanted) for x in xs]


def scale(xs: Arrays, factor: float | torch.Tensor) -> list[torch.Tensor]:
    """Return factor * x."""
    return list(torch._foreach_mul(xs, factor))


def scale_(xs: Arrays, factor: float | torch.Tensor) -> list[torch.Tensor]:
    """Return factor * x."""
    torch._foreach_mul_(xs, factor)
    return list(xs)


def scale_each_(xs: Arrays, factors: Sequence[float]) -> list[torch.Tensor]:
    """Return factor * x, with one factor for each array."""
    torch._foreach_mul_(xs, list(factors))
    return list(xs)


def shift_(xs: Arrays, amount: float) -> list[torch.Tensor]:
    """Return x + amount."""
    torch._foreach_add_(xs, amount)
    return list(xs)


def add(xs: Arrays, ys: Arrays, factor: float | torch.Tensor = 1.0) -> list[torch.Tensor]:
    """Return x + factor * y."""
    if isinstance(factor, torch.Tensor):
        return list(torch._foreach_add(xs, torch._foreach_mul(ys, factor)))
    return list(torch._foreach_add(xs, ys, alpha=factor))


def add_(xs: Arrays, ys: Arrays, factor: float | torch.Tensor = 1.0) -> list[torch.Tensor]:
    """Return x + factor * y."""
    if isinstance(factor, torch.Tensor):
        torch._foreach_add_(xs, torch._foreach_mul(ys, factor))
    else:
        torch._foreach_add_(xs, ys, alpha=factor)
    return list(xs)


def multiply_(xs: Arrays, ys: Arrays) -> list[torch.Tensor]:
    """Return x * y; y may be 0-d."""
    torch._foreach_mul_(xs, ys)
    return list(xs)


def divide(xs: Arrays, ys: Arrays) -> list[torch.Tensor]:
    """Return x / y; y may be 0-d."""
    return list(torch._foreach_div(xs, ys))


def divide_(xs: Arrays, ys: Arrays) -> list[torch.Tensor]:
    """Return x / y; y may be 0-d."""
    torch._foreach_div_(xs, ys)
    return list(xs)


def lerp_(xs: Arrays, ys: Arrays, weight: float | torch.Tensor) -> list[torch.Tensor]:
    """Return x + weight * (y - x)."""
    if isinstance(weight, torch.Tensor):
        return [x.lerp_(y, weight.to(x.dtype)) for x, y in zip(xs, ys, strict=True)]
    torch._foreach_lerp_(xs, ys, weight)
    return list(xs)


def addcmul_(xs: Arrays, ys: Arrays, zs: Arrays, factor: float) -> list[torch.Tensor]:
    """Return x + factor * y * z."""
    torch._foreach_addcmul_(xs, ys, zs, factor)
    return list(xs)


def addcdiv_(
    xs: Arrays, ys: Arrays, zs: Arrays, factor: float | torch.Tensor
) -> list[torch.Tensor]:
    """Return x + factor * y / z."""
    if isinstance(factor, torch.Tensor):
        return add_(xs, torch._foreach_div(ys, zs), factor)
    torch._foreach_addcdiv_(xs, ys, zs, factor)
    return list(xs)


def maximum_(xs: Arrays, ys: Arrays) -> list[torch.Tensor]:
    """Return the elementwise maximum."""
    torch._foreach_maximum_(xs, ys)
    return list(xs)


def clamp_(xs: Arrays, low: float | None = None, high: float | None = None) -> list[torch.Tensor]:
    """Return x limited to [low, high]."""
    if low is not None:
        torch._foreach_clamp_min_(xs, low)
    if high is not None:
        torch._foreach_clamp_max_(xs, high)
    return list(xs)


def sqrt(xs: Arrays) -> list[torch.Tensor]:
    """Return the square roots."""
    return list(torch._foreach_sqrt(xs))


def sign_(xs: Arrays) -> list[torch.Tensor]:
    """Return the signs."""
    torch._foreach_sign_(xs)
    return list(xs)


def norms(xs: Arrays) -> list[torch.Tensor]:
    """Return the Euclidean norm of each array, 0-d."""
    return list(torch._foreach_norm([x.float() if x.dtype.itemsize < 4 else x for x in xs]))


def global_norm(xs: Arrays) -> torch.Tensor:
    """Return the Euclidean norm of all arrays together, 0-d."""
    small = [x for x in xs if x.numel() <= SMALL and x.is_cpu and x.dtype is torch.float32]
    if len(small) < 2:
        return torch.linalg.vector_norm(torch.stack(norms(xs)))
    flat = torch.linalg.vector_norm(_flatten_dense_tensors(small))  # quicker than one by one
    if len(small) == len(xs):
        return flat
    kept = set(map(id, small))
    return torch.linalg.vector_norm(
        torch.stack([flat, *norms([x for x in xs if id(x) not in kept])])
    )


def norm_parts(xs: Arrays) -> list[torch.Tensor]:
    """Return arrays that the host can read quickly, or the norm of all, for `read_norm`."""
    if torch.compiler.is_compiling():
        return [global_norm(xs)]
    small: list[torch.Tensor] = []
    parts: list[torch.Tensor] = []
    for x in xs:
        if not x.is_cpu or x.dtype is not torch.float32:
            return [global_norm(xs)]
        (small if x.numel() <= SMALL else parts).append(x)
    if small:
        parts.append(_flatten_dense_tensors(small))
    return parts


def read_norm(parts: Arrays) -> float:
    """Return the norm as a number, computed on the host."""
    total = 0.0
    for part in parts:
        flat = part.numpy(force=True).ravel("K")
        total += float(np.dot(flat, flat))
    return math.sqrt(total) if total >= 0.0 else math.nan


def clip_factor(norm: torch.Tensor, most: float) -> torch.Tensor:
    """Return min(1, most / norm), 0-d.

    The small constant is torch's, against division by zero.
    """
    return torch.clamp(most / (norm + 1e-6), max=1.0)


def scale_by(xs: Arrays, factor: torch.Tensor | float) -> list[torch.Tensor]:
    """Return factor * x in the dtype of x; the factor is a number or a 0-d array."""
    return list(torch._foreach_mul(xs, factor))


def trust_ratios(xs: Arrays, ys: Arrays) -> list[torch.Tensor]:
    """Return x / y of 0-d arrays; 1 where one of them is zero."""
    tops, bottoms = torch.stack(list(xs)), torch.stack(list(ys))
    ones = torch.ones_like(tops)
    return list(torch.where((tops > 0) & (bottoms > 0), tops / bottoms, ones).unbind())


def mean_squares(xs: Arrays, axis: int) -> list[torch.Tensor]:
    """Return the mean of the squares along an axis, with keepdims."""
    return [(x * x).mean(dim=axis, keepdim=True) for x in xs]


def means(xs: Arrays, axis: int) -> list[torch.Tensor]:
    """Return the mean along an axis, with keepdims."""
    return [x.mean(dim=axis, keepdim=True) for x in xs]


def matmul(xs: Arrays, ys: Arrays) -> list[torch.Tensor]:
    """Return the matrix products."""
    return [x @ y for x, y in zip(xs, ys, strict=True)]


def addmm(xs: Arrays, ys: Arrays, zs: Arrays, scale: float, factor: float) -> list[torch.Tensor]:
    """Return scale * x + factor * (y @ z)."""
    return [
        torch.addmm(x, y, z, beta=scale, alpha=factor) for x, y, z in zip(xs, ys, zs, strict=True)
    ]


def transpose(xs: Arrays) -> list[torch.Tensor]:
    """Return the transposed matrices."""
    return [x.T for x in xs]


def root_mean_square(xs: Arrays) -> list[torch.Tensor]:
    """Return the root mean square of each array, 0-d."""
    return [norm / math.sqrt(max(x.numel(), 1)) for norm, x in zip(norms(xs), xs, strict=True)]


class AdamValues(Protocol):
    """Step values that the fused Adam kernels read."""

    learning_rate: float
    step: float


class SGDValues(Protocol):
    """Step values that the fused SGD kernel reads."""

    learning_rate: float
    gradient_weight: float


class AdagradValues(Protocol):
    """Step values that the fused Adagrad kernel reads."""

    learning_rate: float


def fused(name: str, values: Sequence[float | torch.Tensor]) -> Callable[..., Any] | None:
    """Return a kernel (params, grads, state, options, values) for a whole update, or None.

    Args:
        name: Name of the algorithm, such as "adamw".
        values: Numbers of the step; the kernels take no tensors, as the compiler passes them.
    """
    return _FUSED.get(name) if type(values[0]) is float else None


def _dense(xs: Arrays) -> list[torch.Tensor]:
    # The fused kernels ignore strides.
    return [x if x.is_contiguous() else x.contiguous() for x in xs]


def _steps(params: Arrays, step: float) -> list[torch.Tensor]:
    return [_step(step, params[0].device)] * len(params)


@functools.lru_cache(maxsize=8)
def _step(step: float, device: torch.device) -> torch.Tensor:
    """Return the number of a step, which the kernels read, for all parameters of a device.

    On the CPU, the memory is NumPy's: torch's record of allocations warns of memory that was
    allocated before it, and the cache frees a tensor of an earlier step.
    """
    return torch.from_numpy(np.full((), step, np.float32)).to(device)


def _fused_adam(
    kernel: Callable[..., None],
    params: Arrays,
    grads: Arrays,
    state: State,
    options: Mapping[str, Any],
    values: AdamValues,
) -> tuple[Arrays, State]:
    beta1, beta2 = options["betas"]
    params = _dense(params)
    kernel(
        params,
        _dense(grads),
        state["exp_avg"],
        state["exp_avg_sq"],
        state.get("max_exp_avg_sq", []),
        _steps(params, values.step),
        lr=values.learning_rate,
        beta1=beta1,
        beta2=beta2,
        weight_decay=options["weight_decay"],
        eps=options["eps"],
        amsgrad=options["amsgrad"],
        maximize=False,
    )
    return params, state


def _fused_sgd(
    params: Arrays, grads: Arrays, state: State, options: Mapping[str, Any], values: SGDValues
) -> tuple[Arrays, State]:
    params = _dense(params)
    torch._fused_sgd_(
        params,
        _dense(grads),
        state.get("momentum_buffer", []),
        weight_decay=options["weight_decay"],
        momentum=options["momentum"],
        lr=values.learning_rate,
        dampening=1.0 - values.gradient_weight,
        nesterov=options["nesterov"],
        maximize=False,
        is_first_step=False,
    )
    return params, state


def _fused_adagrad(
    params: Arrays, grads: Arrays, state: State, options: Mapping[str, Any], values: AdagradValues
) -> tuple[Arrays, State]:
    params = _dense(params)
    torch._fused_adagrad_(
        params,
        _dense(grads),
        state["sum"],
        _steps(params, 1.0),
        lr=values.learning_rate,
        lr_decay=0.0,  # `learning_rate` includes the decay
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
