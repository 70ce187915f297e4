"""How much a model computes: the floating-point operations of one forward."""

from __future__ import annotations

from typing import Any

from ember_ml._core import align, recording, tree
from ember_ml._core.tensor import EmberTensor
from ember_ml.nn._flop_formulas import FORMULAS, FREE
from ember_ml.nn._summary import example_input
from ember_ml.nn.module import Module, inference_mode


def count_flops(model: Module, *inputs: Any) -> int:
    """The floating-point operations of one forward, not training; the same on every backend.

    A multiplication and an addition count as two; an element of any other op, such as exp, as one;
    moving numbers as none. What a backend computes by a kernel of its own is counted as its
    reference is; pairs of positions that attention masks are counted.

    Args:
        model: a module.
        inputs: tensors, or shapes of float tensors, for the forward.

    Example:
        >>> from ember_ml.nn.flops import count_flops
        >>> count_flops(nn.layers.Dense(8, 4), (2, 8))  # 2 (2 * 8 * 4 + 4)
        136
    """
    counter = Counter()
    with inference_mode(model.modules()), recording.only(counter):
        model(*[example_input(value) for value in inputs])
    return counter.total


class Counter:
    """A recorder that writes nothing down but what ops cost."""

    causal = None
    quick = None

    def __init__(self) -> None:
        self._counted = 0.0

    @property
    def total(self) -> int:
        """The operations so far."""
        return round(self._counted)

    def log_of(self, operands: list[EmberTensor]) -> None:
        """None: it tracks no values."""

    def call(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tapes: tuple[Any, ...]
    ) -> Any:
        """Compute the op, and count it; a composite without a formula by what its body does."""
        if not align.is_aligned(op, args, kwargs):
            args, kwargs = align.align(op, args, kwargs)
        cost = FORMULAS.get(op.key)
        if cost is None and op.body is not None:
            return op.body(*args, **kwargs)
        with recording.only():
            out = op.plain(*args, **kwargs)
        if cost is not None:
            bound = op.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            self._counted += cost(out, *bound.args, **bound.kwargs)
        elif op.family not in FREE:
            self._counted += _size(args if op.kind == "reduction" else out)
        return out


def is_counting() -> bool:
    """Whether this thread counts: what must not depend on the backend's habits then."""
    return any(isinstance(tape, Counter) for tape in recording.tapes())


def _size(nest: Any) -> int:
    return sum(x.size for x in tree.leaves_of(nest) if isinstance(x, EmberTensor))
