"""Index arguments of every op: integers of any width are accepted, floats are an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import GradientTape, ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import INTEGER_RANGES
from ember_ml._core.op import OPS
from ember_ml._core.tensor import EmberTensor
from ember_ml.nn import tensor
from tests.backends import has_dtype
from tests.robustness.probes import call, probes

INDEXED = [
    (key, name)
    for key, op in OPS.items()
    for name, role in zip(op.names, op.roles, strict=False)
    if role == "index"
]


FORMATS = {"packed"}
"""Integers whose dtype is the format of what they hold, such as quantized weights."""


def arguments(key: str, name: str) -> dict[str, Any]:
    """Return the arguments of a row of the conformance table that has the index argument."""
    rows = [probe.arguments for probe in probes(key, 4) if probe.is_row]
    return next(row for row in rows if isinstance(row.get(name), np.ndarray))


def values(result: Any) -> list[Any]:
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [part.tolist() for part in parts if isinstance(part, EmberTensor)]


@pytest.mark.parametrize(("key", "name"), INDEXED)
def test_floats_are_not_indices(backend: str, key: str, name: str) -> None:
    given = arguments(key, name)
    for dtype in ("float32", "float16"):
        floats = convert_to_tensor(given[name].astype(dtype))
        with pytest.raises(TypeError, match="indices must be integers, not float"):
            call(key, {**given, name: floats})
        with GradientTape() as tape:
            tape.watch(floats)
            with pytest.raises(TypeError, match="indices must be integers"):
                call(key, {**given, name: floats})


@pytest.mark.parametrize(("key", "name"), [each for each in INDEXED if each[1] not in FORMATS])
def test_integers_of_any_width_are_indices(backend: str, key: str, name: str) -> None:
    given = arguments(key, name)
    want = values(call(key, given))
    for dtype, (low, high) in INTEGER_RANGES.items():
        fits = given[name].min(initial=0) >= low and given[name].max(initial=0) <= high
        if fits and has_dtype(backend, dtype.name):
            got = values(call(key, {**given, name: given[name].astype(dtype.name)}))
            assert str(got) == str(want), dtype


KEYS = {
    "array": lambda at: at,
    "second axis": lambda at: (slice(None), at),
    "two arrays": lambda at: (at, at),
    "with an integer": lambda at: (1, at),
    "new axis": lambda at: (None, at),
    "0-d": lambda at: at[1],
    "reversed": lambda at: (slice(None, None, -1), at),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_any_width_read_and_write(backend: str, name: str) -> None:
    host = np.arange(300 * 300, dtype=np.float32).reshape(300, 300)
    for dtype in (each.name for each in INTEGER_RANGES if has_dtype(backend, each.name)):
        at = np.array([0, 2, 100 if dtype.startswith("u") else -1], dtype)
        key, where = KEYS[name](tensor.array(at)), KEYS[name](at.astype(np.int64))
        x = tensor.array(host)
        np.testing.assert_array_equal(x[key].numpy(), host[where], err_msg=dtype)
        x[key] = -1.0
        want = host.copy()
        want[where] = -1.0
        np.testing.assert_array_equal(x.numpy(), want, err_msg=dtype)


def test_positions_beyond_a_narrow_dtype(backend: str) -> None:
    x, last = tensor.array(np.arange(300.0, dtype=np.float32)), tensor.array(np.array([-1], "int8"))
    assert ops.take(x, last).tolist() == [299.0]
    assert ops.take_along_axis(x, last, axis=0).tolist() == [299.0]
    assert ops.dynamic_slice(x, last, (1,)).tolist() == [299.0]
    far = tensor.array(np.array([100], "int8"))
    assert ops.ravel_multi_index([far, far], (120, 120)).tolist() == [100 * 120 + 100]
    assert ops.unravel_index(far, (3, 200))[1].tolist() == [100]
    assert ops.segment_sum(tensor.array([5.0]), far, 200)[100].item() == 5.0
    assert ops.bincount(far, minlength=200).shape == (200,)
    assert ops.one_hot(far, 200).shape == (1, 200)
    assert ops.repeat(tensor.array([1.0]), far).shape == (100,)
    losses = [
        ops.nll_loss(ops.zeros((1, 200)), far, ignore_index=100, reduction="sum"),
        ops.nll_loss(ops.zeros((1, 200)), far, ignore_index=1000, reduction="sum"),
    ]
    assert [loss.item() for loss in losses] == [0.0, 0.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.roll(x, 1.5, 0),
        lambda x: ops.tril(x, 0.5),
        lambda x: ops.triu(x, 1.0),
        lambda x: ops.eye(2.5),
        lambda x: ops.tri(2.5),
        lambda x: ops.rot90(x, 1.5),
        lambda x: ops.one_hot([0], 3.5),
        lambda x: ops.pad(x, ((0.5, 1), (0, 0))),
        lambda x: ops.random.randint(0.5, 3.5, (2,)),
        lambda x: ops.zeros((2.0,)),
        lambda x: ops.topk(x, 1.5),
        lambda x: ops.repeat(x, tensor.array([1.5, 1.0]), axis=0),
        lambda x: ops.histogram(x, bins=2.5),
        lambda x: ops.segment_sum(x, [0, 1], 2.5),
        lambda x: ops.round(x, 1.5),
        lambda x: ops.sum(x, axis=0.5),
        lambda x: x[1.0],
        lambda x: x[1.0:],
    ],
)
def test_floats_are_not_lengths_counts_or_axes(backend: str, call: Any) -> None:
    with pytest.raises(TypeError):
        call(ops.ones((2, 2)))
