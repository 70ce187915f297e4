"""Draws from the host's stream if a seed is given, else from the backend's generator."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypedDict

import ember_ml.ops.random.native  # noqa: F401  (declares the draws)
from ember_ml._core import deferred, recording, runtime
from ember_ml._core.convert import as_dtype
from ember_ml._core.dispatch import OPS
from ember_ml._core.dtype import DEFAULT_FLOAT, DEFAULT_INT, EmberDType
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import DTypeLike, Tensor, wrap
from ember_ml._core.types import ShapeLike
from ember_ml.backend import devices

if TYPE_CHECKING:
    from ember_ml._core.random_stream import Stream
    from ember_ml.ops.random.generator import Generator

__all__: list[str] = []

Seed: TypeAlias = "int | Generator | None"
"""Seed or generator of a reproducible draw; None for the backend's own generator."""


class DrawOptions(TypedDict, total=False):
    """Keyword arguments of a draw from a generator."""

    dtype: DTypeLike | None
    device: str | None


_INTEGER_DRAWS = frozenset({"choice", "integers", "permutation", "poisson"})


def draw(
    name: str,
    shape: Any,
    *parameters: Any,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    like: Tensor | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return samples of a distribution, on the active backend or where `like` is."""
    backend = runtime.active() if like is None else like.backend
    target = _dtype(name, dtype, like)
    place = devices.resolve(backend, device) if like is None else like.device
    kind = runtime.native_dtype(backend, target)
    if recording.OPEN and (deferral := deferred.current()) is not None:
        own = None if seed is None or _is_default(seed) else stream(seed)
        continuous = name not in _INTEGER_DRAWS
        array = deferral.draw(name, shape, parameters, target.name, own, continuous=continuous)
        out = wrap(runtime.LOADED[backend].from_host(array, kind, place, None), backend)
        return out if out.shape == shape else deferral.placeholder(out, shape)
    if seed is None:
        drawn = OPS[f"random.native.{name}"].natives[backend](
            shape, *parameters, dtype=kind, device=place
        )
        return wrap(drawn, backend)
    array = getattr(stream(seed), name)(shape, *parameters, dtype=target.name)
    return wrap(runtime.LOADED[backend].from_host(array, kind, place, None), backend)


def _dtype(name: str, dtype: DTypeLike | None, like: Tensor | None) -> EmberDType:
    if name in _INTEGER_DRAWS:
        return DEFAULT_INT if dtype is None else as_dtype(dtype)
    if dtype is None:
        return like.dtype if like is not None and like.dtype.is_floating else DEFAULT_FLOAT
    target = as_dtype(dtype)
    if not target.is_floating:
        raise ArgumentTypeError(f"{name}: dtype must be floating; got {target}")
    return target


def stream(seed: int | Generator) -> Stream:
    """Return the stream of a generator, or a new stream of a seed."""
    from ember_ml._core.random_stream import Stream
    from ember_ml.ops.random.generator import Generator

    return seed.stream if isinstance(seed, Generator) else Stream(check_seed(seed))


def _is_default(seed: int | Generator) -> bool:
    from ember_ml.ops.random.generator import default_generator

    return seed is default_generator()


def check_seed(seed: SupportsIndex) -> int:
    """Return the seed as an int."""
    try:
        value = operator.index(seed)
    except TypeError:
        raise ArgumentTypeError(
            f"seed must be an int or a random.Generator; got {seed!r}"
        ) from None
    if value < 0:
        raise ArgumentError(f"seed must not be negative; got {value}")
    return value


def as_shape(op: str, shape: ShapeLike) -> tuple[int, ...]:
    """Return the shape as a tuple."""
    try:
        lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
        out = tuple([operator.index(length) for length in lengths])
    except TypeError:
        raise ArgumentTypeError(
            f"{op}: shape must be an int or a tuple or list of ints; got {shape!r}"
        ) from None
    if any(length < 0 for length in out):
        raise ArgumentError(f"{op}: lengths must not be negative; got shape {out}")
    return out


def check(op: str, holds: bool, rule: str, **values: object) -> None:
    """Raise unless a condition on the parameters holds."""
    if not holds:
        listed = ", ".join(f"{name}={value}" for name, value in values.items())
        raise ArgumentError(f"{op}: {rule}; got {listed}")
