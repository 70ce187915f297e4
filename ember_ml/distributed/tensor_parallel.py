"""Tensor parallelism: layers that the processes of a group compute together."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml.distributed.errors import DistributedError
from ember_ml.distributed.layout import Layout
from ember_ml.distributed.parameter_views import add_view
from ember_ml.distributed.regions import GroupRegion, add_borders
from ember_ml.distributed.split_report import SplitReport, replicated_parts
from ember_ml.distributed.world import Group
from ember_ml.nn import Module, _traversal
from ember_ml.nn.layers import Dense
from ember_ml.nn.parameter import Buffer, Parameter, Variable
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit


@dataclass
class _Plan:
    """What to split, checked before anything changes."""

    size: int
    owners: dict[int, list[tuple[Module, str]]]
    """Modules that hold each variable, and its name there, by the identity of the variable."""
    layers: list[tuple[str, Module, TensorSplit]] = field(default_factory=list)
    splits: dict[str, tuple[Variable, Split]] = field(default_factory=dict)
    gathered: dict[str, tuple[Parameter, Split]] = field(default_factory=dict)

    def add_layer(self, path: str, layer: Module, split: TensorSplit) -> None:
        """Add a layer that describes its split, unless it cannot and need not be split."""
        parts = {}
        for name, each in split.splits.items():
            variable = _variable(path, layer, name)
            if variable is not None:
                parts[f"{path}.{name}" if path else name] = variable, each
        try:
            self._check_sizes(path, layer, split)
            for name, (variable, each) in parts.items():
                self._check(name, variable, each)
        except DistributedError:
            if split.is_optional:
                return
            raise
        self.splits |= parts
        self.layers.append((path, layer, split))

    def _check_sizes(self, path: str, layer: Module, split: TensorSplit) -> None:
        for name in split.sizes:
            value = getattr(*_owner(layer, name))
            if value % self.size:
                raise DistributedError(
                    f"{path}: {type(layer).__name__}: {name} ({value}) must be divisible by tp "
                    f"({self.size})"
                )

    def add_layout(self, layout: Layout, model: Module) -> None:
        """Add the parameters that a layout selects; those of layers must agree with it."""
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


def split_model(model: Module, group: Group, layout: Layout | None = None) -> SplitReport:
    """Split the layers of a model among processes; each keeps its parts of the parameters.

    All processes call it before they create an optimizer. The parameters and buffers of the first
    process count. Each layer that describes a split (`Module.tensor_split`) computes its part: its heads, inner channels or
    experts. The others are replicated. Outputs and gradients are those of the whole model, up to
    rounding. If something cannot be split, an error is raised and nothing is changed.

    Args:
        model: The model.
        group: The processes, such as the group "tp" of a `World`.
        layout: Further parameters to store in parts. Default: none.

    Returns:
        The splits of the parameters by name, and the replicated parts of the model.
    """
    plan = _plan(model, group.size, layout)
    if group.size > 1:
        region = GroupRegion(group)
        for _, variable in _traversal.named_variables(model):
            variable.become(group.broadcast(variable.value()))
        for variable, split in (plan.splits | plan.gathered).values():
            variable.become(ops.copy(split.local(variable, group.rank, group.size)))
        _add_views(plan, region)
        for _, layer, described in plan.layers:
            _divide(layer, described, group)
            add_borders(layer, described, region)
    return _report(model, plan)


def _plan(model: Module, size: int, layout: Layout | None) -> _Plan:
    """Return what to split; raise an error if something cannot be split."""
    plan = _Plan(size, _owners(model))
    for path, layer in model.named_modules():
        split = layer.tensor_split()
        if split is not None:
            plan.add_layer(path, layer, split)
    if layout is not None:
        plan.add_layout(layout, model)
    return plan


def _report(model: Module, plan: _Plan) -> SplitReport:
    parts = plan.splits | plan.gathered
    splits = {name: split for name, (x, split) in parts.items() if isinstance(x, Parameter)}
    buffers = {name: split for name, (x, split) in parts.items() if isinstance(x, Buffer)}
    return SplitReport(splits, buffers, tuple(plan.gathered), replicated_parts(model, set(splits)))


def _add_views(plan: _Plan, region: GroupRegion) -> None:
    """Let modules use what they need of parameters: gathered, once in a sum, or entered."""
    for parameter, split in plan.gathered.values():
        for owner, name in plan.owners[id(parameter)]:
            add_view(owner, name, functools.partial(region.whole, split=split))
    for variable, split in plan.splits.values():
        if split.kept:
            owner, name = plan.owners[id(variable)][0]
            add_view(owner, name, functools.partial(region.with_kept, split=split))
    for path, layer, described in plan.layers:
        for name in described.once:
            bias = _variable(path, layer, name)
            if bias is not None:
                add_view(*plan.owners[id(bias)][0], region.once)
        for parameter in _shared(layer, described):
            for owner, name in plan.owners[id(parameter)]:
                add_view(owner, name, region.enter)


def _shared(layer: Module, split: TensorSplit) -> list[Parameter]:
    """Return the parameters that each process has whole and uses in the region."""
    return [
        parameter
        for name, parameter in layer.named_parameters()
        if any(name == each or name.startswith(f"{each}.") for each in split.shared)
    ]


def _divide(layer: Module, split: TensorSplit, group: Group) -> None:
    """Set the sizes of a layer to those of its part."""
    for name in split.sizes:
        owner, attribute = _owner(layer, name)
        setattr(owner, attribute, getattr(owner, attribute) // group.size)
    for name, size in split.offsets.items():
        owner, attribute = _owner(layer, name)
        setattr(owner, attribute, group.rank * getattr(*_owner(layer, size)))
    for module in layer.modules():
        if isinstance(module, Dense):
            module.out_features, module.in_features = vars(module)["weight"].shape


def _owners(model: Module) -> dict[int, list[tuple[Module, str]]]:
    owners: dict[int, list[tuple[Module, str]]] = {}
    for module in model.modules():
        for name, variable in _traversal.parts(module)[0]:
            owners.setdefault(id(variable), []).append((module, name))
    return owners


def _owner(layer: Module, name: str) -> tuple[Module, str]:
    """Return the module that has an attribute, and the name of the attribute there."""
    path, _, attribute = name.rpartition(".")
    return dict(layer.named_modules())[path], attribute


def _variable(path: str, layer: Module, name: str) -> Variable | None:
    """Return a variable of a layer; None if the layer has none of this name."""
    owner, attribute = _owner(layer, name)
    value = vars(owner).get(attribute)
    if isinstance(value, Variable) or getattr(owner, attribute, owner) is None:
        return value
    raise DistributedError(
        f"{path}: {type(layer).__name__} cannot be split: its {name} is missing, such as in "
        "quantized layers; split the model before it is quantized"
    )
