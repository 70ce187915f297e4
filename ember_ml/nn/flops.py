"""The number of floating-point operations of a model."""

from __future__ import annotations

from typing import Any

from ember_ml._core import align, recording, tree
from ember_ml._core.tensor import EmberTensor, TensorLike
from ember_ml.nn._flop_formulas import FORMULAS, FREE
from ember_ml.nn._summary import example_input
from ember_ml.nn.module import Module, inference_mode


def count_flops(model: Module, *inputs: TensorLike, **options: Any) -> int:
    """Return the number of floating-point operations of one forward pass in inference mode.

    A multiply-add counts as two operations, an element of any other op such as exp as one, and
    data movement as none. Fused kernels count like the reference implementation, so the result is
    the same on every backend. Masked pairs of positions in attention are counted.

    Args:
        model: A module.
        inputs: Arguments of the forward pass: tensors, or shapes of float tensors.
        options: Keyword arguments of the forward pass.

    Example:
        >>> from ember_ml.nn.flops import count_flops
        >>> count_flops(nn.layers.Dense(8, 4), (2, 8))  # 2 (2 * 8 * 4 + 4)
        136
    """
    counter = Counter()
    with inference_mode(model.modules()), recording.only(counter):
        model(*[example_input(value) for value in inputs], **options)
    return counter.total


class Counter:
    """Recorder that counts operations and records nothing else."""

    causal = None
    quick = None

    def __init__(self) -> None:
        self._counted = 0.0

    @property
    def total(self) -> int:
        """Number of operations so far."""
        return round(self._counted)

    def log_of(self, operands: list[EmberTensor]) -> None:
        """Return None: the counter tracks no values."""

    def call(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tapes: tuple[Any, ...]
    ) -> Any:
        """Run an op and count it; a composite without a formula counts as the ops of its body."""
        if not align.is_aligned(op, args, kwargs):
            args, kwargs = align.align(op, args, kwargs)
        if has_own_cost(op):
            with recording.only():
                out = op.plain(*args, **kwargs)
            self._counted += cost_of(op, args, kwargs, out)
            return out
        return op.body(*args, **kwargs)


def has_own_cost(op: Any) -> bool:
    """Return whether `cost_of` counts an op; otherwise it counts as the ops of its body.

    Args:
        op: Entry of the table of ops.
    """
    return op.key in FORMULAS or op.body is None


def cost_of(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> float:
    """Return the number of operations of a call, from the shapes of its tensors.

    Args:
        op: Entry of the table of ops, which is not the sum of the ops of its body.
        args: Arguments of the call.
        kwargs: Keyword arguments of the call.
        out: Its result.
    """
    cost = FORMULAS.get(op.key)
    if cost is not None:
        bound = op.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return cost(out, *bound.args, **bound.kwargs)
    if op.family in FREE:
        return 0.0
    return float(_size(args if op.kind == "reduction" else out))


def is_counting() -> bool:
    """Return whether this thread counts operations, so that backend-specific paths are off."""
    return any(isinstance(tape, Counter) for tape in recording.tapes())


def _size(values: object) -> int:
    return sum(x.size for x in tree.leaves_of(values) if isinstance(x, EmberTensor))
