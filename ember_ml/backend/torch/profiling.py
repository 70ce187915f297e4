"""Measurement of calls on torch: `ember_ml.backend.interface.Profiling`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from ember_ml.backend.interface import BackwardTimer, Profiling
    from ember_ml.backend.torch import profiling

    _checked: Profiling = profiling

METHOD = (
    "A call's time is that of its native function; on an accelerator, torch waits for each result, "
    "so that calls do not overlap. The backward pass is torch's autograd: the time of a node of "
    "its graph counts for the op that created the node."
)


def wait(out: object) -> None:
    """Wait until a result on an accelerator is computed."""
    from ember_ml.backend import torch as backend  # which imports this module

    if any(x.device.type != "cpu" for x in _tensors(out)):
        backend.synchronize()


class GraphObserver:
    """Measures the nodes of autograd's graph that a call has created, by hooks."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}  # the nodes stay alive, so that their ids stay unique

    def follow(
        self,
        native: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        out: Any,
        timer: BackwardTimer,
    ) -> None:
        """Measure the nodes between the result of a call and those of earlier calls."""
        known = self._known
        for x in _tensors((args, tuple(kwargs.values()))):
            if x.grad_fn is not None:  # of an op that was not followed
                known.setdefault(id(x.grad_fn), x.grad_fn)
        pending = [x.grad_fn for x in _tensors(out)]
        while pending:
            node = pending.pop()
            if node is None or id(node) in known:
                continue
            known[id(node)] = node
            _measure(node, timer)
            pending += [each for each, _ in node.next_functions]


def _measure(node: Any, timer: BackwardTimer) -> None:
    def before(grads: object) -> None:
        timer.start()

    def after(inputs: object, outputs: object) -> None:
        wait(inputs)
        timer.stop()

    node.register_prehook(before)
    node.register_hook(after)


def untracked() -> AbstractContextManager[None]:
    """Return a context without autograd."""
    return torch.no_grad()


def observer() -> GraphObserver:
    """Return an observer for one step."""
    return GraphObserver()


def _tensors(value: object) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested sequences."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)
