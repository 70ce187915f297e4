"""Discrete Fourier transforms: the gradient is a transform back, scaled the other way round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import real_part
from ember_ml.autodiff.rules import by_operand, rule
from ember_ml.autodiff.rules._shared import conj
from ember_ml.ops import fft
from ember_ml.ops.creation import filled
from ember_ml.ops.indexing import getitem

FLIPPED: dict[str, Any] = {"backward": "forward", "forward": "backward", "ortho": "ortho"}

by_operand(fft.fftshift, x=lambda g, out, x, axes=None: fft.ifftshift(g, axes))
by_operand(fft.ifftshift, x=lambda g, out, x, axes=None: fft.fftshift(g, axes))


def _fit(g: Any, x: Any) -> Any:
    """The gradient of x, which was cut or filled with zeros before the transform."""
    if g.shape == x.shape:
        return g
    pairs = list(zip(g.shape, x.shape, strict=True))
    if any(has > wanted for has, wanted in pairs):
        g = getitem(g, tuple([slice(min(pair)) for pair in pairs]))
    if any(has < wanted for has, wanted in pairs):
        g = ops.pad_constant(g, [(0, max(wanted - has, 0)) for has, wanted in pairs])
    return g


def _weights(g: Any, n: int, axis: int, mirrored: float) -> Any:
    """For each of n // 2 + 1 frequencies 1, or `mirrored` if another one mirrors it."""
    one, other = (
        convert_to_tensor(value, real_part(g.dtype), backend=g.backend) for value in (1.0, mirrored)
    )
    inner = (n - 1) // 2
    weights = ops.concat([filled(one, 1), filled(other, inner), filled(one, n // 2 - inner)])
    return ops.reshape(weights, (n // 2 + 1,) + (1,) * (g.ndim - 1 - axis % g.ndim))


def _from_half(g: Any, length: int, axis: int, norm: str) -> Any:
    """The gradient of real numbers of which `rfft` made the first half of their spectrum."""
    return fft.irfft(g * _weights(g, length, axis, 0.5), length, axis, FLIPPED[norm])


def _to_half(g: Any, axis: int, norm: str) -> Any:
    """The gradient of the first half of a spectrum, of which `irfft` made real numbers."""
    length = g.shape[axis]
    return fft.rfft(g, length, axis, FLIPPED[norm]) * _weights(g, length, axis, 2.0)


def _length(x: Any, n: int | None, axis: int) -> int:
    return x.shape[axis] if n is None or n == -1 else n


by_operand(
    fft.fft,
    x=lambda g, out, x, n=None, axis=-1, norm="backward": _fit(
        fft.ifft(g, None, axis, FLIPPED[norm]), x
    ),
)
by_operand(
    fft.ifft,
    x=lambda g, out, x, n=None, axis=-1, norm="backward": _fit(
        fft.fft(g, None, axis, FLIPPED[norm]), x
    ),
)
by_operand(
    fft.rfft,
    x=lambda g, out, x, n=None, axis=-1, norm="backward": _fit(
        _from_half(g, _length(x, n, axis), axis, norm), x
    ),
)
by_operand(
    fft.irfft,
    x=lambda g, out, x, n=None, axis=-1, norm="backward": _fit(_to_half(g, axis, norm), x),
)
by_operand(
    fft.hfft,
    x=lambda g, out, x, n=None, axis=-1, norm="backward": _fit(
        conj(_to_half(g, axis, FLIPPED[norm])), x
    ),
)
by_operand(
    fft.ihfft,
    x=lambda g, out, x, n=None, axis=-1, norm="backward": _fit(
        _from_half(conj(g), _length(x, n, axis), axis, FLIPPED[norm]), x
    ),
)


def _axes(x: Any, s: Any, axes: Any) -> tuple[int, ...]:
    """The axes that are transformed."""
    if axes is not None:
        return tuple(axes)
    return tuple(range(0 if s is None else x.ndim - len(s), x.ndim))


def _whole(g: Any, x: Any, s: Any, axes: Any, norm: str, back: Callable[..., Any]) -> Any:
    return _fit(back(g, None, _axes(x, s, axes), FLIPPED[norm]), x)


def _real(g: Any, x: Any, s: Any, axes: Any, norm: str) -> Any:
    *others, last = _axes(x, s, axes)
    if others:
        g = fft.ifftn(g, None, others, FLIPPED[norm])
    return _fit(_from_half(g, _length(x, None if s is None else s[-1], last), last, norm), x)


def _from_real(g: Any, x: Any, s: Any, axes: Any, norm: str) -> Any:
    *others, last = _axes(x, s, axes)
    g = _to_half(g, last, norm)
    return _fit(fft.fftn(g, None, others, FLIPPED[norm]) if others else g, x)


def _enter(transform: Callable[..., Any], pull: Callable[..., Any], *extra: Any) -> None:
    default = transform.op.signature.parameters["axes"].default  # type: ignore[attr-defined]

    @rule(transform)
    def _(
        g: Any,
        out: Any,
        x: Any,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = default,
        norm: str = "backward",
    ) -> Any:
        return pull(g, x, s, axes, norm, *extra)


_enter(fft.fftn, _whole, fft.ifftn)
_enter(fft.fft2, _whole, fft.ifftn)
_enter(fft.ifftn, _whole, fft.fftn)
_enter(fft.ifft2, _whole, fft.fftn)
_enter(fft.rfftn, _real)
_enter(fft.rfft2, _real)
_enter(fft.irfftn, _from_real)
_enter(fft.irfft2, _from_real)
