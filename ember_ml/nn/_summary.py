"""Modules as text: the repr and the summary."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import ops
from ember_ml._core import recording, tree
from ember_ml._core.tensor import EmberTensor

if TYPE_CHECKING:
    from ember_ml.nn.module import Module


def arguments(module: Module) -> str:
    """The arguments it was built with that are not the defaults."""
    if module.config is None:
        return ""
    fields = type(module.config).model_fields
    given = {name: _short(getattr(module.config, name)) for name in fields}
    return ", ".join(
        f"{name}={text}" for name, text in given.items() if text != repr(fields[name].default)
    )


def _short(value: Any) -> str:
    name = getattr(type(value), "component", "")
    return repr(name.partition("/")[2]) if name else repr(value)


def text(module: Module) -> str:
    """The module and those inside of it, one a line, indented."""
    head = f"{type(module).__name__}({module.extra_repr()}"
    lines = []
    for name, child in module.named_children():
        inner = repr(child).replace("\n", "\n  ")
        lines.append(f"  ({name}): {inner}")
    return head + ("\n" + "\n".join(lines) + "\n)" if lines else ")")


class Row(NamedTuple):
    """A module in a summary."""

    name: str
    layer: str
    output: str
    parameters: int
    state: int
    state_per_token: int


class Summary:
    """What a model consists of, as rows and as a table to print."""

    def __init__(self, module: Module, inputs: Sequence[Any]) -> None:
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
                sum(parameter.size for parameter in inner.parameters()),
                inner.state_size,
                inner.state_per_token,
            )
            for name, inner in module.named_modules()
        ]
        self.parameters = module.num_parameters()
        self.trainable = module.num_parameters(trainable=True)

    def __rich__(self) -> Any:
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
        return text if self.flops is None else f"{text}; {self.flops:,} FLOPs a forward"

    def __str__(self) -> str:
        from rich.console import Console

        stream = io.StringIO()
        Console(file=stream, width=100).print(self)
        return stream.getvalue().rstrip()

    __repr__ = __str__


def _state(row: Row) -> str:
    growing = f"{row.state_per_token:,} a token" if row.state_per_token else ""
    return " + ".join(filter(None, [f"{row.state:,}" if row.state or not growing else "", growing]))


def _forward(module: Module, inputs: Sequence[Any]) -> tuple[dict[int, str], int]:
    """The shapes that each module gives in one forward, by its id, and what that costs."""
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


def example_input(value: Any) -> Any:
    """A tensor; of a shape, one of zeros."""
    is_shape = isinstance(value, tuple) and all(isinstance(part, int) for part in value)
    return ops.zeros(value) if is_shape else value


def _shape(output: Any) -> str:
    shapes = [str(x.shape) for x in tree.leaves_of(output) if isinstance(x, EmberTensor)]
    return ", ".join(shapes)
