"""Rematerialization: chosen modules compute their intermediate values again in the backward pass.

The modules keep only their inputs for the backward pass, which needs less memory and one more
forward pass of these modules.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeAlias

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.autodiff.transforms.checkpointing import checkpoint
from ember_ml.nn import _traversal
from ember_ml.nn._hooks import drop_unused, hooks_of
from ember_ml.nn.auxiliary_losses import report_loss, reported_losses
from ember_ml.nn.functional import current_values, substitute
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.models.backbone import Backbone
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer
from ember_ml.registry import REGISTRY

RematLike: TypeAlias = str | Sequence[str] | Callable[[str, Module], bool]
"""Choice of modules: "blocks", "mixers", patterns of names, or a function of (name, module)."""
_LISTED = 12
"""Maximum number of module names in an error message."""


class Remat:
    """Rematerialization of chosen modules; `remove` or the end of a `with` block ends it.

    Args:
        modules: The modules by dotted name.
    """

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self.modules = dict(modules)
        self._started: list[Module] = []

    @property
    def names(self) -> list[str]:
        """Dotted names of the modules."""
        return list(self.modules)

    def start(self) -> Self:
        """Compute the modules with rematerialization from now on."""
        for module in self.modules.values():
            hooks = hooks_of(module)
            if hooks.within is None:
                hooks.within = _rematerialized
                self._started.append(module)
        return self

    def remove(self) -> None:
        """Compute the modules as before `start`; a second call does nothing."""
        for module in self._started:
            if module._hooks is not None:
                module._hooks.within = None
                drop_unused(module)
        self._started = []

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"Remat({', '.join(self.names)})"


def remat(model: Module, policy: RematLike) -> Remat:
    """Rematerialize modules of a model in training mode, and return a handle that ends it.

    Losses, gradients, buffers and random numbers are those without it. It also takes effect in the
    torch module of the model (`ember_ml.interop.to_torch`), also if blocks are sharded with FSDP2.
    A program of `torch.compile` is not affected: that compiler plans memory itself.

    Args:
        model: The model.
        policy: "blocks" (the parts of the model's stack), "mixers" (the sequence mixers inside
            them), patterns of module names as in file names, or a function (name, module) -> bool.
            Modules inside a chosen one are part of it.

    Example:
        >>> from ember_ml.nn.remat import remat
        >>> model = nn.models.LanguageModel("attention swiglu", 8, 16)
        >>> with remat(model, "blocks") as blocks:
        ...     blocks.names
        ['backbone.blocks.0', 'backbone.blocks.1']
    """
    return Remat(chosen_modules(model, policy)).start()


def chosen_modules(model: Module, policy: RematLike) -> dict[str, Module]:
    """Return the modules that a policy chooses, by dotted name.

    Args:
        model: The model.
        policy: As in `remat`.
    """
    inside = [(name, module) for name, module in model.named_modules() if name]
    if callable(policy):
        chosen = {name: module for name, module in inside if policy(name, module)}
    elif policy == "blocks" or policy == "mixers":
        chooses = _is_block if policy == "blocks" else _is_mixer
        stacks = {id(each.blocks) for each in model.modules() if isinstance(each, Backbone)}
        chosen = {name: each for name, each in inside if id(each) not in stacks and chooses(each)}
    else:
        chosen = _matched(policy, inside)
    if not chosen:
        raise ArgumentError(
            f"remat: {policy!r} chooses no module of {type(model).__name__}; there are "
            f"{_listed(inside)}"
        )
    return _outermost(chosen)


def _matched(policy: object, inside: list[tuple[str, Module]]) -> dict[str, Module]:
    patterns = [policy] if isinstance(policy, str) else policy
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(x, str) for x in patterns):
        raise ArgumentTypeError(
            "remat: must be 'blocks', 'mixers', patterns of module names or a function of (name, "
            f"module), not {policy!r:.60}"
        )
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(name, pattern) for name, _ in inside):
            raise ArgumentError(
                f"remat: no module matches {pattern!r}; there are {_listed(inside)}"
            )
    return {
        name: module
        for name, module in inside
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    }


def _outermost(chosen: dict[str, Module]) -> dict[str, Module]:
    """Return the modules that are not part of another one."""
    parts = {
        id(part) for module in chosen.values() for part in module.modules() if part is not module
    }
    return {name: module for name, module in chosen.items() if id(module) not in parts}


def _listed(inside: list[tuple[str, Module]]) -> str:
    names = [name for name, _ in inside]
    return ", ".join(names[:_LISTED]) + (" ..." if len(names) > _LISTED else "") or "none"


def _kind(module: Module) -> str:
    """Return the kind of component of a module's class, or of the registered class it extends."""
    entry = next(filter(None, map(REGISTRY.entry_of, type(module).__mro__)), None)
    return "" if entry is None else entry.kind


def _is_block(module: Module) -> bool:
    return _kind(module) == "blocks"


def _is_mixer(module: Module) -> bool:
    return isinstance(module, SequenceMixer) and _kind(module) == "layers"


def _rematerialized(
    module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], run: Callable[..., Any]
) -> Any:
    """Return the output of a module, which the backward pass computes again."""
    if not module.training:
        return run(module, args, kwargs)
    variables = [variable for _, variable in _traversal.named_variables(module)]
    names: list[str] = []

    def compute(values: list[Any], args: Any, kwargs: Any) -> tuple[Any, list[Any], dict[int, Any]]:
        """Return the output, the reported losses and the new values of changed buffers.

        The backward pass may call it when the variables have other values, so these are arguments.
        """
        with substitute(variables, values), reported_losses() as losses:
            output = run(module, args, kwargs)
            names[:] = losses.names
            changed = {
                at: variable.value()
                for at, (variable, value) in enumerate(zip(variables, values, strict=True))
                if isinstance(variable, Buffer) and variable.native is not value.native
            }
        return output, list(losses), changed

    values = current_values(variables)
    output, losses, changed = checkpoint(compute)(values, args, dict(kwargs))
    for loss, name in zip(losses, names, strict=True):
        report_loss(loss, name)
    for at, value in changed.items():
        variables[at].become(value)
    return output
