"""Plots of spikes and their causes, over time and in space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ember_ml._core.errors import ArgumentError
from ember_ml.autodiff.causal.spikes.causes import causes
from ember_ml.autodiff.causal.spikes.dynamics import Array
from ember_ml.autodiff.causal.spikes.events import Related, SpikeEvent
from ember_ml.autodiff.causal.spikes.paths import ancestors
from ember_ml.autodiff.causal.spikes.run import SpikeRun
from ember_ml.autodiff.causal.spikes.space import coordinates
from ember_ml.autodiff.causal.spikes.store import SpikeStore

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXCITES, INHIBITS = "#d55e00", "#0072b2"
"""Colors of causes that raise and that lower the voltage."""
QUIET = "0.78"


def plot_raster(
    store: SpikeStore,
    event: SpikeEvent,
    path: str | None = None,
    ax: Axes | None = None,
    depth: int | None = 1,
    min_influence: float = 0.01,
) -> Axes:
    """Draw the spikes of a layer over time, and the causes of one of them.

    Args:
        store: The recorded runs.
        event: The spike.
        path: File to save the figure to.
        ax: Axes to draw on. Default: new ones.
        depth: Maximum number of synapses between a cause and the spike; None for no limit.
        min_influence: Causes with less influence are not drawn.
    """
    import matplotlib.pyplot as plt

    run, _ = store.find(event)
    related = _related(store, event, depth, min_influence)
    if ax is None:
        ax = plt.subplots(figsize=(8, 4.5))[1]
    events = list(run.events(event.batch))
    ax.scatter([e.time for e in events], [e.neuron for e in events], s=14, marker="|", color=QUIET)
    for cause, effect, contribution in _edges(store, event, related):
        color = EXCITES if contribution > 0 else INHIBITS
        arrow = {"arrowstyle": "-", "color": color, "alpha": 0.35, "linewidth": 1.0}
        ax.annotate("", (effect.time, effect.neuron), (cause.time, cause.neuron), arrowprops=arrow)
        ax.scatter([cause.time], [cause.neuron], s=70, marker="|", color=color, linewidths=2.2)
    ax.scatter([event.time], [event.neuron], s=110, facecolors="none", edgecolors="black")
    ax.set_xlabel("step")
    ax.set_ylabel("neuron")
    ax.set_title(f"{run.name}: causes of neuron {event.neuron} at step {event.time}")
    ax.set_xlim(-0.5, run.shape[1] - 0.5)
    ax.set_ylim(-0.5, run.shape[2] - 0.5)
    return _save(ax, path)


def plot_space(
    store: SpikeStore,
    event: SpikeEvent,
    path: str | None = None,
    ax: Axes | None = None,
    depth: int | None = 1,
    min_influence: float = 0.01,
) -> Axes:
    """Draw the neurons of a layer at their positions, and the causes of a spike.

    Args:
        store: The recorded runs.
        event: The spike.
        path: File to save the figure to.
        ax: Axes to draw on, 3-D for positions of three dimensions. Default: new ones.
        depth: Maximum number of synapses between a cause and the spike; None for no limit.
        min_influence: Causes with less influence are not drawn.
    """
    import matplotlib.pyplot as plt

    run, _ = store.find(event)
    places = _drawn_positions(run)
    related = _related(store, event, depth, min_influence)
    if ax is None:
        projection = "3d" if places.shape[1] == 3 else None
        figure = plt.figure(figsize=(6, 5.5))
        ax = figure.add_subplot(projection=projection)
    axes: Any = ax  # the axes of two and of three dimensions take other arguments
    axes.scatter(*places.T, color=QUIET, s=18)
    for cause, effect, contribution in _edges(store, event, related):
        color = EXCITES if contribution > 0 else INHIBITS
        line = np.stack([places[cause.neuron], places[effect.neuron]]).T
        width = 0.8 + 4.0 * min(1.0, abs(contribution))
        axes.plot(*line, color=color, linewidth=width, alpha=0.6)
        axes.scatter(*places[[cause.neuron]].T, color=color, s=36)
    axes.scatter(*places[[event.neuron]].T, color="black", s=70)
    ax.set_title(f"{run.name}: causes of neuron {event.neuron} at step {event.time}")
    return _save(ax, path)


def _drawn_positions(run: SpikeRun) -> Array:
    """Return positions of two or three dimensions; one dimension becomes a line."""
    places = coordinates(run)
    if places.shape[1] == 1:
        return np.concatenate([places, np.zeros_like(places)], axis=1)
    if places.shape[1] > 3:
        raise ArgumentError(
            f"plot_space: positions of {places.shape[1]} dimensions cannot be drawn; at most 3 can"
        )
    return places


def _related(
    store: SpikeStore, event: SpikeEvent, depth: int | None, min_influence: float
) -> list[Related]:
    """Return the event and its ancestors in the same layer."""
    found = ancestors(store, event, depth, min_influence)
    return [one for one in found if one.event.layer == event.layer]


def _edges(
    store: SpikeStore, event: SpikeEvent, related: list[Related]
) -> list[tuple[SpikeEvent, SpikeEvent, float]]:
    """Return the synapses between related spikes that lead to an event, with contributions."""
    shown = {one.event for one in related}
    return [
        (cause.event, effect, cause.contribution)
        for effect in sorted(shown)
        for cause in causes(store, effect, None)
        if cause.event in shown
    ]


def _save(ax: Axes, path: str | None) -> Any:
    if path is not None:
        import matplotlib.pyplot as plt

        figure = cast("Figure", ax.figure)
        figure.savefig(path, bbox_inches="tight", dpi=150)
        plt.close(figure)
    return ax
