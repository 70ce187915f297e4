"""Bad input: the right exception, the same on every backend, with a message that helps."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import ops
from ember_ml._core.errors import ArgumentTypeError, ShapeError, named
from ember_ml._core.explain import explain
from ember_ml._core.op import OPS
from ember_ml.nn import tensor


def floats(*shape):
    return ops.ones(shape)


BAD = {
    "unbroadcastable": (
        lambda: ops.add(floats(2, 3), floats(4)),
        ValueError,
        r"add\(float32\[2, 3\], float32\[4\]\)",
    ),
    "matmul shapes": (
        lambda: ops.matmul(floats(2, 3), floats(2, 3)),
        ValueError,
        r"matmul.*\[2, 3\].*\[2, 3\]",
    ),
    "half and full": (
        lambda: ops.matmul(floats(2, 2), ops.ones((2, 2), dtype="float16")),
        TypeError,
        "matmul does not mix float32 and float16",
    ),
    "half and half": (
        lambda: ops.matmul(floats(2, 2), ops.ones((2, 2), dtype="float16").astype("float16")),
        TypeError,
        "cast one operand",
    ),
    "bool subtract": (
        lambda: tensor.array([True]) - tensor.array([True]),
        TypeError,
        "subtract takes numeric dtypes, not bool",
    ),
    "float bits": (
        lambda: ops.bitwise_and(floats(2), floats(2)),
        TypeError,
        "bitwise_and takes integer and bool",
    ),
    "complex order": (
        lambda: ops.less(tensor.array([1j]), tensor.array([1j])),
        TypeError,
        "less takes real dtypes, not complex64",
    ),
    "string": (
        lambda: ops.add(floats(2), "abc"),
        TypeError,
        "add: a tensor takes numbers, not str: 'abc'",
    ),
    "none": (lambda: ops.add(floats(2), None), TypeError, "add: None is not a tensor"),
    "none first": (lambda: ops.sin(None), TypeError, "sin: None is not a tensor"),
    "strings": (lambda: tensor.array(["a"]), TypeError, "numbers"),
    "dict": (lambda: tensor.array({}), TypeError, "numbers, not dict"),
    "object": (lambda: tensor.array(object()), TypeError, "numbers"),
    "ragged": (lambda: tensor.array([[1, 2], [3]]), ValueError, "equal lengths"),
    "huge integer": (lambda: tensor.array([2**70]), OverflowError, "does not fit int64"),
    "out of range": (
        lambda: tensor.array([1], dtype="uint8") + 256,
        OverflowError,
        r"256 does not fit uint8 \(0 to 255\)",
    ),
    "negative unsigned": (
        lambda: tensor.array([1], dtype="uint8") - (-1),
        OverflowError,
        "-1 does not fit uint8",
    ),
    "unknown dtype": (
        lambda: ops.ones((2,), dtype="float33"),
        TypeError,
        "'float33' is not a dtype; known dtypes are bool, int8",
    ),
    "axis": (
        lambda: ops.sum(floats(2, 3), axis=2),
        ValueError,
        r"axis=2 is out of range for the shape \(2, 3\)",
    ),
    "axis is an IndexError": (lambda: ops.sum(floats(2, 3), axis=-3), IndexError, "axis=-3"),
    "softmax axis": (lambda: ops.softmax(floats(2), axis=1), ValueError, "axis=1"),
    "concat axis": (lambda: ops.concat([floats(2)], axis=3), ValueError, "axis=3"),
    "sort axis": (lambda: ops.sort(floats(2), axis=3), ValueError, "axis=3"),
    "flip axis": (lambda: ops.flip(floats(2), axis=3), ValueError, "axis=3"),
    "expand axis": (lambda: ops.squeeze(floats(2), axis=3), ValueError, "axis=3"),
    "index": (
        lambda: floats(2, 3)[2],
        IndexError,
        r"index 2 is out of range for axis 0 of the shape \(2, 3\)",
    ),
    "index axis 1": (
        lambda: floats(2, 3)[0, -4],
        IndexError,
        "index -4 is out of range for axis 1",
    ),
    "index array": (lambda: floats(2)[[0, 2]], IndexError, "index 2 is out of"),
    "too many indices": (lambda: floats(2)[0, 0], IndexError, "2 indices for a tensor of 1 axes"),
    "two ellipses": (lambda: floats(2, 3)[..., 0, ...], IndexError, "one ellipsis"),
    "float index": (lambda: floats(2)[tensor.array([0.5])], TypeError, "not float32"),
    "string index": (lambda: floats(2)["a"], TypeError, "numbers, not str"),
    "take": (lambda: ops.take(floats(3), [0, 3], axis=0), IndexError, "take"),
    "float indices": (
        lambda: ops.take(floats(3), [0.5], axis=0),
        TypeError,
        "take: indices must be integers, not float32",
    ),
    "reshape": (
        lambda: ops.reshape(floats(2, 3), (4,)),
        ValueError,
        r"reshape\(float32\[2, 3\], \(4,\)\)",
    ),
    "permute": (lambda: ops.permute_dims(floats(2, 3), (0, 0)), ValueError, "permute"),
    "concat shapes": (
        lambda: ops.concat([floats(2, 3), floats(2, 4)], axis=0),
        ValueError,
        "concat",
    ),
    "concat nothing": (lambda: ops.concat([]), ValueError, "concat needs at least one tensor"),
    "concat a number": (
        lambda: ops.concat(3),
        TypeError,
        "concat takes a list or tuple of tensors",
    ),
    "stack shapes": (lambda: ops.stack([floats(2), floats(3)]), ValueError, "stack"),
    "split": (lambda: ops.split(floats(5), 2), ValueError, "split"),
    "broadcast": (lambda: ops.broadcast_to(floats(3), (2, 4)), ValueError, "broadcast_to"),
    "set wrong shape": (
        lambda: floats(2, 3).__setitem__(0, floats(4)),
        ValueError,
        r"\(4,\)|\[4\]|broadcast",
    ),
    "missing argument": (lambda: ops.add(floats(2)), TypeError, "missing"),
    "negative length": (lambda: ops.zeros((-1,)), ValueError, "zeros"),
    "uint64 and int64": (
        lambda: ops.add(tensor.array(np.array([1], np.uint64)), tensor.array([1])),
        TypeError,
        "uint64",
    ),
    "copy": (lambda: ops.asarray([1, 2], copy=False), ValueError, "copy=False"),
    "empty maximum": (lambda: ops.max(ops.zeros((0,))), ValueError, "max"),
    "not square": (lambda: ops.linalg.inv(floats(2, 3)), ValueError, "inv"),
    "einsum": (lambda: ops.einsum("ij,jk->ik", floats(2, 3), floats(2, 3)), ValueError, "einsum"),
    "convolution": (lambda: ops.conv1d(floats(1, 2, 8), floats(4, 3, 3)), ValueError, "conv1d"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(backend, name):
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()


def test_the_error_names_what_a_backend_lacks():
    from ember_ml import use_backend

    with (
        use_backend("mlx"),
        pytest.raises(TypeError, match="the mlx backend has no float64; it has"),
    ):
        ops.ones((2,), dtype="float64")
    with use_backend("torch"), pytest.raises(TypeError, match="the torch backend has no uint16"):
        ops.ones((2,), dtype="uint16")
    with use_backend("numpy"), pytest.raises(TypeError, match="the numpy backend has no bfloat16"):
        ops.ones((2,), dtype="bfloat16")


def test_a_failed_setitem_changes_nothing(backend):
    x = tensor.array([1.0, 2.0, 3.0])
    for key, value in ((slice(0, 2), [1.0, 2.0, 3.0]), (5, 1.0), (0, "a")):
        with pytest.raises((ValueError, IndexError, TypeError)):
            x[key] = value
    assert x.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("dot_general requires contracting dimensions to have the same shape", ShapeError),
        ("add got incompatible shapes for broadcasting: (2, 3), (4,)", ShapeError),
        ("reshape(): argument 'shape' must be tuple of ints, but found float", ArgumentTypeError),
        ("sum() got an unexpected keyword argument 'axes'", ArgumentTypeError),
    ],
)
def test_type_errors_about_shapes_are_recognized_by_their_text(text, kind):
    x = ops.zeros((2, 2))
    assert type(explain(OPS["manipulation.reshape"], (x, (4,)), {}, TypeError(text))) is kind


def test_errors_that_take_no_message_are_replaced():
    class OddError(TypeError):
        def __init__(self, first, second):
            super().__init__(first, second)

    assert type(named("add", OddError(1, 2))) is ArgumentTypeError
    assert str(named("add", ValueError("add: is named already"))) == "add: is named already"
    with pytest.raises(UnicodeDecodeError) as raised:
        b"\xff".decode()
    assert str(named("add", raised.value)).startswith("add: 'utf-8' codec")
