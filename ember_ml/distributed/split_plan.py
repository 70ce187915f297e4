"""What tensor parallelism splits of a model, checked before anything changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from ember_ml._core.errors import ArgumentError
from ember_ml.distributed.errors import DistributedError
from ember_ml.distributed.layout import Layout
from ember_ml.nn import Module, _traversal
from ember_ml.nn.parameter import Parameter, Variable
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit


@dataclass
class SplitPlan:
    """What to split, checked before anything changes."""

    size: int
    owners: dict[int, list[tuple[Module, str]]]
    """Modules that hold each variable, and its name there, by the identity of the variable."""
    layers: list[tuple[str, Module, TensorSplit]] = field(default_factory=list)
    splits: dict[str, tuple[Variable, Split]] = field(default_factory=dict)
    gathered: dict[str, tuple[Parameter, Split]] = field(default_factory=dict)

    def add_layer(self, path: str, layer: Module, split: TensorSplit) -> None:
        """Add a layer that describes its split, unless it cannot and need not be split.

        Args:
            path: Name of the layer in the model.
            layer: The layer.
            split: How it is split.
        """
        if layer.is_split:
            raise DistributedError(
                f"{path}: {type(layer).__name__} is split already; split a model once"
            )
        try:
            parts = self._parts(path, layer, split)
        except DistributedError:
            if split.is_optional:
                return
            raise
        self.splits |= parts
        self.layers.append((path, layer, split))

    def _parts(
        self, path: str, layer: Module, split: TensorSplit
    ) -> dict[str, tuple[Variable, Split]]:
        """Return the variables of a layer that are split; raise an error if one cannot be."""
        self._check_sizes(path, layer, split)
        parts = {}
        for name, each in split.splits.items():
            variable = variable_of(path, layer, name)
            if variable is not None:
                full = f"{path}.{name}" if path else name
                self._check(full, variable, each)
                parts[full] = variable, each
        return parts

    def _check_sizes(self, path: str, layer: Module, split: TensorSplit) -> None:
        for name in split.sizes:
            value = getattr(*owner_of(layer, name))
            if value % self.size:
                raise DistributedError(
                    f"{path}: {type(layer).__name__}: {name} ({value}) must be divisible by tp "
                    f"({self.size})"
                )

    def add_layout(self, layout: Layout, model: Module) -> None:
        """Add the parameters that a layout selects; those of layers must agree with it.

        Args:
            layout: The layout.
            model: The model.
        """
        named = dict(model.named_parameters())
        for name, split in layout.splits(named.items()).items():
            own = self.splits.get(name)
            if own is None:
                self._check_shape(name, named[name], split)
                self.gathered[name] = named[name], split
            elif own[1] != split and (own[1].axis != split.axis or split != Split(split.axis)):
                raise ArgumentError(
                    f"Layout: {name} is split by its layer as {own[1]}, not as {split}; leave it "
                    "out of the layout"
                )

    def _check(self, name: str, variable: Variable, split: Split) -> None:
        self._check_shape(name, variable, split)
        if len(self.owners[id(variable)]) > 1:
            raise DistributedError(
                f"tensor parallelism: {name} belongs to several modules, and only one of them can "
                "be split; create the model without tied parameters"
            )

    def _check_shape(self, name: str, variable: Variable, split: Split) -> None:
        problem = split.problem(variable.shape, self.size)
        if problem is not None:
            raise DistributedError(
                f"tensor parallelism: {name} of shape {variable.shape} cannot be split for "
                f"tp={self.size}: {problem}"
            )


def plan_split(model: Module, size: int, layout: Layout | None) -> SplitPlan:
    """Return what to split; raise an error if something cannot be split.

    Args:
        model: The model.
        size: Number of processes.
        layout: Further parameters to store in parts; None for none.
    """
    plan = SplitPlan(size, _owners(model))
    for path, layer in model.named_modules():
        split = layer.tensor_split()
        if split is not None:
            plan.add_layer(path, layer, split)
    if layout is not None:
        plan.add_layout(layout, model)
    return plan


def _owners(model: Module) -> dict[int, list[tuple[Module, str]]]:
    owners: dict[int, list[tuple[Module, str]]] = {}
    for module in model.modules():
        for name, variable in _traversal.parts(module)[0]:
            owners.setdefault(id(variable), []).append((module, name))
    return owners


def owner_of(layer: Module, name: str) -> tuple[Module, str]:
    """Return the module that has an attribute, and the name of the attribute there.

    Args:
        layer: Layer that contains the module.
        name: Name of the attribute in the layer, such as "query.weight".
    """
    path, _, attribute = name.rpartition(".")
    return dict(layer.named_modules())[path], attribute


def variable_of(path: str, layer: Module, name: str) -> Variable | None:
    """Return a variable of a layer; None if the layer has none of this name.

    Args:
        path: Name of the layer in the model, for errors.
        layer: The layer.
        name: Name of the variable in the layer.
    """
    owner, attribute = owner_of(layer, name)
    value = vars(owner).get(attribute)
    if isinstance(value, Variable) or getattr(owner, attribute, owner) is None:
        return value
    raise DistributedError(
        f"{path}: {type(layer).__name__} cannot be split: its {name} is missing, such as in "
        "quantized layers; split the model before it is quantized"
    )
