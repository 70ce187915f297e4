"""The graph of spikes, for networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ember_ml._core.errors import BackendNotInstalledError
from ember_ml._core.requirements import install_command
from ember_ml.autodiff.causal.spikes.causes import causes
from ember_ml.autodiff.causal.spikes.events import SpikeEvent
from ember_ml.autodiff.causal.spikes.paths import ancestors
from ember_ml.autodiff.causal.spikes.store import SpikeStore

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped,unused-ignore]


def to_networkx(store: SpikeStore, of: SpikeEvent | None, min_influence: float) -> networkx.DiGraph:
    """Return the graph of spikes, with an edge from each cause to its effect.

    Args:
        store: The recorded runs.
        of: Only the ancestors of this spike. Default: all spikes.
        min_influence: Edges whose share of the effect's voltage is less are left out.
    """
    try:
        import networkx
    except ImportError as error:
        raise BackendNotInstalledError(
            f"to_networkx needs networkx; install it with: {install_command('networkx')}"
        ) from error
    graph = networkx.DiGraph()
    if of is None:
        events = list(store.spikes())
    else:
        events = [one.event for one in ancestors(store, of, None, min_influence)]
    for event in events:
        _add_node(store, graph, event)
    for event in events:
        if event.layer not in store.runs:
            continue
        result = causes(store, event, None)
        for cause in result:
            share = abs(cause.contribution) / result.magnitude
            if share < min_influence or (of is not None and cause.event not in graph):
                continue
            _add_node(store, graph, cause.event)
            delay = cause.arrival - cause.event.time
            graph.add_edge(
                cause.event, event, contribution=cause.contribution, share=share, delay=delay
            )
    return graph


def _add_node(store: SpikeStore, graph: networkx.DiGraph, event: SpikeEvent) -> None:
    if event in graph:
        return
    run = store.runs.get(event.layer)
    index = None if run is None else run.index(event)
    voltage = None if run is None or index is None else float(run.voltages[index])
    place = None
    if run is not None and run.positions is not None:
        place = tuple(float(value) for value in run.positions[event.neuron])
    graph.add_node(event, time=event.time, voltage=voltage, position=place)
