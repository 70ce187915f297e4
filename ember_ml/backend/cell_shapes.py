"""Shapes of the operands of recurrent cells and synapses, checked alike on all backends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ember_ml._core.errors import ShapeError

Shape = tuple[int, ...]


def _check(op: str, named: str, expected: Mapping[str, tuple[Any, Shape]]) -> None:
    """Raise if an array that is not None has another shape than expected.

    Args:
        op: Name of the op.
        named: Description of the shapes that the expected ones follow from.
        expected: Arrays with their shapes, by name.
    """
    for name, (array, shape) in expected.items():
        if array is not None and tuple(array.shape) != shape:
            raise ShapeError(
                f"{op}: {name} has shape {tuple(array.shape)}; expected {shape} for {named}"
            )


def _check_states(op: str, x: Any, *states: Any) -> tuple[int, ...]:
    """Return batch, time, features and hidden size; raise if x and the states disagree."""
    given = [tuple(state.shape) for state in states]
    if len(x.shape) == 3 and len(given[0]) == 2:
        sizes = *x.shape, given[0][1]
        if all(shape == (sizes[0], sizes[3]) for shape in given):
            return sizes
    raise ShapeError(
        f"{op}: x has shape {tuple(x.shape)} and the initial state {', '.join(map(str, given))}; "
        "expected (batch, time, features) and (batch, hidden)"
    )


def check_gated(
    op: str, gates: int, x: Any, states: Any, weight_ih: Any, weight_hh: Any, *biases: Any
) -> None:
    """Raise unless the shapes of the operands of `lstm` or `gru` agree.

    Args:
        op: Name of the op.
        gates: Number of gates: 4 for an LSTM, 3 for a GRU.
        x: Input.
        states: Initial states.
        weight_ih: Weights of the input.
        weight_hh: Weights of the hidden state.
        biases: Biases of the input and of the hidden state, or None.
    """
    _, _, features, hidden = _check_states(op, x, *states)
    width = gates * hidden
    expected: dict[str, tuple[Any, Shape]] = {
        "weight_ih": (weight_ih, (width, features)),
        "weight_hh": (weight_hh, (width, hidden)),
    }
    for name, bias in zip(("bias_ih", "bias_hh"), biases, strict=True):
        expected[name] = bias, (width,)
    _check(op, f"{features} features and {hidden} hidden features", expected)


def check_closed_form(
    x: Any, h0: Any, weight_hh: Any, weight: Any, bias: Any, timespans: Any
) -> None:
    """Raise unless the shapes of the operands of `closed_form` agree.

    Args:
        x: Projected input.
        h0: Initial hidden state.
        weight_hh: Weights of the hidden state.
        weight: Weights of the backbone, or None.
        bias: Biases of the backbone, or None.
        timespans: Timespans, or None.
    """
    op = "closed_form"
    batch, time, inner, hidden = _check_states(op, x, h0)
    width = (3 if timespans is None else 4) * hidden
    named = f"x of shape {tuple(x.shape)} and {hidden} hidden features"
    if weight is None and inner != width:
        raise ShapeError(
            f"{op}: x has shape {tuple(x.shape)}; expected {(batch, time, width)} for {hidden} "
            f"hidden features {'without' if timespans is None else 'with'} timespans"
        )
    expected: dict[str, tuple[Any, Shape]] = {
        "weight_hh": (weight_hh, (inner, hidden)),
        "weight": (weight, (width, inner)),
    }
    if weight is not None:
        expected["bias"] = bias, (width,)
    if timespans is not None and tuple(timespans.shape) != (1, time, 1):
        expected["timespans"] = timespans, (batch, time, 1)
    _check(op, named, expected)


def check_liquid(x: Any, v0: Any, capacity: Any, slopes: Any, offsets: Any, weights: Any) -> None:
    """Raise unless the shapes of the operands of `liquid` agree.

    Args:
        x: Input currents and conductances.
        v0: Initial potentials.
        capacity: Capacities.
        slopes: Slopes of the synapses.
        offsets: Offsets of the synapses.
        weights: Weights of the synapses.
    """
    batch, time, _, neurons = _check_states("liquid", x, v0)
    count = slopes.shape[0] if slopes.shape else 0
    expected = {
        "x": (x, (batch, time, 2 * neurons)),
        "capacity": (capacity, (neurons,)),
        "slopes": (slopes, (count, neurons)),
        "offsets": (offsets, (count,)),
        "weights": (weights, (2 * neurons, count)),
    }
    _check("liquid", f"{neurons} neurons and {count} synapses", expected)


def check_synapses(
    v: Any, slopes: Any, offsets: Any, weights: Any, sources: Any, destinations: Any
) -> None:
    """Raise unless the shapes of the operands of `synapses` agree.

    Args:
        v: Potentials.
        slopes: Slopes of the synapses.
        offsets: Offsets of the synapses.
        weights: Weights of the synapses.
        sources: Source neuron of each synapse.
        destinations: Destination of each synapse.
    """
    if len(weights.shape) != 2 or 0 in tuple(v.shape)[-1:]:
        raise ShapeError(
            f"synapses: v has shape {tuple(v.shape)} and weights {tuple(weights.shape)}; "
            "expected (..., neurons) and (kinds, synapses)"
        )
    count = weights.shape[1]
    arrays = {"slopes": slopes, "offsets": offsets}
    arrays |= {"sources": sources, "destinations": destinations}
    expected = {name: (array, (count,)) for name, array in arrays.items()}
    _check("synapses", f"{count} synapses", expected)
