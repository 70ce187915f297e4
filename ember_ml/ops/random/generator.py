"""Reproducible random streams, and the global seed."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, Unpack

from ember_ml._core import runtime
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml._core.types import ShapeLike
from ember_ml.backend import selection
from ember_ml.ops.random import continuous, discrete
from ember_ml.ops.random._draw import DrawOptions, check_seed

__all__ = ["Generator", "default_generator", "get_state", "set_seed", "set_state"]


class Generator:
    """Random stream that is the same on every backend.

    Its methods are the functions of `ops.random`, which also take a generator as `seed`. Use one
    generator per thread, created with `spawn`: threads that share one get its numbers in any order.

    Args:
        seed: Nonnegative integer. Default: entropy of the operating system.

    Example:
        >>> Generator(7).normal((2, 3)).shape
        (2, 3)
    """

    __slots__ = ("stream",)

    def __init__(self, seed: int | None = None) -> None:
        from ember_ml._core.random_stream import Stream

        self.stream = Stream(None if seed is None else check_seed(seed))

    @property
    def state(self) -> dict[str, Any]:
        """State of the stream, serializable as JSON; assign it to restore the stream."""
        return self.stream.state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self.stream.state = state

    def spawn(self, count: int) -> list[Generator]:
        """Return new generators, independent of this one and of each other.

        Args:
            count: Number of generators.
        """
        return [Generator(self.stream.fresh_seed()) for _ in range(count)]

    def normal(
        self, shape: ShapeLike, mean: float = 0.0, std: float = 1.0, **options: Unpack[DrawOptions]
    ) -> Tensor:
        """Draw from this stream; see `random.normal` for the arguments."""
        return continuous.normal(shape, mean, std, seed=self, **options)

    def uniform(
        self, shape: ShapeLike, low: float = 0.0, high: float = 1.0, **options: Unpack[DrawOptions]
    ) -> Tensor:
        """Draw from this stream; see `random.uniform` for the arguments."""
        return continuous.uniform(shape, low, high, seed=self, **options)

    def truncated_normal(
        self,
        shape: ShapeLike,
        mean: float = 0.0,
        std: float = 1.0,
        lower: float = -2.0,
        upper: float = 2.0,
        **options: Unpack[DrawOptions],
    ) -> Tensor:
        """Draw from this stream; see `random.truncated_normal` for the arguments."""
        return continuous.truncated_normal(shape, mean, std, lower, upper, seed=self, **options)

    def exponential(
        self, shape: ShapeLike, rate: float = 1.0, **options: Unpack[DrawOptions]
    ) -> Tensor:
        """Draw from this stream; see `random.exponential` for the arguments."""
        return continuous.exponential(shape, rate, seed=self, **options)

    def laplace(
        self, shape: ShapeLike, loc: float = 0.0, scale: float = 1.0, **options: Unpack[DrawOptions]
    ) -> Tensor:
        """Draw from this stream; see `random.laplace` for the arguments."""
        return continuous.laplace(shape, loc, scale, seed=self, **options)

    def gumbel(
        self, shape: ShapeLike, loc: float = 0.0, scale: float = 1.0, **options: Unpack[DrawOptions]
    ) -> Tensor:
        """Draw from this stream; see `random.gumbel` for the arguments."""
        return continuous.gumbel(shape, loc, scale, seed=self, **options)

    def cauchy(
        self, shape: ShapeLike, loc: float = 0.0, scale: float = 1.0, **options: Unpack[DrawOptions]
    ) -> Tensor:
        """Draw from this stream; see `random.cauchy` for the arguments."""
        return continuous.cauchy(shape, loc, scale, seed=self, **options)

    def gamma(
        self, shape: ShapeLike, alpha: float, beta: float = 1.0, **options: Unpack[DrawOptions]
    ) -> Tensor:
        """Draw from this stream; see `random.gamma` for the arguments."""
        return continuous.gamma(shape, alpha, beta, seed=self, **options)

    def beta(self, shape: ShapeLike, a: float, b: float, **options: Unpack[DrawOptions]) -> Tensor:
        """Draw from this stream; see `random.beta` for the arguments."""
        return continuous.beta(shape, a, b, seed=self, **options)

    def orthogonal(
        self, shape: ShapeLike, gain: float = 1.0, **options: Unpack[DrawOptions]
    ) -> Tensor:
        """Draw from this stream; see `random.orthogonal` for the arguments."""
        return continuous.orthogonal(shape, gain, seed=self, **options)

    def randint(
        self,
        low: int,
        high: int | None = None,
        shape: ShapeLike = (),
        **options: Unpack[DrawOptions],
    ) -> Tensor:
        """Draw from this stream; see `random.randint` for the arguments."""
        return discrete.randint(low, high, shape, seed=self, **options)

    def bernoulli(
        self, p: TensorLike = 0.5, shape: ShapeLike | None = None, **options: Unpack[DrawOptions]
    ) -> Tensor:
        """Draw from this stream; see `random.bernoulli` for the arguments."""
        return discrete.bernoulli(p, shape, seed=self, **options)

    def categorical(
        self, logits: TensorLike, num_samples: int | None = None, axis: int = -1
    ) -> Tensor:
        """Draw from this stream; see `random.categorical` for the arguments."""
        return discrete.categorical(logits, num_samples, axis, seed=self)

    def poisson(
        self, rate: TensorLike, shape: ShapeLike | None = None, **options: Unpack[DrawOptions]
    ) -> Tensor:
        """Draw from this stream; see `random.poisson` for the arguments."""
        return discrete.poisson(rate, shape, seed=self, **options)

    def permutation(
        self, x: int | TensorLike, axis: int = 0, *, device: str | None = None
    ) -> Tensor:
        """Draw from this stream; see `random.permutation` for the arguments."""
        return discrete.permutation(x, axis, device=device, seed=self)

    def shuffle(self, x: TensorLike, axis: int = 0) -> Tensor:
        """Draw from this stream; see `random.shuffle` for the arguments."""
        return discrete.shuffle(x, axis, seed=self)

    def choice(
        self,
        a: int | TensorLike,
        shape: ShapeLike = (),
        replace: bool = True,
        p: TensorLike | None = None,
        axis: int = 0,
        *,
        device: str | None = None,
    ) -> Tensor:
        """Draw from this stream; see `random.choice` for the arguments."""
        return discrete.choice(a, shape, replace, p, axis, device=device, seed=self)


@dataclass
class _Pending:
    """Seed and states for backends that are not loaded yet."""

    seed: int | None = None
    states: dict[str, Any] = field(default_factory=dict)


_pending = _Pending()


@functools.cache
def default_generator() -> Generator:
    """Return the generator that `set_seed` seeds and that draws initial weights."""
    return Generator()


def set_seed(seed: int) -> None:
    """Seed the default generator and the native generators of all backends, loaded now or later.

    MLX has one native generator per thread; only the calling thread's is seeded.

    Args:
        seed: Integer in [0, 2**64).
    """
    value = check_seed(seed)
    if value >= 2**64:
        raise ArgumentError(f"set_seed: seed must be below 2**64; got {value}")
    default_generator().stream.reseed(value)
    _pending.seed, _pending.states = value, {}
    for backend in runtime.LOADED:
        runtime.LOADED[backend].random.seed(value)


def get_state() -> dict[str, Any]:
    """Return the state of the default generator and all loaded backends, serializable as JSON."""
    states = {name: runtime.LOADED[name].random.get_state() for name in runtime.LOADED}
    return {
        "default": default_generator().state,
        "seed": _pending.seed,
        "backends": {**_pending.states, **states},
    }


def set_state(state: dict[str, Any]) -> None:
    """Restore a state of `get_state`; a backend that is loaded later gets its state then.

    Args:
        state: Result of `get_state`.
    """
    default_generator().state = state["default"]
    _pending.seed, _pending.states = state["seed"], dict(state["backends"])
    for backend in runtime.LOADED:
        if backend in _pending.states:
            runtime.LOADED[backend].random.set_state(_pending.states.pop(backend))


def _on_load(backend: str) -> None:
    random = selection.import_backend(backend).random
    if backend in _pending.states:
        random.set_state(_pending.states.pop(backend))
    elif _pending.seed is not None:
        random.seed(_pending.seed)


runtime.on_load.append(_on_load)
