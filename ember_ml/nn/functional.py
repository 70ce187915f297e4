"""Modules as functions of their parameters."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, wrap
from ember_ml.autodiff.transforms.gradients import differentiate as gradients_of
from ember_ml.nn import _traversal
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer, Variable
from ember_ml.nn.state_dict import saved_variables
from ember_ml.registry.base import close_matches


@contextlib.contextmanager
def substitute(variables: Sequence[Variable], values: Sequence[Tensor]) -> Iterator[None]:
    """Give variables other values within the block, of any dtype and backend."""
    before = [(variable._data, variable._backend, variable._tag) for variable in variables]
    try:
        for variable, value in zip(variables, values, strict=True):
            variable._data, variable._backend, variable._tag = (
                value._data,
                value._backend,
                value._tag,
            )
        yield
    finally:
        for variable, (data, backend, tag) in zip(variables, before, strict=True):
            variable._data, variable._backend, variable._tag = data, backend, tag


def current_values(variables: Sequence[Variable]) -> list[Tensor]:
    """The values now, as plain tensors."""
    return [wrap(variable._data, variable._backend) for variable in variables]


def differentiate(
    compute: Callable[[], tuple[Any, Any]],
    parameters: Sequence[Variable],
    values: list[Tensor],
    buffers: Sequence[Buffer],
    kept: Sequence[Tensor],
    cast: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Any, Any, list[Tensor | None], list[Tensor]]:
    """The loss of (loss, aux) = compute(), aux, the gradients, and what the buffers became.

    Args:
        compute: reads the parameters and buffers, and may change the buffers.
        parameters: what to differentiate for.
        values: what stands in for them.
        buffers: all that `compute` may change; they are as before afterwards.
        kept: what stands in for them.
        cast: applied to the values on their way in.
    """
    floating = [at for at, x in enumerate(values) if x.dtype.kind in ("float", "complex")]

    def run(tensors: list[Tensor]) -> tuple[Any, Any]:
        given = list(values)
        for at, x in zip(floating, tensors, strict=True):
            given[at] = x if cast is None else cast(x)
        with substitute(buffers, kept), substitute(parameters, given):
            loss, aux = compute()
            return loss, (aux, current_values(buffers))

    tensors = [values[at] for at in floating]
    loss, (aux, changed), gradients = gradients_of(run, tensors)
    grads: list[Tensor | None] = [None] * len(values)
    for at, g in zip(floating, gradients, strict=True):
        grads[at] = g
    return loss, aux, grads, changed


def functional_call(
    module: Module,
    params: Mapping[str, Any],
    inputs: Any = (),
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """module(inputs), with other values in place of its parameters and buffers.

    The module is as before afterwards; what its buffers became is lost. While it runs, no other
    thread may use the module.

    Args:
        module: the module to call.
        params: dotted name -> value; names that are left out keep their own.
        inputs: the argument, or a tuple of arguments.
        kwargs: the keyword arguments.

    Example:
        >>> layer = nn.layers.Dense(2, 1, bias=False)
        >>> ones = {"weight": ops.ones((1, 2))}
        >>> nn.functional_call(layer, ones, tensor.array([3.0, 4.0])).tolist()
        [7.0]
    """
    known = saved_variables(module)
    variables, values = [], []
    for name, given in params.items():
        if name not in known:
            raise ArgumentError(
                f"functional_call: {type(module).__name__} has no {name!r}"
                f"{close_matches(name, known)}"
            )
        value = convert_to_tensor(given)
        if value.shape != known[name].shape:
            raise ShapeError(
                f"functional_call: {name!r} has the shape {known[name].shape}, the value "
                f"{value.shape}"
            )
        variables.append(known[name])
        values.append(value)
    buffers = module.buffers()
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    with substitute(buffers, current_values(buffers)), substitute(variables, values):
        return module(*args, **(kwargs or {}))


def value_and_grad(
    model: Module, loss_fn: Callable[..., Any], has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the loss and its gradients for the model's trainable parameters.

    Args:
        model: whose parameters to differentiate for.
        loss_fn: a function that calls the model and gives a scalar.
        has_aux: whether it gives (loss, anything).

    Gradients come as a dict by dotted name. Buffers that the model changes keep their new values.

    Example:
        >>> layer = nn.layers.Dense(2, 1, bias=False)
        >>> step = nn.value_and_grad(layer, lambda x: layer(x).sum())
        >>> loss, grads = step(tensor.array([[3.0, 4.0]]))
        >>> grads["weight"].tolist()
        [[3.0, 4.0]]
    """

    @functools.wraps(loss_fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        variables = _traversal.named_variables(model)
        named = {name: x for name, x in variables if x.trainable}
        buffers = [x for _, x in variables if isinstance(x, Buffer)]
        parameters = list(named.values())
        if not named:
            raise ArgumentError(
                f"value_and_grad: {type(model).__name__} has no trainable parameters"
            )

        def compute() -> tuple[Any, Any]:
            result = loss_fn(*args, **kwargs)
            return result if has_aux else (result, None)

        loss, aux, grads, changed = differentiate(
            compute, parameters, current_values(parameters), buffers, current_values(buffers)
        )
        for buffer, value in zip(buffers, changed, strict=True):
            buffer.become(value)
        return ((loss, aux) if has_aux else loss), dict(zip(named, grads, strict=True))

    return call
