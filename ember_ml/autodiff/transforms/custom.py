"""Functions with custom gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar

from ember_ml import ops
from ember_ml._core import recording, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, native_arrays, wrap_all
from ember_ml._core.types import NativeArray
from ember_ml.autodiff.extraction import Procedure, ValuesFunction, capture
from ember_ml.autodiff.rules import VJPRule
from ember_ml.autodiff.transforms.arguments import (
    Arguments,
    Results,
    engine,
)
from ember_ml.autodiff.values import Values

P = ParamSpec("P")
R = TypeVar("R")
Pullback: TypeAlias = Callable[..., Any]


def custom_gradient(fn: Callable[P, tuple[R, Pullback]]) -> Callable[P, R]:
    """Return a function with a custom gradient, like TensorFlow's `custom_gradient`.

    Args:
        fn: Function that returns (result, pullback). The pullback takes a cotangent per tensor of
            the result. It returns the gradient of each floating-point tensor among fn's arguments:
            a tensor, None, or a sequence of these. fn is called again for higher derivatives.

    Returns:
        A function with the arguments of fn that returns the result alone.

    Example:
        >>> @custom_gradient
        ... def clipped(x):
        ...     return x * x, lambda g: ops.clip(g * 2.0 * x, -1.0, 1.0)
        >>> float(grad(clipped)(5.0))
        1.0
    """

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = Arguments("custom_gradient", args, range(len(args)), needed=False)
        if any(isinstance(leaf, EmberTensor) for leaf in tree.leaves_of(kwargs)):
            raise ArgumentTypeError("custom_gradient: pass tensors by position, not by keyword")
        if not given.tensors:
            return fn(*args, **kwargs)[0]
        custom = _Call(fn, given, dict(kwargs))
        outputs = custom()
        return custom.results.unflatten(outputs)

    return call


class _Call:
    """One call of a function with a custom gradient."""

    results: Results
    _pullback: Pullback

    def __init__(
        self, fn: Callable[..., object], given: Arguments, kwargs: dict[str, object]
    ) -> None:
        self.given = given
        self._fn = fn
        self._kwargs = kwargs

    def __call__(self) -> Values:
        """Return the results, recorded on this thread's tapes."""
        tapes = recording.tapes()
        tensors, backend = self.given.tensors, self.given.backend
        values, rerun = tensors, None
        forward: ValuesFunction = self._forward
        native = engine(backend)
        if (tapes and native.ENGINE == "replay") or native.is_batching():
            # the replay runs the program of this call, even if fn would read other values later
            program, values, _ = capture(self._forward, tensors, backend)
            forward, rerun = program.call, len(tapes) > 1
        if native.is_batching():
            pulled, inputs = self._captured_pullback()
            plain = functools.partial(self._plain_batched, forward, pulled, len(values))
            values = [*values, *inputs]
        else:
            plain = functools.partial(self._plain, forward, rerun=rerun)
        rule = VJPRule(joint=self._rule)
        return Procedure("custom_gradient", None, backend, plain, rule)(values)

    def _run(self, tensors: Values) -> tuple[Results, Pullback]:
        both = self.given.call(self._fn, tensors, self._kwargs)
        if not isinstance(both, tuple) or len(both) != 2 or not callable(both[1]):
            raise ArgumentTypeError(
                "custom_gradient: the function must return (result, function from the result's "
                f"gradient to the arguments' gradients), not {type(both).__name__}"
            )
        return Results(both[0]), both[1]

    def _forward(self, tensors: Values) -> Values:
        self.results, self._pullback = self._run(tensors)
        return [ops.gradients.alias(x) for x in self.results.tensors]

    def _plain(self, forward: ValuesFunction, tensors: Values, rerun: bool | None = None) -> Values:
        """Return the results without recording them.

        Args:
            forward: Function that computes the results.
            tensors: The arguments' tensors, then the other inputs of `forward`.
            rerun: Whether fn runs again for its gradient. None: if the framework differentiates
                the gradient.
        """
        backend = self.given.backend
        native = engine(backend).custom_vjp
        count = len(self.given.tensors)
        if native is None:
            with recording.only():
                return forward(tensors)

        def outputs(*arrays: NativeArray) -> list[NativeArray]:
            with recording.only():
                return native_arrays(forward([*wrap_all(arrays, backend), *tensors[count:]]))

        def pullback(
            primals: Sequence[NativeArray], cotangents: Sequence[NativeArray], nested: bool
        ) -> list[NativeArray]:
            again = nested if rerun is None else rerun
            with recording.only():
                values = wrap_all(primals, backend)
                grads = self._gradients(values, wrap_all(cotangents, backend), again)
                return native_arrays(_filled(grads, values))

        return wrap_all(native(outputs, pullback, native_arrays(tensors[:count])), backend)

    def _captured_pullback(self) -> tuple[ValuesFunction, Values]:
        """Return the pullback as a function of (tensors, cotangents, inputs), and its inputs."""
        tensors = self.given.tensors
        count = len(tensors)

        def pull(values: Values) -> Values:
            grads = self._gradients(values[:count], values[count:], rerun=True)
            return _filled(grads, values[:count])

        with recording.only():
            cotangents = [ops.zeros_like(x) for x in self.results.tensors]
        program, values, _ = capture(pull, [*tensors, *cotangents], self.given.backend)
        return program.call, values[count + len(cotangents) :]

    def _plain_batched(
        self, forward: ValuesFunction, pull: ValuesFunction, end: int, tensors: Values
    ) -> Values:
        """Return the results without recording them, as a function that closes over no tensor.

        Args:
            forward: Function that computes the results.
            pull: Function that computes the gradients.
            end: Number of inputs of `forward`.
            tensors: The arguments' tensors, then the other inputs of `forward` and of `pull`.
        """
        backend, count = self.given.backend, len(self.given.tensors)

        def outputs(*arrays: NativeArray) -> list[NativeArray]:
            with recording.only():
                return native_arrays(forward(wrap_all(arrays[:end], backend)))

        def pullback(
            primals: Sequence[NativeArray], cotangents: Sequence[NativeArray], nested: bool
        ) -> list[NativeArray]:
            with recording.only():
                values = wrap_all(primals, backend)
                given = [*values[:count], *wrap_all(cotangents, backend), *values[end:]]
                return native_arrays([*pull(given), *map(ops.zeros_like, values[count:])])

        native = engine(backend).custom_vjp
        assert native is not None
        return wrap_all(native(outputs, pullback, native_arrays(tensors)), backend)

    def _rule(
        self, g: tuple[Tensor, ...], out: object, values: Values
    ) -> tuple[list[Tensor | None]]:
        """Return the gradients of the values, as a VJP rule."""
        count = len(self.given.tensors)
        native = engine(self.given.backend)
        nested = native.ENGINE == "graph" or native.differentiates_by_rules()
        rerun = nested or bool(recording.tapes())
        grads = self._gradients(values[:count], list(g), rerun)
        return ([*grads, *[None] * (len(values) - count)],)

    def _gradients(self, values: Values, cotangents: Values, rerun: bool) -> list[Tensor | None]:
        pullback = self._run(values)[1] if rerun else self._pullback
        grads = tree.leaves_of(pullback(*cotangents))
        if len(grads) != len(values):
            raise ArgumentError(
                f"custom_gradient: got {len(grads)} gradients for {len(values)} floating-point "
                "tensors among the arguments; return one per tensor, or None"
            )
        return [None if g is None else _checked(g, x) for g, x in zip(grads, values, strict=True)]


def _filled(grads: list[Tensor | None], values: Values) -> Values:
    """Return the gradients, zeros where there is none."""
    return [ops.zeros_like(x) if g is None else g for g, x in zip(grads, values, strict=True)]


def _checked(gradient: Any, x: Tensor) -> Tensor:
    g = convert_to_tensor(gradient, dtype=x.dtype, backend=x._backend)
    if g.shape != x.shape:
        raise ShapeError(
            f"custom_gradient: a gradient has the shape {g.shape}, but its argument {x.shape}"
        )
    return g
