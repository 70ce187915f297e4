"""The gradient tape: it writes down what is computed, and differentiates it."""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Iterator
from types import TracebackType
from typing import Any, ClassVar, Self

from ember_ml import ops
from ember_ml._core import recording, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.autodiff import record
from ember_ml.autodiff.checks import (
    check_sources,
    check_unconnected,
    cotangents_of,
    targets_of,
)
from ember_ml.autodiff.quick import QuickLog
from ember_ml.autodiff.values import basis, is_differentiable, snapshot

_SPENT = (
    "A non-persistent GradientTape can only be used to compute one set of gradients (or "
    "jacobians); make it with GradientTape(persistent=True) to ask more than once"
)


class GradientTape:
    """Records the ops on watched tensors, for their gradients.

    Trainable parameters are watched when an op reads them; other tensors by `watch`. The ops of
    other threads are not recorded, nor those outside the `with` block.

    Args:
        persistent: whether gradients may be asked for more than once.
        watch_accessed_variables: whether trainable parameters are watched unasked.
        causal: whether to keep a `CausalContext` of every op, as `tape.causal`.
        max_events: how many events that context holds; the oldest give way.

    Example:
        >>> x = tensor.array(3.0)
        >>> with GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> float(tape.gradient(y, x))
        6.0
    """

    only_backend: ClassVar[str | None] = None
    """The backend whose tensors it watches; None for all."""

    def __init__(
        self,
        persistent: bool = False,
        watch_accessed_variables: bool = True,
        *,
        causal: bool = False,
        max_events: int | None = None,
    ) -> None:
        self._persistent = persistent
        self._accessed = watch_accessed_variables
        self._logs: dict[str, Any] = {}
        self._watched: dict[int, tuple[Tensor, list[Tensor]]] = {}
        self._recording = False
        self._entered = False
        self._spent = False
        self.quick: Any = None  # the only log, where calls can go to it by the short way
        self.causal: Any = None
        if causal:
            from ember_ml.autodiff.causal import CausalContext

            self.causal = CausalContext(max_events)

    def __enter__(self) -> Self:
        if self._recording:
            raise ValueError(
                "Tape is still recording, This can happen if you try to re-enter an "
                "already-active tape."
            )
        if self._spent:
            self._clear()
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._recording:
            self._stop()

    def _start(self, position: int | None = None) -> None:
        self._recording = self._entered = True
        recording.push(self, position)

    def _stop(self) -> int:
        self._recording = False
        return recording.remove(self)

    def _clear(self) -> None:
        self._logs = {}
        self.quick = None
        self._watched = {}
        self._spent = False

    call = staticmethod(record.call)

    def log(self, backend: str) -> Any:
        """What was written down on a backend; None if nothing."""
        return self._logs.get(backend)

    def log_of(self, operands: list[Tensor]) -> Any:
        """The log that tracks one of the operands, trainable parameters taken on; else None."""
        found = None
        logs = self._logs
        for x in operands:
            if x.trainable and self._accessed and self._accepts(x):
                found = self._take(x)
            elif x._backend in logs and id(x._data) in logs[x._backend].values:
                found = logs[x._backend]
        return found

    def _accepts(self, x: Tensor) -> bool:
        return is_differentiable(x) and self.only_backend in (None, x._backend)

    def tracks(self, x: Tensor) -> bool:
        """Whether the tensor's value is on the tape."""
        log = self._logs.get(x._backend)
        return log is not None and id(x._data) in log.values

    def _take(self, x: Tensor) -> Any:
        """The log of the tensor's backend, with the tensor's value tracked."""
        if x._backend not in self._logs:
            self._logs[x._backend] = record.make_log(x._backend)
            self._logs[x._backend].rebinds = self.causal is None
            self._logs[x._backend].retains = self._persistent
            first = self._logs[x._backend] if len(self._logs) == 1 else None
            self.quick = first if self.causal is None and isinstance(first, QuickLog) else None
        log = self._logs[x._backend]
        value = snapshot(x)
        if id(value._data) not in log.values:
            log.watch(value)
            if id(x) not in self._watched:
                self._watched[id(x)] = x, []
            self._watched[id(x)][1].append(value)
        return log

    def watch(self, tensor: Any) -> None:
        """Track a tensor, or a nest of them, from here on."""
        if not self._recording:
            raise RuntimeError("watch: the tape is not recording; call it inside `with` the tape")
        for x in tree.leaves_of(tensor):
            if not isinstance(x, EmberTensor):
                raise ArgumentError(
                    f"watch: a tape tracks tensors, not {type(x).__name__}; make one with "
                    "tensor.convert_to_tensor"
                )
            if self.only_backend not in (None, x._backend):
                raise ArgumentTypeError(
                    f"watch: a {type(self).__name__} takes tensors of {self.only_backend}, not of "
                    f"{x._backend}; GradientTape takes any"
                )
            if is_differentiable(x):
                self._take(x)
            else:
                warnings.warn(
                    f"watch: the dtype must be floating (e.g. float32) for a gradient, not "
                    f"{x.dtype}: that of this tensor will be None",
                    stacklevel=2,
                )

    def watched_variables(self) -> tuple[Tensor, ...]:
        """The trainable parameters that are on the tape, in the order in which they were read."""
        return tuple(x for x, _ in self._watched.values() if x.trainable)

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Leave what is done in this block off the tape."""
        if not self._entered:
            raise RuntimeError("stop_recording: the tape was never entered")
        if not self._recording:
            raise ValueError("Tape is not recording.")
        position = self._stop()
        try:
            yield
        finally:
            self._start(position)

    def reset(self) -> None:
        """Forget everything, and go on recording."""
        if not self._recording:
            raise ValueError("Tape is not recording.")
        self._clear()
        if self.causal is not None:
            self.causal.clear()

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: str = "none",
    ) -> Any:
        """The gradient of the target (of the sum of a nest of them) for each source.

        Args:
            target: a tensor or a nest of them.
            sources: a tensor or a nest of them; the result has its structure.
            output_gradients: a factor on each target's elements, in the structure of `target`.
            unconnected_gradients: "none" or "zero": what a source gets that the target does not
                depend on.
        """
        targets, given = targets_of(target), tree.leaves_of(sources)
        cotangents = cotangents_of(targets, output_gradients)
        check_unconnected(unconnected_gradients)
        check_sources(given)
        with self._use("gradient"):
            found = self._gradients(targets, given, cotangents)
        if unconnected_gradients == "zero":
            found = [
                ops.zeros_like(x) if g is None else g for g, x in zip(found, given, strict=True)
            ]
        return tree.unflatten(tree.flatten(sources)[1], found)

    def jacobian(self, target: Tensor, sources: Any, unconnected_gradients: str = "none") -> Any:
        """The derivative of each element of the target for each element of a source.

        Its shape is that of the target followed by that of the source.
        """
        (target,) = targets_of(target, one="jacobian")
        given = tree.leaves_of(sources)
        check_unconnected(unconnected_gradients)
        check_sources(given)
        units = basis(target, target.shape)
        with self._use("jacobian"):
            found = self._rows(target, given, units)
        shapes = [(*target.shape, *x.shape) for x in given]
        results: list[Any] = [
            ops.reshape(g, shape) if g is not None else None
            for g, shape in zip(found, shapes, strict=True)
        ]
        if unconnected_gradients == "zero":
            results = [
                _zeros(shape, x) if g is None else g
                for g, x, shape in zip(results, given, shapes, strict=True)
            ]
        return tree.unflatten(tree.flatten(sources)[1], results)

    def batch_jacobian(
        self, target: Tensor, source: Tensor, unconnected_gradients: str = "none"
    ) -> Tensor:
        """The jacobian of each example of a batch: (batch, *target's axes, *source's axes).

        Zeros if the target does not depend on the source: as TensorFlow's, whatever
        `unconnected_gradients` says.
        """
        (target,) = targets_of(target, one="batch_jacobian")
        check_unconnected(unconnected_gradients)
        check_sources([source])
        if not target.ndim or not source.ndim or target.shape[0] != source.shape[0]:
            raise ShapeError(
                f"batch_jacobian: the target {target.shape} and the source {source.shape} must "
                "have one batch size, the length of their first axes"
            )
        batch, *rest = target.shape
        units = ops.broadcast_to(basis(target, (1, *rest)), (math.prod(rest), *target.shape))
        with self._use("batch_jacobian"):
            (found,) = self._rows(target, [source], units)
        shape = (batch, *rest, *source.shape[1:])
        if found is None:
            return _zeros(shape, source)
        return ops.reshape(ops.moveaxis(found, 0, 1), shape)

    @contextlib.contextmanager
    def _use(self, name: str) -> Iterator[None]:
        """The tape while gradients are computed; afterwards it is spent, unless persistent."""
        if self._spent:
            raise RuntimeError(_SPENT)
        if not self._entered:
            raise RuntimeError(f"{name}: the tape has recorded nothing; compute `with` it first")
        if self._recording and self._persistent:
            warnings.warn(
                f"{name} of a persistent tape inside its `with` block is recorded as well, which "
                "takes time and memory; call it after the block unless you want its gradient",
                stacklevel=4,
            )
        elif self._recording:
            self._stop()
        self._spent = not self._persistent
        try:
            yield
        finally:
            if self._spent:
                self._logs = {}
                self.quick = None

    def _captured(self, x: Tensor) -> list[Tensor]:
        """The values of a source that the tape has: a parameter has one for each it had."""
        known = self._watched.get(id(x))
        return [x] if known is None else known[1]

    def _gradients(
        self,
        targets: list[Tensor],
        sources: list[Tensor],
        cotangents: list[Tensor],
        batched: bool = False,
    ) -> list[Any]:
        """The gradient of each source, None where it has none."""
        values = [self._captured(x) for x in sources]
        self._check_known(sources, values)
        found: dict[int, Any] = {}
        for backend, log in list(self._logs.items()):
            mine = [x for part in values for x in part if self.tracks(x) and x._backend == backend]
            pairs = [
                pair
                for pair in zip(targets, cotangents, strict=True)
                if pair[0]._backend == backend
            ]
            if mine and pairs:
                compute = log.rows if batched else log.gradient
                grads = compute([x for x, _ in pairs], mine, [g for _, g in pairs])
                found.update((id(x), g) for x, g in zip(mine, grads, strict=True))
        return [_total([found.get(id(x)) for x in part]) for part in values]

    def _rows(self, target: Tensor, sources: list[Tensor], units: Tensor) -> list[Any]:
        """The gradients for each of several cotangents, stacked."""
        if not units.shape[0]:
            return [None] * len(sources)
        return self._gradients([target], sources, [units], batched=True)

    def _check_known(self, sources: list[Tensor], values: list[list[Tensor]]) -> None:
        for at, (x, part) in enumerate(zip(sources, values, strict=True)):
            if is_differentiable(x) and not any(self.tracks(value) for value in part):
                warnings.warn(
                    f"the tape has not seen source {at} (shape {x.shape}), so it has no gradient; "
                    "call tape.watch(x) before x is used",
                    stacklevel=5,
                )


def _zeros(shape: tuple[int, ...], x: Tensor) -> Tensor:
    """Zeros on the backend and in the dtype of x."""
    return convert_to_tensor(ops.zeros(shape), dtype=x.dtype, backend=x._backend)


def _total(grads: list[Any]) -> Any:
    """The sum of the gradients that there are."""
    found = [g for g in grads if g is not None]
    return functools.reduce(ops.add, found) if found else None
