"""The base class of everything that has parameters."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Protocol, Self, TypeVar

from ember_ml._core.convert import as_dtype, convert_to_tensor
from ember_ml._core.dtype import DTYPES
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml._core.types import DTypeLike
from ember_ml.nn import _summary, _traversal, state_dict
from ember_ml.nn._hooks import Handle, Hooks, add_hook
from ember_ml.nn._inputs import as_tensors
from ember_ml.nn.parameter import Buffer, Parameter, Variable

if TYPE_CHECKING:
    from ember_ml.nn.tensor_split import TensorSplit

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class HasForward(Protocol[P, R_co]):
    """Object with a `forward`, whose signature `Module.__call__` has."""

    _hooks: ClassVar[Hooks | None]

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Compute the output."""


class Module:
    """Part of a model: parameters, buffers, other modules and a `forward` method.

    Parameters, Buffers and Modules are registered when they are set as attributes, directly or
    inside lists, tuples and dicts at any depth. Subclasses define `__init__` and `forward`.

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

    _training: bool = True
    config: Any = None
    """Config that the module was created from, if its class is registered."""
    default_loss: ClassVar[str | None] = None
    """Loss that a trainer uses by default. Without one, the module must return the loss."""
    ITEMS: ClassVar[str] = ""
    """For containers: the attribute that is left out of the names of its parts."""
    _hooks: ClassVar[Hooks | None] = None
    is_split: bool = False
    """Whether the module has one process's part of its parameters (tensor parallelism)."""
    is_position_wise: bool = False
    """Whether the output at a position depends on the input at that position alone, in training
    too. A model may then compute the positions whose outputs are read, and leave out the others."""
    is_replacement: bool = False
    """Whether the module replaced the one that the config of the model describes."""

    @property
    def training(self) -> bool:
        """Whether the module is in training mode; set by `train` and `eval`.

        False in a thread that is inside `inference_mode`, such as in `generate` or
        `Trainer.predict`. Other threads do not see that.
        """
        return self._training and not (_inference.blocks and self in _inference.local.modules)

    @training.setter
    def training(self, mode: bool) -> None:
        object.__setattr__(self, "_training", mode)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output. Call the module itself, which also runs the hooks."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    def __call__(self: HasForward[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return `forward(*args, **kwargs)`, and run the hooks.

        Arrays of NumPy and other frameworks, and nested lists of numbers, become tensors on the
        module's backend; floating-point ones get the dtype of its parameters.
        """
        for arg in args:
            if arg is not None and not isinstance(arg, EmberTensor):
                args = as_tensors(self, args)  # type: ignore[arg-type,assignment]
                break
        if kwargs:
            for arg in kwargs.values():
                if arg is not None and not isinstance(arg, EmberTensor):
                    values = as_tensors(self, kwargs.values())  # type: ignore[arg-type]
                    kwargs = dict(zip(kwargs, values, strict=True))  # type: ignore[assignment]
                    break
        if self._hooks is not None:
            return self._hooks.run(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        current = self.__dict__.get(name)
        if isinstance(current, Variable) and not isinstance(value, Variable):
            if isinstance(current, Parameter) and value is not None:
                raise ArgumentTypeError(
                    f"{type(self).__name__}.{name} is a Parameter: change its value with "
                    f"{name}.assign(...), or set another Parameter"
                )
            if value is not None:
                current.assign(value)
                return
        if isinstance(value, Variable) and not value.name:
            value.name = name
        object.__setattr__(self, name, value)

    def children(self) -> Iterator[Module]:
        """Return the modules directly inside this one."""
        return (child for _, child in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Return (name, module) for the modules directly inside this one."""
        return iter(_traversal.parts(self)[1])

    def modules(self) -> Iterator[Module]:
        """Return this module and all modules inside it, each once."""
        return (module for _, module in self.named_modules())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Return (dotted name, module) for this module and all inside it, each once.

        Args:
            prefix: Name of this module, which the other names start with.
        """
        return _traversal.named_modules(self, prefix)

    def parameters(self, *, trainable: bool | None = None) -> list[Parameter]:
        """Return the parameters of this module and all modules inside it.

        Args:
            trainable: Whether to return only trainable (True) or only frozen (False) parameters.
                Default: all.
        """
        return [parameter for _, parameter in self.named_parameters(trainable=trainable)]

    def named_parameters(
        self, prefix: str = "", *, trainable: bool | None = None
    ) -> Iterator[tuple[str, Parameter]]:
        """Return (dotted name, parameter); a shared parameter comes once.

        Args:
            prefix: Name of this module, which the other names start with.
            trainable: As in `parameters`.
        """
        for name, variable in _traversal.named_variables(self, prefix):
            if isinstance(variable, Parameter) and trainable in (None, variable.trainable):
                yield name, variable

    def buffers(self) -> list[Buffer]:
        """Return the buffers of this module and all modules inside it."""
        return [buffer for _, buffer in self.named_buffers()]

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Buffer]]:
        """Return (dotted name, buffer).

        Args:
            prefix: Name of this module, which the other names start with.
        """
        for name, variable in _traversal.named_variables(self, prefix):
            if isinstance(variable, Buffer):
                yield name, variable

    def register_buffer(self, name: str, value: TensorLike, *, persistent: bool = True) -> None:
        """Set an attribute to a Buffer.

        Args:
            name: Name of the attribute.
            value: Initial value.
            persistent: Whether the buffer is saved with the module.
        """
        setattr(self, name, Buffer(value, persistent=persistent))

    def num_parameters(self, *, trainable: bool | None = None) -> int:
        """Return the number of elements of the parameters, with weights stored as integers.

        Args:
            trainable: As in `parameters`.
        """
        count = sum(parameter.size for parameter in self.parameters(trainable=trainable))
        packed = 0 if trainable else sum(module.packed_size for module in self.modules())
        return count + packed

    def num_bytes(self) -> int:
        """Return the memory of the parameters and buffers in bytes."""
        variables = (variable for _, variable in _traversal.named_variables(self))
        return sum(variable.size * variable.dtype.itemsize for variable in variables)

    @property
    def packed_size(self) -> int:
        """Number of weights that this module alone stores as packed integers in buffers."""
        return 0

    @property
    def state_size(self) -> int:
        """Number of elements of the recurrent state, per example."""
        return sum(child.state_size for child in self.children())

    @property
    def state_per_token(self) -> int:
        """Number of elements by which each position extends the state, such as a KV cache."""
        return sum(child.state_per_token for child in self.children())

    def tensor_split(self) -> TensorSplit | None:
        """Return how tensor parallelism splits the module among processes.

        None, the default: each process computes the whole module; its submodules may be split.
        """
        return None

    def freeze(self) -> Self:
        """Make all parameters untrainable, and return the module."""
        return self._set_trainable(False)

    def unfreeze(self) -> Self:
        """Make all parameters trainable, and return the module."""
        return self._set_trainable(True)

    def _set_trainable(self, trainable: bool) -> Self:
        for parameter in self.parameters():
            parameter.trainable = trainable
        return self

    def train(self, mode: bool = True) -> Self:
        """Switch to training mode, and return the module.

        Training mode enables dropout and the update of normalization statistics.

        Args:
            mode: False switches to inference mode.
        """
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Switch to inference mode, and return the module.

        Inference mode disables dropout and freezes normalization statistics.
        """
        return self.train(False)

    def apply(self, function: Callable[[Module], object]) -> Self:
        """Call a function with every module inside this one, then with this one; return it.

        Args:
            function: Takes a module; its result is ignored.
        """
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    def to(self, device: DTypeLike | None = None, dtype: DTypeLike | None = None) -> Self:
        """Move parameters and buffers to a device or dtype, and return the module.

        Args:
            device: Target device, or a dtype: `to("float64")`. Default: unchanged.
            dtype: Dtype of floating-point parameters and buffers. The module then computes in it.
                Default: unchanged.
        """
        if dtype is None and device is not None and _is_dtype(device):
            device, dtype = None, device
        wanted = None if dtype is None else as_dtype(dtype)
        for _, variable in _traversal.named_variables(self):
            target = wanted if wanted is not None and variable.dtype.is_floating else variable.dtype
            place = variable.device if device is None else str(device)
            variable.become(
                convert_to_tensor(variable, dtype=target, device=place, backend=variable.backend)
            )
        return self

    def to_backend(self, backend: str) -> Self:
        """Move parameters and buffers to another backend, and return the module.

        Args:
            backend: Name of the backend.
        """
        for _, variable in _traversal.named_variables(self):
            variable.become(variable.to_backend(backend))
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """Return the values of all parameters and persistent buffers by dotted name."""
        return state_dict.state_dict(self)

    def load_state_dict(self, state: Mapping[str, TensorLike], *, strict: bool = True) -> Self:
        """Load values, and return the module; if one does not fit, nothing is changed.

        Args:
            state: Dotted name -> tensor or array, of any backend.
            strict: Whether missing and unexpected names are errors.

        Raises:
            StateDictError: If names or shapes do not fit the module.
        """
        state_dict.load_state_dict(self, state, strict)
        return self

    def extra_files(self) -> dict[str, bytes]:
        """Return the files that a checkpoint has in addition to the values of this module alone.

        Override it together with `load_extra_files` in a module with parts that are no tensors,
        such as a tokenizer. Checkpoints write the files of all modules atomically, with checksums.

        Returns:
            File name, without a folder -> content; empty if there is nothing to save.
        """
        return {}

    def load_extra_files(self, files: Mapping[str, bytes]) -> None:
        """Restore what `extra_files` returned; if a file is not valid, raise and change nothing.

        Args:
            files: File name -> content, as `extra_files` returned them; empty if the checkpoint
                has no files of this module.
        """
        if files:
            raise ArgumentError(
                f"{type(self).__name__} has no extra files, but got {', '.join(files)}; define "
                "extra_files and load_extra_files"
            )

    def register_forward_hook(self, hook: Callable[[Any, tuple[Any, ...], Any], object]) -> Handle:
        """Register a function to call after each forward, and return a handle to remove it.

        Args:
            hook: Called as `hook(module, args, output)`. A result that is not None replaces the
                output.
        """
        return add_hook(self, hook, "after")

    def register_forward_pre_hook(self, hook: Callable[[Any, tuple[Any, ...]], object]) -> Handle:
        """Register a function to call before each forward, and return a handle to remove it.

        Args:
            hook: Called as `hook(module, args)`. A result that is not None replaces the arguments.
        """
        return add_hook(self, hook, "before")

    def summary(self, *inputs: TensorLike) -> _summary.Summary:
        """Return a table of the modules: output shape, parameters and state size.

        Args:
            inputs: Arguments of one forward pass, which determines output shapes and FLOPs:
                tensors, or shapes of float tensors. Default: both are left out.
        """
        return _summary.Summary(self, inputs)

    def extra_repr(self) -> str:
        """Return what the parentheses of the repr contain."""
        return _summary.arguments(self)

    def __repr__(self) -> str:
        return _summary.text(self)


def _is_dtype(value: DTypeLike) -> bool:
    return not isinstance(value, str) or value.rpartition(".")[2] in DTYPES


class _Modules(threading.local):
    """Modules that are in inference mode in this thread."""

    modules: frozenset[Module] = frozenset()


class _Inference:
    """The open blocks of `inference_mode`.

    Attributes:
        blocks: Number of open blocks in all threads; a module looks for its own only if positive.
        local: Those of each thread.
    """

    def __init__(self) -> None:
        self.blocks = 0
        self.local = _Modules()
        self.lock = threading.Lock()

    def count(self, change: int) -> None:
        with self.lock:
            self.blocks += change


_inference = _Inference()


@contextlib.contextmanager
def inference_mode(modules: Iterable[Module]) -> Iterator[None]:
    """Put modules into inference mode within the block, in this thread only.

    Args:
        modules: The modules to switch, such as `model.modules()`.
    """
    before = _inference.local.modules
    _inference.local.modules = before.union(modules)
    _inference.count(1)
    try:
        yield
    finally:
        _inference.count(-1)
        _inference.local.modules = before
