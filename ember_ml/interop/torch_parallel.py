"""Training of Ember modules by DDP and FSDP2 of torch."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from ember_ml._core import tree
from ember_ml._core.tensor import Tensor, wrap
from ember_ml.backend.torch import DTYPES
from ember_ml.backend.torch.distributed import Topology
from ember_ml.backend.torch.nesting import nesting
from ember_ml.interop.torch_modules import (
    BACKEND,
    EmberModule,
    detour_of,
    local_part,
    to_ember,
    to_native,
    to_torch,
)
from ember_ml.nn import Module
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
        self._is_evaluated = False
        if units is None:
            self._replicate(topology, precision, find_unused)
        else:
            self._shard(topology, units, precision)
        detour_of(self.root).entry = self._enter
        self._parameters = {id(place.variable): place.value() for place in self.root.places}

    def _replicate(self, topology: Topology, precision: str, find_unused: bool) -> None:
        for each in _modules(self.root):
            each.compute_dtype = None if precision == "float32" else DTYPES[precision]
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
            for place in each.own_places:
                each.share_value(place, local_part(place.value().detach()))

    def _enter(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the output of the module for a call from Ember."""
        if not self._is_evaluated:
            self.root.take_values_of_ember()
        inputs, options = tree.map_leaves(to_native, (args, dict(kwargs)))
        if self._differentiates:
            return tree.map_leaves(to_ember, self.wrapped(*inputs, **options))
        with torch.no_grad():
            output = tree.map_leaves(to_ember, self.root(*inputs, **options))
            output = computed_logits(output)  # parameters in the output are freed
        self._reshard()
        return output

    def _reshard(self) -> None:
        """Free the gathered parameters, which FSDP2 keeps for a backward pass."""
        for each in self.root.modules():
            if isinstance(each, FSDPModule):
                each.reshard()

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
        with torch.enable_grad(), self._synchronizing(synchronize), self.training():
            loss, others = compute()
            scaled(loss, others).native.backward()
        return wrap(loss.native.detach(), BACKEND), tree.map_leaves(_detached, others)

    @contextlib.contextmanager
    def training(self) -> Iterator[None]:
        """Let calls in the block compute gradients, once for each call."""
        self._differentiates = True
        before, nesting.once = nesting.once, True
        try:
            yield
        finally:
            self._differentiates, nesting.once = False, before

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
        replaced = [
            (local_part(place.value().detach()), place.variable.native)
            for each in _modules(self.root)
            for place in each.own_places
            if place.variable.native is not each.shared[id(place.variable)]
        ]
        kept = [memory.clone() for memory, _ in replaced]
        for memory, value in replaced:
            memory.copy_(value)
        self._is_evaluated = True
        try:
            yield
        finally:
            self._is_evaluated = False
            for (memory, _), value in zip(replaced, kept, strict=True):
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

    def whole_shape(self, parameter: Parameter) -> tuple[int, ...]:
        """Return the shape of a parameter of which this process may have a part."""
        return tuple(self._parameters[id(parameter)].shape)


def _modules(root: torch.nn.Module) -> list[EmberModule]:
    return [each for each in root.modules() if isinstance(each, EmberModule)]


def _detached(leaf: object) -> object:
    native = to_native(leaf)
    return wrap(native.detach(), BACKEND) if isinstance(native, torch.Tensor) else leaf
