"""Functions compiled by the framework."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from ember_ml._core import recording, runtime, tree
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import EmberTensor, Tensor, native_arrays, one_backend, wrap_all
from ember_ml._core.types import NativeArray
from ember_ml.autodiff.transforms.arguments import (
    as_tensor,
    engine,
)
from ember_ml.autodiff.values import Values

P = ParamSpec("P")
R = TypeVar("R")
_TENSOR = object()  # placeholder of a tensor among leaves


def compile(fn: Callable[P, R], **options: object) -> Compiled[P, R]:
    """Return fn compiled by the framework of its arguments: `torch.compile` or `mx.compile`.

    The first call with new shapes, dtypes or non-tensor arguments compiles. Non-tensor arguments
    are constants of the compiled code, and so may be tensors that fn closes over: pass values that
    change as arguments. fn runs uncompiled on NumPy, on a tape, and if its gradient is
    differentiated again; the attribute `skipped` then holds the reason.

    Args:
        fn: Function of tensors and trees of tensors that returns such.
        options: Options of the framework's compiler (torch: mode, backend, fullgraph ...).

    Returns:
        A function with the arguments of fn.

    Example:
        >>> doubled = compile(lambda x: x * 2.0)
        >>> float(doubled(tensor.array(3.0)))
        6.0
    """
    return Compiled(fn, options)


class Compiled(Generic[P, R]):
    """A compiled function.

    Args:
        fn: Function to compile.
        options: Options of the framework's compiler.

    Attributes:
        skipped: Reason why the last call ran uncompiled; empty if it ran compiled.
    """

    def __init__(self, fn: Callable[P, R], options: Mapping[str, object]) -> None:
        functools.update_wrapper(self, fn)
        self._fn: Callable[..., R] = fn
        self._cache = CompileCache(lambda _, nest: self._fn(*nest[0], **nest[1]), options)
        self.skipped = ""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return `fn(*args, **kwargs)`."""
        given = tree.map_leaves(lambda x: as_tensor(x, numbers=False), [list(args), kwargs])
        tensors, _ = template_of(given)
        backend = one_backend("compile", tensors) if tensors else runtime.active()
        self.skipped = _obstacle(backend)
        if self.skipped:
            return self._fn(*args, **kwargs)
        outputs, template = self._cache(backend, [], given)
        return template.fill(wrap_all(outputs, backend))


def _obstacle(backend: str) -> str:
    """Return the reason why functions cannot run compiled here; empty if they can."""
    native = engine(backend)
    if native.COMPILE_UNAVAILABLE:
        return native.COMPILE_UNAVAILABLE
    if recording.tapes():
        return "a tape records the ops one by one"
    if native.gradient_depth() > 1:
        return "a compiled gradient cannot be differentiated again"
    return ""


class Template(NamedTuple):
    """A tree with placeholders instead of tensors."""

    structure: tree.Structure
    leaves: list[object]

    def fill(self, tensors: Sequence[Tensor]) -> Any:
        """Return the tree with these tensors."""
        values = iter(tensors)
        return tree.unflatten(
            self.structure, [next(values) if leaf is _TENSOR else leaf for leaf in self.leaves]
        )


def template_of(nest: object) -> tuple[Values, Template]:
    """Return the tensors of a tree, and the tree without them."""
    leaves, structure = tree.flatten(nest)
    tensors = [leaf for leaf in leaves if isinstance(leaf, EmberTensor)]
    template = [_TENSOR if isinstance(leaf, EmberTensor) else leaf for leaf in leaves]
    return tensors, Template(structure, template)


class CompileCache:
    """A function of (tensors, tree) that returns a tree, compiled once per form of its arguments.

    The non-tensor leaves of the tree, and the values that the function closes over, become
    constants of the compiled code.

    Args:
        function: Function to compile.
        options: Options of the framework's compiler.
    """

    def __init__(
        self, function: Callable[[Values, Any], object], options: Mapping[str, object]
    ) -> None:
        self._function = function
        self._options = options
        self._compiled: dict[Hashable, tuple[Callable[..., list[NativeArray]], list[Template]]] = {}

    @property
    def num_compiled(self) -> int:
        """Number of forms of the arguments that were compiled."""
        return len(self._compiled)

    def __call__(
        self, backend: str, arrays: Sequence[NativeArray], nest: object, mode: Hashable = None
    ) -> tuple[Sequence[NativeArray], Template]:
        """Return the native results, and the template of the tree that they belong to.

        Args:
            backend: Backend of all tensors.
            arrays: Native arrays; the function receives them as tensors.
            nest: Tree of tensors and other values.
            mode: Other state that the function depends on.
        """
        tensors, template = template_of(nest)
        static = tuple([x if x is _TENSOR else (type(x), x) for x in template.leaves])
        shapes = tuple([(x._tag, x._data.shape) for x in tensors])
        key = backend, mode, len(arrays), template.structure, static, shapes
        try:
            compiled = self._compiled.get(key)
        except TypeError:
            kinds = [type(leaf).__name__ for leaf in template.leaves if leaf is not _TENSOR]
            raise ArgumentError(
                "compile: arguments that are not tensors become constants of the compiled code "
                f"and must be hashable; got {kinds}"
            ) from None
        if compiled is None:
            compiled = self._compiled[key] = self._compile(backend, len(arrays), template)
        run, result = compiled
        return run(*arrays, *native_arrays(tensors)), result[0]

    def _compile(
        self, backend: str, count: int, template: Template
    ) -> tuple[Callable[..., list[NativeArray]], list[Template]]:
        """Return the compiled function of arrays, and a list for the template of its result."""
        result: list[Any] = [None]

        def run(*arrays: NativeArray) -> list[NativeArray]:
            tensors = wrap_all(arrays, backend)
            out = self._function(tensors[:count], template.fill(tensors[count:]))
            outputs, result[0] = template_of(out)
            return native_arrays(outputs)

        compile_native = engine(backend).compile
        assert compile_native is not None
        return compile_native(run, **self._options), result
