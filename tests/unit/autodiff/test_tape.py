"""Life cycle of a tape, with TensorFlow's semantics on every backend."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from ember_ml import GradientTape, ops, use_backend
from ember_ml.nn import Parameter, tensor
from tests.unit.autodiff.tapes import values

pytestmark = pytest.mark.usefixtures("backend")


def test_gradient_of_a_square():
    x = tensor.array(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
    g = tape.gradient(y, x)
    assert g.dtype is tensor.float32
    assert float(g) == 6.0


@pytest.mark.parametrize("second", ["gradient", "jacobian", "batch_jacobian"])
@pytest.mark.parametrize("first", ["gradient", "jacobian"])
def test_a_spent_tape(first, second):
    x = tensor.array([1.0, 2.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
    getattr(tape, first)(y, x)
    with pytest.raises(RuntimeError, match=r"non-persistent GradientTape.*persistent=True"):
        getattr(tape, second)(y, x)


def test_a_spent_tape_entered_again_starts_afresh():
    x = tensor.array(2.0)
    tape = GradientTape()
    with tape:
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 4.0
    with tape:
        tape.watch(x)
        y = x * x * x
    assert float(tape.gradient(y, x)) == 12.0


def test_a_persistent_tape_is_asked_twice():
    x = tensor.array(2.0)
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert values(tape.gradient(z, x), tape.gradient(y, x), tape.gradient(z, x)) == [32, 4, 32]


def test_gradient_inside_the_block_stops_a_tape():
    x = tensor.array(2.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert float(tape.gradient(y, x)) == 4.0
        with pytest.raises(ValueError, match="not recording"):
            tape.reset()


def test_gradient_inside_the_block_of_a_persistent_tape_is_recorded():
    x = tensor.array(2.0)
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * x
        with pytest.warns(UserWarning, match="persistent tape inside"):
            g = tape.gradient(y, x)
    assert float(g) == 12.0
    assert float(tape.gradient(g, x)) == 12.0


def test_entering_twice():
    tape = GradientTape()
    with tape, pytest.raises(ValueError, match="Tape is still recording"):
        tape.__enter__()


def test_an_exited_tape_continues():
    x = tensor.array(3.0)
    tape = GradientTape()
    with tape:
        tape.watch(x)
        y = x * x
    y = y * 1.0  # not recorded
    with tape:
        z = x * x * x
    assert float(tape.gradient(z, x)) == 27.0


def test_what_is_computed_outside_is_not_recorded():
    x = tensor.array(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
    z = y * 2.0
    assert tape.gradient(z, x) is None


def test_stop_recording():
    x = tensor.array(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            y = x * x
        z = y + x
    assert float(tape.gradient(z, x)) == 1.0


def test_stop_recording_errors():
    tape = GradientTape()
    with pytest.raises(RuntimeError, match="never entered"), tape.stop_recording():
        pass
    with tape:
        pass
    with pytest.raises(ValueError, match=r"Tape is not recording\."), tape.stop_recording():
        pass


def test_reset():
    x = tensor.array(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        tape.watch(x)
        z = x * y
    assert float(tape.gradient(z, x)) == 9.0
    with pytest.raises(ValueError, match=r"Tape is not recording\."):
        tape.reset()


def test_watch_takes_nests():
    nest = {"a": tensor.array(2.0), "b": [tensor.array(3.0), (tensor.array(4.0),)]}
    with GradientTape() as tape:
        tape.watch(nest)
        y = nest["a"] * nest["b"][0] * nest["b"][1][0]
    g = tape.gradient(y, nest)
    assert values(g["a"], g["b"][0], g["b"][1][0]) == [12, 8, 6]
    assert isinstance(g["b"][1], tuple)


def test_watching_integers():
    x = tensor.array([1, 2])
    with GradientTape() as tape:
        with pytest.warns(UserWarning, match="dtype must be floating"):
            tape.watch(x)
        y = x * 2.0
    assert tape.gradient(y, x) is None


def test_watching_a_non_tensor():
    with GradientTape() as tape, pytest.raises(ValueError, match="convert_to_tensor"):
        tape.watch(np.ones(3))


def test_watching_before_entering():
    with pytest.raises(RuntimeError, match="never entered"):
        GradientTape().watch(tensor.array(1.0))


def test_watching_after_exit_affects_what_is_recorded_later():
    x = tensor.array(3.0)
    tape = GradientTape()
    with tape:
        y = x * x
    tape.watch(x)
    with tape:
        z = y * x
    assert float(tape.gradient(z, x)) == 9.0


def test_watching_after_exit_makes_a_source_its_own_target():
    x = tensor.array(3.0)
    with GradientTape() as tape:
        pass
    tape.watch(x)
    assert float(tape.gradient(x, x)) == 1.0


def test_watching_while_the_recording_is_stopped():
    x = tensor.array(3.0)
    with GradientTape() as tape:
        with tape.stop_recording():
            tape.watch(x)
            y = x * x
        z = y * x
    assert float(tape.gradient(z, x)) == 9.0


def test_watching_on_a_spent_tape():
    x = tensor.array(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match=r"watch: A non-persistent GradientTape"):
        tape.watch(x)


def test_a_late_watch_sees_earlier_results_as_constants():
    x = tensor.array(3.0)
    with GradientTape() as tape:
        y = x * x
        tape.watch(x)
        z = y * x
    assert float(tape.gradient(z, x)) == 9.0


def test_a_late_watch_of_what_an_outer_tape_tracks():
    x, w = tensor.array(3.0), tensor.array(2.0)
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape(persistent=True) as inner:
            inner.watch(w)
            y = x * w  # on both tapes; to the inner one x is a constant
            inner.watch(x)
            z = y * x
        assert values(*inner.gradient(z, [x, w])) == [6, 9]
        g = inner.gradient(z, x)
    assert values(g, outer.gradient(g, x)) == [6, 2]


def test_a_late_watch_on_an_inner_tape():
    x = tensor.array(3.0)
    with GradientTape() as outer:
        outer.watch(x)
        y = x * x
        with GradientTape() as inner:
            inner.watch(x)
            z = y * x
        g = inner.gradient(z, x)
    assert float(g) == 9.0
    assert float(outer.gradient(z, x)) == 27.0


def test_a_constant_that_is_watched_later_stays_one():
    x, c = tensor.array(3.0), tensor.array(2.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * c
        tape.watch(c)
        z = y + c * 10.0
    assert values(*tape.gradient(z, [x, c])) == [2, 10]


def test_threads_do_not_see_each_other():
    shared = Parameter([1.0, 2.0, 3.0])
    name = shared.backend
    failures = []

    def work(factor):
        try:
            with use_backend(name):
                for _ in range(30):
                    with GradientTape() as tape:
                        y = (shared * factor * shared).sum()
                    got = tape.gradient(y, shared).tolist()
                    assert got == [2 * factor, 4 * factor, 6 * factor], got
                    assert tape.watched_variables() == (shared,)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_operations_of_another_thread_are_not_recorded():
    x = tensor.array(2.0)
    made = []
    with GradientTape() as tape:
        tape.watch(x)

        def work():
            made.append(x * x)
            ops.synchronize(made[0])

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        y = made[0] * x
    assert float(tape.gradient(y, x)) == 4.0


def test_no_graph_stays_behind():
    x = tensor.array([1.0, 2.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = ops.exp(x)
    for one in (x, y, ops.exp(y)):
        assert not getattr(one.native, "requires_grad", False)
    del tape


def test_a_dropped_tape_lets_its_values_go():
    import weakref

    x = tensor.array(np.ones((4, 4), np.float32))
    alive = []
    for _ in range(200):
        with GradientTape() as tape:
            tape.watch(x)
            y = ops.exp(x * x)
            for log in tape._logs.values():
                for entry in log.values.values():
                    data = entry[1] if isinstance(entry, tuple) else entry
                    alive.append(weakref.ref(data))
        tape.gradient(y, x)
        del tape, y, entry, data, log
    gc.collect()
    assert len({id(data) for ref in alive if (data := ref()) is not None}) <= 4


def test_two_backends_on_one_tape(backend):
    other = "torch" if backend == "numpy" else "numpy"
    x = tensor.array([1.0, 2.0])
    with use_backend(other):
        y = tensor.array([3.0, 4.0])
    with GradientTape() as tape:
        tape.watch([x, y])
        a, b = x * x, y * y
        with pytest.raises(TypeError, match=f"{other}|{backend}"):
            _ = a + b
    assert values(*tape.gradient([a, b], [x, y])) == [[2, 4], [6, 8]]
