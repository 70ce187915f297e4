"""Gradient clipping.

Gradients are a dict by name or a list, of tensors or None; the result has the same form. These are
pure functions without host reads, for use inside a compiled step. Tapes do not record them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.training.optimizer.plan import kernels

EPSILON = 1e-6
"""Added to a norm before dividing by it, as in torch and in `Optimization.clip_factor`."""

Gradients = TypeVar("Gradients", bound=Mapping[str, Any] | Sequence[Any])


def global_norm(grads: Mapping[str, Any] | Sequence[Any]) -> Tensor:
    """Return the Euclidean norm of all gradients together.

    Args:
        grads: The gradients.

    Example:
        >>> from ember_ml.training.clipping import global_norm
        >>> global_norm([tensor.array([3.0]), tensor.array([4.0])]).item()
        5.0
    """
    arrays, backend = _arrays("global_norm", grads)
    return Tensor.from_native(kernels(backend).global_norm(arrays), backend)


def clip_by_norm(
    grads: Gradients, max_norm: float, norm: Tensor | float | None = None
) -> Gradients:
    """Return the gradients scaled down to a norm of at most `max_norm`.

    Args:
        grads: The gradients.
        max_norm: Maximum norm of all gradients together.
        norm: Result of `global_norm`, or that number, if it is known. Default: computed here.

    Example:
        >>> from ember_ml.training.clipping import clip_by_norm
        >>> clipped = clip_by_norm({"a": tensor.array([30.0, 40.0])}, 5.0)
        >>> ops.round(clipped["a"]).tolist()
        [3.0, 4.0]
    """
    _check_limit("clip_by_norm", "max_norm", max_norm)
    arrays, backend = _arrays("clip_by_norm", grads)
    k = kernels(backend)
    if isinstance(norm, (int, float)):
        factor = min(max_norm / (norm + EPSILON), 1.0)
    else:
        factor = k.clip_factor(k.global_norm(arrays) if norm is None else norm.native, max_norm)
    return _rebuilt(grads, k.scale_by(arrays, factor), backend)


def clip_by_value(grads: Gradients, limit: float) -> Gradients:
    """Return the gradients with every element limited to [-limit, limit].

    Args:
        grads: The gradients.
        limit: Maximum absolute value.

    Example:
        >>> from ember_ml.training.clipping import clip_by_value
        >>> clip_by_value([tensor.array([3.0, -4.0, 0.5])], 1.0)[0].tolist()
        [1.0, -1.0, 0.5]
    """
    _check_limit("clip_by_value", "limit", limit)
    arrays, backend = _arrays("clip_by_value", grads)
    k = kernels(backend)
    return _rebuilt(grads, k.clamp_(k.copy(arrays), low=-limit, high=limit), backend)


def _check_limit(owner: str, name: str, value: float) -> None:
    if not value > 0:
        raise ArgumentError(f"{owner}: {name} must be more than 0, not {value!r}")


def _arrays(owner: str, grads: Any) -> tuple[list[Any], str]:
    """Return the native arrays of the gradients that are not None, and their backend."""
    values = list(grads.values() if isinstance(grads, Mapping) else grads)
    present = [value for value in values if value is not None]
    for value in present:
        if not isinstance(value, EmberTensor):
            raise ArgumentTypeError(f"{owner}: gradients are tensors or None, not {value!r:.60}")
    backends = {value.backend for value in present}
    if len(backends) != 1:
        held = ", ".join(sorted(backends)) or "none at all"
        raise ArgumentError(f"{owner}: gradients must be on one backend, and are on {held}")
    return [value.native for value in present], backends.pop()


def _rebuilt(grads: Any, arrays: Sequence[Any], backend: str) -> Any:
    """Return the arrays as tensors, in the form of the gradients."""
    remaining = iter(arrays)

    def filled(value: Any) -> Any:
        return None if value is None else Tensor.from_native(next(remaining), backend)

    if isinstance(grads, Mapping):
        return {name: filled(value) for name, value in grads.items()}
    return [filled(value) for value in grads]
