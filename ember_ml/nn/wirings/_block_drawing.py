"""Drawings of block wirings."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ember_ml.nn.wirings._block_layout import HEIGHT, WIDTH, Layout, Point, lay_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ember_ml.nn.wirings._plan import Connection
    from ember_ml.nn.wirings.blocks import BlockWiring

_COLORS = {"input": "#f6e3b4", "block": "#cfe0f3", "output": "#f8cfb0"}
_INK = "#555555"
_MARKS = {"sum": "+", "concat": "concat", "gate": "gate"}


def draw(wiring: BlockWiring, axes: Axes | None) -> Axes:
    """Draw the wiring, and return the matplotlib axes."""
    layout = lay_out(wiring)
    axes = _new_axes(layout) if axes is None else axes
    for edge in layout.lines:
        _draw_line(axes, edge, layout)
    for name, at in layout.boxes.items():
        _draw_box(axes, wiring, name, at)
    left, right, bottom, top = layout.limits
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.set_axis_off()
    _add_legend(axes, any(edge.delayed for edge in layout.lines))
    return axes


def _new_axes(layout: Layout) -> Axes:
    import matplotlib.pyplot as plt

    left, right, bottom, top = layout.limits
    size = (max(right - left, 5.0), top - bottom + 0.5)  # room for the legend
    return plt.figure(figsize=size, layout="constrained").add_subplot()


def _draw_line(axes: Axes, edge: Connection, layout: Layout) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    leads_on = layout.boxes[edge.source][0] < layout.boxes[edge.target][0]
    points = (_onward if leads_on else _back)(edge, layout)
    codes = [Path.MOVETO] + [Path.CURVE4] * (len(points) - 1)
    arrow = FancyArrowPatch(
        path=Path(points, codes),
        arrowstyle="-|>",
        linestyle="dashed" if edge.delayed else "solid",
        color=_INK,
        linewidth=1.2,
        mutation_scale=12,
        label=str(edge),
    )
    axes.add_patch(arrow)


def _onward(edge: Connection, layout: Layout) -> list[Point]:
    """Return the path from the right side of a box to the left side of another."""
    (x, y), (to_x, to_y) = layout.boxes[edge.source], layout.boxes[edge.target]
    stops = [(x + WIDTH / 2, y)]
    for at, level in layout.lines[edge]:
        stops += [(at - WIDTH / 2, level), (at + WIDTH / 2, level)]
    stops.append((to_x - WIDTH / 2, to_y))
    path = [stops[0]]
    for start, end in pairwise(stops):
        middle = (start[0] + end[0]) / 2
        path += [(middle, start[1]), (middle, end[1]), end]
    return path


def _back(edge: Connection, layout: Layout) -> list[Point]:
    """Return the path of a backward arrow, below the boxes in between."""
    ((middle, level),) = layout.lines[edge]
    if edge.source == edge.target:
        x, y = layout.boxes[edge.source]
        start, end = (x + WIDTH / 4, y - HEIGHT / 2), (x - WIDTH / 4, y - HEIGHT / 2)
        down, up = start[0], end[0]
    else:
        start, down = _end(edge.source, layout, 1)
        end, up = _end(edge.target, layout, -1)
    corners = [(down, level)] * 2 + [(middle, level)] + [(up, level)] * 2
    return [start, *corners, end]


def _end(name: str, layout: Layout, side: int) -> tuple[Point, float]:
    """Return the end of a backward arrow, and the x coordinate of its vertical part."""
    x, y = layout.boxes[name]
    if layout.is_lowest(name):
        return (x, y - HEIGHT / 2), x
    return (x + side * WIDTH / 2, y - HEIGHT / 4), x + side * (WIDTH / 2 + 0.5)


def _draw_box(axes: Axes, wiring: BlockWiring, name: str, at: Point) -> None:
    """Draw a box with the name and class of a block, and its merge rule."""
    from matplotlib.patches import FancyBboxPatch

    corner = at[0] - WIDTH / 2, at[1] - HEIGHT / 2
    shape = "round,pad=0,rounding_size=0.12"
    color = _COLORS[_kind(wiring, name)]
    axes.add_patch(
        FancyBboxPatch(corner, WIDTH, HEIGHT, boxstyle=shape, facecolor=color, edgecolor=_INK)
    )
    middle: Any = {"ha": "center", "va": "center"}
    if name in wiring.inputs:
        axes.text(*at, name, weight="bold", **middle)
        return
    axes.text(at[0], at[1] + 0.13, name, weight="bold", **middle)
    axes.text(at[0], at[1] - 0.16, type(wiring.blocks[name]).__name__, size=8, **middle)
    if len(wiring.plan.into[name]) > 1:
        rim = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": _INK}
        mark = _MARKS[wiring.rule(name)]
        axes.text(corner[0], corner[1] + HEIGHT, mark, size=8, bbox=rim, **middle)


def _kind(wiring: BlockWiring, name: str) -> str:
    if name in wiring.inputs:
        return "input"
    return "output" if name in wiring.plan.outputs else "block"


def _add_legend(axes: Axes, delayed: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=color, edgecolor=_INK, label=kind) for kind, color in _COLORS.items()
    ]
    if delayed:
        handles.append(Line2D([], [], color=_INK, linestyle="dashed", label="delayed"))
    place: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
    axes.legend(handles=handles, ncol=4, frameon=False, **place)
