"""x[key] and x[key] = value mean the same as in NumPy, on every backend."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import EmberTensor
from tests.backends import is_lazy

VALUES = np.arange(3 * 4 * 5).reshape(3, 4, 5)
LEADING = np.array([True, False, True])
PARTIAL = VALUES[..., 0] % 3 == 0
FULL = VALUES % 2 == 0
PAIR = np.array([2, -1])

BASIC = [
    0,
    -3,
    np.int64(1),
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    slice(5, 0, -2),
    slice(0, 0),
    slice(2, 1),
    slice(np.int32(0), np.int64(2)),
    slice(-100, 100, 2),
    ...,
    None,
    (),
    (1, 2, 3),
    (-1, -4, -5),
    (slice(None), 1),
    (..., 0),
    (0, ..., slice(None, None, -2)),
    (None, 1, None, slice(None), None),
    (slice(None, None, -1), slice(None, None, -1), slice(None, None, -1)),
    (..., None),
    (slice(1, 1), ..., -1),
]
MASKS = [
    FULL,
    PARTIAL,
    LEADING,
    np.zeros((3, 4), bool),
    np.ones(3, bool),
    True,
    False,
    np.array(True),
    (LEADING, 0),
    (slice(None), np.array([True, False, True, True])),
    (slice(None), np.array([True, False, True, True]), slice(None, None, -1)),
    (LEADING, slice(None), np.array([True, False, False, False, True])),
    (..., np.array([False, True, False, True, False])),
    (False, 1),
    (slice(None), True, 0),
    LEADING.tolist(),
]
ARRAYS = [
    PAIR,
    PAIR.tolist(),
    [],
    np.zeros((0, 2), np.int64),
    np.array(1),
    np.array([1], np.uint8),
    np.array([[0, -1], [2, 2]], np.int32),
    (PAIR, PAIR),
    (PAIR, slice(None), PAIR),
    (slice(None), PAIR, slice(None)),
    (slice(None), PAIR, PAIR),
    (0, slice(None), PAIR),
    (slice(None), 0, PAIR),
    (slice(None), PAIR, 0),
    (PAIR[:, None], PAIR),
    (PAIR, ..., PAIR),
    (slice(None), PAIR, ..., PAIR),
    (None, PAIR, slice(None, None, -1), PAIR),
    (..., PAIR),
    (LEADING, PAIR),
    ((0, 2),),
    (np.array(1), slice(None), PAIR),
    (slice(None, None, -1), [[0], [3]], slice(1, 3)),
]
KEYS = BASIC + MASKS + ARRAYS


def shown(key) -> str:
    return str(key).replace("\n", "").replace(" ", "")[:60]


def with_tensors(key):
    """Return the key with its arrays converted to tensors of the active backend."""
    parts = key if isinstance(key, tuple) else (key,)
    made = tuple(convert_to_tensor(p) if isinstance(p, np.ndarray) else p for p in parts)
    return made if isinstance(key, tuple) else made[0]


def the_same(tensor: EmberTensor, array) -> None:
    assert isinstance(tensor, EmberTensor)
    assert tensor.shape == np.shape(array)
    np.testing.assert_array_equal(np.array(tensor.tolist(), np.int64).reshape(tensor.shape), array)


@pytest.mark.parametrize("key", KEYS, ids=shown)
def test_reads_as_numpy_does(backend: str, key) -> None:
    x = convert_to_tensor(VALUES)
    the_same(x[key], VALUES[key])
    the_same(x[with_tensors(key)], VALUES[key])


@pytest.mark.parametrize("key", KEYS, ids=shown)
def test_writes_as_numpy_does(backend: str, key) -> None:
    region = VALUES[key]
    for value in (
        np.array(-1),
        np.full(region.shape, -2),
        -1
        - np.arange(max(region.shape[-1:], default=1))[: region.shape[-1] if region.ndim else None],
    ):
        if np.ndim(value) > region.ndim or (value.ndim == 1 and repeats(key)):
            continue
        want = VALUES.copy()
        want[key] = value
        for made in (key, with_tensors(key)):
            x = convert_to_tensor(VALUES.copy())
            x[made] = value
            the_same(x, want)


def repeats(key) -> bool:
    """Return whether the key repeats an index, for which a write is undefined."""
    places = np.arange(VALUES.size).reshape(VALUES.shape)[key]
    return len(np.unique(places)) != places.size


@pytest.mark.parametrize("key", [(), ..., None, True, (None, ...)], ids=str)
def test_a_0d_tensor_is_indexed(backend: str, key) -> None:
    x = convert_to_tensor(np.array(7))
    the_same(x[key], np.array(7)[key])
    x[key] = 3
    the_same(x, 3)


@pytest.mark.parametrize(
    "key",
    [
        3,
        -4,
        (0, 4),
        (..., 5),
        (0, 0, 0, 0),
        (..., ...),
        [0, 3],
        [-4],
        np.array([[0], [9]]),
        (slice(None), [4]),
        (..., np.array([0, -6])),
        np.ones(4, bool),
        np.ones((3, 5), bool),
        (0, np.ones(3, bool)),
        ([0, 1], [0, 1, 2]),
        10**30,
    ],
    ids=shown,
)
def test_what_is_out_of_range_is_an_index_error(backend: str, key) -> None:
    x = convert_to_tensor(VALUES)
    with pytest.raises(IndexError):
        x[key]
    with pytest.raises(IndexError):
        x[key] = 0


# Index tensors on a device are not read for a check of their range: MLX does not check them at all.
@pytest.mark.parametrize("key", [[3], [-4], [[0, 1], [2, 3]]], ids=str)
def test_index_tensors_are_checked_by_backends_that_can(backend: str, key) -> None:
    if is_lazy(backend):
        pytest.skip("a lazy backend does not check an index array")
    x = convert_to_tensor(VALUES)
    with pytest.raises(IndexError):
        x[convert_to_tensor(key)]


@pytest.mark.parametrize("key", [0, (0,), [0], slice(0, 1)], ids=str)
def test_too_many_indices_for_a_0d_tensor(backend: str, key) -> None:
    with pytest.raises(IndexError):
        convert_to_tensor(1.0)[key]


@pytest.mark.parametrize(
    "key", [1.0, [0.5], np.array([1.0]), np.float32(1), "a", slice(0.5), (0, 1.5), 1j], ids=shown
)
def test_an_index_is_an_integer(backend: str, key) -> None:
    x = convert_to_tensor(VALUES)
    with pytest.raises(TypeError):
        x[key]
    with pytest.raises(TypeError):
        x[key] = 0


def test_a_float_tensor_is_not_an_index(backend: str) -> None:
    with pytest.raises(TypeError, match="float32"):
        convert_to_tensor(VALUES)[convert_to_tensor([0.0])]


def test_a_step_of_zero_is_a_value_error(backend: str) -> None:
    with pytest.raises(ValueError, match="zero"):
        convert_to_tensor(VALUES)[::0]


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        (0, (3,)),
        (slice(None), (2, 4, 5)),
        ([0, 1], (3, 4, 5)),
        ([0, 1], (2, 1, 4)),
        (LEADING, (3, 4, 5)),
        (FULL, (4,)),
        ((0, 0, 0), (2,)),
        ((slice(None, None, -1), 0), (2, 5)),
        (slice(0, 0), (3, 4, 5)),
    ],
    ids=shown,
)
def test_a_value_that_does_not_fit_is_a_value_error(backend: str, key, shape) -> None:
    x = convert_to_tensor(VALUES)
    with pytest.raises(ValueError, match=r".+"):
        x[key] = np.zeros(shape, np.int64)
    the_same(x, VALUES)


def test_tensors_are_values(backend: str) -> None:
    x = convert_to_tensor(VALUES.copy())
    views = [x[...], x[0], x[::-1], ops.reshape(x, (12, 5)), ops.permute_dims(x)]
    before = [np.array(view.tolist()) for view in views]
    row = x[1]
    x[:] = 0
    x[LEADING] = -1
    x[[1, 2]] = -2
    row[0] = 9
    for view, values in zip(views, before, strict=True):
        the_same(view, values)
    assert x[1, 0, 0].item() == -2


def test_what_was_written_does_not_change_with_its_source(backend: str) -> None:
    x, source = ops.zeros((2, 3)), ops.ones((3,))
    x[0] = source
    source[0] = 5.0
    assert x.tolist() == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "int8", "int64", "uint8", "bool", "complex64"]
)
def test_writing_keeps_the_dtype(backend: str, dtype: str) -> None:
    x = ops.zeros((3,), dtype=dtype)
    x[0] = 1
    x[1:] = convert_to_tensor([1, 0], dtype="int32")
    assert x.dtype == dtype
    assert [bool(value) for value in x.tolist()] == [True, True, False]


@pytest.mark.parametrize("value", [1j, np.array([1j, 2]), [1j, 2]], ids=str)
def test_complex_values_do_not_fit_a_real_tensor(backend: str, value) -> None:
    x = ops.zeros((2,))
    with pytest.raises(TypeError):
        x[:] = value
    with pytest.raises(TypeError):
        x[:] = convert_to_tensor(value)


def test_an_integer_that_does_not_fit_overflows(backend: str) -> None:
    x = ops.zeros((2,), dtype="int8")
    with pytest.raises(OverflowError):
        x[0] = 300


def test_int64_stays_exact(backend: str) -> None:
    big = 2**62 + 1
    x = convert_to_tensor([big, -big, 0])
    x[[2]] = x[[0]]
    assert x[::-1].tolist() == [big, -big, big]
    assert ops.take(x, [1, -1]).tolist() == [-big, big]


@pytest.mark.parametrize("axis", [0, -1])
def test_take_names_an_index_that_is_out_of_range(backend, axis):
    if is_lazy(backend):
        pytest.skip("values are not known when the op is called")
    with pytest.raises(IndexError, match=r"index 7 is out of (bounds|range).*(size|length) 5"):
        ops.take(ops.ones((5, 5)), convert_to_tensor([0, 7]), axis=axis)
