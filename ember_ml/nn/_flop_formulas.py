"""FLOPs of ops from the shapes of their operands; a multiply-add counts as two.

An op without a formula counts one operation per element of its result; a reduction, one per
element of its operand. A formula takes the result of the op, then its parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ember_ml._core.tensor import Tensor

Formula: TypeAlias = Callable[..., float]

FORMULAS: dict[str, Formula] = {}
"""Key of an op -> its formula."""
FREE = frozenset({"creation", "dtypes", "gradients", "indexing", "joining", "linearalg.diagonals"})
FREE |= {"manipulation", "padding", "slicing"}
"""Families of ops that only move data."""


def formula(*keys: str) -> Callable[[Formula], Formula]:
    """Register a formula for the ops with these keys."""

    def enter(cost: Formula) -> Formula:
        FORMULAS.update(dict.fromkeys(keys, cost))
        return cost

    return enter


@formula("contraction.matmul", "contraction.bmm", "contraction.matvec", "contraction.inner")
def _product(out: Tensor, x: Tensor, y: Tensor) -> int:
    return 2 * out.size * x.shape[-1]


@formula("nn.projection.linear")
def _linear(out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None) -> int:
    return 2 * out.size * x.shape[-1] + (bias is not None) * out.size


@formula("contraction.vdot")
def _vdot(out: Tensor, x: Tensor, y: Tensor) -> int:
    return 2 * x.size


@formula("contraction.vecdot")
def _vecdot(out: Tensor, x: Tensor, y: Tensor, axis: int) -> int:
    return 2 * out.size * x.shape[axis]


@formula("contraction.tensordot")
def _tensordot(out: Tensor, x: Tensor, y: Tensor, axes: int | Sequence[Sequence[int]]) -> int:
    contracted = range(-axes, 0) if isinstance(axes, int) else axes[0]
    return 2 * out.size * math.prod(x.shape[axis] for axis in contracted)


@formula("contraction.addmm")
def _addmm(out: Tensor, added: Tensor, x: Tensor, y: Tensor, alpha: float, beta: float) -> int:
    return 2 * out.size * x.shape[-1] + out.size


@formula("contraction._einsum")
def _einsum(out: Tensor, tensors: Sequence[Tensor], subscripts: str) -> int:
    """Count the products over all subscripts, and the sums if subscripts are contracted."""
    sizes: dict[str, int] = {}
    for letters, x in zip(subscripts.partition("->")[0].split(","), tensors, strict=True):
        before, dots, after = letters.partition("...")
        end = x.ndim - len(after)
        named = [*zip(before, x.shape, strict=False), *zip(after, x.shape[end:], strict=True)]
        if dots:  # from the right, as axes are broadcast
            inner = x.shape[len(before) : end]
            named += [(f"...{at}", size) for at, size in enumerate(reversed(inner))]
        for letter, size in named:
            sizes[letter] = max(size, sizes.get(letter, 1))
    places = math.prod(sizes.values())
    return places * (len(tensors) - 1 + (places > out.size))


@formula("signal.convolution.conv_general")
def _conv(out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None, *options: object) -> int:
    window = math.prod(weight.shape[1:])
    return out.size * (2 * window + (bias is not None))


@formula("signal.transposed.conv_transpose_general")
def _transposed(
    out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None, *options: object
) -> int:
    return 2 * x.size * math.prod(weight.shape[1:]) + (bias is not None) * out.size


@formula("signal.filtering.correlate")
def _correlate(out: Tensor, x: Tensor, y: Tensor, mode: str) -> int:
    return 2 * (x.size * y.size if mode == "full" else out.size * min(x.size, y.size))


@formula("nn.attention.attend", "nn.attention.attend_with_dropout")
def _attend(
    out: Tensor, query: Tensor, key: Tensor, value: Tensor, *more: object, **options: object
) -> int:
    """Count all pairs, including masked ones: two products, the scale, and five for softmax."""
    pairs = math.prod(query.shape[:-1]) * key.shape[-2]
    return pairs * (2 * query.shape[-1] + 2 * value.shape[-1] + 6)


@formula("nn.recurrent.lstm")
def _lstm(
    out: object,
    x: Tensor,
    h0: Tensor,
    c0: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> int:
    batch, time, features = x.shape
    hidden = h0.shape[-1]
    biases = (b_ih is not None) + (b_hh is not None)
    summed = 4 * hidden if biases == 2 else 0
    return batch * time * hidden * (8 * (features + hidden) + 4 * min(biases, 1) + 13) + summed


@formula("nn.recurrent.gru")
def _gru(
    out: object,
    x: Tensor,
    h0: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> int:
    batch, time, features = x.shape
    hidden = h0.shape[-1]
    biases = (b_ih is not None) + (b_hh is not None)
    return batch * time * hidden * (6 * (features + hidden) + 3 * biases + 10)


@formula("nn.recurrent.closed_form")
def _closed_form(
    out: Tensor,
    x: Tensor,
    h0: Tensor,
    w_hh: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    spans: Tensor | None,
    gated: bool,
) -> int:
    batch, time, inner = x.shape
    hidden = h0.shape[-1]
    step = inner * (2 * hidden + 1) + hidden * (5 + gated + 2 * (spans is not None))
    if weight is not None:
        step += inner + weight.shape[0] * (2 * inner + (bias is not None))
    return batch * time * step


@formula("nn.recurrent.liquid")
def _liquid(
    out: Tensor, x: Tensor, v0: Tensor, c: Tensor, slopes: Tensor, b: Tensor, w: Tensor
) -> int:
    synapses, neurons = slopes.shape
    return x.shape[0] * x.shape[1] * (synapses * (6 * neurons + 2) + 6 * neurons)


@formula("nn.recurrent.synapses")
def _synapses(out: Tensor, v: Tensor, slopes: Tensor, b: Tensor, w: Tensor, *places: object) -> int:
    """Count existing synapses only, like a sparse kernel."""
    return math.prod(v.shape[:-1]) * slopes.size * (3 + 2 * w.shape[0])


@formula("recurrence.linear_recurrence")
def _linear_recurrence(out: tuple[Tensor, Tensor], *arguments: object) -> int:
    return 2 * out[0].size


@formula("selective_scan.selective_scan", "selective_scan.selective_scan_with_state")
def _selective_scan(
    out: Tensor,
    u: Tensor,
    dt: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor | None,
    *_: Tensor,
) -> int:
    return u.size * (7 * a.shape[1] + 1 + 2 * (d is not None))


@formula("linear_attention._attend_adjoint")
def _attend_adjoint(
    out: tuple[Tensor, ...],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    g: Tensor,
    g_last: Tensor,
    saved: Tensor,
    decay: Tensor | None,
    rate: Tensor | None,
    *_: Tensor | None,
) -> int:
    """Count the operations on states, step by step."""
    corrected = (rate is not None) * (6 + (decay is not None))
    return query.size * value.shape[-1] * (10 + 4 * (decay is not None) + corrected)


def _transform(places: int, length: int) -> float:
    """Return 5 n log2 n: the cost of a transform of n complex numbers."""
    return 5.0 * places * math.log2(max(length, 1))


@formula("fft.fft", "fft.ifft")
def _fft(out: Tensor, x: Tensor, n: int | None, axis: int, norm: str) -> float:
    return _transform(out.size, out.shape[axis])


@formula("fft.rfft", "fft.ihfft", "fft.irfft", "fft.hfft")
def _rfft(out: Tensor, x: Tensor, n: int | None, axis: int, norm: str) -> float:
    """Count half of a complex transform."""
    real = x if out.dtype.is_complex else out
    length = n or real.shape[axis]
    return _transform(real.size // max(real.shape[axis], 1) * length, length) / 2


@formula("fft.fftn", "fft.ifftn", "fft.fft2", "fft.ifft2")
def _fftn(out: Tensor, x: Tensor, s: object, axes: Sequence[int] | None, norm: str) -> float:
    return _transform(out.size, math.prod(out.shape[at] for at in axes or range(out.ndim)))


@formula("fft.rfftn", "fft.irfftn", "fft.rfft2", "fft.irfft2")
def _rfftn(out: Tensor, x: Tensor, s: object, axes: Sequence[int] | None, norm: str) -> float:
    real = x if out.dtype.is_complex else out
    return _transform(real.size, math.prod(real.shape[at] for at in axes or range(out.ndim))) / 2


def _cubic(factor: float) -> Formula:
    """Return a formula: factor n^3 per n x n matrix, and 2 n per element of other operands."""

    def cost(out: object, x: Tensor, *more: object) -> float:
        others = sum(y.size for y in more if isinstance(y, Tensor))
        return factor * x.size * min(x.shape[-2:]) + 2 * x.shape[-1] * others

    return cost


for _factor, _names in {
    1 / 3: ("decompositions.cholesky",),
    2 / 3: (
        "decompositions.lu",
        "solving.solve",
        "matrix_functions.det",
        "matrix_functions.slogdet",
    ),
    2.0: ("solving.inv", "decompositions.qr"),
    4 / 3: ("decompositions.eigvalsh",),
    9.0: ("decompositions.eigh",),
    22.0: ("decompositions.svd",),
}.items():
    formula(*[f"linearalg.{name}" for name in _names])(_cubic(_factor))


@formula("linearalg.solving.solve_triangular")
def _triangular(out: Tensor, x: Tensor, y: Tensor, *options: object) -> int:
    return out.size * x.shape[-1]


@formula(*[f"scatter.segment_{how}" for how in ("sum", "prod", "mean", "max", "min")])
def _segment(out: Tensor, data: Tensor, *more: object) -> int:
    return data.size


@formula("indexing.additem")
def _additem(out: Tensor, x: Tensor, value: Tensor, key: object) -> int:
    return value.size
