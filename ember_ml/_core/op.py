"""The table of ops, and the binding of native functions to it."""

from __future__ import annotations

import functools
import importlib
import inspect
import typing
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ember_ml._core import runtime
from ember_ml._core.dtype import EmberDType, promote_scalar
from ember_ml._core.rules import DTypeRule
from ember_ml._core.tensor import (
    EmberTensor,
    IndexLike,
    MaskLike,
    TensorLike,
    TensorsLike,
    wrap_all,
)

if TYPE_CHECKING:
    from ember_ml.backend.interface import Variants

Native = Callable[..., Any]

_ROLES = {
    id(TensorLike): "operand",
    id(TensorsLike): "sequence",
    id(IndexLike): "index",
    id(MaskLike): "mask",
}


class ScalarKernels:
    """Native functions of a tensor and a Python number, by the tensor's tag.

    Each comes with the tag of its result, which the first call fills in (see `Op.kernels`).
    """

    __slots__ = ("floats", "small", "wide")

    def __init__(self) -> None:
        self.floats: dict[str, tuple[Native, str | None]] = {}
        self.small: dict[str, tuple[Native, str | None]] = {}  # any integer dtype holds 0 to 127
        self.wide: dict[str, tuple[Native, str | None]] = {}  # these hold any 32-bit integer

    def enter(self, backend: str, dtypes: list[EmberDType], native: Native | None) -> None:
        """Add a native function for some dtypes; None if it takes no numbers on this side."""
        if native is None:
            return
        for dtype in dtypes:
            tag = runtime.tag(backend, dtype)
            if promote_scalar(dtype, float) is dtype:
                self.floats[tag] = native, None
            if promote_scalar(dtype, int) is dtype:
                self.small[tag] = native, None
                if dtype.kind in ("float", "complex") or (dtype.kind == "int" and dtype.bits >= 32):
                    self.wide[tag] = native, None


class Op:
    """Entry of the table of ops.

    Attributes:
        key: Name with its family: "elementwise.add".
        kernels: Tag -> (native function, tag of its result). The first call fills in the tag of the
            result, which follows from the operands' tags. A composite without a native function has
            its body here, under the dtypes that its rule accepts.
        natives: Backend -> native function.
        body: Python body of a composite, for backends without a native function.
        declared: Function under the decorators, for its signature and names.
        roles: Role of each leading tensor parameter: operand, sequence, index or mask.
        optional: Whether each of them may be None.
        function: Function that users call.
        plain: The same without recording on tapes.
        vjps: VJP rule of the gradient, if there is one (`ember_ml.autodiff.rules`).
        host_check: Check of a call's name and arguments before they are converted, if any.
        output: Function that wraps a native result of several arrays; None for a single array.
    """

    __slots__ = (
        "_signature",
        "body",
        "declared",
        "family",
        "function",
        "host_check",
        "kernels",
        "key",
        "kind",
        "left",
        "name",
        "names",
        "natives",
        "optional",
        "output",
        "plain",
        "right",
        "roles",
        "rule",
        "vjps",
    )

    def __init__(self, declared: Callable[..., Any], kind: str, rule: DTypeRule) -> None:
        self.name = declared.__name__
        self.family = declared.__module__.removeprefix("ember_ml.ops.")
        self.key = f"{self.family}.{self.name}"
        self.kind = kind
        self.rule = rule
        self.body = declared if kind == "composite" else None
        self.kernels: dict[str, tuple[Native, str | None]] = {}
        self.left = ScalarKernels()
        self.right = ScalarKernels()
        self.natives: dict[str, Native] = {}
        self.declared = inspect.unwrap(declared)
        code = self.declared.__code__
        self._signature: inspect.Signature | None = None  # computed on first use
        self.names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.roles, self.optional = _roles(self.declared)
        self.output = _output(self.declared)
        self.function: Callable[..., Any] = declared
        self.plain: Callable[..., Any] = declared
        self.vjps: Any = None
        self.host_check: Callable[[str, dict[str, Any]], None] | None = None

    @property
    def signature(self) -> inspect.Signature:
        """Declared parameters."""
        if self._signature is None:
            self._signature = inspect.signature(self.declared)
        return self._signature

    @property
    def label(self) -> str:
        """Name in error messages: that of the public function."""
        return self.name.lstrip("_")

    def bind(self, backend: str) -> None:
        """Add the native function of a backend, if it has one."""
        family = _family(backend, self.family)
        native = getattr(family, self.name, None)
        if native is not None:
            self.natives[backend] = native
        elif self.body is not None:
            native = self.body
        else:
            return
        dtypes = [dtype for dtype in runtime.dtypes_of(backend) if self.rule.takes(dtype)]
        variants: Variants | None = getattr(family, "VARIANTS", None)
        own = {} if variants is None else variants.by_dtype.get(self.name, {})
        for dtype in dtypes:
            self.kernels[runtime.tag(backend, dtype)] = own.get(dtype.name, native), None
        if variants is not None and self.kind == "binary":
            self.right.enter(backend, dtypes, variants.right_scalars.get(self.name))
            self.left.enter(backend, dtypes, variants.left_scalars.get(self.name))

    def __repr__(self) -> str:
        return f"<op {self.key}>"


OPS: dict[str, Op] = {}
"""Every op by key. Tests and VJP rules are derived from it."""


def enter(op: Op) -> None:
    """Add an op to the table, and bind it to the loaded backends."""
    if op.key in OPS:
        raise ValueError(f"the op {op.key} is declared twice")
    OPS[op.key] = op
    for backend in runtime.LOADED:
        op.bind(backend)


def _bind_all(backend: str) -> None:
    for op in OPS.values():
        op.bind(backend)


runtime.on_load.append(_bind_all)


@functools.cache
def _family(backend: str, family: str) -> ModuleType | None:
    """Return the module of a backend for a family of ops; None if it has none."""
    path = f"ember_ml.backend.{backend}.ops.{family}"
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is None or not path.startswith(error.name):
            raise
        return None


def _roles(declared: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """Return the roles of the leading tensor parameters, and which of them may be None.

    The role is that of the annotated type: the name is looked up in the module of the op.
    """
    roles, optional = [], []
    for annotation in declared.__annotations__.values():
        name = annotation.removesuffix(" | None")
        role = _ROLES.get(id(declared.__globals__.get(name)))
        if role is None:
            break
        roles.append(role)
        optional.append(name != annotation)
    return tuple(roles), tuple(optional)


def _output(declared: Callable[..., Any]) -> Callable[[Any, str], Any] | None:
    """Return the function that wraps a native result; None for a single tensor."""
    annotation = declared.__annotations__["return"]
    result = declared.__globals__.get(annotation)
    if result is EmberTensor:
        return None
    if result is None:
        result = eval(annotation, declared.__globals__)
    kind = typing.get_origin(result)
    if kind is list:
        return wrap_all
    if kind is tuple:
        return lambda out, backend: tuple(wrap_all(out, backend))
    if isinstance(result, type) and issubclass(result, tuple):  # a NamedTuple
        return lambda out, backend: result(*wrap_all(out, backend))
    return lambda out, backend: out
