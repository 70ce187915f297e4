"""The same elements in another shape or order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml._core import rules, runtime
from ember_ml._core.convert import as_backend
from ember_ml._core.dispatch import Op, around, binary, composite, op, unary
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.indexing import normalize_axes, normalize_axis
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.backend.axes import listed

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "copy",
    "expand_dims",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "make_complex",
    "matrix_transpose",
    "moveaxis",
    "permute",
    "permute_dims",
    "ravel",
    "repeat",
    "reshape",
    "roll",
    "rot90",
    "sliding_window_view",
    "squeeze",
    "swapaxes",
    "tile",
    "transpose",
    "unfold",
    "unsqueeze",
    "view_as_complex",
    "view_as_real",
]


@op
def reshape(x: TensorLike, shape: int | Sequence[int], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape, row by row; one length may be -1 and is inferred.

    Args:
        x: the tensor.
        shape: the new lengths.
        copy: True always copies, False never does (and raises if it would have to), None as needed.
    """


@op
def permute_dims(x: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order: axis i of the result is axes[i] of x; by default reversed."""


permute = transpose = permute_dims


@op
def broadcast_to(x: TensorLike, shape: int | Sequence[int]) -> Tensor:
    """x repeated along new axes and axes of length 1, without a copy, until it has that shape."""


@op
def flip(x: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """The elements in reverse order along the axes, by default along all."""


@op
def roll(
    x: TensorLike, shift: int | Sequence[int], axis: int | Sequence[int] | None = None
) -> Tensor:
    """The elements moved on by `shift` places, those beyond the end put in at the start.

    Without an axis, x is rolled as if it were flat.
    """


@op
def tile(x: TensorLike, repetitions: int | Sequence[int]) -> Tensor:
    """x laid out repeatedly along each axis; fewer repetitions than axes are for the last."""


def _counted(op: Op) -> Callable[..., Any]:
    """Have the counts read before a tape writes the call down: they are no values to it."""
    dispatch = op.function

    def call(x: Any, repeats: Any, axis: int | None = None) -> Tensor:
        if hasattr(repeats, "tolist") and 0 not in repeats.shape:
            repeats = repeats.tolist()
        return dispatch(x, repeats, axis)

    return call


@around(_counted)
@op
def repeat(x: TensorLike, repeats: int | Sequence[int] | Tensor, axis: int | None = None) -> Tensor:
    """Each element (without an axis, of the flattened x) repeated, `repeats` times each."""


@op
def unfold(x: TensorLike, axis: int, size: int, step: int = 1) -> Tensor:
    """Windows of `size` elements, one every `step`, as a new last axis; `axis` counts them."""


@unary
def copy(x: TensorLike) -> Tensor:
    """x with memory of its own."""


@unary(rule=rules.COMPLEX)
def view_as_real(x: TensorLike) -> Tensor:
    """Real and imaginary parts along a new last axis of length 2."""


@unary(rule=rules.REAL_FLOAT)
def view_as_complex(x: TensorLike) -> Tensor:
    """Complex numbers of the real and imaginary parts along the last axis, of length 2."""


@binary(rule=rules.REAL_FLOAT)
def make_complex(real: TensorLike, imag: TensorLike) -> Tensor:
    """real + i imag, exact for infinities too."""


@composite
def flatten(x: TensorLike, start_axis: int = 0, end_axis: int = -1) -> Tensor:
    """The axes from start_axis to end_axis made one; a 0-d tensor gets one axis."""
    if x.ndim == 0:
        return reshape(x, (1,))
    start = normalize_axis("flatten", start_axis, x.ndim)
    end = normalize_axis("flatten", end_axis, x.ndim)
    if start > end:
        raise ArgumentError(f"flatten: start_axis={start_axis} is behind end_axis={end_axis}")
    length = 1
    for one in x.shape[start : end + 1]:
        length *= one
    return reshape(x, (*x.shape[:start], length, *x.shape[end + 1 :]))


@composite
def ravel(x: TensorLike) -> Tensor:
    """All elements along one axis, row by row."""
    return reshape(x, (-1,))


@composite
def squeeze(x: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """x without the axes named, which must be of length 1; by default without all such axes."""
    if axis is None:
        return reshape(x, tuple(length for length in x.shape if length != 1))
    axes = normalize_axes("squeeze", listed(axis), x.ndim)
    if any(x.shape[one] != 1 for one in axes):
        raise ShapeError(f"squeeze: axis={axis} is not of length 1 in the shape {x.shape}")
    return reshape(x, tuple(x.shape[one] for one in range(x.ndim) if one not in axes))


@composite
def expand_dims(x: TensorLike, axis: int | Sequence[int] = 0) -> Tensor:
    """x with new axes of length 1, which stand at those places of the result."""
    given = listed(axis)
    ndim = x.ndim + len(given)
    axes = normalize_axes("expand_dims", given, ndim)
    lengths = iter(x.shape)
    return reshape(x, tuple(1 if one in axes else next(lengths) for one in range(ndim)))


unsqueeze = expand_dims


@composite
def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """x with two axes exchanged."""
    first, second = (normalize_axis("swapaxes", axis, x.ndim) for axis in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return permute_dims(x, order)


@composite
def moveaxis(
    x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]
) -> Tensor:
    """x with axes moved to other places, the rest in their order."""
    sources = normalize_axes("moveaxis", listed(source), x.ndim)
    places = normalize_axes("moveaxis", listed(destination), x.ndim)
    if len(sources) != len(places):
        raise ArgumentError(
            f"moveaxis: source={source} and destination={destination} differ in number"
        )
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return permute_dims(x, order)


@composite
def matrix_transpose(x: TensorLike) -> Tensor:
    """x with its last two axes exchanged."""
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose needs two axes or more; the shape is {x.shape}")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@composite
def flipud(x: TensorLike) -> Tensor:
    """The first axis in reverse order."""
    return flip(x, axis=0)


@composite
def fliplr(x: TensorLike) -> Tensor:
    """The second axis in reverse order."""
    return flip(x, axis=1)


@composite
def rot90(x: TensorLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """x turned k times by a right angle, from the first of the axes towards the second."""
    first, second = normalize_axes("rot90", axes, x.ndim)
    if k % 4 == 0:
        return reshape(x, x.shape)
    if k % 4 == 2:
        return flip(x, axis=(first, second))
    turned = swapaxes(x, first, second)
    return flip(turned, axis=first if k % 4 == 1 else second)


@composite
def atleast_1d(x: TensorLike) -> Tensor:
    """x, a 0-d tensor with an axis."""
    return reshape(x, x.shape or (1,))


@composite
def atleast_2d(x: TensorLike) -> Tensor:
    """x with new axes in front until there are two."""
    return reshape(x, (1,) * (2 - x.ndim) + x.shape)


@composite
def atleast_3d(x: TensorLike) -> Tensor:
    """x with new axes until there are three: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1)."""
    if x.ndim >= 3:
        return reshape(x, x.shape)
    return reshape(x, (1,) * min(1, 2 - x.ndim) + (x.shape or (1,)) + (1,))


@composite
def sliding_window_view(
    x: TensorLike, window_shape: int | Sequence[int], axis: int | Sequence[int] | None = None
) -> Tensor:
    """Every window of that shape over the axes (by default over all), as new last axes."""
    sizes = listed(window_shape)
    axes = tuple(range(x.ndim)) if axis is None else listed(axis)
    if len(sizes) != len(axes):
        raise ArgumentError(
            f"sliding_window_view: window_shape={window_shape} is for {len(axes)} axes"
        )
    axes = tuple(normalize_axis("sliding_window_view", one, x.ndim) for one in axes)
    for one, size in zip(axes, sizes, strict=True):
        x = unfold(x, one, size)
    return x


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that all these shapes broadcast to."""
    out: list[int] = []
    for axis in range(max(map(len, shapes), default=0), 0, -1):
        lengths = {shape[-axis] for shape in shapes if len(shape) >= axis} - {1}
        if len(lengths) > 1:
            raise ShapeError(f"the shapes {', '.join(map(str, shapes))} do not broadcast")
        out.append(lengths.pop() if lengths else 1)
    return tuple(out)


def broadcast_arrays(*arrays: TensorLike) -> list[Tensor]:
    """The tensors, each in its own dtype, broadcast to their common shape."""
    backends = {value._backend for value in arrays if isinstance(value, EmberTensor)}
    backend = backends.pop() if len(backends) == 1 else runtime.active()
    tensors = [as_backend(value, backend) for value in arrays]
    shape = broadcast_shapes(*[tensor.shape for tensor in tensors])
    return [broadcast_to(tensor, shape) for tensor in tensors]
