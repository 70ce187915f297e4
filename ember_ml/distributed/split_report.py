"""What tensor parallelism has split, and what it has not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ember_ml.nn import Module, _traversal
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.splitting import Split
from ember_ml.registry.components import REGISTRY


@dataclass(frozen=True)
class SplitReport:
    """The splits of a model's parameters.

    Attributes:
        splits: Name of each parameter that is stored in parts -> its split. `Split.whole` returns
            the whole parameter.
        buffers: The same for buffers.
        gathered: Parameters among `splits` that are gathered where they are used.
        replicated: Layers and parameters that each process has whole, by name -> class name.
    """

    splits: Mapping[str, Split]
    buffers: Mapping[str, Split]
    gathered: tuple[str, ...]
    replicated: Mapping[str, str]

    def describe(self) -> str:
        """Return the report as text: what is split, gathered and replicated."""
        counts = Counter(self.replicated.values())
        kinds = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        split = len(self.splits) - len(self.gathered)
        lines = [f"split: {split} parameters", f"gathered: {len(self.gathered)} parameters"]
        lines.append(f"replicated: {kinds or 'nothing'}")
        return "\n".join([*lines, *(f"  {name}: {x}" for name, x in self.replicated.items())])


def replicated_parts(model: Module, split: set[str]) -> dict[str, str]:
    """Return the layers and parameters that no process has a part of: name -> class name.

    Args:
        model: The model.
        split: Names of the parameters that are split.
    """
    return dict(_replicated(model, "", split, set()))


def _replicated(
    module: Module, path: str, split: set[str], seen: set[int]
) -> Iterator[tuple[str, str]]:
    if id(module) in seen:
        return
    seen.add(id(module))
    prefix = f"{path}." if path else ""
    names = [prefix + name for name, _ in module.named_parameters()]
    if names and _is_layer(module) and not split.intersection(names):
        yield path, type(module).__name__
        return
    variables, children = _traversal.parts(module)
    for name, variable in variables:
        if isinstance(variable, Parameter) and prefix + name not in split:
            yield prefix + name, type(variable).__name__
    for name, child in children:
        yield from _replicated(child, prefix + name, split, seen)


def _is_layer(module: Module) -> bool:
    """Return whether a module is a registered layer, which a report names as a whole."""
    kinds = type(module).__mro__[:2]  # a split layer has a class of its own
    entries = (REGISTRY.entry_of(kind) for kind in kinds)
    return any(entry is not None and entry.kind == "layers" for entry in entries)
