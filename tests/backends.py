"""Backends selected by what they can do, so that no test lists their names."""

from __future__ import annotations

from ember_ml._core import runtime
from ember_ml.backend import available

TRACING = {"torch": {"backend": "eager", "fullgraph": True}}
"""Options with which a slow compiler only traces."""


def has_dtype(backend: str, dtype: str) -> bool:
    """Return whether the backend has the dtype."""
    return dtype in runtime.load(backend).DTYPES


def is_lazy(backend: str) -> bool:
    """Return whether the backend computes values only when they are read."""
    return runtime.load(backend).IS_LAZY


def with_dtype(dtype: str) -> list[str]:
    """Return the installed backends that have the dtype."""
    return [name for name in available() if has_dtype(name, dtype)]


def eager() -> list[str]:
    """Return the installed backends that compute at once, and therefore check index tensors."""
    return [name for name in available() if not is_lazy(name)]


def by_rules() -> list[str]:
    """Return the installed backends whose nested gradients use the VJP rules of the ops."""
    return [name for name in available() if runtime.load(name).autodiff.ENGINE != "graph"]


def compiles(backend: str) -> bool:
    """Return whether the backend can compile functions."""
    return not runtime.load(backend).autodiff.COMPILE_UNAVAILABLE


def other_than(backend: str) -> str:
    """Return another installed backend, or the same one if there is no other."""
    return next((name for name in available() if name != backend), backend)
