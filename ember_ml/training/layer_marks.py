"""The layers of a model that reports list, and marks before and after each of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ember_ml.nn._hooks import drop_unused, hooks_of
from ember_ml.nn.containers import ModuleDict, ModuleList
from ember_ml.nn.models.backbone import Backbone
from ember_ml.nn.module import Module
from ember_ml.nn.sequential import Sequential

ENTER, EXIT = "enter ", "exit "
"""Starts of the marks before and after a layer."""


def layers_of(model: Module) -> dict[str, Module]:
    """Return the layers of a model that reports list: its parts, and those of its stacks.

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
    before = {}
    for name, module in layers.items():
        hooks = hooks_of(module)
        before[name] = hooks.around
        hooks.around = _around(name, mark, hooks.around)
    try:
        yield
    finally:
        for name, module in layers.items():
            hooks_of(module).around = before[name]
            drop_unused(module)


def _around(
    name: str, mark: Callable[[str], None], inner: Callable[..., Any] | None
) -> Callable[..., Any]:
    def run(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        mark(ENTER + name)
        call = hooks_of(module).run_inner if inner is None else inner
        output = call(module, args, kwargs)
        mark(EXIT + name)
        return output

    return run
