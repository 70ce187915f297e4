"""Layers of a model that reports list, and marks before and after each of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ember_ml.nn._hooks import Call, calls_through
from ember_ml.nn.containers import ModuleDict, ModuleList
from ember_ml.nn.models.backbone import Backbone
from ember_ml.nn.module import Module
from ember_ml.nn.sequential import Sequential

ENTER, EXIT = "enter ", "exit "
"""Starts of the marks before and after a layer."""


def layers_of(model: Module) -> dict[str, Module]:
    """Return the layers of a model that reports list: its parts, and the parts of its stacks.

    Args:
        model: The model.
    """
    stacks = {id(each.blocks) for each in model.modules() if isinstance(each, Backbone)}

    def visit(module: Module, name: str) -> Iterator[tuple[str, Module]]:
        opens = isinstance(module, (Backbone, ModuleList, ModuleDict, Sequential))
        if name and not opens and id(module) not in stacks:
            yield name, module
            return
        for part, child in module.named_children():
            yield from visit(child, f"{name}.{part}" if name else part)

    return dict(visit(model, "")) or {"model": model}


@contextlib.contextmanager
def layer_marks(layers: Mapping[str, Module], mark: Callable[[str], None]) -> Iterator[None]:
    """Mark the start and the end of the forward pass of each layer within the block.

    Args:
        layers: The layers by name.
        mark: Called with `ENTER` or `EXIT` and the name.
    """
    with calls_through((module, _marked(name, mark)) for name, module in layers.items()):
        yield


def _marked(name: str, mark: Callable[[str], None]) -> Callable[..., Any]:
    def run(call: Call, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        mark(ENTER + name)
        output = call(module, args, kwargs)
        mark(EXIT + name)
        return output

    return run
