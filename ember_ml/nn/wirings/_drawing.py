"""Wirings as networkx graphs and as pictures."""

from __future__ import annotations

from typing import Any

_COLORS = {
    "sensory": "tab:olive",
    "inter": "tab:blue",
    "command": "tab:green",
    "motor": "tab:orange",
}
_LINES: dict[str, Any] = {"excitatory": "solid", "inhibitory": "dashed"}


def graph(wiring: Any, sensory: bool) -> Any:
    """A networkx.DiGraph of the wiring."""
    import networkx as nx  # type: ignore[import-untyped]

    made = nx.DiGraph()
    for neuron in range(wiring.units):
        made.add_node(f"neuron_{neuron}", neuron_type=wiring.type_of(neuron))
    _connect(made, "neuron", wiring.synapses())
    if sensory:
        for at in range(wiring.input_dim):
            made.add_node(f"sensory_{at}", neuron_type="sensory")
        _connect(made, "sensory", wiring.sensory_synapses())
    return made


def _connect(made: Any, kind: str, synapses: list[tuple[int, int, int]]) -> None:
    for src, dest, sign in synapses:
        polarity = "excitatory" if sign > 0 else "inhibitory"
        made.add_edge(f"{kind}_{src}", f"neuron_{dest}", polarity=polarity)


def _columns(wiring: Any) -> list[list[str]]:
    """The nodes by column of the picture: inputs, then the layers."""
    inputs = [f"sensory_{at}" for at in range(wiring.input_dim)]
    layers = [[f"neuron_{neuron}" for neuron in layer] for layer in wiring.layers]
    return [inputs, *layers]


def positions(wiring: Any) -> dict[str, tuple[float, float]]:
    """Where the nodes stand: layers in columns from left to right, each centred."""
    return {
        node: (float(column), (len(nodes) - 1) / 2 / len(nodes) - row / len(nodes))
        for column, nodes in enumerate(_columns(wiring))
        for row, node in enumerate(nodes)
    }


def draw(wiring: Any, axes: Any) -> Any:
    """The wiring on matplotlib axes."""
    import matplotlib.pyplot as plt

    if axes is None:
        axes = plt.figure(figsize=(8, 6)).add_subplot()
    made, places = graph(wiring, sensory=True), positions(wiring)
    for src, dest, polarity in made.edges(data="polarity"):
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
    _nodes(axes, made, places)
    axes.set_axis_off()
    return axes


def _nodes(axes: Any, made: Any, places: dict[str, tuple[float, float]]) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for kind, color in _COLORS.items():
        nodes = [node for node, found in made.nodes(data="neuron_type") if found == kind]
        if not nodes:
            continue
        across, down = zip(*(places[node] for node in nodes), strict=True)
        handles.append(axes.scatter(across, down, s=60, color=color, label=kind, zorder=3))
    handles += [
        Line2D([], [], linestyle=style, color="black", label=polarity)
        for polarity, style in _LINES.items()
    ]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncol=6)
