"""Modules as functions of their parameters, and exclusive use of these by one thread."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec

from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ConcurrentUseError, ShapeError
from ember_ml._core.private_values import make_private, make_public
from ember_ml._core.tensor import Tensor, TensorLike, rebind, snapshots
from ember_ml.autodiff.transforms.gradients import differentiate as gradients_of
from ember_ml.nn import _traversal
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer, Variable
from ember_ml.nn.state_dict import saved_variables
from ember_ml.registry.base import close_matches

P = ParamSpec("P")


class Owners:
    """Threads that use variables exclusively."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting = 0
        self._threads: dict[int, int] = {}

    def acquire(self, ids: frozenset[int]) -> frozenset[int]:
        """Acquire the variables, and return those that this thread did not hold already."""
        me = threading.get_ident()
        with self._lock:
            while any(self._threads[at] != me for at in self._threads.keys() & ids):
                if me in self._threads.values():  # the other thread may wait for this one
                    raise ConcurrentUseError(
                        "the parameters are in use by another thread, which computes gradients or "
                        "evaluates with other weights; give each thread its own copy of the model"
                    )
                self._waiting += 1
                try:
                    self._changed.wait()
                finally:
                    self._waiting -= 1
            new = ids - self._threads.keys()
            self._threads.update(dict.fromkeys(new, me))
            return new

    def release(self, ids: frozenset[int]) -> None:
        """Let other threads use the variables."""
        with self._lock:
            for at in ids:
                del self._threads[at]
            if self._waiting:
                self._changed.notify_all()


OWNERS = Owners()


@contextlib.contextmanager
def exclusive(variables: Sequence[Variable]) -> Iterator[None]:
    """Let one thread at a time enter blocks with the same variables.

    For blocks that replace values of variables for all threads. Another thread waits, or gets a
    `ConcurrentUseError` if it is itself inside such a block with other variables.

    Args:
        variables: Parameters and buffers.
    """
    if not variables or is_compiling(variables[0]):
        yield  # the block becomes part of a compiled program, which replaces no values
        return
    acquired = OWNERS.acquire(frozenset(map(id, variables)))
    try:
        yield
    finally:
        OWNERS.release(acquired)


def is_compiling(variable: Variable) -> bool:
    """Return whether the caller is traced by a compiler, which cannot compile locks."""
    return runtime.LOADED[variable.backend].autodiff.is_compiling()


@contextlib.contextmanager
def substitute(variables: Sequence[Variable], values: Sequence[Tensor]) -> Iterator[None]:
    """Replace the values of variables within the block, for this thread only.

    Other threads see the values from before, and get a `ConcurrentUseError` if they change them.
    If there are none, a thread that is started within the block sees the replaced values.

    Args:
        variables: Parameters or buffers.
        values: One tensor per variable, of any dtype and backend.
    """
    if not variables:
        yield
        return
    # compilers cannot compile locks; without other threads, none can see the values
    is_alone = is_compiling(variables[0]) or threading.active_count() == 1
    private = [] if is_alone else make_private(variables)
    before = snapshots(variables)
    try:
        rebind(variables, values)
        yield
    finally:
        rebind(variables, before)
        if private:
            make_public(private)


def current_values(variables: Sequence[Variable]) -> list[Tensor]:
    """Return the current values of variables as plain tensors, without a copy."""
    return snapshots(variables)


def differentiate(
    compute: Callable[[], tuple[Any, Any]],
    parameters: Sequence[Variable],
    values: list[Tensor],
    buffers: Sequence[Buffer],
    buffer_values: Sequence[Tensor],
    cast: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Any, Any, list[Tensor | None], list[Tensor]]:
    """Return the loss, the auxiliary output, the gradients and the new values of the buffers.

    The gradient of a value that is not floating-point is None.

    Args:
        compute: Returns (loss, auxiliary output). It reads the parameters and buffers, and may
            change the buffers.
        parameters: Parameters to differentiate with respect to.
        values: Values to use for the parameters.
        buffers: All buffers that `compute` may change. Their values are restored afterwards.
        buffer_values: Values to use for the buffers.
        cast: Applied to `values` inside the differentiated function.
    """
    floating = [at for at, x in enumerate(values) if x.dtype.kind in ("float", "complex")]
    variables = [*parameters, *buffers]

    def run(tensors: list[Tensor]) -> tuple[Any, Any]:
        used = [*values, *buffer_values]
        for at, x in zip(floating, tensors, strict=True):
            used[at] = x if cast is None else cast(x)
        with substitute(variables, used):
            loss, aux = compute()
            return loss, (aux, current_values(buffers))

    loss, (aux, changed), computed = gradients_of(run, [values[at] for at in floating])
    gradients: list[Tensor | None] = [None] * len(values)
    for at, gradient in zip(floating, computed, strict=True):
        gradients[at] = gradient
    return loss, aux, gradients, changed


def functional_call(
    module: Module,
    params: Mapping[str, TensorLike],
    inputs: Any = (),
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Return the output of a module called with other values for its parameters and buffers.

    The values of the module are restored afterwards, and changes of its buffers are lost. Another
    thread that calls this function or `value_and_grad` for the same module waits. One that calls
    the module itself sees the module's own values.

    Args:
        module: The module to call.
        params: Dotted name -> value. Parameters without a value here keep their own.
        inputs: The argument, or a tuple of arguments.
        kwargs: The keyword arguments.

    Example:
        >>> layer = nn.layers.Dense(2, 1, bias=False)
        >>> ones = {"weight": ops.ones((1, 2))}
        >>> nn.functional_call(layer, ones, tensor.array([3.0, 4.0])).tolist()
        [7.0]
    """
    known = saved_variables(module)
    variables, values = [], []
    for name, param in params.items():
        if name not in known:
            raise ArgumentError(
                f"functional_call: {type(module).__name__} has no {name!r}"
                f"{close_matches(name, known)}"
            )
        value = convert_to_tensor(param)
        if value.shape != known[name].shape:
            raise ShapeError(
                f"functional_call: {name!r} has shape {known[name].shape}, the value has shape "
                f"{value.shape}"
            )
        variables.append(known[name])
        values.append(value)
    buffers = module.buffers()
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    with (
        exclusive([*variables, *buffers]),
        substitute(buffers, current_values(buffers)),
        substitute(variables, values),
    ):
        return module(*args, **(kwargs or {}))


def value_and_grad(
    model: Module, loss_fn: Callable[P, Any], has_aux: bool = False
) -> Callable[P, tuple[Any, dict[str, Tensor]]]:
    """Return a function that computes a loss and its gradients for a model's parameters.

    The gradients are a dict by dotted name. Buffers that the model changes keep their new values.
    Calls from several threads run one after the other.

    Args:
        model: Model whose trainable parameters to differentiate with respect to.
        loss_fn: Function that calls the model and returns a scalar.
        has_aux: Whether `loss_fn` returns (loss, anything). The first result is then that pair.

    Example:
        >>> layer = nn.layers.Dense(2, 1, bias=False)
        >>> step = nn.value_and_grad(layer, lambda x: layer(x).sum())
        >>> loss, grads = step(tensor.array([[3.0, 4.0]]))
        >>> grads["weight"].tolist()
        [[3.0, 4.0]]
    """

    @functools.wraps(loss_fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> tuple[Any, dict[str, Tensor]]:
        variables = _traversal.named_variables(model)
        trainable = {name: x for name, x in variables if x.trainable}
        buffers = [x for _, x in variables if isinstance(x, Buffer)]
        parameters = list(trainable.values())
        if not trainable:
            raise ArgumentError(
                f"value_and_grad: {type(model).__name__} has no trainable parameters"
            )

        def compute() -> tuple[Any, Any]:
            result = loss_fn(*args, **kwargs)
            return result if has_aux else (result, None)

        with exclusive([*parameters, *buffers]):
            loss, aux, gradients, changed = differentiate(
                compute, parameters, current_values(parameters), buffers, current_values(buffers)
            )
            for buffer, value in zip(buffers, changed, strict=True):
                buffer.become(value)
        named: Any = dict(
            zip(trainable, gradients, strict=True)
        )  # None only for integer parameters
        return ((loss, aux) if has_aux else loss), named

    return call
