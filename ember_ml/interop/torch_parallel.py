"""Training of Ember modules by DDP and FSDP2 of torch."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import torch
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, wrap
from ember_ml.backend.torch import DTYPES
from ember_ml.backend.torch.distributed import Topology
from ember_ml.backend.torch.nesting import nesting
from ember_ml.interop._torch_calls import (
    BACKEND,
    detour_of,
    run_forward,
    to_ember,
    to_native,
)
from ember_ml.interop.torch_modules import EmberModule, local_part, to_torch
from ember_ml.nn import Module
from ember_ml.nn.functional import substitute
from ember_ml.nn.models.deferred_logits import computed_logits
from ember_ml.nn.parameter import Parameter

T = TypeVar("T")

_NEW = "forward_sync_buffers" in inspect.signature(DistributedDataParallel.__init__).parameters
_SYNC_BUFFERS = "forward_sync_buffers" if _NEW else "broadcast_buffers"


class TorchParallel:
    """An Ember module whose calls run through DDP or FSDP2.

    The parameters of the Ember module have the values that this process holds: with FSDP2, its
    parts of them, in the memory of torch.

    Args:
        module: The module, on the torch backend.
        topology: The groups of the processes.
        units: Modules inside it whose parameters FSDP2 gathers together, the innermost first. None:
            DDP, which replicates the parameters.
        precision: Dtype of the computation.
        find_unused: Whether DDP looks for parameters that a loss does not depend on.
    """

    def __init__(
        self,
        module: Module,
        topology: Topology,
        units: Sequence[Module] | None,
        precision: str = "float32",
        find_unused: bool = False,
    ) -> None:
        self.root = to_torch(module)
        self._differentiates = False
        self.recomputes = False
        self._is_evaluated = False
        self._calls = 0
        self._finds_unused = find_unused
        self._compute_dtype: torch.dtype | None = None
        if units is None:
            self._replicate(topology, precision, find_unused)
        else:
            self._shard(topology, units, precision)
        self._claim()
        self._parameters = {id(place.variable): place.value() for place in self.root.places}

    def _claim(self) -> None:
        """Let calls of the Ember module run through this object, not one created later."""
        detour_of(self.root).entry = self._enter

    def _replicate(self, topology: Topology, precision: str, find_unused: bool) -> None:
        self._compute_dtype = None if precision == "float32" else DTYPES[precision]
        group, device = topology.groups["data"], topology.device
        self.wrapped: torch.nn.Module = DistributedDataParallel(
            self.root,
            device_ids=[device.index] if device.type == "cuda" else None,
            process_group=group.handle,
            gradient_as_bucket_view=True,
            find_unused_parameters=find_unused,
            **{_SYNC_BUFFERS: False},  # Ember averages them after a step
        )

    def _shard(self, topology: Topology, units: Sequence[Module], precision: str) -> None:
        _check_shapes(self.root.ember)
        mesh = topology.mesh
        axes = mesh["dp", "fsdp"] if topology.groups["dp"].size > 1 else mesh["fsdp"]
        policy = MixedPrecisionPolicy()
        if precision != "float32":
            policy = MixedPrecisionPolicy(DTYPES[precision], torch.float32)
        known = {id(each.ember): each for each in _modules(self.root)}
        for unit in [*units, self.root.ember]:
            fully_shard(known[id(unit)], mesh=axes, mp_policy=policy)
        self.wrapped = self.root
        for each in _modules(self.root):
            each.takes_values = False  # during a call, torch has gathered values instead of parts
            detour = detour_of(each)
            detour.entry = functools.partial(self._enter_part, each.ember)
            detour.around_copies = refuse
            for place in each.own_places:
                each.share_value(place, local_part(place.value().detach()))

    def _enter_part(self, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the output of a submodule that a backward pass computes again; refuse others."""
        return (
            run_forward(module, args, kwargs) if self.recomputes else refuse(module, args, kwargs)
        )

    def _enter(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the output of the module for a call from Ember."""
        if not self._is_evaluated and not self._differentiates:
            self.root.take_values_of_ember()
        inputs, options = tree.map_leaves(to_native, (args, dict(kwargs)))
        if self._differentiates:
            self._calls += 1
            return tree.map_leaves(to_ember, self.wrapped(*inputs, **options))
        with torch.no_grad():
            output = tree.map_leaves(to_ember, self.root(*inputs, **options))
            output = computed_logits(output)  # parameters in the output are freed
        reshard(self.root)
        return output

    def differentiate(
        self,
        compute: Callable[[], tuple[Tensor, T]],
        scaled: Callable[[Tensor, T], Tensor],
        synchronize: bool,
    ) -> tuple[Tensor, T]:
        """Add gradients to those of the parameters, and return what `compute` returns.

        Args:
            compute: Calls the module, and returns the loss and anything else.
            scaled: Function of these that returns the value to differentiate.
            synchronize: Whether the gradients are averaged over the processes, with those of
                earlier calls that were not.
        """
        self._claim()
        self._calls = 0
        self.root.take_values_of_ember()
        with torch.enable_grad(), self._synchronizing(synchronize), self.training():
            with self._outer_values() as outer:
                loss, others = compute()
            if not self._calls:
                raise ArgumentError(
                    "Trainer: compute must call the model itself, trainer.model(...), if several "
                    "processes train; its forward and its submodules do not share gradients"
                )
            total = scaled(loss, others).native
            with self.recomputing():
                total.backward()
        self._check_gradients(outer, synchronize)
        return wrap(loss.native.detach(), BACKEND), tree.map_leaves(_detached, others)

    @contextlib.contextmanager
    def recomputing(self) -> Iterator[None]:
        """Let submodules be called in the block, as rematerialization does."""
        self.recomputes = True
        try:
            yield
        finally:
            self.recomputes = False

    @contextlib.contextmanager
    def _outer_values(self) -> Iterator[dict[str, torch.Tensor]]:
        """Let the Ember parameters have gradients outside of calls of the model, as in a penalty.

        Yields the values by name. With DDP they are the parameters of torch; with FSDP2 they are
        parts, whose gradients show that the loss depends on them.
        """
        named = dict(self.root.ember.named_parameters())
        values = {name: self._parameters[id(x)] for name, x in named.items()}
        if self.wrapped is self.root:
            values = {
                name: named[name].native.detach().requires_grad_(x.requires_grad)
                for name, x in values.items()
            }
        takes, self.root.takes_values = self.root.takes_values, False
        try:
            with substitute(list(named.values()), [wrap(x, BACKEND) for x in values.values()]):
                yield values
        finally:
            self.root.takes_values = takes

    def _check_gradients(self, outer: Mapping[str, torch.Tensor], synchronize: bool) -> None:
        """Raise an error for gradients that the processes have not averaged."""
        if self.wrapped is self.root:
            used = [name for name, x in outer.items() if x.grad is not None]
            if used:
                raise ArgumentError(
                    f"Trainer: compute uses {used[0]} outside of a call of the model, where this "
                    "process has a part of it; use it in the model's forward, or use strategy='dp'"
                )
        elif synchronize and not self._finds_unused:
            unused = [name for name, x in outer.items() if x.requires_grad and x.grad is None]
            if unused:
                raise ArgumentError(
                    f"Trainer: the loss does not depend on {', '.join(unused[:3])}"
                    f"{' ...' * (len(unused) > 3)}; freeze unused parameters, or set "
                    "strategy={'type': 'dp', 'find_unused': True}"
                )

    @contextlib.contextmanager
    def training(self) -> Iterator[None]:
        """Let calls in the block compute gradients, once for each call."""
        self._differentiates = True
        before, nesting.once = nesting.once, True
        try:
            with self.reduced_precision():
                yield
        finally:
            self._differentiates, nesting.once = False, before

    @contextlib.contextmanager
    def reduced_precision(self) -> Iterator[None]:
        """Let calls in the block compute in the dtype of training; others use the parameters'."""
        modules = [] if self._compute_dtype is None else _modules(self.root)
        for each in modules:
            each.compute_dtype = self._compute_dtype
        try:
            yield
        finally:
            for each in modules:
                each.compute_dtype = None

    @contextlib.contextmanager
    def _synchronizing(self, synchronize: bool) -> Iterator[None]:
        if isinstance(self.wrapped, DistributedDataParallel):
            with contextlib.nullcontext() if synchronize else self.wrapped.no_sync():
                yield
            return
        root: Any = self.wrapped
        root.set_requires_gradient_sync(synchronize)
        yield

    def take_gradients(self, parameters: Sequence[Parameter]) -> list[Tensor | None]:
        """Return the gradients of the parts that this process holds, and forget them.

        Args:
            parameters: Parameters of the Ember module. The gradient of a frozen one is None.
        """
        gradients: list[Tensor | None] = []
        for parameter in parameters:
            native = self._parameters[id(parameter)]
            grad, native.grad = native.grad, None
            if not native.requires_grad:
                gradients.append(None)
                continue
            part = torch.zeros_like(local_part(native.detach()))
            gradients.append(wrap(part if grad is None else local_part(grad), BACKEND))
        return gradients

    @contextlib.contextmanager
    def evaluated(self) -> Iterator[None]:
        """Let calls in the block use the values that the Ember parameters have now."""
        self._claim()
        replaced = [
            (local_part(place.value().detach()), place.variable.native)
            for each in _modules(self.root)
            for place in each.own_places
            if place.variable.native is not each.shared[id(place.variable)]
        ]
        trained = [memory.clone() for memory, _ in replaced]
        for memory, value in replaced:
            memory.copy_(value)
        self._is_evaluated = True
        try:
            yield
        finally:
            self._is_evaluated = False
            for (memory, _), value in zip(replaced, trained, strict=True):
                memory.copy_(value)

    def take_values(self) -> None:
        """Copy the values to torch that Ember has replaced."""
        self.root.take_values_of_ember()

    def whole(self, parameter: Parameter, part: Tensor) -> Tensor:
        """Return a whole tensor from the parts of all processes that share a parameter.

        Args:
            parameter: The parameter.
            part: This process's part of it, or of a tensor of its shape.
        """
        native = self._parameters[id(parameter)]
        if not isinstance(native, DTensor):
            return part
        shared = DTensor.from_local(
            part.native,
            native.device_mesh,
            native.placements,
            run_check=False,
            shape=native.shape,
            stride=native.stride(),
        )
        return wrap(shared.full_tensor(), BACKEND)

    def part(self, parameter: Parameter, whole: Tensor) -> Tensor:
        """Return this process's part of a whole tensor.

        Args:
            parameter: The parameter whose shape and parts the tensor has.
            whole: The tensor, which is the same in each process.
        """
        native = self._parameters[id(parameter)]
        if not isinstance(native, DTensor):
            return whole
        rows = native.shape[0]
        mesh = native.device_mesh
        axis = mesh.mesh_dim_names.index("fsdp")
        size, rank = mesh.size(axis), mesh.get_local_rank(axis)
        length = -(-rows // size)
        start = min(rank * length, rows)
        stop = min(start + length, rows)
        return wrap(whole.native[start:stop].contiguous(), BACKEND)


def _modules(root: torch.nn.Module) -> list[EmberModule]:
    return [each for each in root.modules() if isinstance(each, EmberModule)]


def reshard(module: torch.nn.Module) -> None:
    """Free the gathered parameters, which FSDP2 keeps for a backward pass.

    Args:
        module: Module whose submodules may be sharded.
    """
    for each in module.modules():
        if isinstance(each, FSDPModule):
            each.reshard()


def _detached(leaf: object) -> object:
    native = to_native(leaf)
    return wrap(native.detach(), BACKEND) if isinstance(native, torch.Tensor) else leaf


def _check_shapes(module: Module) -> None:
    """Raise an error for parameters that FSDP2 cannot divide."""
    for name, parameter in module.named_parameters():
        if not parameter.ndim:
            raise ArgumentError(
                f"FSDPStrategy: the parameter {name} is a scalar, which cannot be divided; give it "
                "the shape (1,), or use strategy='dp'"
            )


def refuse(module: Module, args: object, kwargs: object) -> NoReturn:
    """Raise an error for a call of a module whose parameters this process has in parts.

    Args:
        module: Submodule or copy of a model that several processes share.
        args: Arguments of the call.
        kwargs: Keyword arguments of the call.
    """
    raise ArgumentError(
        f"{type(module).__name__}: this process has only parts of the parameters, which calls of "
        "the whole model gather. To generate, or to call submodules and copies, save the model "
        "with trainer.save and load it with ember_ml.load"
    )
