"""Reshaping, reordering and repetition of elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ember_ml._core import rules, runtime
from ember_ml._core.convert import as_backend
from ember_ml._core.dispatch import Op, around, binary, composite, op, unary
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml._core.types import Axis, ShapeLike
from ember_ml.backend.axes import listed
from ember_ml.ops._arguments import as_integer, normalize_axes, normalize_axis

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
def reshape(x: TensorLike, shape: ShapeLike, *, copy: bool | None = None) -> Tensor:
    """Return the elements in another shape, in row-major order.

    Args:
        x: Input tensor.
        shape: New length of each axis; one may be -1, which is inferred.
        copy: True always copies, False raises if a copy is needed, None copies as needed.
    """


@op
def permute_dims(x: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """Return x with its axes reordered: axis i of the result is axis axes[i] of x.

    Args:
        x: Input tensor.
        axes: Permutation of the axes. Default: reversed.
    """


permute = transpose = permute_dims


@op
def broadcast_to(x: TensorLike, shape: ShapeLike) -> Tensor:
    """Return x broadcast to a shape, without a copy where possible.

    Args:
        x: Input tensor.
        shape: Shape of the result.
    """


@op
def flip(x: TensorLike, axis: Axis = None) -> Tensor:
    """Return x with the order of elements reversed along axes.

    Args:
        x: Input tensor.
        axis: Axis or axes to reverse. Default: all axes.
    """


@op
def roll(x: TensorLike, shift: int | Sequence[int], axis: Axis = None) -> Tensor:
    """Return x with elements shifted circularly along axes.

    Args:
        x: Input tensor.
        shift: Number of places; one per axis if several axes are given.
        axis: Axis or axes to roll along. Default: the flattened tensor.
    """


@op
def tile(x: TensorLike, repetitions: int | Sequence[int]) -> Tensor:
    """Return x repeated as a whole along each axis.

    Args:
        x: Input tensor.
        repetitions: Number of repetitions per axis; fewer numbers than axes apply to the last axes.
    """


def _counted(op: Op) -> Callable[..., Tensor]:
    """Read the counts before a tape records the call: they are not values to differentiate."""
    dispatch = op.function

    def call(
        x: TensorLike, repeats: int | Sequence[int] | Tensor, axis: int | None = None
    ) -> Tensor:
        if hasattr(repeats, "tolist") and 0 not in repeats.shape:
            repeats = repeats.tolist()
        return dispatch(x, repeats, axis)

    return call


@around(_counted)
@op
def repeat(x: TensorLike, repeats: int | Sequence[int] | Tensor, axis: int | None = None) -> Tensor:
    """Return x with each element repeated.

    Args:
        x: Input tensor.
        repeats: Number of repetitions, or one number per element along the axis.
        axis: Axis to repeat along. Default: the flattened tensor.
    """


@op
def unfold(x: TensorLike, axis: int, size: int, step: int = 1) -> Tensor:
    """Return windows of `size` elements along an axis, as a new last axis.

    Args:
        x: Input tensor.
        axis: Axis to slide along; it becomes the axis of windows.
        size: Number of elements in a window.
        step: Distance between the starts of two windows.
    """


@unary
def copy(x: TensorLike) -> Tensor:
    """Return a copy of x with its own memory.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.COMPLEX)
def view_as_real(x: TensorLike) -> Tensor:
    """Return the real and imaginary parts along a new last axis of length 2.

    Args:
        x: Complex tensor.
    """


@unary(rule=rules.REAL_FLOAT)
def view_as_complex(x: TensorLike) -> Tensor:
    """Return complex numbers from real and imaginary parts along the last axis.

    Args:
        x: Real tensor, with a last axis of length 2.
    """


@binary(rule=rules.REAL_FLOAT)
def make_complex(real: TensorLike, imag: TensorLike) -> Tensor:
    """Return real + i imag, exact for infinities too.

    Args:
        real: Real part.
        imag: Imaginary part; broadcasts with the real part.
    """


@composite
def flatten(x: TensorLike, start_axis: int = 0, end_axis: int = -1) -> Tensor:
    """Return x with consecutive axes merged into one; a 0-d tensor becomes a vector.

    Args:
        x: Input tensor.
        start_axis: First axis to merge.
        end_axis: Last axis to merge.
    """
    if x.ndim == 0:
        return reshape(x, (1,))
    start = normalize_axis("flatten", start_axis, x.ndim)
    end = normalize_axis("flatten", end_axis, x.ndim)
    if start > end:
        raise ArgumentError(
            f"flatten: start_axis ({start_axis}) must not be after end_axis ({end_axis})"
        )
    length = 1
    for one in x.shape[start : end + 1]:
        length *= one
    return reshape(x, (*x.shape[:start], length, *x.shape[end + 1 :]))


@composite
def ravel(x: TensorLike) -> Tensor:
    """Return all elements along one axis, in row-major order.

    Args:
        x: Input tensor.
    """
    return reshape(x, (-1,))


@composite
def squeeze(x: TensorLike, axis: Axis = None) -> Tensor:
    """Return x without axes of length 1.

    Args:
        x: Input tensor.
        axis: Axis or axes to remove, each of length 1. Default: all axes of length 1.
    """
    if axis is None:
        return reshape(x, tuple(length for length in x.shape if length != 1))
    axes = normalize_axes("squeeze", listed(axis), x.ndim)
    if any(x.shape[one] != 1 for one in axes):
        raise ShapeError(f"squeeze: axis={axis} must have length 1; x has shape {x.shape}")
    return reshape(x, tuple(x.shape[one] for one in range(x.ndim) if one not in axes))


@composite
def expand_dims(x: TensorLike, axis: int | Sequence[int] = 0) -> Tensor:
    """Return x with new axes of length 1.

    Args:
        x: Input tensor.
        axis: Position or positions of the new axes in the result.
    """
    added = listed(axis)
    ndim = x.ndim + len(added)
    axes = normalize_axes("expand_dims", added, ndim)
    lengths = iter(x.shape)
    return reshape(x, tuple(1 if one in axes else next(lengths) for one in range(ndim)))


unsqueeze = expand_dims


@composite
def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """Return x with two axes exchanged.

    Args:
        x: Input tensor.
        axis1: First axis.
        axis2: Second axis.
    """
    first, second = (normalize_axis("swapaxes", axis, x.ndim) for axis in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return permute_dims(x, order)


@composite
def moveaxis(
    x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]
) -> Tensor:
    """Return x with axes moved to other positions; the others keep their order.

    Args:
        x: Input tensor.
        source: Axis or axes to move.
        destination: New position of each.
    """
    sources = normalize_axes("moveaxis", listed(source), x.ndim)
    places = normalize_axes("moveaxis", listed(destination), x.ndim)
    if len(sources) != len(places):
        raise ArgumentError(
            f"moveaxis: source ({source}) and destination ({destination}) must have equal length"
        )
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return permute_dims(x, order)


@composite
def matrix_transpose(x: TensorLike) -> Tensor:
    """Return x with its last two axes exchanged.

    Args:
        x: Input tensor.
    """
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose: x has shape {x.shape}; expected at least two axes")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@composite
def flipud(x: TensorLike) -> Tensor:
    """Return x with its first axis reversed.

    Args:
        x: Input tensor.
    """
    return flip(x, axis=0)


@composite
def fliplr(x: TensorLike) -> Tensor:
    """Return x with its second axis reversed.

    Args:
        x: Input tensor.
    """
    return flip(x, axis=1)


@composite
def rot90(x: TensorLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Return x rotated by k * 90 degrees in the plane of two axes.

    Args:
        x: Input tensor.
        k: Number of rotations; negative values rotate backward.
        axes: Plane of rotation: from the first axis toward the second.
    """
    first, second = normalize_axes("rot90", axes, x.ndim)
    k = as_integer("rot90", "k", k)
    if k % 4 == 0:
        return reshape(x, x.shape)
    if k % 4 == 2:
        return flip(x, axis=(first, second))
    turned = swapaxes(x, first, second)
    return flip(turned, axis=first if k % 4 == 1 else second)


@composite
def atleast_1d(x: TensorLike) -> Tensor:
    """Return x with at least one axis.

    Args:
        x: Input tensor.
    """
    return reshape(x, x.shape or (1,))


@composite
def atleast_2d(x: TensorLike) -> Tensor:
    """Return x with at least two axes; new axes come first.

    Args:
        x: Input tensor.
    """
    return reshape(x, (1,) * (2 - x.ndim) + x.shape)


@composite
def atleast_3d(x: TensorLike) -> Tensor:
    """Return x with at least three axes: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1).

    Args:
        x: Input tensor.
    """
    if x.ndim >= 3:
        return reshape(x, x.shape)
    return reshape(x, (1,) * min(1, 2 - x.ndim) + (x.shape or (1,)) + (1,))


@composite
def sliding_window_view(x: TensorLike, window_shape: ShapeLike, axis: Axis = None) -> Tensor:
    """Return every window of a shape over the axes, as new last axes.

    Args:
        x: Input tensor.
        window_shape: Length of the window along each axis.
        axis: Axis or axes to slide along. Default: all axes.
    """
    sizes = listed(window_shape)
    axes = tuple(range(x.ndim)) if axis is None else listed(axis)
    if len(sizes) != len(axes):
        raise ArgumentError(
            f"sliding_window_view: window_shape={window_shape} must have {len(axes)} lengths"
        )
    axes = tuple(normalize_axis("sliding_window_view", one, x.ndim) for one in axes)
    for one, size in zip(axes, sizes, strict=True):
        x = unfold(x, one, size)
    return x


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that all shapes broadcast to.

    Args:
        shapes: Shapes to broadcast.
    """
    out: list[int] = []
    for axis in range(max(map(len, shapes), default=0), 0, -1):
        lengths = {shape[-axis] for shape in shapes if len(shape) >= axis} - {1}
        if len(lengths) > 1:
            raise ShapeError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        out.append(lengths.pop() if lengths else 1)
    return tuple(out)


def broadcast_arrays(*arrays: TensorLike) -> list[Tensor]:
    """Return the tensors broadcast to their common shape, each in its own dtype.

    Args:
        arrays: Tensors to broadcast.
    """
    backends = {value._backend for value in arrays if isinstance(value, EmberTensor)}
    backend = backends.pop() if len(backends) == 1 else runtime.active()
    tensors = [as_backend(value, backend) for value in arrays]
    shape = broadcast_shapes(*[tensor.shape for tensor in tensors])
    return [broadcast_to(tensor, shape) for tensor in tensors]
