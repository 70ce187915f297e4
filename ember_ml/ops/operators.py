"""Python's operators and the tensor's methods: the same ops underneath."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import PYTHON_TYPES
from ember_ml._core.errors import ArgumentError, DTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.ops import bitwise, comparison, contraction, elementwise

__all__: list[str] = []

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""The versions of the array API standard that the namespace follows."""

ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": elementwise.add,
    "sub": elementwise.subtract,
    "mul": elementwise.multiply,
    "truediv": elementwise.divide,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder,
    "pow": elementwise.pow,
    "matmul": contraction.matmul,
    "and": bitwise.bitwise_and,
    "or": bitwise.bitwise_or,
    "xor": bitwise.bitwise_xor,
    "lshift": bitwise.bitwise_left_shift,
    "rshift": bitwise.bitwise_right_shift,
}
COMPARISON: dict[str, Callable[..., Any]] = {
    "lt": comparison.less,
    "le": comparison.less_equal,
    "gt": comparison.greater,
    "ge": comparison.greater_equal,
}
EQUALITY: dict[str, Callable[..., Any]] = {"eq": comparison.equal, "ne": comparison.not_equal}
UNARY: dict[str, Callable[..., Any]] = {
    "neg": elementwise.negative,
    "pos": elementwise.positive,
    "abs": elementwise.abs,
    "invert": bitwise.bitwise_invert,
}

METHODS = (
    *("abs", "exp", "log", "sqrt", "square", "sin", "cos", "tanh", "sigmoid", "round", "conj"),
    *("sum", "mean", "prod", "max", "min", "any", "all", "std", "var", "argmax", "argmin"),
    *("cumsum", "cumprod", "sort", "argsort", "softmax", "clip", "dot", "matmul", "astype"),
    *("flatten", "ravel", "squeeze", "expand_dims", "swapaxes", "moveaxis", "broadcast_to"),
    *("flip", "roll", "repeat", "tile", "split", "take", "nonzero", "copy"),
)
"""Ops that are methods too, their first operand being the tensor."""

SHAPED = ("reshape", "transpose", "permute")
"""Methods that take a shape or axes as one sequence or as several integers."""

PROPERTIES = {"mT": "matrix_transpose", "real": "real", "imag": "imag"}
"""Ops that are properties."""


def _reflected(op: Callable[..., Any]) -> Callable[..., Any]:
    def operator(self: Tensor, other: Any) -> Tensor:
        return op(other, self)

    return operator


def _in_place(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    """An operator that gives the tensor a new value of the same dtype and shape."""

    def operator(self: Tensor, other: Any) -> Tensor:
        out = op(self, other)
        if out.dtype is not self.dtype:
            raise DTypeError(f"{name} would change the dtype from {self.dtype} to {out.dtype}")
        if out.shape != self.shape:
            raise ShapeError(f"{name} would change the shape from {self.shape} to {out.shape}")
        self._data = out._data
        return self

    return operator


def _equality(op: Callable[..., Any]) -> Callable[..., Any]:
    """An operator that leaves what is no number or array to the other side: x == None is False."""

    def operator(self: Tensor, other: Any) -> Any:
        if isinstance(other, EmberTensor) or type(other) in PYTHON_TYPES:
            return op(self, other)
        if other is None or isinstance(other, (str, bytes, dict, set)):
            return NotImplemented
        try:
            return op(self, convert_to_tensor(other, backend=self._backend))
        except TypeError:
            return NotImplemented

    return operator


def _shaped(op: Callable[..., Any]) -> Callable[..., Any]:
    """A method that takes its shape or axes as one sequence or as several integers."""

    def method(self: Tensor, *sizes: Any) -> Tensor:
        return op(self, *([sizes] if sizes and not isinstance(sizes[0], (list, tuple)) else sizes))

    return method


def install(namespace: ModuleType) -> None:
    """Give the tensor its operators and methods, from the namespace of ops."""

    def array_namespace(self: Tensor, *, api_version: str | None = None) -> ModuleType:
        if api_version not in (None, *VERSIONS):
            raise ArgumentError(f"api_version {api_version!r} is unknown; there are {', '.join(VERSIONS)}")
        return namespace

    for name, op in ARITHMETIC.items():
        setattr(EmberTensor, f"__{name}__", op)
        setattr(EmberTensor, f"__r{name}__", _reflected(op))
        setattr(EmberTensor, f"__i{name}__", _in_place(f"__i{name}__", op))
    for name, op in {**COMPARISON, **UNARY}.items():
        setattr(EmberTensor, f"__{name}__", op)
    for name, op in EQUALITY.items():
        setattr(EmberTensor, f"__{name}__", _equality(op))
    for name in METHODS:
        setattr(EmberTensor, name, getattr(namespace, name))
    for name in SHAPED:
        setattr(EmberTensor, name, _shaped(getattr(namespace, name)))
    for name, source in PROPERTIES.items():
        setattr(EmberTensor, name, property(getattr(namespace, source)))
    EmberTensor.__array_namespace__ = array_namespace  # type: ignore[method-assign]
