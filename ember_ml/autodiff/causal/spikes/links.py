"""Linear maps between the spikes of a layer and the drive of the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.autodiff.causal.events import Event
from ember_ml.autodiff.causal.spikes.dynamics import Array
from ember_ml.autodiff.causal.spikes.host import host
from ember_ml.autodiff.causal.spikes.inputs import InputLink
from ember_ml.autodiff.causal.spikes.run import SpikeRun

if TYPE_CHECKING:
    from ember_ml.autodiff.causal.context import CausalContext

LINEAR = "linear"
"""Name of the op of a dense layer: x @ weight^T + bias."""
CASTS = ("cast", "astype")
"""Names of ops that change the dtype only."""


def find_link(context: CausalContext, run: SpikeRun) -> InputLink | None:
    """Return the map that the drive of a run comes from, according to the recorded ops.

    A link is found if the drive is the output of another spiking layer, or of a dense layer.

    Args:
        context: The causal context that recorded the ops.
        run: The run.
    """
    assert run.drive is not None
    source = context.spike_store.producer(run.drive)
    if source is not None:
        return InputLink(run.drive, None, source, source.name)
    event = context.event_of(run.drive)
    while event is not None and event.step is not None and _name(event) in CASTS:
        (value, *_) = event.step.inputs
        event = context.event_of(value[2])
    if event is None or event.step is None or _name(event) != LINEAR:
        return None
    inputs, weight = _operands(event.step.args)
    if inputs is None or weight is None or inputs.ndim != 3:
        return None
    source = context.spike_store.producer(inputs)
    name = f"{run.name}.input" if source is None else source.name
    return InputLink(inputs, _copied(weight), source, name)


def _name(event: Event) -> str:
    """Return the name of an op without its family."""
    return event.operation.rpartition(".")[2]


def _operands(args: object) -> tuple[Tensor | None, Tensor | None]:
    """Return the input and the weight of a linear op."""
    if not isinstance(args, (list, tuple)) or len(args) < 2:
        return None, None
    inputs, weight = args[0], args[1]
    if not isinstance(inputs, EmberTensor) or not isinstance(weight, EmberTensor):
        return None, None
    return inputs, weight


def _copied(weight: Tensor) -> Array:
    return np.array(host(weight))
