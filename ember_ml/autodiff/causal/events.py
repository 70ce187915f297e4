"""Events of a causal context."""

from __future__ import annotations

from dataclasses import dataclass, field

from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.program import Step

Position = tuple[float, ...]


@dataclass(frozen=True)
class Spatial:
    """Place of an op.

    Attributes:
        inputs: Positions of the operands; None for operands without one.
        position: Mean of the operands' positions, which the results inherit; None if no operand
            has a position.
        distance: Largest distance of an operand from `position`.
    """

    inputs: tuple[Position | None, ...]
    position: Position | None
    distance: float


@dataclass(frozen=True)
class Temporal:
    """Time of an op.

    Attributes:
        tick: Number of the op, counted from the first one.
        elapsed: Seconds since the start of the recording.
        depth: Number of ops on the longest path that leads to it, itself included.
        delays: Age of each operand in ticks; None for operands from outside.
    """

    tick: int
    elapsed: float
    depth: int
    delays: tuple[int | None, ...]


@dataclass(frozen=True)
class Causal:
    """Causes of an op.

    Attributes:
        causes: Tick of the op that computed each operand; None for operands from outside.
        sources: Names of the registered tensors that it depends on, directly or indirectly.
    """

    causes: tuple[int | None, ...]
    sources: frozenset[str]


@dataclass(frozen=True)
class Event:
    """A recorded op.

    Attributes:
        operation: Name of the op.
        shapes: Shapes of the results.
        spatial: Place of the op.
        temporal: Time of the op.
        causal: Causes of the op.
        values: Identities of the operands.
        results: Identities of the results.
        step: The recorded call, which can run again; None for an op that was registered by hand.
        module: Path of the module that ran, such as "layers.0.mixer"; empty if no module was
            registered with `register_module`.
    """

    operation: str
    shapes: tuple[tuple[int, ...], ...]
    spatial: Spatial
    temporal: Temporal
    causal: Causal
    values: tuple[int, ...] = field(repr=False)
    results: tuple[int, ...] = field(repr=False)
    step: Step | None = field(default=None, repr=False, compare=False)
    module: str = ""

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Results of the op; none for an op that was registered by hand."""
        return () if self.step is None else tuple(self.step.outs)

    @property
    def tick(self) -> int:
        """Number of the op."""
        return self.temporal.tick
