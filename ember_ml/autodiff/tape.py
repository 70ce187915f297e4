"""The gradient tape: it records ops and differentiates them."""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

from ember_ml import ops
from ember_ml._core import recording, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedOpError
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml._core.types import Tree
from ember_ml.autodiff import record
from ember_ml.autodiff.checks import (
    check_unconnected,
    flatten_cotangents,
    flatten_sources,
    flatten_targets,
    single_target,
)
from ember_ml.autodiff.log import Log
from ember_ml.autodiff.program import ProgramLog
from ember_ml.autodiff.values import basis, is_differentiable, snapshot

if TYPE_CHECKING:
    from ember_ml.autodiff.causal import CausalContext

_USED_UP = (
    "A non-persistent GradientTape can only be used to compute one set of gradients (or "
    "jacobians); create it with GradientTape(persistent=True) to compute several"
)

Unconnected = Literal["none", "zero"]


class GradientTape:
    """Records the ops on watched tensors and computes gradients, like TensorFlow's tape.

    Trainable parameters are watched when an op reads them, other tensors after `watch`. Ops of
    other threads and ops outside the `with` block are not recorded.

    Args:
        persistent: Whether gradients can be computed more than once.
        watch_accessed_variables: Whether trainable parameters are watched automatically.
        causal: Whether to record a `CausalContext` of every op, as `tape.causal`.
        max_events: Maximum number of ops and of spikes in the causal context; the oldest are
            dropped. Default: no limit.

    Example:
        >>> x = tensor.array(3.0)
        >>> with GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> float(tape.gradient(y, x))
        6.0
    """

    only_backend: ClassVar[str | None] = None
    """The only backend whose tensors are watched; None for all backends."""

    call = staticmethod(record.call)

    def __init__(
        self,
        persistent: bool = False,
        watch_accessed_variables: bool = True,
        *,
        causal: bool = False,
        max_events: int | None = None,
    ) -> None:
        self._persistent = persistent
        self._watches_parameters = watch_accessed_variables
        self._logs: dict[str, Log] = {}
        self._watched: dict[int, tuple[Tensor, list[Tensor]]] = {}
        self._recording = False
        self._entered = False
        self._used = False
        self.quick: ProgramLog | None = None  # the only log, if its fast path may be used
        self.causal: CausalContext | None = None
        if causal:
            from ember_ml.autodiff.causal import CausalContext

            self.causal = CausalContext(max_events)
            self.causal.attach(self)

    def __enter__(self) -> Self:
        if self._recording:
            raise ValueError(
                "Tape is still recording, This can happen if you try to re-enter an "
                "already-active tape."
            )
        if self._used:
            self._clear()
        self._start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._recording:
            self._stop()
        if self.causal is not None:
            self.causal.paths.release()

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
        self._used = False

    def log(self, backend: str) -> Log | None:
        """Return the log of a backend; None if nothing was watched there."""
        return self._logs.get(backend)

    def log_of(self, operands: list[Tensor]) -> Log | None:
        """Return the log that tracks an operand, else None; watch trainable parameters."""
        log = None
        logs = self._logs
        for x in operands:
            if x.trainable and self._watches_parameters and self._accepts(x):
                log = self._watch(x)
            elif x._backend in logs and id(x._data) in logs[x._backend].values:
                log = logs[x._backend]
        return log

    def _accepts(self, x: Tensor) -> bool:
        return is_differentiable(x) and self.only_backend in (None, x._backend)

    def tracks(self, x: Tensor) -> bool:
        """Return whether the tensor's current value is on the tape."""
        log = self._logs.get(x._backend)
        return log is not None and id(x._data) in log.values

    def _watch(self, x: Tensor) -> Log:
        """Track the tensor's current value; return the log of its backend."""
        if x._backend not in self._logs:
            log = self._logs[x._backend] = record.create_log(x._backend)
            log.rebinds = self.causal is None
            log.retains = self._persistent
            alone = len(self._logs) == 1 and self.causal is None
            self.quick = log if alone and isinstance(log, ProgramLog) else None
        log = self._logs[x._backend]
        value = snapshot(x)
        if id(value._data) not in log.values:
            log.watch(value)
            if id(x) not in self._watched:
                self._watched[id(x)] = x, []
            self._watched[id(x)][1].append(value)
        return log

    def watch(self, tensor: Tree[Tensor]) -> None:
        """Track a tensor, or a tree of tensors, from here on.

        After the `with` block, as in TensorFlow, this affects what the tape records if it is
        entered again.

        Args:
            tensor: Floating-point or complex tensors. Others cause a warning and have no gradient.
        """
        if self._used:
            raise RuntimeError(f"watch: {_USED_UP}")
        if not self._entered:
            raise RuntimeError("watch: the tape was never entered; call it inside the `with` block")
        for x in tree.leaves_of(tensor):
            if not isinstance(x, EmberTensor):
                raise ArgumentError(
                    f"watch: a tape tracks tensors, not {type(x).__name__}; convert the value with "
                    "tensor.convert_to_tensor"
                )
            if self.only_backend not in (None, x._backend):
                raise ArgumentTypeError(
                    f"watch: a {type(self).__name__} takes tensors of {self.only_backend}, not of "
                    f"{x._backend}; use GradientTape for any backend"
                )
            if is_differentiable(x):
                self._watch(x)
            else:
                warnings.warn(
                    f"watch: the dtype must be floating (e.g. float32) for a gradient, not "
                    f"{x.dtype}; the gradient of this tensor will be None",
                    stacklevel=2,
                )

    def watched_variables(self) -> tuple[Tensor, ...]:
        """Return the watched trainable parameters, in the order in which they were read."""
        return tuple(x for x, _ in self._watched.values() if x.trainable)

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Pause the recording within a `with` block."""
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
        """Discard everything recorded so far, and continue recording."""
        if not self._recording:
            raise ValueError("Tape is not recording.")
        self._clear()
        if self.causal is not None:
            self.causal.clear()

    @overload
    def gradient(
        self,
        target: Tree[Tensor],
        sources: Tensor,
        output_gradients: Tree[Tensor | None] | None = None,
        unconnected_gradients: Unconnected = "none",
    ) -> Tensor | None: ...

    @overload
    def gradient(
        self,
        target: Tree[Tensor],
        sources: list[Tensor],
        output_gradients: Tree[Tensor | None] | None = None,
        unconnected_gradients: Unconnected = "none",
    ) -> list[Tensor | None]: ...

    @overload
    def gradient(
        self,
        target: Tree[Tensor],
        sources: Tree[Tensor],
        output_gradients: Tree[Tensor | None] | None = None,
        unconnected_gradients: Unconnected = "none",
    ) -> Any: ...

    def gradient(
        self,
        target: Tree[Tensor],
        sources: Tree[Tensor],
        output_gradients: Tree[Tensor | None] | None = None,
        unconnected_gradients: Unconnected = "none",
    ) -> Any:
        """Return the gradient of the target with respect to each source.

        Args:
            target: Tensor to differentiate, or a tree of tensors, whose sum is differentiated.
            sources: Tensor or tree of tensors to differentiate with respect to.
            output_gradients: Gradient of each target, in the structure of `target`. Default: ones.
            unconnected_gradients: Gradient of a source that the target does not depend on: "none"
                for None, "zero" for zeros.

        Returns:
            The gradients, in the structure of `sources`.
        """
        targets, given = flatten_targets(target), flatten_sources(sources)
        cotangents = flatten_cotangents(targets, output_gradients)
        check_unconnected(unconnected_gradients)
        with self._use("gradient"):
            grads = self._gradients(targets, given, cotangents)
        if unconnected_gradients == "zero":
            grads = [
                ops.zeros_like(x) if g is None else g for g, x in zip(grads, given, strict=True)
            ]
        return tree.unflatten(tree.flatten(sources)[1], grads)

    @overload
    def jacobian(
        self, target: Tensor, sources: Tensor, unconnected_gradients: Unconnected = "none"
    ) -> Tensor | None: ...

    @overload
    def jacobian(
        self, target: Tensor, sources: Tree[Tensor], unconnected_gradients: Unconnected = "none"
    ) -> Any: ...

    def jacobian(
        self, target: Tensor, sources: Tree[Tensor], unconnected_gradients: Unconnected = "none"
    ) -> Any:
        """Return the derivative of each element of the target for each element of the sources.

        Args:
            target: Tensor to differentiate.
            sources: Tensor or tree of tensors to differentiate with respect to.
            unconnected_gradients: As in `gradient`.

        Returns:
            For each source a tensor with the axes of the target followed by those of the source,
            in the structure of `sources`.
        """
        target = single_target(target, "jacobian")
        given = flatten_sources(sources)
        check_unconnected(unconnected_gradients)
        with self._use("jacobian"):
            rows = self._rows(target, given, basis(target, target.shape))
        jacobians: list[Tensor | None] = []
        for g, x in zip(rows, given, strict=True):
            shape = (*target.shape, *x.shape)
            if g is not None:
                jacobians.append(ops.reshape(g, shape))
            else:
                jacobians.append(_zeros(shape, x) if unconnected_gradients == "zero" else None)
        return tree.unflatten(tree.flatten(sources)[1], jacobians)

    def batch_jacobian(
        self, target: Tensor, source: Tensor, unconnected_gradients: Unconnected = "none"
    ) -> Tensor:
        """Return the Jacobian of each example of a batch.

        Args:
            target: Tensor to differentiate, (batch, ...).
            source: Tensor to differentiate with respect to, (batch, ...).
            unconnected_gradients: Without effect, as in TensorFlow: the result is zero if the
                target does not depend on the source.

        Returns:
            A tensor with the batch axis, the target's other axes and the source's other axes.
        """
        target = single_target(target, "batch_jacobian")
        check_unconnected(unconnected_gradients)
        (source,) = flatten_sources([source])
        if not target.ndim or not source.ndim or target.shape[0] != source.shape[0]:
            raise ShapeError(
                f"batch_jacobian: the target {target.shape} and the source {source.shape} must "
                "have the same batch size, the length of the first axis"
            )
        batch, *rest = target.shape
        units = ops.broadcast_to(basis(target, (1, *rest)), (math.prod(rest), *target.shape))
        with self._use("batch_jacobian"):
            (rows,) = self._rows(target, [source], units)
        shape = (batch, *rest, *source.shape[1:])
        if rows is None:
            return _zeros(shape, source)
        return ops.reshape(ops.moveaxis(rows, 0, 1), shape)

    @contextlib.contextmanager
    def _use(self, method: str) -> Iterator[None]:
        """Compute gradients within the block; afterwards a non-persistent tape is used up."""
        if self._used:
            raise RuntimeError(_USED_UP)
        if not self._entered:
            raise RuntimeError(
                f"{method}: the tape has recorded nothing; compute the target inside its `with` "
                "block"
            )
        if self._recording and self._persistent:
            warnings.warn(
                f"{method} of a persistent tape inside its `with` block is recorded too, which "
                "takes time and memory; call it after the block unless you need its gradient",
                stacklevel=4,
            )
        elif self._recording:
            self._stop()
        self._used = not self._persistent
        try:
            yield
        except UnsupportedOpError as error:
            error.args = (f"GradientTape.{method}: {error}",)
            raise
        finally:
            if self._used:
                self._logs = {}
                self.quick = None

    def _recorded_values(self, x: Tensor) -> list[Tensor]:
        """Return the values of a source on the tape; an updated parameter has several."""
        known = self._watched.get(id(x))
        return [x] if known is None else known[1]

    def _gradients(
        self,
        targets: list[Tensor],
        sources: list[Tensor],
        cotangents: list[Tensor],
        batched: bool = False,
    ) -> list[Tensor | None]:
        """Return the gradient of each source, None where it has none."""
        values = [self._recorded_values(x) for x in sources]
        self._warn_unknown(sources, values)
        grads: dict[int, Tensor | None] = {}
        for backend, log in list(self._logs.items()):
            tracked = [
                x for part in values for x in part if self.tracks(x) and x._backend == backend
            ]
            pairs = [
                (x, g) for x, g in zip(targets, cotangents, strict=True) if x._backend == backend
            ]
            if tracked and pairs:
                compute = log.rows if batched else log.gradient
                parts = compute([x for x, _ in pairs], tracked, [g for _, g in pairs])
                grads.update((id(x), g) for x, g in zip(tracked, parts, strict=True))
        return [_sum([grads.get(id(x)) for x in part]) for part in values]

    def _rows(self, target: Tensor, sources: list[Tensor], units: Tensor) -> list[Tensor | None]:
        """Return the gradients for each of a batch of cotangents, stacked."""
        if not units.shape[0]:
            return [None] * len(sources)
        return self._gradients([target], sources, [units], batched=True)

    def _warn_unknown(self, sources: list[Tensor], values: list[list[Tensor]]) -> None:
        for index, (x, part) in enumerate(zip(sources, values, strict=True)):
            if is_differentiable(x) and not any(self.tracks(value) for value in part):
                warnings.warn(
                    f"the tape has not seen source {index} (shape {x.shape}), so it has no "
                    "gradient; call tape.watch(x) before x is used",
                    stacklevel=5,
                )


def _zeros(shape: tuple[int, ...], x: Tensor) -> Tensor:
    """Return zeros on the backend and in the dtype of x."""
    return convert_to_tensor(ops.zeros(shape), dtype=x.dtype, backend=x._backend)


def _sum(grads: list[Tensor | None]) -> Tensor | None:
    """Return the sum of the gradients that are not None; None if all are."""
    parts = [g for g in grads if g is not None]
    return functools.reduce(ops.add, parts) if parts else None
