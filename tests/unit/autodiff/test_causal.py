"""The causal context: recorded events, and queries on them."""

from __future__ import annotations

import matplotlib as mpl
import networkx
import numpy as np
import pytest

from ember_ml import GradientTape, ops
from ember_ml.autodiff import CausalContext, grad
from ember_ml.nn import tensor

mpl.use("agg")
pytestmark = pytest.mark.usefixtures("backend")


def recorded(**options):
    x, w = tensor.array([1.0, 2.0]), tensor.array([3.0, 4.0])
    with GradientTape(persistent=True, causal=True, **options) as tape:
        tape.watch([x, w])
        tape.causal.register_tensor(x, "x", (0.0, 0.0))
        tape.causal.register_tensor(w, "w", (2.0, 0.0))
        h = x * w
        e = ops.exp(x)
        y = ops.sum(e * h)
    return tape, x, w, h, e, y


def test_off_unless_asked_for():
    assert GradientTape().causal is None


def test_events():
    tape, *_ = recorded()
    names = ["elementwise.multiply", "exponential.exp", "elementwise.multiply", "reduction.sum"]
    assert [event.operation for event in tape.causal.events] == names
    first, second, third, last = tape.causal.events
    assert first.spatial.position == (1.0, 0.0)
    assert first.spatial.distance == 1.0
    assert second.spatial.position == (0.0, 0.0)
    assert third.spatial.inputs == ((0.0, 0.0), (1.0, 0.0))
    assert [event.temporal.depth for event in tape.causal.events] == [1, 1, 2, 3]
    assert third.temporal.delays == (1, 2)
    assert third.causal.causes == (1, 0)
    assert first.causal.causes == (None, None)
    assert (second.causal.sources, last.causal.sources) == ({"x"}, {"x", "w"})
    assert [event.temporal.elapsed for event in tape.causal.events] == sorted(
        event.temporal.elapsed for event in tape.causal.events
    )


def test_ancestors_and_descendants():
    tape, x, w, h, e, y = recorded()
    context = tape.causal
    assert [event.tick for event in context.ancestors(y)] == [3, 2, 1, 0]
    assert [event.tick for event in context.ancestors(y, depth=1)] == [3, 2]
    assert [event.tick for event in context.descendants(w)] == [0, 2, 3]
    assert [event.tick for event in context.descendants(e)] == [2, 3]
    assert [event.tick for event in context.descendants(e, depth=1)] == [2]
    assert context.ancestors(x) == []
    assert context.event_of(h).tick == 0


def test_positions_of_tensors():
    tape, x, w, h, _, y = recorded()
    assert tape.causal.position(x) == (0.0, 0.0)
    assert tape.causal.position(h) == tape.causal.position(tape.causal.event_of(h)) == (1.0, 0.0)
    assert tape.causal.proximity(x, w) == 2.0
    assert tape.causal.proximity(w, tape.causal.event_of(y)) == 1.5
    with pytest.raises(ValueError, match="has no position; set those of its sources"):
        tape.causal.position(tensor.array(1.0))


def test_the_graph_is_run_again():
    tape, x, w, _, _, y = recorded()
    again = tape.causal.reconstruct_graph(y, [x, w])
    np.testing.assert_allclose(float(again(x, w)), float(y), rtol=1e-6)
    other = tensor.array([0.5, -1.0])
    want = np.sum(np.exp(other.numpy()) * other.numpy() * w.numpy())
    np.testing.assert_allclose(float(again(other, w)), want, rtol=1e-5)
    np.testing.assert_allclose(float(tape.causal.reconstruct_graph(y, x, other)), want, rtol=1e-5)
    np.testing.assert_allclose(grad(again)(x, w).numpy(), tape.gradient(y, x).numpy(), rtol=1e-5)
    with pytest.raises(ValueError, match="1 values for 2 sources"):
        again(x)
    with pytest.raises(ValueError, match="not computed by a recorded op"):
        tape.causal.reconstruct_graph(x, [w])


def test_a_ring_of_events():
    tape, *_ = recorded(max_events=2)
    assert [event.tick for event in tape.causal.events] == [2, 3]
    assert len(tape.causal._alive) <= 7
    with pytest.raises(ValueError, match="max_events"):
        CausalContext(0)


def test_recording_is_stopped_and_started():
    x = tensor.array(1.0)
    with GradientTape(causal=True) as tape:
        tape.watch(x)
        tape.causal.stop_recording()
        y = x * x
        tape.causal.start_recording()
        _ = y + 1.0
    assert [event.operation for event in tape.causal.events] == ["elementwise.add"]


def test_operations_by_hand():
    context = CausalContext()
    x, y = tensor.array(1.0), tensor.array(2.0)
    context.register_tensor(x, "x", (0.0,))
    event = context.register_operation("spike", x, [y])
    assert event.causal.sources == {"x"}
    assert context.event_of(y) is event
    with pytest.raises(TypeError, match="expected a tensor, not float"):
        context.register_tensor(1.0)


def test_networkx_and_the_drawing(tmp_path):
    tape, *_ = recorded()
    graph = tape.causal.to_networkx()
    assert networkx.is_directed_acyclic_graph(graph)
    assert set(networkx.ancestors(graph, "3: reduction.sum")) >= {"x", "w", "1: exponential.exp"}
    assert graph.nodes["0: elementwise.multiply"]["position"] == (1.0, 0.0)
    path = tmp_path / "graph.png"
    ax = tape.causal.draw(str(path))
    assert path.stat().st_size > 1000
    labels = [text.get_text() for text in ax.texts]
    assert {"x", "w", "sum\n()", "exp\n(2,)"} <= set(labels)


def test_gradients_are_the_same_with_it():
    tape, x, w, _, _, y = recorded()
    want = np.exp(x.numpy()) * w.numpy() * (1 + x.numpy())
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), want, rtol=1e-5)
