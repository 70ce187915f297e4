"""Random numbers from torch's global generator; half precision is drawn in float32 and rounded."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributions import Beta, Gamma

from ember_ml._core.random_stream import below, normal_cdf

seed = torch.manual_seed


def get_state() -> dict[str, object]:
    """Return the state as JSON-compatible data."""
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": _text(torch.get_rng_state()), "cuda": [_text(state) for state in devices]}


def set_state(state: torch.Tensor) -> None:
    """Restore a state."""
    torch.set_rng_state(_bytes(state["cpu"]))
    if torch.cuda.is_available() and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([_bytes(text) for text in state["cuda"]])


def _text(state: torch.Tensor) -> str:
    return bytes(state.tolist()).hex()


def _bytes(text: str) -> torch.Tensor:
    return torch.tensor(list(bytes.fromhex(text)), dtype=torch.uint8)


def _precision(dtype: torch.dtype) -> torch.Tensor:
    return torch.float64 if dtype is torch.float64 else torch.float32


def _empty(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> torch.Tensor:
    return torch.empty(shape, dtype=_precision(dtype), device=device)


def normal(
    shape: tuple[int, ...], mean: float, std: float, *, dtype: torch.dtype, device: str
) -> torch.Tensor:
    return _empty(shape, dtype, device).normal_(mean, std).to(dtype)


def uniform(
    shape: tuple[int, ...], low: float, high: float, *, dtype: torch.dtype, device: str
) -> torch.Tensor:
    values = _empty(shape, dtype, device).uniform_(low, high)
    if (low, high) == (0.0, 1.0) and values.dtype is dtype:
        return values
    return values.clamp(max=below(high, str(dtype).removeprefix("torch."))).to(dtype)


def truncated_normal(
    shape: tuple[int, ...],
    mean: float,
    std: float,
    lower: float,
    upper: float,
    *,
    dtype: torch.dtype,
    device: str,
) -> torch.Tensor:
    """Draw by the inverse CDF."""
    sign = -1.0 if lower + upper > 0 else 1.0  # floats are denser in the lower tail
    low, high = sorted((sign * lower, sign * upper))
    values = _empty(shape, dtype, device).uniform_()
    values = normal_cdf(low) + (normal_cdf(high) - normal_cdf(low)) * values
    values = torch.special.ndtri(values).clamp(low, high)
    return (mean + sign * std * values).to(dtype)


def exponential(
    shape: tuple[int, ...], rate: float, *, dtype: torch.dtype, device: str
) -> torch.Tensor:
    """Draw from the exponential distribution with mean 1 / rate."""
    return _empty(shape, dtype, device).exponential_(rate).to(dtype)


def laplace(
    shape: tuple[int, ...], loc: float, scale: float, *, dtype: torch.dtype, device: str
) -> torch.Tensor:
    """Draw the difference of two exponential variables."""
    values = (
        _empty(shape, dtype, device).exponential_() - _empty(shape, dtype, device).exponential_()
    )
    return (loc + scale * values).to(dtype)


def gumbel(
    shape: tuple[int, ...], loc: float, scale: float, *, dtype: torch.dtype, device: str
) -> torch.Tensor:
    """Draw the negative logarithm of an exponential variable."""
    return (loc - scale * _empty(shape, dtype, device).exponential_().log()).to(dtype)


def cauchy(
    shape: tuple[int, ...], loc: float, scale: float, *, dtype: torch.dtype, device: str
) -> torch.Tensor:
    return (loc + scale * _empty(shape, dtype, device).cauchy_()).to(dtype)


def gamma(
    shape: tuple[int, ...], alpha: float, beta: float, *, dtype: torch.dtype, device: str
) -> torch.Tensor:
    """Draw from the gamma distribution with shape alpha and rate beta."""
    options = {"dtype": _precision(dtype), "device": device}
    return (
        Gamma(torch.tensor(alpha, **options), torch.tensor(beta, **options)).sample(shape).to(dtype)
    )


def beta(
    shape: tuple[int, ...], a: float, b: float, *, dtype: torch.dtype, device: str
) -> torch.Tensor:
    options = {"dtype": _precision(dtype), "device": device}
    return Beta(torch.tensor(a, **options), torch.tensor(b, **options)).sample(shape).to(dtype)


def integers(
    shape: tuple[int, ...], low: int, high: int, *, dtype: torch.dtype, device: str
) -> torch.Tensor:
    return torch.randint(low, high, shape, dtype=torch.int64, device=device).to(dtype)


def poisson(shape: tuple[int, ...], rate: Any, *, dtype: torch.dtype, device: str) -> torch.Tensor:
    rates = torch.as_tensor(rate, device=device).to(torch.float64).expand(shape)
    return torch.poisson(rates).to(dtype)


def permutation(length: int, *, dtype: torch.dtype, device: str) -> torch.Tensor:
    return torch.randperm(length, device=device).to(dtype)
