"""Layout of the drawing of a block wiring."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ember_ml.nn.wirings._plan import Connection

if TYPE_CHECKING:
    from ember_ml.nn.wirings.blocks import BlockWiring

ACROSS, WIDTH, HEIGHT = 2.5, 1.5, 0.72
_BOX_ROW, _LINE_ROW, _BELOW, _CLOSE = 1.35, 0.5, 0.75, 0.3
Point = tuple[float, float]


@dataclass
class Layout:
    """Centers of the boxes, and points on the arrows."""

    boxes: dict[str, Point] = field(default_factory=dict)
    lines: dict[Connection, list[Point]] = field(default_factory=dict)

    def is_lowest(self, name: str) -> bool:
        """Return whether there is no box below that of a block."""
        x, y = self.boxes[name]
        return all(other >= y for column, other in self.boxes.values() if column == x)

    @property
    def limits(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the drawing, with a margin."""
        points = [*self.boxes.values(), *[point for line in self.lines.values() for point in line]]
        across, up = [x for x, _ in points], [y for _, y in points]
        return (
            min(across) - WIDTH / 2 - 0.45,
            max(across) + WIDTH / 2 + 0.45,
            min(up) - HEIGHT / 2 - 0.15,
            max(up) + HEIGHT / 2 + 0.3,
        )


def depths(wiring: BlockWiring) -> dict[str, int]:
    """Return the column of each input and block: right of all that it reads, except in loops."""
    plan = wiring.plan
    columns = dict.fromkeys(wiring.inputs, 0)
    stage_of = {name: at for at, stage in enumerate(plan.stages) for name in stage}
    for name in plan.order:
        read = [
            edge.source
            for edge in plan.into[name]
            if not edge.delayed or stage_of.get(edge.source) != stage_of[name]
        ]
        columns[name] = 1 + max((columns[source] for source in read), default=0)
    return columns


def lay_out(wiring: BlockWiring) -> Layout:
    """Return a layout: boxes in columns near their sources; long arrows have their own rows."""
    column_of = depths(wiring)
    edges = [edge for name in wiring.plan.order for edge in wiring.plan.into[name]]
    layout = Layout(lines={edge: [] for edge in edges})
    for column in range(max(column_of.values()) + 1):
        names = [name for name in column_of if column_of[name] == column]
        passing = [
            edge for edge in edges if column_of[edge.source] < column < column_of[edge.target]
        ]
        _fill(layout, column, names, passing, wiring)
    for edge in edges:
        if column_of[edge.source] >= column_of[edge.target]:
            layout.lines[edge] = [_lowest(layout, edge)]
    return layout


def _fill(
    layout: Layout, column: int, names: list[str], passing: list[Connection], wiring: BlockWiring
) -> None:
    """Place the boxes of a column, and the arrows that pass it, from the top."""
    levels: list[tuple[float, str | Connection]] = []
    for name in names:
        edges = [edge for edge in wiring.plan.into.get(name, ()) if edge.source in layout.boxes]
        heights = [_height(layout, edge) for edge in edges]
        levels.append((sum(heights) / len(heights) if heights else 0.0, name))
    levels += [(_height(layout, edge), edge) for edge in passing]
    items = [item for _, item in sorted(levels, key=lambda level: -level[0])]
    rows = [_BOX_ROW if isinstance(item, str) else _LINE_ROW for item in items]
    top = sum(rows) / 2
    for item, row in zip(items, rows, strict=True):
        point = (column * ACROSS, top - row / 2)
        top -= row
        if isinstance(item, str):
            layout.boxes[item] = point
        else:
            layout.lines[item].append(point)


def _height(layout: Layout, edge: Connection) -> float:
    """Return the height of an arrow in the last column that is filled."""
    return (layout.lines[edge] or [layout.boxes[edge.source]])[-1][1]


def _lowest(layout: Layout, edge: Connection) -> Point:
    """Return a point below everything between the ends of a backward arrow."""
    (left, y), (right, _) = layout.boxes[edge.target], layout.boxes[edge.source]
    if edge.source == edge.target:
        return left, y - HEIGHT / 2 - _CLOSE
    points = [*layout.boxes.values(), *[point for line in layout.lines.values() for point in line]]
    return (left + right) / 2, min(y for x, y in points if left <= x <= right) - _BELOW
