"""Positions of neurons: on a grid, on a sphere or at random."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

from ember_ml._core.errors import ArgumentError
from ember_ml.ops.random import Generator

Layout: TypeAlias = Literal["grid", "sphere", "random"]
"""Arrangement of neurons in space."""
Points: TypeAlias = list[list[float]]
"""Coordinates of each neuron."""
_GOLDEN_ANGLE = math.pi * (3.0 - math.sqrt(5.0))


def grid_shape(units: int, dimensions: int) -> tuple[int, ...]:
    """Return the sides of a small, nearly cubic grid that holds a number of neurons.

    Args:
        units: Number of neurons.
        dimensions: Number of axes.

    Example:
        >>> nn.space.grid_shape(100, 3)
        (5, 5, 4)
    """
    sides = []
    for axes in range(dimensions, 0, -1):
        side = next(side for side in itertools.count(1) if side**axes >= units)
        sides.append(side)
        units = -(-units // side)
    return tuple(sides)


def grid(units: int, dimensions: int) -> Points:
    """Return the first points of a grid with unit spacing, row by row.

    Args:
        units: Number of neurons.
        dimensions: Number of coordinates of each neuron.
    """
    places = itertools.product(*(range(side) for side in grid_shape(units, dimensions)))
    return [[float(x) for x in place] for place in itertools.islice(places, units)]


def sphere(units: int, dimensions: int) -> Points:
    """Return evenly spread points of the unit sphere (a Fibonacci lattice) or the unit circle.

    Args:
        units: Number of neurons.
        dimensions: 3 for the sphere, 2 for the circle.
    """
    if dimensions == 1:
        raise ArgumentError(
            "SpatialEmbedding: layout='sphere' needs 2 or 3 dimensions, not 1; use 'grid' for a "
            "line of neurons"
        )
    if dimensions == 2:
        angles = [2.0 * math.pi * at / units for at in range(units)]
        return [[math.cos(angle), math.sin(angle)] for angle in angles]
    heights = [1.0 - (2.0 * at + 1.0) / units for at in range(units)]
    return [_on_sphere(height, _GOLDEN_ANGLE * at) for at, height in enumerate(heights)]


def _on_sphere(height: float, angle: float) -> list[float]:
    radius = math.sqrt(1.0 - height * height)
    return [radius * math.cos(angle), radius * math.sin(angle), height]


def uniform(units: int, dimensions: int, seed: int) -> Points:
    """Return uniformly distributed points of the unit cube, the same on every backend.

    Args:
        units: Number of neurons.
        dimensions: Number of coordinates of each neuron.
        seed: Seed of the positions.
    """
    points: Points = Generator(seed).uniform((units, dimensions), 0.0, 1.0).tolist()
    return points


def arrange(layout: Layout, units: int, dimensions: int, seed: int) -> Points:
    """Return the positions of neurons in a layout.

    Args:
        layout: "grid", "sphere" or "random".
        units: Number of neurons.
        dimensions: Number of coordinates of each neuron.
        seed: Seed of a random layout.
    """
    if layout == "grid":
        return grid(units, dimensions)
    return sphere(units, dimensions) if layout == "sphere" else uniform(units, dimensions, seed)


def scaled(points: Sequence[Sequence[float]], scale: float) -> Points:
    """Return points with all coordinates multiplied by a factor.

    Args:
        points: The points.
        scale: The factor.
    """
    return [[x * scale for x in point] for point in points]
