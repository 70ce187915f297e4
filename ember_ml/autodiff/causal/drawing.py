"""The graph of a causal context, for networkx and matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ember_ml._core.errors import BackendNotInstalledError
from ember_ml._core.requirements import install_command

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped,unused-ignore]
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ember_ml.autodiff.causal.context import CausalContext

Edge = tuple[str, str]


def graph(context: CausalContext) -> tuple[dict[str, dict[str, Any]], list[Edge]]:
    """Return the nodes with their attributes, and the edges from cause to effect."""
    nodes: dict[str, dict[str, Any]] = {}
    edges: list[Edge] = []
    for event in context.events:
        name = f"{event.tick}: {event.operation}"
        nodes[name] = {
            "operation": event.operation,
            "tick": event.tick,
            "elapsed": event.temporal.elapsed,
            "depth": event.temporal.depth,
            "shapes": event.shapes,
            "position": event.spatial.position,
            "sources": sorted(event.causal.sources),
        }
        for key in dict.fromkeys(event.values):
            producer = context._producers.get(key)
            if producer is not None and producer is not event:
                edges.append((f"{producer.tick}: {producer.operation}", name))
            elif key in context._names:
                source = context._names[key]
                position = context._positions.get(key)
                nodes.setdefault(source, {"operation": "", "depth": 0, "position": position})
                edges.append((source, name))
    return nodes, edges


def to_networkx(context: CausalContext) -> networkx.DiGraph:
    """Return the graph as a `networkx.DiGraph`."""
    try:
        import networkx
    except ImportError as error:
        raise BackendNotInstalledError(
            f"to_networkx needs networkx; install it with: {install_command('networkx')}"
        ) from error
    nodes, edges = graph(context)
    result = networkx.DiGraph()
    result.add_nodes_from(nodes.items())
    result.add_edges_from(edges)
    return result


def _layout(nodes: dict[str, dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Return a place for each node: columns by depth, vertically centered."""
    columns: dict[int, list[str]] = {}
    for name, node in nodes.items():
        columns.setdefault(node["depth"], []).append(name)
    return {
        name: (float(depth), row - (len(names) - 1) / 2)
        for depth, names in columns.items()
        for row, name in enumerate(names)
    }


def draw(context: CausalContext, path: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the graph from left to right, with a color per op family; return the axes."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import to_rgb

    nodes, edges = graph(context)
    places = _layout(nodes)
    if ax is None:
        width = 2 + 1.6 * (1 + max((x for x, _ in places.values()), default=0))
        height = 1.5 + 0.9 * (1 + 2 * max((abs(y) for _, y in places.values()), default=0))
        ax = plt.subplots(figsize=(min(width, 40), min(height, 40)))[1]
    for start, end in edges:
        bend = (
            0.0 if places[end][0] - places[start][0] <= 1 else 0.25
        )  # around the nodes in between
        arrow = {"arrowstyle": "->", "color": "0.6", "shrinkA": 18, "shrinkB": 26, "zorder": 1}
        arrow["connectionstyle"] = f"arc3,rad={bend}"
        ax.annotate("", places[end], places[start], arrowprops=arrow)
    families = list(dict.fromkeys(node["operation"].rpartition(".")[0] for node in nodes.values()))
    for name, (x, y) in places.items():
        operation = nodes[name]["operation"]
        family = families.index(operation.rpartition(".")[0])
        strong = to_rgb(f"C{family % 10}") if operation else (1.0, 1.0, 1.0)
        light = tuple(1 - (1 - part) * 0.35 for part in strong)
        shape = nodes[name].get("shapes", ((),))[0]
        text = f"{operation.rpartition('.')[2]}\n{shape}" if operation else name
        box = {"boxstyle": "round", "facecolor": light, "edgecolor": "0.3"}
        ax.text(x, y, text, ha="center", va="center", fontsize=8, bbox=box)
    xs, ys = [x for x, _ in places.values()] or [0], [y for _, y in places.values()] or [0]
    ax.set_xlim(min(xs) - 0.7, max(xs) + 0.7)
    ax.set_ylim(min(ys) - 0.8, max(ys) + 0.8)
    ax.set_axis_off()
    if path is not None:
        figure = cast("Figure", ax.figure)
        figure.savefig(path, bbox_inches="tight", dpi=150)
        plt.close(figure)
    return ax
