"""Rows for `ember_ml.ops.fft`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml._core.dispatch import OPS
from tests.conformance.table import FLOATS, INTEGERS, case, positive, real

NORMS = ("backward", "ortho", "forward")
SINGLE = ("bool", "int32", "uint8", "int64", *FLOATS, "complex64", "complex128")


def to_complex(dtype: str) -> str:
    """Return the dtype of a transform."""
    return "complex128" if dtype in ("float64", "complex128") else "complex64"


def to_real(dtype: str) -> str:
    """Return the dtype of a real inverse."""
    return "float64" if dtype in ("float64", "complex128") else "float32"


def transform(name: str, *inputs: Any, **options: Any) -> None:
    """Add a row for a transform, compared with NumPy's."""
    key = f"fft.{name}"
    result = (
        to_real if name.removesuffix("2").removesuffix("n") in ("irfft", "hfft") else to_complex
    )
    dtypes = options.pop(
        "dtypes", [d for d in SINGLE if "complex" in OPS[key].rule.kinds or "complex" not in d]
    )
    case(
        key,
        *inputs,
        reference=getattr(np.fft, name),
        result=result,
        dtypes=tuple(dtypes),
        **options,
    )


for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    low = 2 if name in ("irfft", "hfft") else 1
    for length in (low, 2, 3, 7, 8, 63, 100):
        transform(name, real(length), rtol=5.0)
    for length in (1000, 1009):
        transform(name, real(length), rtol=50.0, dtypes=("float32",))
    for norm in NORMS:
        transform(name, real(2, 6), norm=norm, rtol=3.0)
        transform(name, real(2, 5), norm=norm, n=9, rtol=3.0)
    for n in (1, 2, 4, 5, 12, 13):
        transform(name, real(3, 6), n=n, rtol=3.0)
    for axis in (-3, -2, 0, 1, 2):
        transform(name, real(3, 4, 5), axis=axis, rtol=3.0)
    transform(name, real(3, 4, 5, transposed=True), axis=0, n=3, rtol=3.0)
    transform(name, real(0, 4))
    transform(name, real(6, special=True), dtypes=FLOATS)
transform("irfft", real(1), n=1)
case("fft.fft", positive(9), reference=np.fft.fft, result=to_complex, dtypes=INTEGERS, rtol=3.0)

for name in ("fftn", "ifftn", "rfftn", "irfftn"):
    transform(name, real(3, 4, 5), rtol=5.0)
    transform(name, real(6), rtol=5.0)
    for norm in NORMS:
        transform(name, real(3, 4), norm=norm, rtol=5.0)
    for axes in ((0,), (0, 1), (-1, 0), (2, 1), (-2, -1)):
        transform(name, real(3, 4, 5), axes=axes, rtol=5.0)
    for s, axes in (((2, 7), (1, 2)), ((6, 3), (-1, 0)), ((4, 4, 4), (0, 1, 2))):
        transform(name, real(3, 4, 5), s=s, axes=axes, rtol=5.0, norm="ortho")
    transform(name, real(0, 3, 4), axes=(1, 2))


def with_axes(name: str, halved: bool) -> Any:
    """Return NumPy's transform with explicit axes and lengths."""

    def reference(x: Any, s: Any, axes: Any = None) -> Any:
        axes = axes or tuple(range(-len(s), 0))
        own = [x.shape[axis] for axis in axes]
        own[-1] = 2 * (own[-1] - 1) if halved else own[-1]
        s = [own[at] if length == -1 else length for at, length in enumerate(s)]
        return getattr(np.fft, name)(x, s, axes)

    return reference


for name in ("fftn", "ifftn", "rfftn", "irfftn"):
    halved = name == "irfftn"
    result = to_real if halved else to_complex
    options = {"reference": with_axes(name, halved), "result": result, "rtol": 5.0}
    case(f"fft.{name}", real(3, 4, 5), s=(2, 6), dtypes=("float32", "float64"), **options)
    case(f"fft.{name}", real(3, 4, 5), s=(6, -1), dtypes=("float32",), **options)
    case(f"fft.{name}", real(3, 4, 5), s=(-1, 6), axes=(0, 1), dtypes=("float32",), **options)

for name in ("fft2", "ifft2", "rfft2", "irfft2"):
    transform(name, real(3, 4, 5), rtol=5.0)
    for norm in NORMS:
        transform(name, real(3, 4), norm=norm, s=(5, 6), rtol=5.0)
    transform(name, real(3, 4, 5), axes=(0, 1), rtol=5.0)

for name in ("fftshift", "ifftshift"):
    for shape in ((4,), (5,), (1,), (0,), (3, 4), (2, 3, 4)):
        case(f"fft.{name}", real(*shape), reference=getattr(np.fft, name))
    for axes in (0, -1, (0,), (0, -1), (1, 2)):
        case(f"fft.{name}", real(2, 3, 5), axes=axes, reference=getattr(np.fft, name))
    case(f"fft.{name}", real(3, 4, transposed=True), axes=1, reference=getattr(np.fft, name))


def frequencies(name: str) -> Any:
    """Return NumPy's frequencies."""
    return lambda n, d=1.0, dtype=None, device=None: getattr(np.fft, name)(n, d)


for name in ("fftfreq", "rfftfreq"):
    for n, d in ((1, 1.0), (2, 0.5), (5, 1.0), (8, 0.1), (9, 3.0)):
        case(
            f"fft.{name}",
            n,
            reference=frequencies(name),
            d=d,
            dtypes=("float32",),
            result="float32",
        )
    for dtype in ("float32", "float16"):
        case(
            f"fft.{name}",
            7,
            reference=frequencies(name),
            dtype=dtype,
            device="cpu",
            dtypes=(dtype,),
            result=dtype,
        )
