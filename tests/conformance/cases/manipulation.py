"""Rows for `ember_ml.ops.manipulation`."""

from __future__ import annotations

import numpy as np
import torch

from tests.conformance.table import FLOATS, case, real, unary_cases

case("manipulation.reshape", real(2, 3), (3, 2), reference=np.reshape)
case("manipulation.reshape", real(2, 3), 6, reference=np.reshape)
case("manipulation.reshape", real(2, 3), [3, -1], reference=np.reshape)
case("manipulation.reshape", real(0, 3), (-1, 3), reference=np.reshape)
case("manipulation.reshape", real(2, 0, 3), (0, 5), reference=np.reshape)
case("manipulation.reshape", real(1), (), reference=np.reshape)
case("manipulation.reshape", real(), (1, 1), reference=np.reshape)
case("manipulation.reshape", real(3, 4, transposed=True), (2, 6), reference=np.reshape)
case(
    "manipulation.reshape",
    real(3, 4),
    (2, 6),
    reference=lambda x, shape, copy: x.reshape(shape),
    copy=True,
)

for shape in ((), (3,), (2, 3), (0, 2), (2, 3, 4)):
    case("manipulation.permute_dims", real(*shape), reference=np.transpose)
case("manipulation.permute_dims", real(2, 3, 4), (2, 0, 1), reference=np.transpose)
case("manipulation.permute_dims", real(2, 3, 4), [-1, 0, 1], reference=np.transpose)
case("manipulation.permute_dims", real(2, 3), reference=np.transpose, axes=(1, 0))
case("manipulation.swapaxes", real(2, 3, 4), 0, -1, reference=np.swapaxes)
case("manipulation.swapaxes", real(2, 3), 1, 1, reference=np.swapaxes)
case("manipulation.swapaxes", real(2, 3, 4), reference=np.swapaxes, axis1=-2, axis2=0)
case("manipulation.moveaxis", real(2, 3, 4), 0, -1, reference=np.moveaxis)
case("manipulation.moveaxis", real(2, 3, 4, 5), (0, 2), (-1, 0), reference=np.moveaxis)
case("manipulation.moveaxis", real(2, 3, 4), [2, 0], [0, 1], reference=np.moveaxis)
case("manipulation.moveaxis", real(2, 3), (), (), reference=np.moveaxis)
for shape in ((2, 3), (4, 0, 3), (2, 3, 4), (1, 1)):
    case("manipulation.matrix_transpose", real(*shape), reference=lambda x: x.mT)

case("manipulation.broadcast_to", real(3), (2, 3), reference=np.broadcast_to)
case("manipulation.broadcast_to", real(2, 1, 3), (4, 2, 5, 3), reference=np.broadcast_to)
case("manipulation.broadcast_to", real(), (2, 2), reference=np.broadcast_to)
case("manipulation.broadcast_to", real(1), (0,), reference=np.broadcast_to)
case("manipulation.broadcast_to", real(1), 3, reference=np.broadcast_to)
case("manipulation.broadcast_to", real(), (), reference=np.broadcast_to)

for axis in (None, 0, -1, (0, 2), [-1, 0], ()):
    case("manipulation.flip", real(2, 3, 4), reference=np.flip, axis=axis)
for shape in ((), (0,), (1,), (2, 0)):
    case("manipulation.flip", real(*shape), reference=np.flip)
case("manipulation.flipud", real(3, 2), reference=np.flipud)
case("manipulation.fliplr", real(3, 2, 2), reference=np.fliplr)
for k in (-5, 0, 1, 2, 3):
    case("manipulation.rot90", real(2, 3, 4), reference=np.rot90, k=k)
case("manipulation.rot90", real(2, 3, 4), reference=np.rot90, axes=(2, 0))

for shift, axis in ((1, None), (-2, 0), (9, -1), (1, (0, 1)), ((1, -3), (0, 1)), ((1, 1), (1, 1))):
    case("manipulation.roll", real(3, 4), reference=np.roll, shift=shift, axis=axis)
case("manipulation.roll", real(3, 4), 2**40 + 1, reference=np.roll, axis=1)
for shape in ((), (0,), (1,)):
    case("manipulation.roll", real(*shape), 3, reference=np.roll)
case("manipulation.roll", real(0, 3), 1, reference=np.roll, axis=0)

for repetitions in ((2, 3), (2,), (2, 1, 3), (), (0, 2), 3):
    case("manipulation.tile", real(2, 3), repetitions, reference=np.tile)
case("manipulation.tile", real(), (2, 2), reference=np.tile)
case("manipulation.tile", real(0), (3,), reference=np.tile)
case(
    "manipulation.tile",
    real(2),
    reference=lambda x, repetitions: np.tile(x, repetitions),
    repetitions=(2,),
)

for repeats in (0, 1, 3):
    case("manipulation.repeat", real(2, 3), repeats, reference=np.repeat)
    case("manipulation.repeat", real(2, 3), repeats, reference=np.repeat, axis=-1)
case("manipulation.repeat", real(2, 3), [2, 0, 1], reference=np.repeat, axis=1)
case("manipulation.repeat", real(2, 3), (2,), reference=np.repeat)
case("manipulation.repeat", real(3), np.array([0, 0, 0], np.uint8), reference=np.repeat)
case("manipulation.repeat", real(0, 2), 2, reference=np.repeat, axis=0)
case("manipulation.repeat", real(0), np.zeros(0, np.int32), reference=np.repeat)
case("manipulation.repeat", real(), 2, reference=np.repeat)


def unfold(x, axis, size, step=1):
    return torch.from_numpy(np.array(x)).unfold(axis, size, step).numpy()


case("manipulation.unfold", real(7), 0, 3, 2, reference=unfold)
case("manipulation.unfold", real(2, 7), 1, 3, reference=unfold)
case("manipulation.unfold", real(7, 2, 3), 0, 4, 3, reference=unfold)
case("manipulation.unfold", real(2, 5, 3), -2, 2, 2, reference=unfold)
case("manipulation.unfold", real(4, 3, transposed=True), -1, 2, reference=unfold, step=1)
case("manipulation.unfold", real(5), 0, 5, 1, reference=unfold)
case("manipulation.unfold", real(0, 5), 1, 2, 1, reference=unfold)
case("manipulation.unfold", real(3), 0, 0, 1, reference=unfold)
windows = np.lib.stride_tricks.sliding_window_view
case("manipulation.sliding_window_view", real(6), 3, reference=windows)
case("manipulation.sliding_window_view", real(4, 5), (2, 3), reference=windows)
case("manipulation.sliding_window_view", real(4, 5, 2), 2, reference=windows, axis=1)
case("manipulation.sliding_window_view", real(4, 5), (2, 2), reference=windows, axis=(1, 1))

unary_cases("manipulation.copy", np.copy)
unary_cases("manipulation.ravel", np.ravel)
unary_cases("manipulation.view_as_real", lambda x: np.stack([x.real, x.imag], -1), result="real")


def complex_name(dtype):
    return "complex128" if dtype == "float64" else "complex64"


def join(real, imag):
    real, imag = np.broadcast_arrays(real, imag)
    out = np.empty(real.shape, complex)
    out.real, out.imag = real, imag
    return out


for shape in ((2,), (3, 2), (0, 2), (2, 3, 2)):
    case(
        "manipulation.view_as_complex",
        real(*shape),
        reference=lambda x: join(x[..., 0], x[..., 1]),
        result=complex_name,
    )
for first, second in (((), ()), ((3,), (3,)), ((2, 1), (3,)), ((0,), (1,))):
    case(
        "manipulation.make_complex",
        real(*first),
        real(*second),
        reference=join,
        result=complex_name,
    )
case(
    "manipulation.make_complex",
    real(5, 1, special=True),
    real(5, special=True),
    reference=join,
    result=complex_name,
    dtypes=FLOATS,
)

case("manipulation.flatten", real(2, 3, 4), reference=lambda x: x.reshape(-1))
case(
    "manipulation.flatten",
    real(2, 3, 4),
    1,
    reference=lambda x, start: x.reshape(2, 12),
)
case(
    "manipulation.flatten",
    real(2, 3, 4),
    reference=lambda x, **_: x.reshape(6, 4),
    start_axis=-3,
    end_axis=1,
)
case("manipulation.flatten", real(), reference=lambda x: x.reshape(1))
case("manipulation.flatten", real(2, 0), reference=lambda x: x.reshape(0))
case("manipulation.squeeze", real(1, 3, 1), reference=np.squeeze)
case("manipulation.squeeze", real(1, 3, 1), 0, reference=np.squeeze)
case("manipulation.squeeze", real(1, 3, 1), -1, reference=np.squeeze)
case("manipulation.squeeze", real(1, 3, 1), (0, -1), reference=np.squeeze)
case("manipulation.squeeze", real(1, 0, 1), reference=np.squeeze, axis=(2,))
case("manipulation.squeeze", real(1, 1), (), reference=np.squeeze)
case("manipulation.squeeze", real(), reference=np.squeeze)
for axis in (0, 1, 2, -1, -3, (0, -1), (1, 3)):
    case("manipulation.expand_dims", real(2, 3), axis, reference=np.expand_dims)
case("manipulation.expand_dims", real(0), reference=np.expand_dims, axis=1)
case("manipulation.expand_dims", real(), reference=lambda x: x[None])
for shape in ((), (3,), (2, 3), (2, 0, 3), (1, 2, 3, 1)):
    case("manipulation.atleast_1d", real(*shape), reference=np.atleast_1d)
    case("manipulation.atleast_2d", real(*shape), reference=np.atleast_2d)
    case("manipulation.atleast_3d", real(*shape), reference=np.atleast_3d)
