"""Comparison of a kernel with its reference in float64."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.kernels.cases import Case

TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 4e-2}
"""Largest error relative to the largest value. The interpreter truncates to bfloat16."""


class Recorder(TorchDispatchMode):
    """Names of the ops that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func._schema.name.removeprefix("ember_ml::"))
        return func(*args, **(kwargs or {}))


def is_float(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def cast(operands: list[Any], dtype: torch.dtype) -> list[Any]:
    """Return the operands in a dtype, in the same memory layout, as leaves with gradients."""
    return [x.detach().to(dtype).requires_grad_() if is_float(x) else x for x in operands]


def flat(outputs: Any) -> list[torch.Tensor]:
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def gradients(
    outputs: list[Any], operands: list[Any], cotangents: list[Any], **options: Any
) -> Any:
    sources = [x for x in operands if is_float(x)]
    pairs = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if y.requires_grad]
    outs, given = zip(*pairs, strict=True)
    given = [g.to(y.dtype) for y, g in pairs]
    return torch.autograd.grad(outs, sources, given, allow_unused=True, **options)


def check(case: Case, length: int, dtype: torch.dtype) -> None:
    """Compare outputs and gradients of the kernel with those of the reference."""
    narrow, grads = cast(case.operands(length), dtype), case.grads
    wide = cast(narrow, torch.float64)
    expected = flat(case.reference(*wide))
    cotangents = [torch.randn_like(y) for y in expected]
    with Recorder() as record:
        with torch.set_grad_enabled(grads):
            got = flat(case.run(*narrow))
        assert case.kernel in record.names, record.names
        if grads:
            found = gradients(got, narrow, cotangents)
            assert f"{case.kernel}_backward" in record.names, record.names
    for y, z in zip(got, expected, strict=True):
        assert_close(y, z, dtype, "output")
    if grads:
        for at, (y, z) in enumerate(zip(found, gradients(expected, wide, cotangents), strict=True)):
            if y is not None and z is not None:
                assert_close(y, z, dtype, f"gradient {at}")
            else:
                assert (z is None) == (y is None) or not (y if z is None else z).any()


def assert_close(y: torch.Tensor, z: torch.Tensor, dtype: torch.dtype, what: str) -> None:
    assert y.shape == z.shape, what
    assert y.isfinite().all(), what
    scale = max(1.0, z.abs().max().item()) if z.numel() else 1.0
    error = (y.double() - z).abs().max().item() / scale if z.numel() else 0.0
    assert error <= TOLERANCE[dtype], f"{what}: {error}"
