"""Reproducible streams, and the seed of them all."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from ember_ml._core import runtime
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.random import continuous, discrete
from ember_ml.ops.random._draw import Shape, check_seed

__all__ = ["Generator", "default_generator", "get_state", "set_seed", "set_state"]


class Generator:
    """A stream of random numbers that is the same on every backend.

    Its methods are the functions of `ops.random`, which take a generator as `seed` too. Threads
    that share one get its numbers in any order: `spawn` one for each.

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
        """The state, fit for JSON; set it to go back to it."""
        return self.stream.state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self.stream.state = state

    def spawn(self, count: int) -> list[Generator]:
        """New generators, independent of this one and of each other."""
        return [Generator(self.stream.fresh_seed()) for _ in range(count)]

    def normal(self, shape: Shape, mean: float = 0.0, std: float = 1.0, **options: Any) -> Tensor:
        """As `random.normal`."""
        return continuous.normal(shape, mean, std, seed=self, **options)

    def uniform(self, shape: Shape, low: float = 0.0, high: float = 1.0, **options: Any) -> Tensor:
        """As `random.uniform`."""
        return continuous.uniform(shape, low, high, seed=self, **options)

    def truncated_normal(
        self,
        shape: Shape,
        mean: float = 0.0,
        std: float = 1.0,
        lower: float = -2.0,
        upper: float = 2.0,
        **options: Any,
    ) -> Tensor:
        """As `random.truncated_normal`."""
        return continuous.truncated_normal(shape, mean, std, lower, upper, seed=self, **options)

    def exponential(self, shape: Shape, rate: float = 1.0, **options: Any) -> Tensor:
        """As `random.exponential`."""
        return continuous.exponential(shape, rate, seed=self, **options)

    def laplace(self, shape: Shape, loc: float = 0.0, scale: float = 1.0, **options: Any) -> Tensor:
        """As `random.laplace`."""
        return continuous.laplace(shape, loc, scale, seed=self, **options)

    def gumbel(self, shape: Shape, loc: float = 0.0, scale: float = 1.0, **options: Any) -> Tensor:
        """As `random.gumbel`."""
        return continuous.gumbel(shape, loc, scale, seed=self, **options)

    def cauchy(self, shape: Shape, loc: float = 0.0, scale: float = 1.0, **options: Any) -> Tensor:
        """As `random.cauchy`."""
        return continuous.cauchy(shape, loc, scale, seed=self, **options)

    def gamma(self, shape: Shape, alpha: float, beta: float = 1.0, **options: Any) -> Tensor:
        """As `random.gamma`."""
        return continuous.gamma(shape, alpha, beta, seed=self, **options)

    def beta(self, shape: Shape, a: float, b: float, **options: Any) -> Tensor:
        """As `random.beta`."""
        return continuous.beta(shape, a, b, seed=self, **options)

    def orthogonal(self, shape: Shape, gain: float = 1.0, **options: Any) -> Tensor:
        """As `random.orthogonal`."""
        return continuous.orthogonal(shape, gain, seed=self, **options)

    def randint(
        self, low: int, high: int | None = None, shape: Shape = (), **options: Any
    ) -> Tensor:
        """As `random.randint`."""
        return discrete.randint(low, high, shape, seed=self, **options)

    def bernoulli(self, p: TensorLike = 0.5, shape: Shape | None = None, **options: Any) -> Tensor:
        """As `random.bernoulli`."""
        return discrete.bernoulli(p, shape, seed=self, **options)

    def categorical(
        self, logits: TensorLike, num_samples: int | None = None, axis: int = -1
    ) -> Tensor:
        """As `random.categorical`."""
        return discrete.categorical(logits, num_samples, axis, seed=self)

    def poisson(self, rate: TensorLike, shape: Shape | None = None, **options: Any) -> Tensor:
        """As `random.poisson`."""
        return discrete.poisson(rate, shape, seed=self, **options)

    def permutation(self, x: int | TensorLike, axis: int = 0, **options: Any) -> Tensor:
        """As `random.permutation`."""
        return discrete.permutation(x, axis, seed=self, **options)

    def shuffle(self, x: TensorLike, axis: int = 0) -> Tensor:
        """As `random.shuffle`."""
        return discrete.shuffle(x, axis, seed=self)

    def choice(
        self,
        a: int | TensorLike,
        shape: Shape = (),
        replace: bool = True,
        p: TensorLike | None = None,
        axis: int = 0,
        **options: Any,
    ) -> Tensor:
        """As `random.choice`."""
        return discrete.choice(a, shape, replace, p, axis, seed=self, **options)


_waiting: dict[str, Any] = {"seed": None, "states": {}}


@functools.cache
def default_generator() -> Generator:
    """The generator that `set_seed` seeds; initial weights are drawn from it."""
    return Generator()


def _native(backend: str) -> Any:
    return importlib.import_module(f"ember_ml.backend.{backend}.ops.random.native")


def set_seed(seed: int) -> None:
    """Seed the default generator and the native generator of every backend, those loaded later too.

    MLX keeps a native generator for each thread; there it is the calling thread's that is seeded.
    """
    value = check_seed(seed)
    if value >= 2**64:
        raise ArgumentError(f"set_seed: the seed must be below 2**64, not {value}")
    default_generator().stream.reseed(value)
    _waiting.update(seed=value, states={})
    for backend in runtime.LOADED:
        _native(backend).seed(value)


def get_state() -> dict[str, Any]:
    """The state of the default generator and of every loaded backend's generator, fit for JSON."""
    states = {name: _native(name).get_state() for name in runtime.LOADED}
    return {
        "default": default_generator().state,
        "seed": _waiting["seed"],
        "backends": {**_waiting["states"], **states},
    }


def set_state(state: dict[str, Any]) -> None:
    """Go back to a state; a backend that is not loaded yet gets its own when it is."""
    default_generator().state = state["default"]
    _waiting.update(seed=state["seed"], states=dict(state["backends"]))
    for backend in runtime.LOADED:
        if backend in state["backends"]:
            _native(backend).set_state(_waiting["states"].pop(backend))


def _on_load(backend: str) -> None:
    if backend in _waiting["states"]:
        _native(backend).set_state(_waiting["states"].pop(backend))
    elif _waiting["seed"] is not None:
        _native(backend).seed(_waiting["seed"])


runtime.on_load.append(_on_load)
