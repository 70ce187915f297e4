"""Limits on gradients.

Gradients are a dict by name or a list, of tensors or None; what comes back has the same form. These
are pure functions that read nothing back to the host, for use inside of a compiled step. No tape
records them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, Tensor, wrap
from ember_ml.training.optimizer.plan import kernels

Gradients = TypeVar("Gradients", bound=Mapping[str, Any] | Sequence[Any])


def global_norm(grads: Mapping[str, Any] | Sequence[Any]) -> Tensor:
    """The Euclidean norm of all gradients together.

    Example:
        >>> from ember_ml.training.clipping import global_norm
        >>> global_norm([tensor.array([3.0]), tensor.array([4.0])]).item()
        5.0
    """
    arrays, backend = _arrays("global_norm", grads)
    return wrap(kernels(backend).global_norm(arrays), backend)


def clip_by_norm(grads: Gradients, max_norm: float, norm: Tensor | None = None) -> Gradients:
    """Scale all gradients down together, so that their norm is at most `max_norm`.

    Args:
        grads: the gradients.
        max_norm: the limit.
        norm: what `global_norm` gave for them, if it is there already.

    Example:
        >>> from ember_ml.training.clipping import clip_by_norm
        >>> clipped = clip_by_norm({"a": tensor.array([30.0, 40.0])}, 5.0)
        >>> ops.round(clipped["a"]).tolist()
        [3.0, 4.0]
    """
    _check_limit("clip_by_norm", "max_norm", max_norm)
    arrays, backend = _arrays("clip_by_norm", grads)
    k = kernels(backend)
    length = k.global_norm(arrays) if norm is None else norm._data
    factor = k.clip_factor(length, max_norm)
    return _rebuilt(grads, k.scale_by(arrays, factor), backend)


def clip_by_value(grads: Gradients, limit: float) -> Gradients:
    """Bring every element between -limit and limit.

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
    """The native arrays of those that are there, and their backend."""
    values = list(grads.values() if isinstance(grads, Mapping) else grads)
    found = [value for value in values if value is not None]
    for value in found:
        if not isinstance(value, EmberTensor):
            raise ArgumentTypeError(f"{owner}: gradients are tensors or None, not {value!r:.60}")
    backends = {value.backend for value in found}
    if len(backends) != 1:
        held = ", ".join(sorted(backends)) or "none at all"
        raise ArgumentError(f"{owner}: gradients must be on one backend, and are on {held}")
    return [value._data for value in found], backends.pop()


def _rebuilt(grads: Any, arrays: Sequence[Any], backend: str) -> Any:
    """The arrays as tensors, in the form of the gradients."""
    made = iter(arrays)

    def filled(value: Any) -> Any:
        return None if value is None else wrap(next(made), backend)

    if isinstance(grads, Mapping):
        return {name: filled(value) for name, value in grads.items()}
    return [filled(value) for value in grads]
