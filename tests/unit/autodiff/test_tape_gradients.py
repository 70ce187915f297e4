"""Gradients and Jacobians of a tape, with TensorFlow's semantics."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import GradientTape, ops
from ember_ml.nn import Parameter, tensor
from tests.unit.autodiff.tapes import values

pytestmark = pytest.mark.usefixtures("backend")


def test_nested_targets_are_summed_and_ones_are_implicit():
    x = tensor.array([1.0, 2.0])
    with GradientTape() as tape:
        tape.watch(x)
        targets = {"a": x * x, "b": [x * 3.0]}
    assert tape.gradient(targets, x).tolist() == [5, 7]


def test_a_variable_as_target():
    w = Parameter(2.0)
    with GradientTape() as tape:
        _ = w * 1.0
    assert float(tape.gradient(w, w)) == 1.0


@pytest.mark.parametrize("target", [None, [None], 3.0, "loss"])
def test_targets_must_be_tensors(target):
    x = tensor.array(1.0)
    with GradientTape() as tape:
        tape.watch(x)
    with pytest.raises(TypeError, match="target"):
        tape.gradient(target, x)


def test_sources_must_be_tensors():
    x = tensor.array(1.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(TypeError, match="source 1 must be a tensor, not float"):
        tape.gradient(y, [x, 2.0])


def test_an_intermediate_source_does_not_cut_the_graph():
    x = tensor.array(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        a = x * x
        b = a * 3.0
    assert values(*tape.gradient(b, [a, x])) == [3, 18]


def test_cotangents_of_a_target_that_is_given_twice_are_summed():
    x = tensor.array([1.0, 2.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
    grads = tape.gradient([y, y], x, [tensor.array([1.0, 1.0]), tensor.array([10.0, 10.0])])
    assert grads.tolist() == [22.0, 44.0]


def test_output_gradients():
    x = tensor.array([1.0, 2.0])
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = x * x, x * 3.0
    weights = [tensor.array([1.0, 10.0]), None]
    assert tape.gradient([y, z], x, weights).tolist() == [5, 43]
    assert tape.gradient(y, x, tensor.array([2.0, 3.0])).tolist() == [4, 12]
    with pytest.raises(ValueError, match="got 1 gradients for 2 targets"):
        tape.gradient([y, z], x, [tensor.array([1.0, 1.0])])
    with pytest.raises(ValueError, match=r"shape \(2,\) of target 0"):
        tape.gradient(y, x, tensor.array([1.0, 1.0, 1.0]))


def test_unconnected():
    x, y = tensor.array([1.0, 2.0]), tensor.array(3.0)
    with GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = x * x
    assert tape.gradient(z, y) is None
    zero = tape.gradient(z, [x, y], unconnected_gradients="zero")[1]
    assert (zero.tolist(), zero.shape, zero.dtype) == (0, (), tensor.float32)
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'foo'"):
        tape.gradient(z, x, unconnected_gradients="foo")


def test_a_source_that_the_tape_never_saw():
    x, y = tensor.array(1.0), tensor.array(2.0)
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        z = x * x
    with pytest.warns(UserWarning, match=r"not seen source 1 .*tape\.watch"):
        assert values(*tape.gradient(z, [x, y])) == [2, None]


def test_jacobian():
    x, y = tensor.array([1.0, 2.0, 3.0]), tensor.array(1.0)
    with GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = ops.stack([x * x, x * 2.0])  # (2, 3)
    got = tape.jacobian(z, x)
    assert got.shape == (2, 3, 3)
    np.testing.assert_allclose(got.numpy()[0], np.diag([2.0, 4.0, 6.0]))
    np.testing.assert_allclose(got.numpy()[1], 2 * np.eye(3))
    assert tape.jacobian(z, y) is None
    assert tape.jacobian(z, y, unconnected_gradients="zero").shape == (2, 3)


def test_jacobian_once():
    x = tensor.array([1.0, 2.0, 3.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = ops.exp(x)
    np.testing.assert_allclose(tape.jacobian(y, x).numpy(), np.diag(np.exp([1, 2, 3])), rtol=1e-5)


def test_batch_jacobian():
    x = tensor.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ops.stack([x[:, 0] * x[:, 1], x[:, 0], x[:, 1] * x[:, 1]], axis=1)  # (3, 3)
        other = ops.ones((3, 2)) * 2.0
    got = tape.batch_jacobian(y, x).numpy()
    assert got.shape == (3, 3, 2)
    for row, (a, b) in zip(got, x.tolist(), strict=True):
        np.testing.assert_allclose(row, [[b, a], [1, 0], [0, 2 * b]])
    for word in ("none", "zero"):  # TensorFlow returns zeros in both cases
        assert tape.batch_jacobian(other, x, word).tolist() == np.zeros((3, 2, 2)).tolist()
    with pytest.raises(ValueError, match="unconnected_gradients"):
        tape.batch_jacobian(other, x, "null")
    with pytest.raises(ValueError, match="batch"):
        tape.batch_jacobian(y[:2], x)


def test_variables_are_watched_when_read():
    w, frozen = Parameter([1.0, 2.0], name="w"), Parameter(3.0, trainable=False)
    with GradientTape() as tape:
        y = (w * frozen).sum()
    assert tape.watched_variables() == (w,)
    assert tape.gradient(y, w).tolist() == [3, 3]
    assert tape.watched_variables()[0] is w


def test_accessed_variables_can_be_left_alone():
    v, w = Parameter(2.0), Parameter(3.0)
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
        y = v * w
    assert tape.watched_variables() == (v,)
    with pytest.warns(UserWarning, match="not seen source 1"):
        assert values(*tape.gradient(y, [v, w])) == [3, None]


def test_values_are_captured_when_read():
    w = Parameter(2.0)
    with GradientTape() as tape:
        y = w * w
        w.assign(5.0)
        z = y + w * 10.0
    w.assign(100.0)
    assert float(tape.gradient(z, w)) == 14.0


def test_in_place_updates_never_reach_recorded_values():
    x, c = tensor.array([1.0, 2.0]), tensor.array([3.0, 4.0])
    with GradientTape() as tape:
        tape.watch(x)
        a = x * x
        y = a * c
        c += 1.0
        a[0] = 100.0
        z = y + a
    c *= 0.0
    a *= 0.0
    x[1] = 7.0
    assert tape.gradient(z, x).tolist() == [6.0, 20.0]


def test_gradients_flow_through_assignment():
    x = tensor.array([1.0, 2.0, 3.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
        y[1] = x[0] * x[0]
        z = (y * y).sum()
    assert tape.gradient(z, x).tolist() == [8 * 1 + 4 * 1, 0, 8 * 3]


def test_higher_orders():
    x = tensor.array(2.0)
    with GradientTape() as third:
        third.watch(x)
        with GradientTape() as second:
            second.watch(x)
            with GradientTape() as first:
                first.watch(x)
                y = x * x * x * x
            dy = first.gradient(y, x)
        ddy = second.gradient(dy, x)
    assert values(dy, ddy, third.gradient(ddy, x)) == [32, 48, 48]


def test_an_inner_variable_depends_on_an_outer_one():
    x, w = tensor.array(3.0), tensor.array(2.0)
    with GradientTape() as outer:
        outer.watch(w)
        with GradientTape() as inner:
            inner.watch(x)
            y = w * x * x
        g = inner.gradient(y, x)  # 2 w x
        loss = g * g
    assert float(outer.gradient(loss, w)) == 2 * 12.0 * 6.0


def test_complex_numbers_follow_one_convention():
    z = tensor.array(1 + 2j, dtype="complex64")
    with GradientTape() as tape:
        tape.watch(z)
        y = z * z
    assert complex(tape.gradient(y, z)) == 2 - 4j


def test_dtypes_stay():
    x, half = tensor.array([1.0, 2.0]), tensor.array([1.0, 2.0], dtype="float16")
    with GradientTape() as tape:
        tape.watch([x, half])
        y = ops.mean(x * 2.0 + ops.exp(half) * 3) / 7
    g = tape.gradient(y, [x, half])
    assert [one.dtype.name for one in g] == ["float32", "float16"]


def test_dropout_uses_the_mask_of_the_forward_pass():
    x = tensor.array(np.ones(1000, np.float32))
    with GradientTape() as tape:
        tape.watch(x)
        y = ops.dropout(x, 0.5)
    kept = y.numpy() > 0
    g = tape.gradient(y, x).numpy()
    np.testing.assert_array_equal(g > 0, kept)
    assert 300 < kept.sum() < 700


def test_the_same_tensor_twice_and_two_names_of_one_value():
    data = np.array([1.0, 2.0], np.float32)
    x, y = tensor.array(data), tensor.array(data)
    with GradientTape() as tape:
        tape.watch(x)
        z = x * y + x
    assert tape.gradient(z, x).tolist() == [2, 3]


def test_ops_that_give_their_operand_back():
    x = tensor.array([[1.0, 2.0]])
    with GradientTape() as tape:
        tape.watch(x)
        y = ops.dropout(ops.reshape(ops.astype(x, "float32"), (1, 2)), 0.5, training=False)
        z = y * y
    assert tape.gradient(z, x).tolist() == [[2, 4]]
