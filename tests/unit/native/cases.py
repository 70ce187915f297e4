"""Ops with C kernels, their operands for a size, and references in torch's own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from ember_ml import autodiff, ops
from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor
from ember_ml.backend import use_backend

SIZES = (1, 7, 63, 64, 65, 100, 257)
"""Lengths of rows, around the widths of vectors."""


class Case(NamedTuple):
    """An op of floating arrays, and the same in torch."""

    function: Callable[..., Any]
    reference: Callable[..., Any]
    shapes: Callable[[int], tuple[tuple[int, ...], ...]]


def _row(n: int) -> tuple[tuple[int, ...], ...]:
    return ((3, n),)


def _pairs(n: int) -> tuple[tuple[int, ...], ...]:
    return ((3, 2 * n),)


def _norm(n: int) -> tuple[tuple[int, ...], ...]:
    return ((3, n), (n,), (n,))


def _heads(n: int) -> tuple[tuple[int, ...], ...]:
    return ((2, 4, n, 6), (2, 2, n, 6), (2, 2, n, 5))


def _conv(taps: int) -> Callable[[int], tuple[tuple[int, ...], ...]]:
    return lambda n: ((2, 5, n), (5, taps), (5,))


def _wide_conv(n: int) -> tuple[tuple[int, ...], ...]:
    return ((2, 256 + n, 9), (256 + n, 4), (256 + n,))


def _narrow(features: int) -> Callable[[int], tuple[tuple[int, ...], ...]]:
    return lambda n: ((2, 3, features), (n, features), (n,))


def _gates(n: int) -> tuple[tuple[int, ...], ...]:
    return ((20, 6, n), (12, 3), (12,), (4, min(n, 40)))


def classes(n: int) -> np.ndarray:
    """Return a class for each of three rows; the last row is ignored."""
    return np.array([0, n - 1, -100])


def _swiglu(x: torch.Tensor) -> torch.Tensor:
    gate, value = x.chunk(2, -1)
    return F.silu(gate) * value


def _causal_conv(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    padded = F.pad(x, (weight.shape[1] - 1, 0))
    return F.conv1d(padded, weight[:, None], bias, groups=len(weight))


def _long_conv(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    padded = F.pad(x, (kernel.shape[1] - 1, 0))
    return F.conv1d(padded, kernel.flip(1)[:, None], groups=len(kernel))


def _gated_long_conv(x: Any, weight: Any, bias: Any, kernel: Any) -> torch.Tensor:
    filtered = _causal_conv(x.repeat(1, len(weight) // x.shape[1], 1), weight, bias)
    query, key, value = filtered.chunk(3, 1)
    return query * _long_conv(key * value, kernel)


def _is_real(batch: int, length: int) -> np.ndarray:
    """Return a padding mask; some examples are all padding."""
    return np.random.default_rng(0).random((batch, length)) < np.linspace(0, 1, batch)[:, None]


def _masked_long_conv(x: Any, weight: Any, bias: Any, kernel: Any) -> Any:
    mask = convert_to_tensor(_is_real(x.shape[0], x.shape[2]), backend=x.backend)
    return ops.gated_long_conv(x, weight, bias, kernel, mask)


def _masked_reference(x: Any, weight: Any, bias: Any, kernel: Any) -> torch.Tensor:
    filtered = _causal_conv(x.repeat(1, len(weight) // x.shape[1], 1), weight, bias)
    query, key, value = filtered.chunk(3, 1)
    mask = torch.from_numpy(_is_real(x.shape[0], x.shape[2]))[:, None]
    return query * _long_conv(key * value * mask, kernel)


def _attention(query: Any, key: Any, value: Any) -> torch.Tensor:
    key, value = (x.repeat_interleave(2, 1) for x in (key, value))
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def _rope(x: torch.Tensor, offset: int = 0) -> torch.Tensor:
    pairs = x.shape[-1] // 2
    speeds = 10000.0 ** (-torch.arange(pairs, dtype=x.dtype) / pairs)
    angles = (torch.arange(x.shape[-2], dtype=x.dtype) + offset)[:, None] * speeds
    turned = torch.complex(*x.chunk(2, -1)) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([turned.real, turned.imag], -1)


def _rotary_heads(heads: int, size: int | None = None) -> Case:
    """Return a case of `heads` query heads and two key heads; n is the length or the head size."""

    def function(x: Any) -> Any:
        return ops.concat(ops.rotary_heads(x, heads, 2, offset=3), axis=1)

    def reference(x: torch.Tensor) -> torch.Tensor:
        parts = x.unflatten(2, (heads + 4, -1)).transpose(1, 2)
        return torch.cat([_rope(parts[:, :-2], 3), parts[:, -2:]], 1)

    def shapes(n: int) -> tuple[tuple[int, ...], ...]:
        return ((2, 3, (heads + 4) * 2 * n),) if size is None else ((2, n, (heads + 4) * size),)

    return Case(function, reference, shapes)


def _cross_entropy(smoothing: float) -> Case:
    def function(x: Any) -> Any:
        return ops.cross_entropy(x, classes(x.shape[1]), label_smoothing=smoothing)

    def reference(x: torch.Tensor) -> torch.Tensor:
        targets = torch.from_numpy(classes(x.shape[1]))
        return F.cross_entropy(x, targets, label_smoothing=smoothing)

    return Case(function, reference, _row)


def _softplus_linear(*x: torch.Tensor) -> torch.Tensor:
    return F.softplus(F.linear(*x), threshold=50)


def _layer_norm(x: Any, weight: Any, bias: Any) -> torch.Tensor:
    return F.layer_norm(x, weight.shape, weight, bias)


def _embedding(n: int) -> tuple[tuple[int, ...], ...]:
    return ((4, n),)


ROWS = np.array([[1, 3, 1], [0, 1, 3]])
CASES = {
    "sigmoid": Case(ops.sigmoid, torch.sigmoid, _row),
    "softplus": Case(ops.softplus, F.softplus, _row),
    "softplus_beta": Case(
        lambda x: ops.softplus(x, 2.5), lambda x: F.softplus(x, 2.5, threshold=1e9), _row
    ),
    "erf": Case(ops.erf, torch.erf, _row),
    "silu": Case(ops.silu, F.silu, _row),
    "gelu": Case(ops.gelu, F.gelu, _row),
    "gelu_tanh": Case(lambda x: ops.gelu(x, True), lambda x: F.gelu(x, approximate="tanh"), _row),
    "glu": Case(ops.glu, F.glu, _pairs),
    "swiglu": Case(ops.swiglu, _swiglu, _pairs),
    "silu_gate": Case(ops.silu_gate, lambda x, gate: x * F.silu(gate), lambda n: ((3, n), (3, n))),
    "softmax": Case(ops.softmax, lambda x: F.softmax(x, -1), _row),
    "softmax_axis": Case(
        lambda x: ops.softmax(x, 0), lambda x: F.softmax(x, 0), lambda n: ((n, 3),)
    ),
    "log_softmax": Case(ops.log_softmax, lambda x: F.log_softmax(x, -1), _row),
    "cross_entropy": _cross_entropy(0.0),
    "cross_entropy_smoothed": _cross_entropy(0.1),
    "layer_norm": Case(ops.layer_norm, _layer_norm, _norm),
    "rms_norm": Case(
        lambda x, w: ops.rms_norm(x, w, 1e-3),
        lambda x, w: F.rms_norm(x, w.shape, w, 1e-3),
        lambda n: ((3, n), (n,)),
    ),
    "attention": Case(
        lambda *x: ops.scaled_dot_product_attention(*x, causal=True), _attention, _heads
    ),
    "rope": Case(ops.rope, _rope, lambda n: ((2, 3, n, 8),)),
    "rotary_heads": _rotary_heads(2),
    **{f"rotary_heads_{size}": _rotary_heads(4, size) for size in (2, 4, 6, 8, 16, 32, 64)},
    "embedding": Case(
        lambda w: ops.embedding(w, ROWS),
        lambda w: F.embedding(torch.from_numpy(ROWS), w),
        _embedding,
    ),
    **{
        f"causal_conv1d_{taps}": Case(ops.causal_conv1d, _causal_conv, _conv(taps))
        for taps in (1, 3, 4, 6, 20)
    },
    **{
        f"causal_conv1d_silu_{taps}": Case(
            ops.causal_conv1d_silu, lambda *x: F.silu(_causal_conv(*x)), _conv(taps)
        )
        for taps in (1, 4, 7, 20)
    },
    "causal_conv1d_silu_wide": Case(  # more channels than the kernel filters at a time
        ops.causal_conv1d_silu, lambda *x: F.silu(_causal_conv(*x)), _wide_conv
    ),
    **{
        f"softplus_linear_{features}": Case(
            ops.softplus_linear,
            _softplus_linear,
            _narrow(features),
        )
        for features in (1, 4, 7, 16, 17)
    },
    "softplus_linear_no_bias": Case(
        ops.softplus_linear,
        _softplus_linear,
        lambda n: ((n, 4), (9, 4)),
    ),
    "softplus_linear_wide": Case(  # more channels than the kernel passes through softplus at a time
        ops.softplus_linear,
        _softplus_linear,
        lambda n: ((5, 3), (1024 + n, 3), (1024 + n,)),
    ),
    "long_conv": Case(ops.long_conv, _long_conv, lambda n: ((3, 4, n), (4, n))),
    "long_conv_short": Case(ops.long_conv, _long_conv, lambda n: ((9, 4, n), (4, min(n, 5)))),
    "long_conv_more_taps": Case(ops.long_conv, _long_conv, lambda n: ((2, 4, n), (4, n + 3))),
    "gated_long_conv": Case(ops.gated_long_conv, _gated_long_conv, _gates),
    "gated_long_conv_masked": Case(_masked_long_conv, _masked_reference, _gates),
}


def operands(case: Case, n: int, scale: float = 1.0) -> list[np.ndarray]:
    """Return float64 operands for a size."""
    rng = np.random.default_rng(n)
    return [scale * rng.normal(size=shape) for shape in case.shapes(n)]


def cotangent(shape: tuple[int, ...]) -> np.ndarray:
    """Return a gradient of the result."""
    return np.asarray(np.random.default_rng(5).normal(size=shape))


def run(case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return the result of the op and the gradients of all operands on the NumPy backend."""
    runtime.load("numpy")
    with use_backend("numpy"):
        tensors = [Tensor.from_native(x, "numpy") for x in arrays]  # in their memory layouts
        out, pull = autodiff.vjp(case.function, *tensors)
        g = Tensor.from_native(cotangent(out.shape).astype(arrays[0].dtype), "numpy")
        return [np.asarray(x.numpy()) for x in (out, *pull(g))]


def run_torch(case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return the same as `run` on the torch backend, differentiated by torch's autograd."""
    runtime.load("torch")
    leaves = [torch.from_numpy(x).requires_grad_() for x in arrays]
    out = case.function(*[Tensor.from_native(x, "torch") for x in leaves]).native
    g = torch.from_numpy(cotangent(tuple(out.shape)).astype(arrays[0].dtype))
    return [x.detach().numpy() for x in (out, *torch.autograd.grad(out, leaves, g))]


def expected(case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return the same from torch in float64."""
    leaves = [torch.from_numpy(np.array(x, np.float64)).requires_grad_() for x in arrays]
    out = case.reference(*leaves)
    grads = torch.autograd.grad(out, leaves, torch.from_numpy(cotangent(tuple(out.shape))))
    return [x.detach().numpy() for x in (out, *grads)]


def check(case: Case, arrays: list[np.ndarray], run: Callable[..., Any] = run) -> None:
    """Compare an op with its reference."""
    tolerance = {"float32": 2e-5, "float64": 1e-11}[arrays[0].dtype.name]
    results = zip(run(case, arrays), expected(case, arrays), strict=True)
    for at, (got, wanted) in enumerate(results):
        size = max(1.0, float(np.abs(wanted).max(initial=0.0)))
        error = float(np.abs(got - wanted).max(initial=0.0))
        assert got.dtype == arrays[0].dtype
        assert got.shape == wanted.shape
        assert error <= tolerance * size, (at, [x.shape for x in arrays], error, size)
