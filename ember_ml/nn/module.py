"""The base of everything that has parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

from ember_ml._core.convert import as_dtype, convert_to_tensor
from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml.nn import _hooks, _summary, _traversal, state_dict
from ember_ml.nn.parameter import Buffer, Parameter, Variable


class Module:
    """A part of a model: parameters, buffers, other modules, and a `forward`.

    Whatever is set as an attribute counts: Parameters, Buffers, Modules, and lists, tuples and
    dicts of them, at any depth. Subclasses write `__init__` and `forward`.

    Example:
        >>> class Affine(nn.Module):
        ...     def __init__(self) -> None:
        ...         self.scale = nn.Parameter([2.0, 3.0])
        ...         self.steps = [nn.Parameter([1.0, 1.0])]
        ...     def forward(self, x):
        ...         return self.scale * x + self.steps[0]
        >>> model = Affine()
        >>> model(ops.ones(2)).tolist()
        [3.0, 4.0]
        >>> [name for name, _ in model.named_parameters()]
        ['scale', 'steps.0']
    """

    training: bool = True
    """Whether dropout drops and norms learn; `train` and `eval` set it."""
    config: Any = None
    """What it was built by, if its class is registered."""
    default_loss: ClassVar[str | None] = None
    """The loss that a trainer takes if it is given none; without either the module gives it."""
    ITEMS: ClassVar[str] = ""
    """The attribute whose parts are named without it, in modules that are containers."""
    _hooks: ClassVar[Any] = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; call the module itself, not this."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """forward(*args, **kwargs), with the hooks around it."""
        if self._hooks is not None:
            return self._hooks.run(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        there = self.__dict__.get(name)
        if isinstance(there, Variable) and not isinstance(value, Variable):
            if isinstance(there, Parameter) and value is not None:
                raise ArgumentTypeError(
                    f"{type(self).__name__}.{name} is a Parameter: give it a value with "
                    f"{name}.assign(...), or set another Parameter in its place"
                )
            if value is not None:
                there.assign(value)
                return
        if isinstance(value, Variable) and not value.name:
            value.name = name
        object.__setattr__(self, name, value)

    def children(self) -> Iterator[Module]:
        """The modules directly inside of this one."""
        return (child for _, child in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside of this one, with the names of their places."""
        return iter(_traversal.parts(self)[1])

    def modules(self) -> Iterator[Module]:
        """This module and all inside of it, each once."""
        return (module for _, module in self.named_modules())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all inside of it, each once, by dotted name ("" for this one)."""
        return _traversal.named_modules(self, prefix)

    def parameters(self, *, trainable: bool | None = None) -> list[Parameter]:
        """The parameters of this module and all inside of it; all, or those (not) trainable."""
        return [parameter for _, parameter in self.named_parameters(trainable=trainable)]

    def named_parameters(
        self, prefix: str = "", *, trainable: bool | None = None
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters by dotted name; one that is in two places comes once."""
        for name, variable in _traversal.named_variables(self, prefix):
            if isinstance(variable, Parameter) and trainable in (None, variable.trainable):
                yield name, variable

    def buffers(self) -> list[Buffer]:
        """The buffers of this module and all inside of it."""
        return [buffer for _, buffer in self.named_buffers()]

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Buffer]]:
        """The buffers by dotted name."""
        for name, variable in _traversal.named_variables(self, prefix):
            if isinstance(variable, Buffer):
                yield name, variable

    def register_buffer(self, name: str, value: Any, *, persistent: bool = True) -> None:
        """The same as setting the attribute to a Buffer."""
        setattr(self, name, Buffer(value, persistent=persistent))

    def num_parameters(self, *, trainable: bool | None = None) -> int:
        """How many numbers the parameters hold."""
        return sum(parameter.size for parameter in self.parameters(trainable=trainable))

    @property
    def state_size(self) -> int:
        """How many numbers a sequence leaves behind for its continuation, per example."""
        return sum(child.state_size for child in self.children())

    @property
    def state_per_token(self) -> int:
        """How many more it leaves behind for each of its positions, as attention does."""
        return sum(child.state_per_token for child in self.children())

    def freeze(self) -> Self:
        """Take all parameters out of training."""
        return self._set_trainable(False)

    def unfreeze(self) -> Self:
        """Put all parameters into training."""
        return self._set_trainable(True)

    def _set_trainable(self, trainable: bool) -> Self:
        for parameter in self.parameters():
            parameter.trainable = trainable
        return self

    def train(self, mode: bool = True) -> Self:
        """Behave as in training: dropout drops, norms learn."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Behave as in use: the same input gives the same output."""
        return self.train(False)

    def apply(self, function: Callable[[Module], Any]) -> Self:
        """Call a function with every module inside of this one, then with this one."""
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    def to(self, device: str | None = None, dtype: DTypeLike | None = None) -> Self:
        """Move parameters and buffers to a device, and the floating ones to a dtype."""
        wanted = None if dtype is None else as_dtype(dtype)
        for _, variable in _traversal.named_variables(self):
            target = wanted if wanted is not None and variable.dtype.is_floating else variable.dtype
            place = device or variable.device
            variable.become(
                convert_to_tensor(variable, dtype=target, device=place, backend=variable.backend)
            )
        return self

    def to_backend(self, backend: str) -> Self:
        """Move parameters and buffers to another backend."""
        for _, variable in _traversal.named_variables(self):
            variable.become(variable.to_backend(backend))
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """The values of all parameters and persistent buffers, by dotted name."""
        return state_dict.state_dict(self)

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> Self:
        """Take over values; nothing is changed if one does not fit.

        Args:
            state: dotted name -> tensor, or array, of any backend.
            strict: whether names that are missing or unexpected are an error.
        """
        state_dict.load_state_dict(self, state, strict)
        return self

    def register_forward_hook(self, hook: Callable[..., Any]) -> _hooks.Handle:
        """Call hook(module, args, output) after each forward; what it gives replaces the output."""
        return _hooks.add(self, hook, "after")

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> _hooks.Handle:
        """Call hook(module, args) before each forward; what it gives replaces the arguments."""
        return _hooks.add(self, hook, "before")

    def summary(self, *inputs: Any) -> _summary.Summary:
        """A table of the modules inside: output shape, parameters, state size.

        Args:
            inputs: tensors, or shapes of float tensors, for one forward that finds the output
                shapes and counts what it computes; without them these are left out.
        """
        return _summary.Summary(self, inputs)

    def extra_repr(self) -> str:
        """What stands in the parentheses of the repr."""
        return _summary.arguments(self)

    def __repr__(self) -> str:
        return _summary.text(self)


@contextlib.contextmanager
def inference_mode(modules: Iterable[Module]) -> Iterator[None]:
    """Set `training` of modules to False within the block, and restore it afterwards.

    Args:
        modules: The modules to switch, such as `model.modules()`.
    """
    changed = [module for module in modules if module.training]
    for module in changed:
        module.training = False
    try:
        yield
    finally:
        for module in changed:
            module.training = True
