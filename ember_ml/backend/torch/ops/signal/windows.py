"""Window functions, computed in float64 on the host; not every device supports it."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml._core.errors import UnsupportedDTypeError

_OPTIONS: dict[str, Any] = {"dtype": torch.float64, "device": "cpu"}


def _place(window: torch.Tensor, name: str, dtype: torch.dtype, device: Any) -> torch.Tensor:
    if not dtype.is_floating_point:
        raise UnsupportedDTypeError(f"{name} takes real floating dtypes, not {dtype}")
    return window.to(device=device, dtype=dtype)


def bartlett_window(window_length, periodic=True, *, dtype, device):
    window = torch.bartlett_window(window_length, periodic, **_OPTIONS)
    return _place(window, "bartlett_window", dtype, device)


def blackman_window(window_length, periodic=True, *, dtype, device):
    window = torch.blackman_window(window_length, periodic, **_OPTIONS)
    return _place(window, "blackman_window", dtype, device)


def gaussian_window(window_length, periodic=True, std=1.0, *, dtype, device):
    window = torch.signal.windows.gaussian(window_length, std=std, sym=not periodic, **_OPTIONS)
    return _place(window, "gaussian_window", dtype, device)


def hamming_window(window_length, periodic=True, *, dtype, device):
    window = torch.hamming_window(window_length, periodic, **_OPTIONS)
    return _place(window, "hamming_window", dtype, device)


def hann_window(window_length, periodic=True, *, dtype, device):
    window = torch.hann_window(window_length, periodic, **_OPTIONS)
    return _place(window, "hann_window", dtype, device)


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype, device):
    window = torch.kaiser_window(window_length, periodic, beta, **_OPTIONS)
    return _place(window, "kaiser_window", dtype, device)
