"""The repr and the summary of a module."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ember_ml import ops
from ember_ml._core import recording, tree
from ember_ml._core.tensor import EmberTensor, TensorLike

if TYPE_CHECKING:
    from rich.table import Table

    from ember_ml.nn.module import Module


def arguments(module: Module) -> str:
    """Return the arguments of a module that differ from their defaults, for the repr."""
    if module.config is None:
        return ""
    fields = type(module.config).model_fields
    values = {name: _short(getattr(module.config, name)) for name in fields}
    return ", ".join(
        f"{name}={text}" for name, text in values.items() if text != repr(fields[name].default)
    )


def _short(value: object) -> str:
    name = getattr(type(value), "component", "")
    return repr(name.partition("/")[2]) if name else repr(value)


def text(module: Module) -> str:
    """Return the repr of a module, with one indented line per submodule."""
    head = f"{type(module).__name__}({module.extra_repr()}"
    lines = []
    for name, child in module.named_children():
        inner = repr(child).replace("\n", "\n  ")
        lines.append(f"  ({name}): {inner}")
    return head + ("\n" + "\n".join(lines) + "\n)" if lines else ")")


class Row(NamedTuple):
    """One module of a summary."""

    name: str
    layer: str
    output: str
    parameters: int
    state: int
    state_per_token: int


class Summary:
    """Modules of a model with their output shapes, parameters and states, as rows and a table."""

    def __init__(self, module: Module, inputs: Sequence[TensorLike]) -> None:
        self.title = type(module).__name__
        shapes: dict[int, str] = {}
        self.flops: int | None = None
        if inputs:
            shapes, self.flops = _forward(module, inputs)
        self.rows = [
            Row(
                name or "(model)",
                type(inner).__name__,
                shapes.get(id(inner), ""),
                inner.num_parameters(),
                inner.state_size,
                inner.state_per_token,
            )
            for name, inner in module.named_modules()
        ]
        self.parameters = module.num_parameters()
        self.trainable = module.num_parameters(trainable=True)
        self.bytes = module.num_bytes()

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table(title=self.title, caption=self._caption(), title_justify="left")
        for heading in ("name", "layer", "output"):
            table.add_column(heading, overflow="fold")
        for heading in ("parameters", "state"):
            table.add_column(heading, justify="right")
        for row in self.rows:
            indent = "  " * (row.name.count(".") + (row.name != "(model)"))
            cells = [row.layer, row.output, f"{row.parameters:,}", _state(row)]
            table.add_row(indent + row.name.rpartition(".")[2], *cells)
        return table

    def _caption(self) -> str:
        frozen = self.parameters - self.trainable
        text = f"{self.parameters:,} parameters"
        text += f", {frozen:,} of them frozen" if frozen else ""
        text += f"; {self.bytes:,} bytes"
        return text if self.flops is None else f"{text}; {self.flops:,} FLOPs per forward pass"

    def __str__(self) -> str:
        from rich.console import Console

        stream = io.StringIO()
        Console(file=stream, width=100).print(self)
        return stream.getvalue().rstrip()

    __repr__ = __str__


def _state(row: Row) -> str:
    growing = f"{row.state_per_token:,} per token" if row.state_per_token else ""
    return " + ".join(filter(None, [f"{row.state:,}" if row.state or not growing else "", growing]))


def _forward(module: Module, inputs: Sequence[TensorLike]) -> tuple[dict[int, str], int]:
    """Return the output shapes of one forward pass by module id, and its FLOPs."""
    from ember_ml.nn.flops import Counter
    from ember_ml.nn.module import inference_mode

    shapes: dict[int, str] = {}
    handles = [
        inner.register_forward_hook(
            lambda inner, args, output: shapes.__setitem__(id(inner), _shape(output))
        )
        for inner in module.modules()
    ]
    counter = Counter()
    try:
        with inference_mode(module.modules()), recording.only(counter):
            module(*[example_input(value) for value in inputs])
    finally:
        for handle in handles:
            handle.remove()
    return shapes, counter.total


def example_input(value: TensorLike) -> TensorLike:
    """Return zeros for a shape; anything else unchanged."""
    if isinstance(value, tuple) and all(isinstance(size, int) for size in value):
        return ops.zeros(value)
    return value


def _shape(output: object) -> str:
    shapes = [str(x.shape) for x in tree.leaves_of(output) if isinstance(x, EmberTensor)]
    return ", ".join(shapes)
