"""Tensor parallelism: layers that the processes of a group compute together."""

from __future__ import annotations

import functools

from ember_ml import ops
from ember_ml.distributed.layout import Layout
from ember_ml.distributed.parameter_views import add_view
from ember_ml.distributed.regions import GroupRegion, add_borders
from ember_ml.distributed.split_plan import SplitPlan, owner_of, plan_split, variable_of
from ember_ml.distributed.split_report import SplitReport, replicated_parts
from ember_ml.distributed.world import Group
from ember_ml.nn import Module, _traversal
from ember_ml.nn.layers import Dense
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.nn.tensor_split import TensorSplit


def split_model(model: Module, group: Group, layout: Layout | None = None) -> SplitReport:
    """Split the layers of a model among processes; each keeps its parts of the parameters.

    All processes call it before they create an optimizer. The parameters and buffers of the first
    process count. Each layer that describes a split (`Module.tensor_split`) computes its part: its
    heads, inner channels or experts. The others are replicated. Outputs and gradients are those of
    the whole model, up to rounding. If something cannot be split, an error is raised and nothing
    is changed.

    Args:
        model: The model.
        group: The processes, such as the group "tp" of a `World`.
        layout: Further parameters to store in parts. Default: none.

    Returns:
        The splits of the parameters by name, and the replicated parts of the model.
    """
    plan = plan_split(model, group.size, layout)
    if group.size > 1:
        region = GroupRegion(group)
        take_values_of_first(model, group)
        for variable, split in (plan.splits | plan.gathered).values():
            variable.become(ops.copy(split.local(variable, group.rank, group.size)))
        _add_views(plan, region)
        for _, layer, described in plan.layers:
            _divide(layer, described, group)
            add_borders(layer, described, region)
    return _report(model, plan)


def take_values_of_first(model: Module, group: Group) -> None:
    """Set the parameters and buffers of a model to the values of the first process.

    Args:
        model: The model.
        group: The processes, which all call this.
    """
    for _, variable in _traversal.named_variables(model):
        value = group.broadcast(variable.value())
        ops.synchronize(value)  # lazy collectives of all processes must have the same order
        variable.become(value)


def _report(model: Module, plan: SplitPlan) -> SplitReport:
    parts = plan.splits | plan.gathered
    splits = {name: split for name, (x, split) in parts.items() if isinstance(x, Parameter)}
    buffers = {name: split for name, (x, split) in parts.items() if isinstance(x, Buffer)}
    return SplitReport(splits, buffers, tuple(plan.gathered), replicated_parts(model, set(splits)))


def _add_views(plan: SplitPlan, region: GroupRegion) -> None:
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
            bias = variable_of(path, layer, name)
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
    layer.is_split = True
    for name in split.sizes:
        owner, attribute = owner_of(layer, name)
        setattr(owner, attribute, getattr(owner, attribute) // group.size)
    for name, size in split.offsets.items():
        owner, attribute = owner_of(layer, name)
        setattr(owner, attribute, group.rank * getattr(*owner_of(layer, size)))
    for module in layer.modules():
        if isinstance(module, Dense):
            module.out_features, module.in_features = vars(module)["weight"].shape
