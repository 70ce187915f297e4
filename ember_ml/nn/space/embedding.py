"""Neurons at positions in space, with the distances and delays between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.dtype import float32
from ember_ml._core.errors import ArgumentError
from ember_ml._core.numbers import positive
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Real, Seed, Size, ValidatedAs
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.nn.space.layouts import Layout, arrange, scaled
from ember_ml.registry import register

_TOLERANCE = 1e-4
"""Fraction of a step by which a delay may exceed an integer and still be rounded down to it."""

MAX_UNITS = 2**15
"""Largest number of neurons, whose distances need 4 GiB."""


def _as_lists(value: Any) -> Any:
    """Convert a tensor or an array to nested lists."""
    return value.tolist() if hasattr(value, "tolist") else value


Dimensions = Annotated[Size, Field(le=3)]
"""Number of coordinates: 1, 2 or 3."""
PositionsField = Annotated[
    Sequence[Sequence[float]] | None,
    ValidatedAs(Annotated[tuple[tuple[Real, ...], ...] | None, BeforeValidator(_as_lists)]),
]
"""Coordinates of each neuron, as nested lists or an array; nested tuples in the config."""


@register("embeddings/spatial")
class SpatialEmbedding(Module):
    r"""Positions of the neurons of a recurrent network, with their distances and delays.

    .. math:: D_{ij} = \lVert p_i - p_j \rVert

    Args:
        units: Number of neurons.
        layout: "grid" (unit spacing, 100 neurons as 5 x 5 x 4), "sphere" (evenly spread on the unit
            sphere, or on the unit circle with two dimensions) or "random" (uniform in the unit
            cube). Default: "grid".
        dimensions: Number of coordinates of each neuron: 1, 2 or 3. Default: 3.
        positions: Coordinates of each neuron, (units, dimensions), instead of a layout.
        scale: Factor on all coordinates. Default: 1.
        learnable: Whether the positions are a parameter. Default: False.
        seed: Seed of a random layout. Default: 0.

    Attributes:
        positions: Coordinates of each neuron, (units, dimensions): a Parameter if they are
            learnable, otherwise a Buffer.

    Reference: Achterberg et al., "Spatially embedded recurrent neural networks reveal widespread
    links between structural and functional neuroscience findings", 2023.

    Example:
        >>> embedding = nn.space.SpatialEmbedding(4, dimensions=2)
        >>> embedding.positions.tolist()
        [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
        >>> embedding.delays(speed=0.5)[0].tolist()
        [1, 2, 2, 3]
    """

    positions: Parameter | Buffer

    def __init__(
        self,
        units: Size,
        layout: Layout = "grid",
        dimensions: Dimensions = 3,
        positions: PositionsField = None,
        scale: Positive = 1.0,
        learnable: bool = False,
        seed: Seed = 0,
    ) -> None:
        if units > MAX_UNITS:
            raise ArgumentError(
                f"SpatialEmbedding: units must be at most {MAX_UNITS}, not {units}: all pairs of "
                "neurons have a distance"
            )
        if positions is None:
            points = arrange(layout, units, dimensions, seed)
        else:
            points = [list(point) for point in _checked(positions, units)]
        self.units = units
        self.dimensions = len(points[0])
        self.learnable = learnable
        values = scaled(points, scale)
        if learnable:
            self.positions = Parameter(values, decay=False, dtype=float32)
        else:
            self.positions = Buffer(values, dtype=float32)

    def forward(self) -> Tensor:
        """Return the distances between all neurons."""
        return self.distances()

    def distances(self) -> Tensor:
        """Return the Euclidean distances between all neurons, (units, units).

        They are differentiable. The gradient of a zero distance is zero.
        """
        p = self.positions
        points = ops.astype(p, float32) if p.dtype.bits == 16 else p.value()
        squares = ops.sum(ops.square(points[:, None] - points[None]), axis=-1)
        same = squares == 0.0  # NaN stays NaN
        return ops.where(same, 0.0, ops.sqrt(ops.where(same, 1.0, squares)))

    def delays(self, speed: float, dt: float = 1.0, *, interpolated: bool | None = None) -> Tensor:
        """Return the conduction delays between all neurons in time steps, (units, units).

        A delay is max(1, ceil(D / (speed dt))), or max(1, D / (speed dt)) if delays are
        interpolated. The latter are differentiable with respect to the positions.

        Args:
            speed: Conduction speed of an axon, in units of distance per unit of time.
            dt: Duration of a time step. Default: 1.
            interpolated: Whether delays are real numbers instead of integers. Default: only if the
                positions are learnable.
        """
        steps = self.distances() / _distance_per_step(speed, dt)
        if self.learnable if interpolated is None else interpolated:
            return ops.maximum(steps, 1.0)
        self._check_finite(steps)
        return ops.astype(ops.maximum(ops.ceil(steps - _TOLERANCE), 1.0), "int64")

    def _check_finite(self, steps: Tensor) -> None:
        """Raise unless delays are finite, which integers would hide.

        Only values on a CPU are checked: elsewhere, reading them would wait for the device.
        """
        if not steps.device.startswith("cpu"):
            return
        broken = ops.any(ops.logical_not(ops.isfinite(steps)))
        if runtime.LOADED[steps.backend].truth(broken.native):
            raise ArgumentError(
                "SpatialEmbedding: the positions contain NaN or infinite values, or are too far "
                "apart; check the values that were assigned or loaded"
            )

    def max_delay(self, speed: float, dt: float = 1.0) -> int:
        """Return the largest delay in whole time steps; 1 for a single neuron.

        Args:
            speed: Conduction speed of an axon, in units of distance per unit of time.
            dt: Duration of a time step. Default: 1.
        """
        return int(ops.max(self.delays(speed, dt, interpolated=False)))


def _checked(positions: Sequence[Sequence[float]], units: int) -> Sequence[Sequence[float]]:
    """Return positions, or raise an ArgumentError unless there are `units` points in 1D to 3D."""
    widths = {len(point) for point in positions}
    if len(positions) != units or len(widths) != 1 or not widths <= {1, 2, 3}:
        counts = ", ".join(str(width) for width in sorted(widths)) or "no"
        raise ArgumentError(
            f"SpatialEmbedding: expected positions of units={units} neurons with 1, 2 or 3 "
            f"coordinates each, got {len(positions)} positions with {counts} coordinates"
        )
    return positions


def _distance_per_step(speed: float, dt: float) -> float:
    """Return the distance that an axon conducts in one time step."""
    return positive("SpatialEmbedding", "speed", speed) * positive("SpatialEmbedding", "dt", dt)
