"""Combinations of transforms, tapes and parameters."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import numpy as np
import pytest

from ember_ml import GradientTape, ops
from ember_ml.autodiff import (
    checkpoint,
    compile,
    custom_gradient,
    fallback,
    grad,
    hessian,
    jacobian,
    jvp,
    vjp,
    vmap,
)
from ember_ml.nn import Parameter, tensor

pytestmark = pytest.mark.usefixtures("backend")


def test_parameters_created_from_one_array_are_independent():
    start = tensor.array(1.0)
    a, b = Parameter(start), Parameter(start)
    target = Parameter(0.0, trainable=False)
    target.assign(a)
    with GradientTape() as tape:
        y = a * 2.0 + b * 3.0 + target * 5.0
    assert [float(g) for g in tape.gradient(y, [a, b])] == [2.0, 3.0]
    assert tape.watched_variables() == (a, b)
    with GradientTape() as tape:
        y = a.value() * 5.0 + a * 1.0
    assert float(tape.gradient(y, a)) == 6.0


def test_a_tape_inside_a_differentiated_function():
    def slope(x):
        with GradientTape() as tape:
            tape.watch(x)
            y = x**3
        return tape.gradient(y, x)

    assert float(grad(slope)(2.0)) == pytest.approx(12.0)

    def value(x):
        with GradientTape() as tape:
            tape.watch(x)
            return x**3

    assert float(grad(value)(2.0)) == pytest.approx(12.0)


def test_the_order_in_which_nested_tapes_watch():
    x = tensor.array(2.0)
    with GradientTape() as outer:
        with GradientTape() as inner:
            inner.watch(x)
            outer.watch(x)
            y = x**3
        g = inner.gradient(y, x)
    assert float(outer.gradient(g, x)) == pytest.approx(12.0)
    w = Parameter(2.0)
    with GradientTape() as outer:
        with GradientTape() as inner:
            inner.watch(w)
            y = w**3
        g = inner.gradient(y, w)
    assert float(outer.gradient(g, w)) == pytest.approx(12.0)


def test_an_outer_tape_stopped_for_a_moment_stays_outside():
    x = tensor.array(2.0)
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch(x)
            with outer.stop_recording():
                pass
            y = x**3
        g = inner.gradient(y, x)
    assert float(g) == pytest.approx(12.0)
    assert float(outer.gradient(g, x)) == pytest.approx(12.0)


def test_two_tapes_are_asked_for_one_target():
    x = tensor.array(3.0)
    with GradientTape() as first, GradientTape() as second:
        first.watch(x)
        second.watch(x)
        y = x * x
    assert float(first.gradient(y, x)) == 6.0
    assert float(second.gradient(y, x)) == 6.0


def test_a_custom_gradient_is_that_of_its_call():
    w = Parameter(0.0)
    scaled = custom_gradient(lambda x: (x * w, lambda g: g * w))
    x = tensor.array(1.0)
    for step in range(12):
        w.assign(float(step))
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            y = scaled(x)
        assert float(tape.gradient(y, x)) == step
        w.assign(50.0)
        assert float(y) == step


def test_a_random_custom_gradient_uses_one_mask():
    def noisy(x):
        mask = ops.cast(ops.random.uniform((50,)) > 0.5, "float32")
        return x * mask, lambda g: g * mask

    x = tensor.array(np.ones(50, np.float32))
    with GradientTape() as tape:
        tape.watch(x)
        y = custom_gradient(noisy)(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), y.numpy())


def test_arguments_that_no_cache_can_tell_apart():
    x = tensor.array([1.0, 2.0])
    for count in (2, 3):
        reps = np.array([count])
        with GradientTape() as tape:
            tape.watch(x)
            y = checkpoint(lambda x, reps=reps: ops.tile(x, reps.tolist()) ** 2)(x)
        assert tape.gradient(y, x).tolist() == [2.0 * count, 4.0 * count]


def test_a_pull_belongs_to_its_forward_pass():
    w = Parameter(2.0)
    x = tensor.array(np.ones(100, np.float32))
    y, pull = vjp(lambda x: ops.dropout(x, 0.5), x)
    np.testing.assert_array_equal(pull(ops.ones(100))[0].numpy() > 0, y.numpy() > 0)
    _, pull = vjp(lambda x: x * w, x)
    w.assign(100.0)
    assert float(pull(ops.ones(100))[0][0]) == 2.0


def test_compiled_dropout_draws_anew():
    x = tensor.array(np.ones(200, np.float32))
    options = {"backend": "aot_eager"} if x.backend == "torch" else {}
    dropped = compile(lambda x: ops.dropout(x, 0.5), **options)
    assert dropped(x).tolist() != dropped(x).tolist()
    with GradientTape() as tape:
        tape.watch(x)
        y = dropped(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy() > 0, y.numpy() > 0)


def test_compiled_results_of_several_shapes_and_kinds():
    options = {"backend": "aot_eager"} if ops.get_backend() == "torch" else {}
    f = compile(lambda x, flag=1: (None, x * 2.0, x.shape[0], flag), **options)
    sizes = [f(ops.ones(size))[2] for size in (3, 4, 3)]
    assert sizes == [3, 4, 3]
    assert f(ops.ones(2), 1)[3] is not True
    assert f(ops.ones(2), True)[3] is True
    assert f(ops.ones(2))[0] is None


def test_second_derivatives_through_compile():
    options = {"backend": "aot_eager"} if ops.get_backend() == "torch" else {}
    assert float(grad(grad(compile(lambda z: z**3, **options)))(2.0)) == pytest.approx(12.0)


def test_forward_derivatives_follow_a_custom_gradient():
    f = custom_gradient(lambda x: (ops.exp(x), lambda g: g * ops.exp(x) * 10.0))
    x = tensor.array(0.0)
    assert float(jvp(f, (x,), (ops.ones_like(x),))[1]) == pytest.approx(10.0)
    assert float(jacobian(f, mode="forward")(x)) == pytest.approx(10.0)


def test_dicts_are_matched_by_key():
    a, b = tensor.array([1.0, 2.0]), tensor.array([3.0, 4.0])
    got = vmap(lambda p: p["a"] * p["b"], in_axes=({"b": None, "a": 0},))({"a": a, "b": b})
    assert got.tolist() == [[3.0, 4.0], [6.0, 8.0]]
    with GradientTape() as tape:
        tape.watch(a)
        targets = {"a": a * 1.0, "b": a * 2.0}
    weights = {"b": ops.ones(2) * 10.0, "a": ops.ones(2)}
    assert tape.gradient(targets, a, weights).tolist() == [21.0, 21.0]
    one, zero = tensor.array(1.0), tensor.array(0.0)
    _, change = jvp(
        lambda p: p["x"] * 1.0 + p["y"] * 9.0, ({"x": one, "y": one},), ({"y": zero, "x": one},)
    )
    assert float(change) == 1.0


def test_dtypes_through_transforms():
    half = tensor.array([1.0, 2.0], dtype="float16")
    assert vmap(lambda x, s: x * s, in_axes=(0, None))(half, 2.0).dtype == "float16"
    assert checkpoint(lambda x, s: x * s)(half, 2.0).dtype == "float16"
    x = tensor.array(1.0)
    assert jvp(lambda x: x * 2.0, (x,), (x,))[1].dtype == "float32"


@pytest.mark.filterwarnings("ignore:vmap computes the examples one by one")
@pytest.mark.parametrize("fn", [lambda z: z**3, lambda z: 1.0 / z, lambda z: (z - 1.0) ** 2])
def test_checkpoints_of_the_simplest_functions(fn):
    assert float(grad(checkpoint(fn))(2.0)) == pytest.approx(float(grad(fn)(2.0)))
    assert float(hessian(checkpoint(fn))(2.0)) == pytest.approx(float(hessian(fn)(2.0)))
    v = tensor.array([1.0, 2.0])
    np.testing.assert_allclose(vmap(grad(checkpoint(fn)))(v).numpy(), vmap(grad(fn))(v).numpy())


def test_checkpoints_of_indices_parameters_and_keywords():
    table = Parameter([[1.0, 2.0], [3.0, 4.0]])
    rows = tensor.array([1, 1, 0])
    with GradientTape() as tape:
        y = ops.sum(
            checkpoint(lambda t, i, scale: ops.take(t, i, axis=0) * scale)(table, rows, scale=2.0)
        )
    assert tape.gradient(y, table).tolist() == [[2.0, 2.0], [4.0, 4.0]]
    assert checkpoint(lambda i: i + 1)(rows).tolist() == [2, 2, 1]


def test_integer_parameters_are_let_alone():
    steps, x = Parameter([1, 2]), tensor.array([1.0, 2.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = steps * x
    assert tape.gradient(y, x).tolist() == [1.0, 2.0]


def test_vmap_of_two_batched_arguments():
    x, y = tensor.array([[1.0, -2.0], [3.0, 4.0]]), tensor.array([[2.0, 2.0], [1.0, 1.0]])
    assert vmap(lambda a, b: a * b)(x, y).tolist() == [[2.0, -4.0], [3.0, 4.0]]


def test_vmap_falls_back_to_a_loop_and_warns_once(backend, monkeypatch):
    monkeypatch.setattr(fallback, "_warned", set())
    x = tensor.array([[1.0, -2.0], [3.0, 4.0]])
    for turn in range(2):
        expected = pytest.warns(RuntimeWarning, match="one by one") if turn == 0 else nullcontext()
        with expected if backend != "numpy" else nullcontext():
            assert vmap(lambda a: ops.sum(a[a > 0]))(x).tolist() == [1.0, 7.0]


def test_vmap_does_not_retry_after_an_error_of_the_function(backend):
    calls = []

    def fails(row):
        calls.append(row)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        vmap(fails)(ops.ones((2, 3)))
    assert len(calls) == 1


def test_other_threads_and_tasks_are_not_recorded():
    x = tensor.array(2.0)

    def square():
        y = x * x
        ops.synchronize(y)
        return y

    async def run():
        with GradientTape() as tape:
            tape.watch(x)
            y = await asyncio.to_thread(square)
            z = y * x
        return float(tape.gradient(z, x))

    assert asyncio.run(run()) == 4.0


def test_a_tape_that_an_error_leaves_is_closed():
    x = tensor.array(2.0)
    tape = GradientTape()

    def fail():
        with tape:
            tape.watch(x)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    y = x * x
    assert not tape.tracks(y)
    with GradientTape() as other:
        other.watch(x)
        z = x * x
    assert float(other.gradient(z, x)) == 4.0
