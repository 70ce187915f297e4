"""Neuron wirings as networkx graphs and drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ember_ml._core.errors import BackendNotInstalledError
from ember_ml._core.requirements import install_command

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ember_ml.nn.wirings.base import NeuronWiring

_COLORS = {
    "sensory": "tab:olive",
    "inter": "tab:blue",
    "command": "tab:green",
    "motor": "tab:orange",
}
_LINES: dict[str, Any] = {"excitatory": "solid", "inhibitory": "dashed"}


def graph(wiring: NeuronWiring, sensory: bool) -> Any:
    """Return a networkx.DiGraph of the wiring."""
    try:
        import networkx as nx  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise BackendNotInstalledError(
            f"to_networkx needs networkx; install it with: {install_command('networkx')}"
        ) from error
    digraph = nx.DiGraph()
    for node, kind in _nodes(wiring, sensory).items():
        digraph.add_node(node, neuron_type=kind)
    for src, dest, polarity in _edges(wiring, sensory):
        digraph.add_edge(src, dest, polarity=polarity)
    return digraph


def _nodes(wiring: NeuronWiring, sensory: bool) -> dict[str, str]:
    """Return the types of the neurons, and of the inputs if they are included."""
    nodes = {f"neuron_{at}": wiring.type_of(at) for at in range(wiring.units)}
    inputs = range(wiring.input_dim or 0) if sensory else ()
    return nodes | {f"sensory_{at}": "sensory" for at in inputs}


def _edges(wiring: NeuronWiring, sensory: bool) -> list[tuple[str, str, str]]:
    """Return the synapses as (source, destination, polarity)."""
    parts = {"neuron": wiring.synapses(), "sensory": wiring.sensory_synapses() if sensory else []}
    return [
        (f"{kind}_{src}", f"neuron_{dest}", "excitatory" if sign > 0 else "inhibitory")
        for kind, synapses in parts.items()
        for src, dest, sign in synapses
    ]


def _columns(wiring: NeuronWiring) -> list[list[str]]:
    """Return the nodes of each column: the inputs, then the layers."""
    inputs = [f"sensory_{at}" for at in range(wiring.input_dim or 0)]
    layers = [[f"neuron_{neuron}" for neuron in layer] for layer in wiring.layers]
    return [inputs, *layers]


def positions(wiring: NeuronWiring) -> dict[str, tuple[float, float]]:
    """Return the positions of the nodes: one centered column per layer."""
    return {
        node: (float(column), (len(nodes) - 1) / 2 / len(nodes) - row / len(nodes))
        for column, nodes in enumerate(_columns(wiring))
        for row, node in enumerate(nodes)
    }


def draw(wiring: NeuronWiring, axes: Axes | None) -> Axes:
    """Draw the wiring, and return the matplotlib axes."""
    import matplotlib.pyplot as plt

    if axes is None:
        axes = plt.figure(figsize=(8, 6)).add_subplot()
    places = positions(wiring)
    for src, dest, polarity in _edges(wiring, sensory=True):
        axes.annotate(
            "",
            places[dest],
            places[src],
            arrowprops={
                "arrowstyle": "-|>",
                "linestyle": _LINES[polarity],
                "alpha": 0.4,
                "linewidth": 0.6,
                "connectionstyle": "arc3,rad=0.1",
                "shrinkA": 4,
                "shrinkB": 4,
            },
        )
    _draw_nodes(axes, _nodes(wiring, sensory=True), places)
    axes.set_axis_off()
    return axes


def _draw_nodes(axes: Axes, kinds: dict[str, str], places: dict[str, tuple[float, float]]) -> None:
    from matplotlib.lines import Line2D

    handles: list[Any] = []
    for kind, color in _COLORS.items():
        nodes = [node for node, node_kind in kinds.items() if node_kind == kind]
        if not nodes:
            continue
        across, down = zip(*(places[node] for node in nodes), strict=True)
        handles.append(axes.scatter(across, down, s=60, color=color, label=kind, zorder=3))
    handles += [
        Line2D([], [], linestyle=style, color="black", label=polarity)
        for polarity, style in _LINES.items()
    ]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncol=6)
