"""The scan of spiking neurons, with an adjoint of its own; higher derivatives step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ember_ml.backend import native_spiking, spiking
from ember_ml.backend.spiking import Operands, Options
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.direct import direct_apply
from ember_ml.backend.torch.native import frame
from ember_ml.backend.torch.nesting import in_transform, needs_plain_ops
from ember_ml.backend.torch.spiking import Saved
from ember_ml.backend.torch.spiking import run as _run_steps
from ember_ml.backend.torch.spiking_adjoint import Adjoint

_HALVES = (torch.float16, torch.bfloat16)
_NAMES = Operands._fields[:-1]  # the mask has no gradient


def spiking_scan(
    x,
    state,
    beta,
    threshold,
    alpha=None,
    rho=None,
    strength=None,
    taps=None,
    history=None,
    mask=None,
    reset="soft",
    refractory=0,
    surrogate="atan",
    slope=2.0,
):
    mask = None if mask is None else mask.bool()
    arrays = x, state, beta, threshold, alpha, rho, strength, taps, history, mask
    options = Options(reset, refractory, surrogate, slope)
    spiking.check(Operands(*arrays), options)
    if x.dtype in _HALVES:
        wide = [a if a is None or a.dtype == torch.bool else a.float() for a in arrays]
        outs = spiking_scan(*wide, **options._asdict())
        return tuple(out.to(x.dtype) for out in outs)
    if not x.shape[1]:
        return x.clone(), x.clone(), state.clone()
    if torch.compiler.is_compiling():
        if needs_plain_ops():
            return _plain(Operands(*arrays), options)
        return _opaque(*arrays, *options)
    if in_transform():
        return _plain(Operands(*arrays), options)
    if torch.is_grad_enabled() and any(a is not None and a.requires_grad for a in arrays):
        return _apply_scan(options, *arrays)
    return _run(Operands(*arrays), options, save=False)[0]


def _run(operands: Operands, options: Options, save: bool) -> tuple[Any, Saved]:
    """Return the results from the fastest kernel, and arrays for the backward pass without C."""
    if _is_on_gpu(operands):
        return kernels.spiking_scan.run(operands, options, save)
    if native_spiking.fits(operands, options):
        access = frame(*operands[:7])
        if access is not None:
            return native_spiking.forward(access, operands, options, _bytes(operands.mask)), Saved()
    return _run_steps(operands, options, save=save)


def _bytes(mask: torch.Tensor | None) -> torch.Tensor | None:
    return None if mask is None else mask.contiguous()


def _gradients(
    operands: Operands,
    options: Options,
    outputs: Sequence[Any],
    saved: Saved,
    cotangents: Sequence[Any],
    needed: set[str],
) -> Operands:
    """Return the gradients of the operands; `outputs` are spikes and voltages."""
    if _is_on_gpu(operands):
        if _lacks(saved, operands, options):
            saved = kernels.spiking_scan.run(operands, options, save=True)[1]
        return kernels.spiking_scan.pull(operands, options, outputs[1], saved, cotangents)
    if native_spiking.fits(operands, options):
        access = frame(*operands[:7], *outputs, *cotangents)
        if access is not None:
            mask = _bytes(operands.mask)
            return native_spiking.adjoint(
                access, operands, options, mask, outputs, cotangents, needed
            )
    if _lacks(saved, operands, options):
        saved = _run_steps(operands, options, save=True)[1]
    return Adjoint(operands, options, outputs[1], saved, cotangents, needed).gradients()


def _is_on_gpu(operands: Operands) -> bool:
    return kernels.serves(operands.x) and kernels.spiking_scan.serves(operands)


def _lacks(saved: Saved, operands: Operands, options: Options) -> bool:
    """Return whether arrays of the forward pass exist and were not saved."""
    exist = options.refractory > 0 or any(
        x is not None for x in (operands.alpha, operands.rho, operands.mask)
    )
    return exist and all(x is None for x in saved)


def _plain(operands: Operands, options: Options) -> tuple[Any, Any, Any]:
    """Compute in ops that torch differentiates, for transforms, exports and higher derivatives."""
    fire = spiking.smooth_fire(
        torch,
        torch.Tensor.detach,
        lambda u: spiking.smooth_of(torch, u, options.surrogate, options.slope),
    )
    return spiking.scan(torch, operands, options, fire, torch.Tensor.detach)


class _Scan(torch.autograd.Function):  # type: ignore[misc]
    """Scan with its adjoint."""

    @staticmethod
    def forward(ctx: Any, options: Options, *arrays: torch.Tensor | None) -> Any:
        outs, saved = _run(Operands(*arrays), options, save=True)
        ctx.options = options
        ctx.save_for_backward(*arrays, *outs[:2], *saved)
        ctx.set_materialize_grads(False)
        return outs

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        arrays = ctx.saved_tensors
        operands = Operands(*arrays[: len(_NAMES) + 1])
        needs = ctx.needs_input_grad[1:]
        batched = torch._C._functorch.is_legacy_batchedtensor
        if torch.is_grad_enabled() or any(g is not None and batched(g) for g in cotangents):
            return None, *_plain_gradients(operands, ctx.options, cotangents, needs)
        needed = {name for name, need in zip(_NAMES, needs, strict=False) if need}
        outputs, saved = arrays[-5:-3], Saved(*arrays[-3:])
        return None, *_gradients(operands, ctx.options, outputs, saved, cotangents, needed)


_apply_scan = direct_apply(_Scan)


def _plain_gradients(
    operands: Operands, options: Options, cotangents: Sequence[Any], needs: Sequence[bool]
) -> list[Any]:
    """Return gradients that can be differentiated again."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        outs = _plain(operands, options)
        given = [(out, g) for out, g in zip(outs, cotangents, strict=True) if g is not None]
        sources = [x for x, needed in zip(operands, needs, strict=True) if needed]
        grads = iter(
            torch.autograd.grad(
                [out for out, _ in given],
                sources,
                [g for _, g in given],
                create_graph=again,
                allow_unused=True,
            )
        )
    return [next(grads) if needed else None for needed in needs]


_SCHEMA = (
    "Tensor x, Tensor state, Tensor beta, Tensor threshold, Tensor? alpha, Tensor? rho, "
    "Tensor? strength, Tensor? taps, Tensor? history, Tensor? mask, str reset, int refractory, "
    "str surrogate, float slope"
)


def _run_opaque(*args: Any) -> tuple[torch.Tensor, ...]:
    outs, _ = _run(Operands(*args[:10]), Options(*args[10:]), save=False)
    return tuple(x.contiguous() for x in outs)


# A compiler would unroll the steps, so it sees the scan and its adjoint as two ops.
_opaque = torch.library.custom_op(
    "ember_ml::spiking_scan",
    _run_opaque,
    mutates_args=(),
    schema=f"({_SCHEMA}) -> (Tensor, Tensor, Tensor)",
)


@_opaque.register_fake
def _(x, state, *_):
    return x.new_empty(x.shape), x.new_empty(x.shape), state.new_empty(state.shape)


def _pull_opaque(*args: Any) -> list[torch.Tensor]:
    operands, options = Operands(*args[:10]), Options(*args[10:14])
    grads = _gradients(operands, options, args[14:16], Saved(), args[16:], set(_NAMES))
    return [operands.x.new_empty(0) if g is None else g.contiguous().clone() for g in grads[:-1]]


_opaque_pull = torch.library.custom_op(
    "ember_ml::spiking_scan_adjoint",
    _pull_opaque,
    mutates_args=(),
    schema=(
        f"({_SCHEMA}, Tensor spikes, Tensor voltages, "
        "Tensor? g0, Tensor? g1, Tensor? g2) -> Tensor[]"
    ),
)


@_opaque_pull.register_fake
def _(*args):
    x = args[0]
    return [x.new_empty(0) if a is None else a.new_empty(a.shape) for a in args[:9]]


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.options = inputs[10:]
    ctx.save_for_backward(*inputs[:10], *output[:2])


def _backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
    arrays = ctx.saved_tensors
    grads = _opaque_pull(*arrays[:10], *ctx.options, *arrays[10:], *cotangents)
    own = [None if x is None else g for x, g in zip(arrays[:9], grads, strict=True)]
    return *own, None, None, None, None, None


_opaque.register_autograd(_backward, setup_context=_save)
