"""Linear attention and the delta rule on the CPU by the C kernels, and in plain ops.

Operands are query, key, value, decay, rate, bonus and state. With rates, this is the delta rule.
"""

from __future__ import annotations

from typing import Any

import torch

from ember_ml import _native
from ember_ml.backend import attention_steps, delta_rule
from ember_ml.backend import linear_attention as shared
from ember_ml.backend import native_linear_attention as native
from ember_ml.backend.torch.fusion import fused, fusible
from ember_ml.backend.torch.native import frame
from ember_ml.backend.torch.nesting import needs_plain_ops
from ember_ml.backend.torch.opaque import opaque_scan
from ember_ml.backend.torch.ops._kernel_calls import is_autocast
from ember_ml.backend.torch.ops.linearalg.solving import solve_triangular
from ember_ml.backend.torch.ops.recurrence import linear_recurrence

_DTYPES = (torch.float32, torch.float64)


def by_kernel(*operands: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the outputs and the last state, empty without a first one; None without a kernel.

    `torch.autocast` chooses the precision of the products of plain ops.

    Args:
        operands: The operands, in shapes that agree.
    """
    if is_autocast(operands[0]):
        return None
    if torch.compiler.is_compiling():
        return _opaque(*operands)[:2] if _is_opaque(*operands) else None
    if not fusible(*operands) or not native.fits(operands[:6], operands[6]):
        return None
    access = frame(*operands)
    if access is None or not native.has_enough_heads(access, operands):
        return None
    return fused(_run, _pull, plain, *operands)


def _is_opaque(*operands: Any) -> bool:
    """Return whether a compiler sees the call as one op."""
    if _native.library is None or needs_plain_ops():
        return False
    dtype = operands[0].dtype
    alike = all(x is None or (x.dtype is dtype and x.device.type == "cpu") for x in operands)
    return alike and dtype in _DTYPES and native.fits(operands[:6], operands[6])


def plain(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    decay: torch.Tensor | None,
    rate: torch.Tensor | None,
    bonus: torch.Tensor | None,
    state: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same in ops that torch differentiates any number of times."""
    if rate is not None:
        y, last = delta_rule.apply(_ARRAYS, query, key, value, rate, _clamped(decay), state)
        return y, y[:, :, :0] if last is None else last
    y, last = attend(query, key, value, decay, bonus is not None, state)
    y = y if bonus is None else add_own(y, query, key, value, bonus)
    return y, y[:, :, :0] if last is None else last


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    decay: Any,
    strict: bool,
    state: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return linear attention in plain ops, like `backend.linear_attention.attend`."""
    return shared.attend(_ARRAYS, query, key, value, _clamped(decay), strict, state)


def add_own(
    y: torch.Tensor, query: Any, key: torch.Tensor, value: torch.Tensor, bonus: torch.Tensor
) -> torch.Tensor:
    """Add the part of each output that reads the position's own value by the bonus."""
    return y + (query * key * bonus.unsqueeze(1)).sum(-1, keepdim=True) * value


def _clamped(decay: Any) -> Any:
    return None if decay is None else torch.clamp(decay, min=shared.MIN_LOG_DECAY)


def _pad(x: torch.Tensor, count: int) -> torch.Tensor:
    return torch.nn.functional.pad(x, (0, 0, 0, count))


def _solve(system: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return solve_triangular(system, right, unit_diagonal=True)


_ARRAYS = shared.Arrays(torch, _pad, linear_recurrence, _solve)


def _run(*given: Any) -> tuple[tuple[torch.Tensor, torch.Tensor], Any]:
    """Return the outputs and the last state, and errors of the delta rule for the gradient."""
    *operands, state = given
    access = frame(*given)
    if access is None:
        y, last, errors = attention_steps.forward(torch, operands, state)
    else:
        start = None if state is None else state.contiguous()
        y, last, errors = native.forward(access, operands, start)
    last = torch.empty_like(y[:, :, :0]) if state is None else last
    return (y, last), None if operands[4] is None else errors


def _pull(given: Any, errors: Any, g: torch.Tensor, g_last: torch.Tensor) -> list[Any]:
    """Return the gradients of the operands; None for missing operands."""
    *operands, state = given
    errors = None if operands[4] is None else errors  # without rates, the custom op saves nothing
    into = None if state is None else g_last.contiguous()
    access = frame(*given, errors, g, into)
    if access is None:
        return attention_steps.adjoint(torch, operands, state, g, into)
    start = None if state is None else state.contiguous()
    return native.adjoint(access, operands, start, errors, g, into)


_SCHEMA = (
    "Tensor query, Tensor key, Tensor value, Tensor? decay, Tensor? rate, Tensor? bonus, "
    "Tensor? state"
)


def _fake(
    query: torch.Tensor,
    key: Any,
    value: torch.Tensor,
    decay: Any,
    rate: Any,
    bonus: Any,
    state: Any,
) -> tuple[torch.Tensor, ...]:
    return (
        value.new_empty(value.shape),
        value.new_empty((*value.shape[:2], 0, value.shape[3]) if state is None else state.shape),
        value.new_empty(0 if rate is None else value.shape),
    )


# A compiler would trace many small ops.
_opaque = opaque_scan("linear_attention", _SCHEMA, _run, _pull, _fake)
