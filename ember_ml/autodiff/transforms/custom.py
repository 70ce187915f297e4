"""Functions with gradients of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core import recording, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.capture import capture
from ember_ml.autodiff.procedure import Procedure
from ember_ml.autodiff.rules import VJPRule
from ember_ml.autodiff.transforms._arguments import (
    Arguments,
    Results,
    engine,
    natives,
    wrapped,
)
from ember_ml.autodiff.values import Values

Pull = Callable[..., Any]


def custom_gradient(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a gradient that it gives itself, as TensorFlow's.

    `fn` gives (result, pull): `pull` takes a cotangent for each tensor of the result and gives the
    gradient of each floating tensor among fn's arguments: a tensor, None, or a sequence of them.
    fn is called again where its gradient is differentiated once more.

    Example:
        >>> @custom_gradient
        ... def clipped(x):
        ...     return x * x, lambda g: ops.clip(g * 2.0 * x, -1.0, 1.0)
        >>> float(grad(clipped)(5.0))
        1.0
    """

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = Arguments("custom_gradient", args, range(len(args)), needed=False)
        if any(isinstance(leaf, EmberTensor) for leaf in tree.leaves_of(kwargs)):
            raise ArgumentTypeError("custom_gradient: pass tensors by position, not by keyword")
        if not given.tensors:
            return fn(*args, **kwargs)[0]
        run = _Call(fn, given, kwargs)
        outputs = run()
        return run.results.nest(outputs)

    return call


class _Call:
    """One call of such a function."""

    def __init__(self, fn: Callable[..., Any], given: Arguments, kwargs: dict[str, Any]) -> None:
        self.given = given
        self.results: Any = None
        self._fn = fn
        self._kwargs = kwargs
        self._pull: Any = None

    def __call__(self) -> Values:
        """The results, on the tapes of this thread."""
        tapes = recording.tapes()
        again = len(tapes) > 1
        if not tapes or engine(self.given.backend).ENGINE != "replay":
            plain, values = functools.partial(self._plain, self._forward), self.given.tensors
        else:  # to be run again as it was now, whatever becomes of what fn reads
            program, values, _ = capture(self._forward, self.given.tensors, self.given.backend)
            count = len(program.sources)

            def recorded(tensors: Values) -> Values:
                return program.run(tensors[:count], tensors[count:])

            plain = functools.partial(self._plain, recorded, again=again)
        procedure = Procedure(
            "custom_gradient", None, self.given.backend, plain, VJPRule(joint=self.rule)
        )
        return procedure(values)

    def _run(self, tensors: Values) -> tuple[Results, Pull]:
        made = self.given.call(self._fn, tensors, self._kwargs)
        if not isinstance(made, tuple) or len(made) != 2 or not callable(made[1]):
            raise ArgumentTypeError(
                "custom_gradient: the function must give (result, function from the result's "
                f"gradient to the arguments' gradients), not {type(made).__name__}"
            )
        return Results(made[0]), made[1]

    def _forward(self, tensors: Values) -> Values:
        self.results, self._pull = self._run(tensors)
        return [ops.gradients.alias(x) for x in self.results.tensors]

    def _plain(
        self, forward: Callable[[Values], Values], tensors: Values, again: bool | None = None
    ) -> Values:
        """The results, unseen by tapes.

        `again` says whether fn is run anew for its gradient; None leaves it to the framework, which
        knows whether the gradient is differentiated.
        """
        backend = self.given.backend
        native = engine(backend).custom_vjp
        count = len(self.given.tensors)
        if native is None:
            with recording.only():
                return forward(tensors)

        def outputs(*arrays: Any) -> list[Any]:
            with recording.only():
                return natives(forward([*wrapped(arrays, backend), *tensors[count:]]))

        def pull(primals: Sequence[Any], cotangents: Sequence[Any], nested: bool) -> list[Any]:
            anew = nested if again is None else again
            with recording.only():
                values = wrapped(primals, backend)
                grads = self._gradients(values, wrapped(cotangents, backend), anew)
                return natives(
                    [
                        ops.zeros_like(x) if g is None else g
                        for g, x in zip(grads, values, strict=True)
                    ]
                )

        return wrapped(native(outputs, pull, natives(tensors[:count])), backend)

    def rule(self, g: tuple[EmberTensor, ...], out: Any, values: Values) -> tuple[list[Any]]:
        """The gradients of the values."""
        return (self._gradients(values, list(g), again=bool(recording.tapes())),)

    def _gradients(self, values: Values, cotangents: Values, again: bool) -> list[Any]:
        pull = self._run(values)[1] if again else self._pull
        made = pull(*cotangents)
        grads = tree.leaves_of(made)
        if len(grads) != len(values):
            raise ArgumentError(
                f"custom_gradient: {len(grads)} gradients for {len(values)} floating tensors among "
                "the arguments; give one for each, or None"
            )
        return [None if g is None else _checked(g, x) for g, x in zip(grads, values, strict=True)]


def _checked(g: Any, x: EmberTensor) -> EmberTensor:
    made = convert_to_tensor(g, dtype=x.dtype, backend=x._backend)
    if made.shape != x.shape:
        raise ShapeError(
            f"custom_gradient: a gradient of the shape {made.shape} for an argument of {x.shape}"
        )
    return made
