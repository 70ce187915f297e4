"""VJP rules of Fourier transforms: the gradient is the inverse transform with swapped scaling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import real_part
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule, vjps
from ember_ml.autodiff.rules.helpers import conj
from ember_ml.ops import fft
from ember_ml.ops.creation import filled
from ember_ml.ops.fft import Norm
from ember_ml.ops.indexing import getitem

Ints = Sequence[int] | None
FLIPPED: dict[str, Norm] = {"backward": "forward", "forward": "backward", "ortho": "ortho"}

vjps(fft.fftshift, x=lambda g, out, x, axes=None: fft.ifftshift(g, axes))
vjps(fft.ifftshift, x=lambda g, out, x, axes=None: fft.fftshift(g, axes))


def _fit(g: Tensor, x: Tensor) -> Tensor:
    """Return a gradient in the shape of x, which was cut or zero-padded before the transform."""
    if g.shape == x.shape:
        return g
    pairs = list(zip(g.shape, x.shape, strict=True))
    if any(size > target for size, target in pairs):
        g = getitem(g, tuple([slice(min(pair)) for pair in pairs]))
    if any(size < target for size, target in pairs):
        g = ops.pad_constant(g, [(0, max(target - size, 0)) for size, target in pairs])
    return g


def _weights(g: Tensor, n: int, axis: int, mirrored: float) -> Tensor:
    """Return a weight per frequency of a half spectrum: 1, or `mirrored` where a mirror exists."""
    one, other = (
        convert_to_tensor(value, real_part(g.dtype), backend=g.backend) for value in (1.0, mirrored)
    )
    inner = (n - 1) // 2
    weights = ops.concat([filled(one, 1), filled(other, inner), filled(one, n // 2 - inner)])
    return ops.reshape(weights, (n // 2 + 1,) + (1,) * (g.ndim - 1 - axis % g.ndim))


def _from_half(g: Tensor, length: int, axis: int, norm: Norm) -> Tensor:
    """Return the gradient of the signal of an `rfft`."""
    return fft.irfft(g * _weights(g, length, axis, 0.5), length, axis, FLIPPED[norm])


def _to_half(g: Tensor, axis: int, norm: Norm) -> Tensor:
    """Return the gradient of the half spectrum of an `irfft`."""
    length = g.shape[axis]
    return fft.rfft(g, length, axis, FLIPPED[norm]) * _weights(g, length, axis, 2.0)


def _length(x: Tensor, n: int | None, axis: int) -> int:
    return x.shape[axis] if n is None or n == -1 else n


vjps(
    fft.fft,
    x=lambda g, out, x, n=None, axis=-1, norm="backward": _fit(
        fft.ifft(g, None, axis, FLIPPED[norm]), x
    ),
)
vjps(
    fft.ifft,
    x=lambda g, out, x, n=None, axis=-1, norm="backward": _fit(
        fft.fft(g, None, axis, FLIPPED[norm]), x
    ),
)
vjps(
    fft.rfft,
    x=lambda g, out, x, n=None, axis=-1, norm="backward": _fit(
        _from_half(g, _length(x, n, axis), axis, norm), x
    ),
)
vjps(
    fft.irfft,
    x=lambda g, out, x, n=None, axis=-1, norm="backward": _fit(_to_half(g, axis, norm), x),
)
vjps(
    fft.hfft,
    x=lambda g, out, x, n=None, axis=-1, norm="backward": _fit(
        conj(_to_half(g, axis, FLIPPED[norm])), x
    ),
)
vjps(
    fft.ihfft,
    x=lambda g, out, x, n=None, axis=-1, norm="backward": _fit(
        _from_half(conj(g), _length(x, n, axis), axis, FLIPPED[norm]), x
    ),
)


def _axes(x: Tensor, s: Ints, axes: Ints) -> tuple[int, ...]:
    """Return the transformed axes."""
    if axes is not None:
        return tuple(axes)
    return tuple(range(0 if s is None else x.ndim - len(s), x.ndim))


def _complex_to_complex(
    g: Tensor,
    x: Tensor,
    s: Ints,
    axes: Ints,
    norm: Norm,
    back: Callable[..., Tensor],
) -> Tensor:
    return _fit(back(g, None, _axes(x, s, axes), FLIPPED[norm]), x)


def _real_to_complex(g: Tensor, x: Tensor, s: Ints, axes: Ints, norm: Norm) -> Tensor:
    *others, last = _axes(x, s, axes)
    if others:
        g = fft.ifftn(g, None, others, FLIPPED[norm])
    return _fit(_from_half(g, _length(x, None if s is None else s[-1], last), last, norm), x)


def _complex_to_real(g: Tensor, x: Tensor, s: Ints, axes: Ints, norm: Norm) -> Tensor:
    *others, last = _axes(x, s, axes)
    g = _to_half(g, last, norm)
    return _fit(fft.fftn(g, None, others, FLIPPED[norm]) if others else g, x)


def _declare(
    transform: Callable[..., Tensor],
    vjp: Callable[..., Tensor],
    *extra: Callable[..., Tensor],
) -> None:
    default = transform.op.signature.parameters["axes"].default  # type: ignore[attr-defined]

    @vjp_rule(transform)
    def _(
        g: Tensor,
        out: Tensor,
        x: Tensor,
        s: Ints = None,
        axes: Ints = default,
        norm: Norm = "backward",
    ) -> Tensor:
        return vjp(g, x, s, axes, norm, *extra)


_declare(fft.fftn, _complex_to_complex, fft.ifftn)
_declare(fft.fft2, _complex_to_complex, fft.ifftn)
_declare(fft.ifftn, _complex_to_complex, fft.fftn)
_declare(fft.ifft2, _complex_to_complex, fft.fftn)
_declare(fft.rfftn, _real_to_complex)
_declare(fft.rfft2, _real_to_complex)
_declare(fft.irfftn, _complex_to_real)
_declare(fft.irfft2, _complex_to_real)
