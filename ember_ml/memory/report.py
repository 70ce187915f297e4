"""Report of the memory of a training step."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ember_ml.memory.sizes import format_bytes

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class MemoryReport:
    """Memory of a training step, in bytes.

    The peak is not the sum of the parts: gradients are computed while activations are freed, and
    operations need working memory.

    Attributes:
        parameters: Parameters and buffers of the model, and their moving average if there is one.
        gradients: Gradients of the trainable parameters.
        optimizer_state: State of the optimizer.
        activations: What each layer keeps for the backward pass, by name.
        peak: Largest memory in use at any moment of a step, with everything above.
        batch_size: Number of examples of a batch.
        backend: Backend of the model.
        is_measured: Whether the step was run with this batch size.
    """

    parameters: int
    gradients: int
    optimizer_state: int
    activations: Mapping[str, int]
    peak: int
    batch_size: int
    backend: str
    is_measured: bool = field(default=False)

    @property
    def total_activations(self) -> int:
        """What all layers keep for the backward pass, in bytes."""
        return sum(self.activations.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data."""
        return {
            "backend": self.backend,
            "batch_size": self.batch_size,
            "measured": self.is_measured,
            "parameters": self.parameters,
            "gradients": self.gradients,
            "optimizer_state": self.optimizer_state,
            "activations": dict(self.activations),
            "peak": self.peak,
        }

    def __rich__(self) -> Table:
        from rich.table import Table

        kind = "measured" if self.is_measured else "estimate"
        title = f"Memory of a step ({kind})\n{self.backend}, batch size {self.batch_size}"
        table = Table(title=title, title_justify="left")
        table.add_column("part", overflow="fold")
        table.add_column("size", justify="right")
        table.add_row("parameters and buffers", format_bytes(self.parameters))
        table.add_row("gradients", format_bytes(self.gradients))
        table.add_row("optimizer state", format_bytes(self.optimizer_state))
        table.add_row("activations", format_bytes(self.total_activations), end_section=False)
        for name, size in self.activations.items():
            table.add_row(f"  {name}", format_bytes(size))
        table.add_section()
        table.add_row("peak", format_bytes(self.peak))
        return table

    def __str__(self) -> str:
        from rich.console import Console

        stream = io.StringIO()
        Console(file=stream, width=100).print(self)
        return stream.getvalue().rstrip()
