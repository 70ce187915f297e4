"""Elementwise arithmetic."""

from __future__ import annotations

from typing import Any

import torch
from torch import abs as abs
from torch import add as add
from torch import divide as divide
from torch import lerp as lerp
from torch import multiply as multiply
from torch import negative as negative
from torch import positive as positive
from torch import reciprocal as reciprocal
from torch import square as square
from torch import subtract as subtract

from ember_ml.backend.interface import Variants
from ember_ml.backend.torch.custom import custom_vjp
from ember_ml.backend.torch.nesting import is_tracked, nesting
from ember_ml.backend.torch.ops._scalars import left, right

_in_torch_func = torch._C._are_functorch_transforms_active


def pow(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return x**y; torch's second derivatives are NaN at 0**0."""
    if not (x.requires_grad or y.requires_grad or _in_torch_func()):
        return torch.pow(x, y)
    if nesting.once or not is_tracked(x, y) or torch.compiler.is_compiling():
        return torch.pow(x, y)
    return custom_vjp(lambda x, y: (torch.pow(x, y),), _pow_vjp, torch.broadcast_tensors(x, y))[0]


def _pow_vjp(arrays: Any, cotangents: Any, again: bool) -> list[torch.Tensor]:
    (x, y), (g,) = arrays, cotangents
    base = y * pow(x, torch.where(y == 0, 1, y - 1))
    exponent = pow(x, y) * torch.where(x == 0, 0, torch.log(torch.where(x == 0, 1, x)))
    return [g * base.conj(), g * exponent.conj()]


def _number_pow(number: float, y: torch.Tensor) -> torch.Tensor:
    return torch.pow(number, y) if number else left(pow)(number, y)


float_power = pow


def floor_divide(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.is_floating_point():
        infinite = torch.isinf(x) | torch.isinf(y)
        return torch.where(infinite, x / y, torch.div(x, y, rounding_mode="floor"))
    zero = y == 0
    return torch.where(zero, 0, torch.floor_divide(x, torch.where(zero, 1, y)))


def remainder(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.is_floating_point():
        out = torch.remainder(x, y)
        return torch.where(out == 0, torch.copysign(out, y), out)
    return torch.remainder(x, torch.where(y == 0, 1, y))


def fmod(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.is_floating_point():
        return torch.fmod(x, y)
    return torch.fmod(x, torch.where(y == 0, 1, y))


def divmod(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return floor_divide(x, y), remainder(x, y)


def gcd(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.abs(torch.gcd(x, y))  # torch's is negative for the smallest integer


def lcm(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Divide by a positive divisor: torch's own crashes for the smallest integer and -1."""
    return torch.abs(floor_divide(x, gcd(x, y))) * torch.abs(y)


def sign(x: torch.Tensor) -> torch.Tensor:
    if x.is_complex():
        return torch.sgn(x)
    return torch.where(x != x, x, torch.sign(x)) if x.is_floating_point() else torch.sign(x)


def multiply_add(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return torch.addcmul(z, x, y)


def heaviside(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    step = torch.where(x != x, x, (x > 0).to(x.dtype))
    return torch.where(x == 0, y, step)


VARIANTS = Variants(
    right_scalars={
        "add": add,
        "divide": divide,
        "float_power": torch.pow,
        "floor_divide": right(floor_divide),
        "fmod": right(fmod),
        "multiply": multiply,
        "pow": torch.pow,
        "remainder": right(remainder),
        "subtract": subtract,
    },
    left_scalars={
        "add": lambda s, t: torch.add(t, s),
        "divide": left(divide),
        "float_power": _number_pow,
        "floor_divide": left(floor_divide),
        "fmod": left(fmod),
        "multiply": lambda s, t: torch.multiply(t, s),
        "pow": _number_pow,
        "remainder": left(remainder),
        "subtract": torch.sub,
    },
)
