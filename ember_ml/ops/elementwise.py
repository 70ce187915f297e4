"""Arithmetic, element by element."""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import binary, unary
from ember_ml._core.tensor import Tensor, TensorLike


@binary(rule=rules.ANY)
def add(x: TensorLike, y: TensorLike) -> Tensor:
    """x + y. Of bools: logical or."""


@binary
def subtract(x: TensorLike, y: TensorLike) -> Tensor:
    """x - y."""


@binary(rule=rules.FLOAT)
def divide(x: TensorLike, y: TensorLike) -> Tensor:
    """x / y."""


@unary(rule=rules.FLOAT)
def exp(x: TensorLike) -> Tensor:
    """e to the power of x."""
