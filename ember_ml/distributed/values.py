"""What each process has of the parameters and of batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ember_ml._core import tree
from ember_ml._core.tensor import EmberTensor, Tensor, wrap
from ember_ml.backend.interface import Array, Arrays
from ember_ml.distributed.world import World
from ember_ml.nn import _traversal
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.nn.splitting import Split


class SharedValues:
    """What this process has of each parameter of a model.

    Args:
        model: The model.
        world: All processes.

    Attributes:
        splits: How the processes of a `tp` group split parameters, by name.
        wrapped: The model in DDP or FSDP2; None if it is not wrapped.
        local: Names of the parameters that this process trains; None for all.
        buffers: Buffers that training may change.
    """

    def __init__(self, model: Module, world: World) -> None:
        self._model = model
        self._world = world
        self.splits: Mapping[str, Split] = {}
        self.wrapped: Any = None
        self.local: frozenset[str] | None = None
        self.buffers = [x for x in model.buffers() if isinstance(x, Buffer) and x.persistent]
        self._variables = dict(_traversal.named_variables(model))
        self._shapes = {name: x.shape for name, x in self._variables.items()}
        self._names = {id(x): name for name, x in self._variables.items()}

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Return the parameters that this process trains, by name."""
        for name, parameter in self._model.named_parameters():
            if self.local is None or name in self.local:
                yield name, parameter

    @property
    def is_partial(self) -> bool:
        """Whether this process has only parts of some parameters, or only some of them."""
        mesh = self._world.mesh
        return mesh.fsdp > 1 or mesh.pp > 1 or bool(self.splits)

    def copies(self, parameter: Parameter) -> int:
        """Return the number of processes that have the same part of a parameter."""
        mesh = self._world.mesh
        split = self._names[id(parameter)] in self.splits
        return (mesh.dp or 1) * (1 if split else mesh.tp)

    def distinct(self, parameter: Parameter, gradient: Tensor) -> list[Tensor]:
        """Return the parts of a gradient that a sum over all processes counts once.

        Args:
            parameter: The parameter.
            gradient: Gradient of this process's part of it.
        """
        split, group = self.splits.get(self._names[id(parameter)]), self._world.group("tp")
        if split is None or not split.kept:
            return [gradient]
        if self.wrapped is not None and self._world.mesh.fsdp > 1:
            gradient = self.wrapped.whole(parameter, gradient)
            if self._world.group("fsdp").rank:
                return []
        return split.distinct(gradient, group.rank, group.size)

    def whole(self, name: str, part: Tensor) -> Tensor:
        """Return a whole tensor from the parts of all processes.

        All processes call it for the same parameters, in the same order.

        Args:
            name: Name of the parameter.
            part: This process's part of it, or of a tensor of its shape.
        """
        if self.wrapped is not None:
            part = self.wrapped.whole(self._variables[name], part)
        split = self.splits.get(name)
        return part if split is None else split.whole(self._world.group("tp").all_gather(part))

    def part(self, name: str, whole: Tensor) -> Tensor:
        """Return this process's part of a whole tensor.

        Args:
            name: Name of the parameter whose shape the tensor has.
            whole: The tensor, which is the same in each process.
        """
        split, group = self.splits.get(name), self._world.group("tp")
        if split is not None:
            whole = split.local(whole, group.rank, group.size)
        return whole if self.wrapped is None else self.wrapped.part(self._variables[name], whole)

    def whole_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a whole parameter or buffer."""
        return self._shapes[name]

    def part_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of this process's part of a parameter or buffer."""
        return self._variables[name].shape

    def is_variable(self, name: str) -> bool:
        """Return whether the model has a parameter or buffer of a name."""
        return name in self._variables

    def has(self, name: str) -> bool:
        """Return whether this process has a parameter or buffer, or a part of it."""
        return name in self._variables and (self.local is None or name in self.local)


class OptimizerSharing:
    """Whole parameters for optimizers that cannot update parts of them.

    Args:
        values: What this process has of each parameter.
    """

    def __init__(self, values: SharedValues) -> None:
        self._values = values

    def whole_shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a whole parameter, for the shape of a part."""
        return self._values.whole_shape(name)

    def whole(self, names: Sequence[str], parts: Arrays) -> list[Array]:
        """Return whole arrays from the parts of all processes."""
        backend = self._values._world.backend
        pairs = zip(names, parts, strict=True)
        return [self._values.whole(name, wrap(part, backend)).native for name, part in pairs]

    def parts(self, names: Sequence[str], arrays: Arrays) -> list[Array]:
        """Return the parts of this process of whole arrays."""
        backend = self._values._world.backend
        pairs = zip(names, arrays, strict=True)
        return [self._values.part(name, wrap(whole, backend)).native for name, whole in pairs]


def rows_of(batch: Any, rank: int, size: int) -> tuple[Any, bool]:
    """Return one process's examples of a batch, and whether they are its own.

    If there are fewer examples than processes, some processes get an example of another one.

    Args:
        batch: Tree of tensors, whose first axis is the example.
        rank: Number of the process.
        size: Number of processes.
    """
    lengths = [x.shape[0] for x in tree.leaves_of(batch) if isinstance(x, EmberTensor) and x.ndim]
    if size == 1 or not lengths:
        return batch, True
    count = max(lengths)
    begin, end = count * rank // size, count * (rank + 1) // size
    owns = begin < end
    if not owns:
        begin, end = min(begin, count - 1), min(begin, count - 1) + 1

    def select(leaf: object) -> object:
        if isinstance(leaf, EmberTensor) and leaf.ndim and leaf.shape[0] == count:
            return leaf[begin:end]
        return leaf

    return tree.map_leaves(select, batch), owns
