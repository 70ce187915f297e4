"""Connectionist temporal classification."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

_IMPOSSIBLE = -1e30  # instead of -inf, whose differences have no gradient


class _Losses(torch.autograd.Function):  # type: ignore[misc]
    """CTC losses of torch, with gradients of any order for any log-probabilities.

    torch's gradient assumes normalized probabilities and cannot be differentiated again.
    """

    @staticmethod
    def forward(
        x: torch.Tensor,
        targets: torch.Tensor,
        times: Any,
        labels: Any,
        blank: int,
        zero_infinity: bool,
    ) -> torch.Tensor:
        return F.ctc_loss(x, targets, times, labels, blank, "none", zero_infinity)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs[:4], output)
        ctx.options = inputs[4:]

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, targets, times, labels, output = ctx.saved_tensors
        if torch.is_grad_enabled():
            losses = _aligned(x, targets, times, labels, *ctx.options)
            (grad,) = torch.autograd.grad(losses, x, g, create_graph=True)
        else:
            grad = _native(g, output, x, targets, times, labels, *ctx.options)
        return grad, None, None, None, None, None


def _native(
    g: torch.Tensor,
    out: torch.Tensor,
    x: torch.Tensor,
    targets: torch.Tensor,
    times: Any,
    labels: Any,
    blank: int,
    zero_infinity: bool,
) -> torch.Tensor:
    """Return torch's gradient without the exp(x) term that normalization adds."""
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        losses = F.ctc_loss(leaf, targets, times, labels, blank, "none", zero_infinity)
    (grad,) = torch.autograd.grad(losses, leaf, g)
    counts = torch.arange(x.shape[0], device=x.device)[:, None] < times
    if zero_infinity:
        counts = counts & (out > 0)
    return grad - torch.where(counts, g, 0)[..., None] * torch.exp(x)


def _aligned(
    x: torch.Tensor, targets: torch.Tensor, times: Any, labels: Any, blank: int, zero_infinity: bool
) -> torch.Tensor:
    """Return the losses by the forward algorithm, in steps that torch differentiates."""
    count = 2 * targets.shape[1] + 1
    known = torch.arange(targets.shape[1], device=x.device) < labels[:, None]
    blanks = torch.full_like(targets, blank)
    pairs = torch.stack([blanks, torch.where(known, targets, blank)], -1).flatten(1)
    states = F.pad(pairs, (0, 1), value=blank)
    emitted = x.gather(2, states.expand(x.shape[0], -1, -1))
    skips = F.pad((states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2]), (min(count, 2), 0))
    alpha = torch.where(torch.arange(count, device=x.device) < 2, emitted[0], _IMPOSSIBLE)
    for step in range(1, x.shape[0]):
        past = F.pad(alpha, (2, 0), value=_IMPOSSIBLE)
        ways = [alpha, past[:, 1:-1], torch.where(skips, past[:, :-2], _IMPOSSIBLE)]
        reached = torch.logsumexp(torch.stack(ways), 0) + emitted[step]
        alpha = torch.where((times > step)[:, None], reached.clamp(min=_IMPOSSIBLE), alpha)
    end = 2 * labels[:, None]
    last, before = alpha.gather(1, end), alpha.gather(1, (end - 1).clamp(min=0))
    total = torch.where(end > 0, torch.logsumexp(torch.stack([last, before]), 0), last)[:, 0]
    return torch.where(total > _IMPOSSIBLE / 2, -total, 0.0 if zero_infinity else torch.inf)


def ctc_loss(
    x: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> torch.Tensor:
    if x.ndim != 3 or targets.ndim != 2 or input_lengths.ndim > 1 or target_lengths.ndim > 1:
        raise ValueError("the shapes must be (time, batch, classes) and (batch, length)")
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    times, labels = input_lengths.long(), target_lengths.long()
    options = targets.long(), times, labels, blank
    nested = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    if not nested and not x.requires_grad:
        return F.ctc_loss(wide, *options, reduction, zero_infinity).to(x.dtype)
    losses = (_aligned if nested else _Losses.apply)(wide, *options, zero_infinity)
    if reduction == "mean":
        losses = (losses / labels.clamp(min=1)).mean()
    return (losses.sum() if reduction == "sum" else losses).to(x.dtype)
