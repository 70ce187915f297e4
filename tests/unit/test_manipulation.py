"""Errors, functions of many tensors and gradients: what the conformance table does not say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ember_ml import ops, use_backend
from ember_ml._core.convert import convert_to_tensor
from tests.backends import eager, is_lazy


def matrix():
    return ops.reshape(ops.arange(6), (2, 3))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.reshape(x, (4, 2)),
        lambda x: ops.reshape(x, (-1, -1)),
        lambda x: ops.reshape(x, (-2, 3)),
        lambda x: ops.squeeze(x, 0),
        lambda x: ops.squeeze(x, 5),
        lambda x: ops.expand_dims(x, 4),
        lambda x: ops.permute_dims(x, (0, 0)),
        lambda x: ops.permute_dims(x, (0,)),
        lambda x: ops.moveaxis(x, 0, 2),
        lambda x: ops.moveaxis(x, (0, 1), (0, 0)),
        lambda x: ops.matrix_transpose(ops.ravel(x)),
        lambda x: ops.broadcast_to(x, (2, 4)),
        lambda x: ops.broadcast_to(x, (-1, 3)),
        lambda x: ops.flip(x, 2),
        lambda x: ops.flip(x, (0, 0)),
        lambda x: ops.roll(x, 1, 2),
        lambda x: ops.repeat(x, -1),
        lambda x: ops.repeat(x, [1, 2, 3], axis=0),
        lambda x: ops.unfold(x, 1, 4),
        lambda x: ops.unfold(x, 1, 2, 0),
        lambda x: ops.unfold(x, 2, 1),
        lambda x: ops.view_as_complex(x),
        lambda x: ops.broadcast_arrays(x, ops.ones((4,))),
        lambda x: ops.pad(x, -1),
        lambda x: ops.pad(x, [(1, 1)] * 3),
        lambda x: ops.pad(x, 1, mode="mirror"),
        lambda x: ops.pad(ops.zeros((0,)), 1, mode="reflect"),
        lambda x: ops.concat([x, ops.ones((4, 2))]),
        lambda x: ops.concat([x, ops.ones((0,))]),
        lambda x: ops.concat([ops.ones(())]),
        lambda x: ops.concat([x], axis=2),
        lambda x: ops.concat([]),
        lambda x: ops.stack([x, ops.ones((3, 2))]),
        lambda x: ops.split(x, 2, axis=1),
        lambda x: ops.split(x, 0),
        lambda x: ops.chunk(x, 0),
        lambda x: ops.take_along_axis(x, ops.ravel(x), axis=0),
        lambda x: ops.put_along_axis(x, [[0]], ops.ones((2, 2))),
        lambda x: ops.nonzero(ops.ones(())),
        lambda x: ops.gather_nd(x, [[0, 0, 0]]),
        lambda x: ops.select([], []),
        lambda x: ops.dynamic_slice(x, [0, 0], (3, 1)),
        lambda x: ops.dynamic_slice(x, [0], (1, 1)),
        lambda x: ops.scatter(x, [0, 1, 0]),
        lambda x: ops.scatter(x, [[0], [1]]),
        lambda x: ops.scatter(x, [0], aggr="median"),
        lambda x: ops.segment_sum(x, [0, 1, 0]),
        lambda x: ops.scatter_nd([[0]], x, (2, 3)),
    ],
)
def test_bad_shapes_and_arguments_are_value_errors(backend: str, call) -> None:
    with pytest.raises(ValueError, match=r".+"):
        call(matrix())


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.expand_dims(x, 4),
        lambda x: ops.take(x, [0, 3], axis=1),
        lambda x: ops.take(x, -7),
        lambda x: ops.take(x, np.array([2, -3]), axis=0),
        lambda x: ops.take(ops.zeros((0, 2)), ops.asarray([0]), axis=0),
        lambda x: ops.gather(x, [2]),
        lambda x: ops.gather_nd(x, [[0, 3]]),
        lambda x: ops.take_along_axis(x, [[3], [0]], axis=1),
        lambda x: ops.put_along_axis(x, [[-4], [0]], 1, axis=1),
        lambda x: ops.unravel_index([6], (2, 3)),
        lambda x: ops.index_update(x, 2, 0),
        lambda x: ops.delete(x, 6),
        lambda x: ops.insert(x, 7, 0),
        lambda x: ops.scatter(x, [0, -1]),
        lambda x: ops.scatter(x, [0, 2], 2),
        lambda x: ops.scatter(x, np.array([0, 2]), dim_size=1, aggr="max"),
        lambda x: ops.scatter(x, ops.asarray([0, -1])),
        lambda x: ops.scatter(x, ops.asarray([0, -1]), aggr="mul"),
        lambda x: ops.segment_max(x, ops.asarray([-1, 0])),
        lambda x: ops.segment_mean(x, [0, 5], num_segments=5),
        lambda x: ops.scatter_nd([[2, 0]], [1.0], (2, 3)),
    ],
)
def test_indices_from_the_host_are_checked_on_every_backend(backend: str, call) -> None:
    with pytest.raises(IndexError):
        call(matrix())


@pytest.mark.parametrize("backend", eager(), indirect=True)
@pytest.mark.parametrize("bad", [3, -4])
def test_tensors_of_indices_are_checked_where_that_costs_nothing(backend: str, bad: int) -> None:
    x, places = matrix(), ops.asarray([[bad], [0]])
    for call in (
        lambda: ops.take_along_axis(x, places, axis=1),
        lambda: ops.take_along_axis(x, places[:1], axis=1),
        lambda: ops.put_along_axis(x, places, 1, axis=1),
        lambda: ops.unravel_index(places + 3 if bad > 0 else places, (2, 3)),
        lambda: ops.ravel_multi_index((ops.asarray([1]), places[0]), (2, 3)),
        lambda: ops.ravel_multi_index((places[0], ops.asarray([1])), (2, 3)),
    ):
        with pytest.raises(IndexError):
            call()


def test_places_are_computed_under_torchs_transforms() -> None:
    def around(flat):
        parts = ops.unravel_index(convert_to_tensor(flat), (2, 3))
        return ops.ravel_multi_index(parts, (2, 3)).native

    with use_backend("torch"):
        flat = torch.arange(6).reshape(2, 3)
        compiled = torch.compile(around, fullgraph=True, backend="eager")
        assert compiled(flat).tolist() == flat.tolist()
        assert torch.vmap(around)(flat).tolist() == flat.tolist()


WITH_AXIS = (
    *(ops.sum, ops.prod, ops.mean, ops.var, ops.max, ops.any, ops.argmax, ops.logsumexp),
    *(ops.median, ops.norm, ops.linalg.vector_norm, ops.nanmax, ops.cumsum, ops.diff, ops.sort),
    *(ops.softmax, ops.flip, ops.expand_dims),
)


@pytest.mark.parametrize("function", WITH_AXIS, ids=lambda function: function.__name__)
def test_an_axis_may_be_an_integer_of_numpy(backend: str, function) -> None:
    x = ops.astype(matrix(), "float32")
    assert function(x, axis=np.int64(1)).tolist() == function(x, axis=1).tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, one: ops.roll(x, one, axis=one),
        lambda x, one: ops.roll(x, one),
        lambda x, one: ops.squeeze(x[:, :1], axis=one),
        lambda x, one: ops.moveaxis(x, one, 0),
        lambda x, one: ops.concat([x, x], axis=one),
        lambda x, one: ops.stack([x, x], axis=one),
        lambda x, one: ops.take(x, [0, 2], axis=one),
        lambda x, one: ops.sliding_window_view(x, 2, axis=one),
    ],
)
def test_so_may_other_integers_beside_the_tensor(backend: str, call) -> None:
    x = ops.astype(matrix(), "float32")
    assert call(x, np.int64(1)).tolist() == call(x, 1).tolist()


@pytest.mark.parametrize(
    "shape", [np.array([3, 2]), [3, 2], (np.int64(3), 2), np.int64(6)], ids=str
)
def test_a_shape_may_be_of_numpy(backend: str, shape) -> None:
    want = tuple(np.ravel(shape).tolist())
    assert ops.reshape(matrix(), shape).shape == want
    assert ops.reshape(matrix(), shape, copy=True).shape == want
    assert ops.broadcast_to(1.0, shape).shape == want
    for made in (ops.zeros(shape), ops.ones(shape), ops.empty(shape), ops.full(shape, 2)):
        assert made.shape == want


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.take(x, [0.5], axis=0),
        lambda x: ops.repeat(x, [0.5, 1.5], axis=0),
        lambda x: ops.where(x, x),
        lambda x: ops.concat(3),
        lambda x: ops.scatter(ops.astype(x, "complex64"), [0, 1], aggr="max"),
        lambda x: ops.index_update(x, 0, 1j),
        lambda x: ops.masked_fill(x, x, ops.asarray(1j)),
        lambda x: ops.pad(x, 1, constant_values=1j),
    ],
)
def test_bad_types_are_type_errors(backend: str, call) -> None:
    with pytest.raises(TypeError):
        call(matrix())


def test_split_names_the_sizes(backend: str) -> None:
    with pytest.raises(
        ValueError, match=r"axis 0 of shape \(7, 2\) is not divisible into 3 equal parts"
    ):
        ops.split(ops.zeros((7, 2)), 3)


def test_reshape_without_a_copy(backend: str) -> None:
    x = ops.ones((2, 3))
    if is_lazy(backend):
        with pytest.raises(ValueError, match="MLX"):
            ops.reshape(x, (6,), copy=False)
        return
    assert ops.reshape(x, (6,), copy=False).shape == (6,)
    with pytest.raises(ValueError, match=r".+"):
        ops.reshape(ops.permute_dims(x), (6,), copy=False)


def test_broadcasting_keeps_each_dtype(backend: str) -> None:
    first, second, third = ops.broadcast_arrays(ops.ones((3, 1)), ops.arange(2), True)
    assert (first.dtype, second.dtype, third.dtype) == ("float32", "int64", "bool")
    assert first.shape == second.shape == third.shape == (3, 2)
    assert ops.broadcast_arrays() == []
    assert ops.broadcast_shapes((2, 1), (), (5,), (1, 1, 1)) == (1, 2, 5)
    assert ops.broadcast_shapes((0,), (1,)) == (0,)


def test_where_with_a_condition_alone_finds_it(backend: str) -> None:
    rows, columns = ops.where(convert_to_tensor([[0, 1], [2, 0]]))
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])
    assert ops.where([True, False], 1.5, 0).tolist() == [1.5, 0.0]


def test_select_takes_the_first_that_holds(backend: str) -> None:
    x = ops.arange(6)
    chosen = ops.select([x < 2, x < 4], [x, ops.multiply(x, 10)], -1)
    assert chosen.tolist() == [0, 1, 20, 30, -1, -1]


@pytest.mark.parametrize(
    ("n", "k", "m"), [(3, 0, None), (3, 1, 4), (4, -1, 2), (2, 5, 3), (0, 0, 2)]
)
def test_triangles(backend: str, n: int, k: int, m: int | None) -> None:
    for ours, numpy in ((ops.tril_indices, np.tril_indices), (ops.triu_indices, np.triu_indices)):
        for got, want in zip(ours(n, k, m), numpy(n, k, m), strict=True):
            assert got.dtype == "int64"
            assert got.tolist() == want.tolist()


def test_scatter_of_the_seeds(backend: str) -> None:
    assert ops.scatter(ops.ones((10,)), convert_to_tensor([0, 1, 0])).tolist() == [2.0, 1.0]
    empty = ops.scatter(convert_to_tensor([]), convert_to_tensor([], dtype="int32"))
    assert empty.shape == (0,)
    sparse = ops.scatter(ops.ones((10000,)), convert_to_tensor([0, 9999]))
    assert sparse.shape == (10000,)
    assert sparse.sum().item() == 2.0


@pytest.mark.parametrize("starts", [[1, 0], (1, -3)], ids=str)
def test_a_slice_may_start_at_a_tensor(backend: str, starts) -> None:
    x = matrix()
    want = ops.dynamic_slice(x, starts, (1, 2)).tolist()
    assert want == [[3, 4]]
    assert ops.dynamic_slice(x, convert_to_tensor(list(starts)), (1, 2)).tolist() == want
    mixed = [convert_to_tensor(starts[0]), starts[1]]
    assert ops.dynamic_slice(x, mixed, (1, 2)).tolist() == want
    assert ops.dynamic_update_slice(x, [[7, 8]], mixed).tolist() == [[0, 1, 2], [7, 8, 5]]


def gradient(backend: str, function, values: list[float]) -> list[float]:
    """Return the gradient of the sum of function(values), by the framework's autodiff."""
    if backend == "torch":
        leaf = torch.tensor(values, requires_grad=True)
        function(convert_to_tensor(leaf)).native.sum().backward()
        return leaf.grad.tolist()
    import mlx.core as mx

    return mx.grad(lambda x: function(convert_to_tensor(x)).native.sum())(mx.array(values)).tolist()


@pytest.mark.parametrize(
    ("aggr", "want"),
    [
        ("add", [1, 1, 1, 1, 1, 1]),
        ("mean", [1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2, 1]),
        ("max", [0, 0, 1, 1 / 2, 1 / 2, 1]),  # ties share
        ("min", [0, 1, 0, 1 / 2, 1 / 2, 1]),
        ("mul", [0, 6, 0, 0, 0, 1]),  # of each, the product of the others
    ],
)
def test_gradients_of_scatter(backend: str, aggr: str, want) -> None:
    if backend == "numpy":
        pytest.skip("NumPy has no differentiation of its own")
    values, slots = [2.0, 0.0, 3.0, 0.0, 0.0, 4.0], [1, 1, 1, 0, 0, 3]
    got = gradient(backend, lambda x: ops.scatter(x, slots, aggr=aggr), values)
    np.testing.assert_allclose(got, want, rtol=1e-6)
