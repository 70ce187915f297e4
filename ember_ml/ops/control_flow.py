"""Loops and branches over pytrees of tensors, traceable by compilers and recorded by tapes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from ember_ml import ops
from ember_ml._core import recording, runtime, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import PYTHON_TYPES
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike, wrap
from ember_ml._core.types import NativeArray
from ember_ml.ops._arguments import normalize_axis
from ember_ml.ops._pytrees import (
    T,
    agree,
    alike,
    as_tensors,
    described,
    home_of,
    matched,
    selected,
)

if TYPE_CHECKING:
    from ember_ml.backend.interface import Scan

__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "while_loop"]

Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")


def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]],
    init: Carry,
    xs: X | None = None,
    length: int | None = None,
    reverse: bool = False,
    axis: int = 0,
) -> tuple[Carry, Y]:
    """Carry a state through the slices of xs: `carry, y = f(carry, x)` for each slice.

    Args:
        f: Step function. The returned carry has the structure, shapes and dtypes of its input; y is
            a pytree of tensors or None. Without slices, f is called once on zeros to determine y.
        init: Initial carry, a pytree of tensors.
        xs: Pytree of tensors with equal length along `axis`. None if steps read no input.
        length: Number of steps; required if xs is None.
        reverse: Whether to run from the last slice to the first; each y is at the position of its
            x.
        axis: Axis of xs to iterate over, and axis of the stacked ys.

    Returns:
        The last carry, and the stacked ys.

    Example:
        >>> total, sums = scan(lambda c, x: (c + x, c + x), tensor.array(0.0), ops.arange(4.0))
        >>> total.item(), sums.tolist()
        (6.0, [0.0, 1.0, 3.0, 6.0])
    """
    leaves, structure = tree.flatten(xs)
    home = home_of(leaves, init)
    read = [None if x is None else convert_to_tensor(x, backend=home) for x in leaves]
    steps = _length("scan", read, axis, length)
    carry = as_tensors(init, home)
    native = runtime.load(home).autodiff.scan
    if native is not None and steps and not recording.tapes():
        out = _native_scan(native, f, carry, tree.unflatten(structure, read), steps, reverse, axis)
        if out is not None:
            return out
    columns = [None if x is None else ops.unstack(x, axis) for x in read]
    if not steps:
        zeros = [None if x is None else _zero_slice(x, axis) for x in read]
        _, y = _step(f, carry, tree.unflatten(structure, zeros))
        return carry, tree.map_leaves(lambda one: _stacked([one], axis, 0), as_tensors(y, home))
    ys = []
    places = range(steps)
    for x in _slices(structure, columns, places[::-1] if reverse else places):
        new, y = _step(f, carry, x)
        carry = new if alike(carry, new) else matched("scan", "f", carry, new)
        ys.append(y if type(y) is EmberTensor else as_tensors(y, home))
    return carry, _joined(ys[::-1] if reverse else ys, axis)


class _Form:
    """Structure of a pytree, to rebuild it from the native arrays of its tensors."""

    def __init__(self, x: object) -> None:
        leaves, self._structure = tree.flatten(x)
        self._present = [x is not None for x in leaves]
        self.arrays = [x._data for x in leaves if x is not None]

    def rebuild(self, arrays: Iterable[NativeArray], backend: str) -> Any:
        rest = iter(arrays)
        leaves = [wrap(next(rest), backend) if present else None for present in self._present]
        return tree.unflatten(self._structure, leaves)


def _native_scan(
    native: Scan,
    f: Callable[[Carry, X], tuple[Carry, Y]],
    carry: Carry,
    xs: X,
    steps: int,
    reverse: bool,
    axis: int,
) -> tuple[Carry, Y] | None:
    """Run `scan` in a loop of the framework; return None if the framework declines."""
    home = home_of(carry, xs)
    state, slices = _Form(carry), _Form(_moved(xs, axis, 0))
    results: list[_Form] = []

    def step(
        carried: Sequence[NativeArray], slice_: Sequence[NativeArray]
    ) -> tuple[list[NativeArray], list[NativeArray]]:
        before = state.rebuild(carried, home)
        new, y = _step(f, before, slices.rebuild(slice_, home))
        new = new if alike(before, new) else matched("scan", "f", before, new)
        results[:] = [_Form(as_tensors(y, home))]
        return _Form(new).arrays, results[0].arrays

    out = native(step, state.arrays, slices.arrays, steps, reverse)
    if out is None:
        return None
    last, ys = out
    return state.rebuild(last, home), _moved(results[0].rebuild(ys, home), 0, axis)


def _moved(x: T, source: int, destination: int) -> T:
    """Return the pytree with an axis of its tensors moved."""
    return tree.map_leaves(
        lambda leaf: None if leaf is None else ops.moveaxis(leaf, source, destination), x
    )


def map(f: Callable[[X], Y], xs: X) -> Y:
    """Return the results of f for each slice of xs along the first axis, stacked.

    Args:
        f: Function of one slice.
        xs: Pytree of tensors with equal length along the first axis.

    Example:
        >>> map(lambda x: ops.sum(x) * 2, tensor.array([[1, 2], [3, 4]])).tolist()
        [6, 14]
    """
    return scan(lambda carry, x: (carry, f(x)), (), xs)[1]


def associative_scan(f: Callable[[X, X], X], elems: X, axis: int = 0, reverse: bool = False) -> X:
    """Return the running results of an associative function, in O(log n) calls.

    Args:
        f: Function `f(earlier, later)` of two pytrees of slices. It works on many pairs at once:
            its operands and its result have equal length along `axis`.
        elems: Pytree of tensors with equal length along `axis`.
        axis: Axis to scan along.
        reverse: Whether to run from the end; f then gets the later elements first.

    Example:
        >>> associative_scan(ops.add, tensor.array([1, 2, 3, 4, 5])).tolist()
        [1, 3, 6, 10, 15]
    """
    leaves, structure = tree.flatten(elems)
    home = home_of(leaves)
    xs = [convert_to_tensor(x, backend=home) for x in leaves]
    _length("associative_scan", xs, axis, None)

    def combine(x: list[Tensor], y: list[Tensor]) -> list[Tensor]:
        out = f(tree.unflatten(structure, x), tree.unflatten(structure, y))
        agree(
            "associative_scan", "an operand of f", "its result", tree.unflatten(structure, x), out
        )
        return tree.leaves_of(out)

    if reverse:
        xs = [ops.flip(x, axis=axis) for x in xs]
    out = _scanned(combine, xs, axis)
    if reverse:
        out = [ops.flip(x, axis=axis) for x in out]
    return tree.unflatten(structure, out)


def _scanned(combine: Callable[..., list[Tensor]], xs: list[Tensor], axis: int) -> list[Tensor]:
    """Combine neighboring pairs, scan the results, and complete the elements between them."""
    length = xs[0].shape[axis]
    if length < 2:
        return xs

    def part(tensors: list[Tensor], start: int | None, stop: int | None, step: int) -> list[Tensor]:
        return [_slice(x, axis, slice(start, stop, step)) for x in tensors]

    odd = _scanned(combine, combine(part(xs, 0, -1, 2), part(xs, 1, None, 2)), axis)
    even = part(xs, 0, 1, 1)
    if length > 2:
        before = odd if length % 2 else part(odd, None, -1, 1)
        later = combine(before, part(xs, 2, None, 2))
        even = [ops.concat(pair, axis=axis) for pair in zip(even, later, strict=True)]
    return [_interleaved(x, y, axis) for x, y in zip(even, odd, strict=True)]


def _interleaved(x: Tensor, y: Tensor, axis: int) -> Tensor:
    """Return x0, y0, x1, y1, ...; x may have one element more."""
    axis = normalize_axis("associative_scan", axis, x.ndim)
    count = y.shape[axis]
    pairs = ops.stack([_slice(x, axis, slice(0, count)), y], axis=axis + 1)
    joined = ops.reshape(pairs, (*y.shape[:axis], 2 * count, *y.shape[axis + 1 :]))
    if x.shape[axis] == count:
        return joined
    return ops.concat([joined, _slice(x, axis, slice(count, None))], axis=axis)


def cond(
    pred: TensorLike,
    true_fn: Callable[..., Y],
    false_fn: Callable[..., Y],
    *operands: object,
) -> Y:
    """Return the result of one of two functions.

    Only the chosen function is called. While a compiler or `vmap` traces, pred has no value: both
    are called and the results are selected from. They must agree in structure, shapes and dtypes,
    and a NaN in the gradient of the other branch is not masked.

    Args:
        pred: Bool, or a tensor with one element.
        true_fn: Called with the operands if pred is true.
        false_fn: Called with the operands otherwise.
        operands: Arguments of both functions.

    Example:
        >>> cond(tensor.array(True), ops.sqrt, ops.negative, tensor.array(4.0)).tolist()
        2.0
    """
    chosen = _truth("cond", "pred", pred)
    if chosen is not None:
        return true_fn(*operands) if chosen else false_fn(*operands)
    first, second = true_fn(*operands), false_fn(*operands)
    return selected("cond", pred, ("the result of true_fn", first), ("that of false_fn", second))


def while_loop(
    cond_fn: Callable[[Carry], TensorLike],
    body_fn: Callable[[Carry], Carry],
    init: Carry,
    max_iterations: int | None = None,
) -> Carry:
    """Return the carry after `carry = body_fn(carry)` while `cond_fn(carry)` is true.

    While a compiler or `vmap` traces, the condition has no value: `max_iterations` steps are
    computed, and those after the end of the loop leave the carry unchanged.

    Args:
        cond_fn: Returns a bool, or a tensor with one element.
        body_fn: Returns a carry with the structure, shapes and dtypes of its input.
        init: Initial carry, a pytree of tensors.
        max_iterations: Maximum number of steps. Default: unlimited.

    Example:
        >>> while_loop(lambda x: x < 100, lambda x: x * 2, tensor.array(3)).item()
        192
    """
    carry = as_tensors(init, home_of(init))
    running: TensorLike | None = None  # whether the loop still runs, if only a trace knows
    for step in itertools.count():
        if max_iterations is not None and step >= max_iterations:
            break
        going = cond_fn(carry)
        chosen = _truth("while_loop", "the result of cond_fn", going)
        if chosen is False:
            break
        new = body_fn(carry)
        if chosen is None:
            if max_iterations is None:
                raise ArgumentError(
                    "while_loop: the condition has no value while the function is traced; pass "
                    "max_iterations, the number of steps to compute"
                )
            running = going if running is None else ops.logical_and(running, going)
        if running is None:
            carry = matched("while_loop", "body_fn", carry, new)
        else:
            new = matched("while_loop", "body_fn", carry, new)
            carry = selected(
                "while_loop", running, ("the result of body_fn", new), ("carry", carry)
            )
    return carry


def fori_loop(
    lower: int | Tensor, upper: int | Tensor, body_fn: Callable[[int, Carry], Carry], init: Carry
) -> Carry:
    """Return the carry after `carry = body_fn(i, carry)` for i from lower to upper - 1.

    Both bounds must have a value even while a compiler traces. If they do not, use `while_loop`
    with `max_iterations`.

    Args:
        lower: First i.
        upper: End of the range, excluded.
        body_fn: Returns a carry with the structure, shapes and dtypes of its input.
        init: Initial carry, a pytree of tensors.

    Example:
        >>> fori_loop(1, 5, lambda i, x: x * i, tensor.array(1)).item()
        24
    """
    carry = as_tensors(init, home_of(init))
    for i in range(_bound("lower", lower), _bound("upper", upper)):
        carry = matched("fori_loop", "body_fn", carry, body_fn(i, carry))
    return carry


def _bound(name: str, value: SupportsIndex) -> int:
    if isinstance(value, EmberTensor) and _truth("fori_loop", name, value) is None:
        raise ArgumentError(
            f"fori_loop: {name} has no value while the function is traced; pass a Python int, or "
            "use while_loop with max_iterations"
        )
    return value.__index__()


def _truth(op: str, what: str, pred: TensorLike) -> bool | None:
    """Return whether the predicate is true; None if its value cannot be read now."""
    if type(pred) in PYTHON_TYPES:
        return bool(pred)
    pred = convert_to_tensor(pred)
    if pred.size != 1:
        raise ShapeError(f"{op}: {what} has shape {pred.shape}; expected one element")
    return runtime.LOADED[pred._backend].truth(pred._data)


def _length(op: str, xs: Sequence[Tensor | None], axis: int, length: int | None) -> int:
    """Return the common length of all tensors along the axis."""
    sources = {} if length is None else {length: "length"}
    for at, x in enumerate(xs):
        if x is not None:
            sources.setdefault(
                x.shape[normalize_axis(op, axis, x.ndim)], f"tensor {at} of shape {x.shape}"
            )
    if len(sources) > 1:
        lengths = ", ".join(f"{count} ({name})" for count, name in sources.items())
        raise ShapeError(f"{op}: lengths along axis {axis} must be equal; got {lengths}")
    if not sources:
        raise ArgumentError(f"{op}: the number of steps is unknown; pass xs or length")
    return next(iter(sources))


def _step(f: Callable[[Carry, X], tuple[Carry, Y]], carry: Carry, x: X) -> tuple[Carry, Y]:
    out = f(carry, x)
    if not (isinstance(out, tuple) and len(out) == 2):
        raise ArgumentTypeError(f"scan: f must return a pair (carry, y); got {described(out)}")
    return out


def _slices(
    structure: tree.Structure, columns: list[tuple[Tensor, ...] | None], places: range
) -> Iterable[Any]:
    """Return the slices at each position, in the structure of xs."""
    if structure.kind is None and columns[0] is not None:
        return columns[0] if places.step > 0 else columns[0][::-1]
    return (
        tree.unflatten(structure, [None if part is None else part[at] for part in columns])
        for at in places
    )


def _zero_slice(x: Tensor, axis: int) -> Tensor:
    """Return a slice of zeros in the shape of one step."""
    return ops.astype(ops.sum(x, axis=axis), x.dtype)


def _slice(x: Tensor, axis: int, part: slice) -> Tensor:
    return x[(slice(None),) * normalize_axis("associative_scan", axis, x.ndim) + (part,)]


def _stacked(column: Sequence[Tensor | None], axis: int, count: int | None = None) -> Tensor | None:
    if column[0] is None:
        return None
    out = ops.stack(column, axis=axis)
    return out if count is None else _slice(out, axis, slice(0, count))


def _joined(ys: list[Y], axis: int) -> Y:
    first = ys[0]
    for y in ys[1:]:
        if not alike(first, y):
            agree("scan", "the first y of f", "a later one", first, y)
    if type(first) is EmberTensor:
        return ops.stack(ys, axis=axis)
    columns = zip(*[tree.leaves_of(y) for y in ys], strict=True)
    return tree.unflatten(
        tree.flatten(first)[1], [_stacked(list(column), axis) for column in columns]
    )
