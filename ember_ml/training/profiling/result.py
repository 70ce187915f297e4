"""Result of a profile: times by op, group and module."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml.training.profiling.machine import MatrixRate

if TYPE_CHECKING:
    from rich.console import Group

    from ember_ml.training.profiling.events import Event


class Row(NamedTuple):
    """Times of an op, a group of ops or a module, in one step."""

    name: str
    kind: str
    """Group of an op, class of a module; empty for a group."""
    calls: float
    """Number of calls in the forward pass."""
    forward: float
    """Seconds of native calls in the forward pass."""
    backward: float
    """Seconds of native calls in the backward pass."""
    flops: float
    """Floating-point operations of the forward and the backward pass."""
    python: float = 0.0
    """Seconds of a module's forward pass outside of native calls, with the modules inside."""
    own: float = 0.0
    """Seconds of a module's native calls, without the modules inside."""

    @property
    def seconds(self) -> float:
        """Seconds of native calls."""
        return self.forward + self.backward

    @property
    def rate(self) -> float:
        """Floating-point operations per second."""
        return self.flops / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class Profile:
    """Times of the steps, or of the computation, that were profiled.

    All times are seconds of one step, the mean over the profiled ones.

    Attributes:
        title: What was profiled.
        backend: Backend of the model.
        device: Its device.
        steps: Number of profiled steps.
        seconds: Time of a profiled step without the time of the measurement.
        overhead: Time that the measurement added to a step.
        plain: Shortest time of a step that was not profiled; None if there was none. If batches
            have several shapes, it is the mean over the profiled steps of those of their shapes.
        compiled: Whether the steps that were not profiled were compiled.
        between: Time from one step to the next, for data, callbacks and logs; None if unknown.
        parts: Time of the parts of a step: "forward", "backward", "update".
        dispatch: Estimated time in Ember's dispatch: calls times the measured cost of one.
        ops: Times by op, the largest first.
        groups: Times by group of ops, the largest first.
        modules: Times by module, in the order of the model.
        peak: Fastest matrix product of the backend and device; None if it was not measured.
        memory: Bytes by name: "parameters", "gradients", "optimizer_state" and "peak".
        layer_memory: Bytes that layers keep for the backward pass.
        method: How the backend was measured.
        replayed: Whether backward passes were measured separately from the step.
        timeline: Calls and modules, for the trace.
        names: Names of the modules by number.
        layers: Names of the layers that reports list: the parts of the model and of its stacks.
        dropped: Number of calls that are missing in the timeline, because it is too long.
        compiles_later: Whether the trainer compiles its steps after some batches of the same
            shapes.
    """

    title: str
    backend: str
    device: str
    steps: int
    seconds: float
    overhead: float
    plain: float | None
    compiled: bool
    between: float | None
    parts: dict[str, float]
    dispatch: float
    ops: list[Row]
    groups: list[Row]
    modules: list[Row]
    peak: MatrixRate | None
    memory: dict[str, int]
    layer_memory: dict[str, int]
    method: str
    replayed: bool = False
    timeline: Sequence[Event] = field(repr=False, default=())
    names: Sequence[str] = field(repr=False, default=())
    layers: Sequence[str] = field(repr=False, default=())
    dropped: int = 0
    compiles_later: bool = False

    @property
    def native(self) -> float:
        """Seconds of native calls in a step."""
        return sum(row.seconds for row in self.ops)

    @property
    def outside(self) -> tuple[float, float]:
        """Seconds outside of native calls, and their share of the profiled time.

        If backward passes were measured separately, both are those of the forward pass.
        """
        if self.replayed:
            whole = self.parts.get("forward", self.seconds)
            native = sum(row.forward for row in self.ops)
        else:
            whole, native = self.seconds, self.native
        seconds = max(0.0, whole - native)
        return seconds, seconds / whole if whole > 0 else 0.0

    @property
    def flops(self) -> float:
        """Floating-point operations of a step."""
        return sum(row.flops for row in self.ops)

    @property
    def step_seconds(self) -> float:
        """Time of a step: of one that was not profiled if there was one."""
        return self.seconds if self.plain is None else self.plain

    @property
    def rate(self) -> float:
        """Floating-point operations per second of a step."""
        return self.flops / self.step_seconds if self.step_seconds > 0 else 0.0

    @property
    def share_of_peak(self) -> float | None:
        """Rate of a step, relative to the rate of the fastest matrix product."""
        return None if self.peak is None or not self.peak.flops else self.rate / self.peak.flops

    @property
    def dispatch_share(self) -> float:
        """Part of a step's time that is spent in Ember's dispatch."""
        return self.dispatch / self.step_seconds if self.step_seconds > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data, without the timeline."""
        names = ("title", "backend", "device", "steps", "seconds", "overhead", "plain", "compiled")
        return {
            "kind": "ember_ml profile",
            **{name: getattr(self, name) for name in names},
            "between": self.between,
            "parts": dict(self.parts),
            "native": self.native,
            "outside": self.outside[0],
            "dispatch": self.dispatch,
            "dispatch_share": self.dispatch_share,
            "flops": self.flops,
            "rate": self.rate,
            "matrix_product": None if self.peak is None else self.peak._asdict(),
            "share_of_peak": self.share_of_peak,
            "memory": dict(self.memory),
            "layer_memory": dict(self.layer_memory),
            "method": self.method,
            "groups": _plain(self.groups),
            "ops": _plain(self.ops),
            "modules": _plain(self.modules),
        }

    def __rich__(self) -> Group:
        from ember_ml.training.profiling.text import rendered

        return rendered(self)

    def __str__(self) -> str:
        from rich.console import Console

        stream = io.StringIO()
        Console(file=stream, width=100).print(self)
        return stream.getvalue().rstrip()


def _plain(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [{**row._asdict(), "seconds": row.seconds, "rate": row.rate} for row in rows]
