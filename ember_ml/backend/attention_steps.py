"""Linear attention and the delta rule step by step, with their gradients.

They are the reference of the chunked form and of the kernels, and compute higher derivatives and
calls that no kernel takes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ember_ml.backend.linear_attention import MIN_LOG_DECAY


class _Step(NamedTuple):
    """A step: error of the delta rule, value that is written, and the state after it."""

    error: Any
    write: Any
    state: Any


def _outer(x: Any, y: Any) -> Any:
    return x[..., None] * y[..., None, :]


def _fade(xp: Any, decay: Any, t: int, state: Any) -> Any:
    return state if decay is None else xp.exp(decay[:, :, t])[..., None] * state


def _clipped(xp: Any, operands: Any) -> tuple[Any, ...]:
    """Return the operands with log decays not below `MIN_LOG_DECAY`."""
    query, key, value, decay, rate, bonus = operands
    if decay is not None:
        decay = xp.where(decay < MIN_LOG_DECAY, MIN_LOG_DECAY, decay)
    return query, key, value, decay, rate, bonus


def _zeros(xp: Any, operands: Any) -> Any:
    """Return a state of zeros."""
    query, _, value, *_ = operands
    return xp.zeros_like(_outer(query[:, :, 0], value[:, :, 0]))


def _walk(xp: Any, operands: Any, state: Any) -> list[_Step]:
    """Return all steps.

    Args:
        xp: Array module.
        operands: Query, key, value, decay, rate and bonus; the last three may be None.
        state: State before the first step.
    """
    _, key, value, decay, rate, _ = operands
    steps = []
    for t in range(key.shape[2]):
        k, v = key[:, :, t], value[:, :, t]
        faded = _fade(xp, decay, t, state)
        error = v if rate is None else v - xp.sum(k[..., None] * faded, -2)
        write = v if rate is None else rate[:, :, t] * error
        state = faded + _outer(k, write)
        steps.append(_Step(error, write, state))
    return steps


def forward(xp: Any, operands: Any, state: Any) -> tuple[Any, Any, Any]:
    """Return the outputs, the last state, and the errors of the delta rule: v - s' k.

    Args:
        xp: Array module.
        operands: Query, key, value, decay, rate and bonus; the last three may be None. There is at
            least one step.
        state: State before the first step, or None for zeros.
    """
    operands, state = _clipped(xp, operands), _zeros(xp, operands) if state is None else state
    query, key, bonus = operands[0], operands[1], operands[5]
    steps, outputs = _walk(xp, operands, state), []
    for t, step in enumerate(steps):
        read = step.state
        if bonus is not None:
            before = steps[t - 1].state if t else state
            read = before + _outer(bonus * key[:, :, t], step.write)
        outputs.append(xp.sum(query[:, :, t][..., None] * read, -2))
    return xp.stack(outputs, 2), steps[-1].state, xp.stack([step.error for step in steps], 2)


def adjoint(xp: Any, operands: Any, state: Any, grad: Any, grad_last: Any) -> list[Any]:
    """Return the gradients of the operands and of the state; None for missing operands.

    Args:
        xp: Array module.
        operands: As in `forward`.
        state: State before the first step, or None for zeros.
        grad: Gradient of the outputs.
        grad_last: Gradient of the last state; not used without a state.
    """
    if state is None:
        zeros = _zeros(xp, operands)
        return [*adjoint(xp, operands, zeros, grad, zeros)[:6], None]
    given, operands = operands[3], _clipped(xp, operands)
    query, key, _, decay, rate, bonus = operands
    steps, into = _walk(xp, operands, state), grad_last
    rows: list[tuple[Any, ...]] = []
    grad_bonus = None if bonus is None else xp.zeros_like(bonus)
    for t in reversed(range(len(steps))):
        error, write, read = steps[t]
        before = steps[t - 1].state if t else state
        q, k, g = query[:, :, t], key[:, :, t], grad[:, :, t]
        if bonus is None:
            into = into + _outer(q, g)
        else:
            read = before
        grad_write = xp.sum(k[..., None] * into, -2)
        grad_q = xp.sum(read * g[..., None, :], -1)
        grad_k = xp.sum(into * write[..., None, :], -1)
        grad_v, grad_rate, grad_decay = grad_write, None, None
        if rate is not None:
            grad_rate = xp.sum(grad_write * error, -1)[..., None]
            grad_v = rate[:, :, t] * grad_write
            faded = _fade(xp, decay, t, before)
            grad_k = grad_k - xp.sum(faded * grad_v[..., None, :], -1)
            into = into - _outer(k, grad_v)
        if decay is not None:
            into = _fade(xp, decay, t, into)
            grad_decay = xp.sum(into * before, -1)
            if decay.shape[3] == 1:
                grad_decay = xp.sum(grad_decay, -1)[..., None]
        if bonus is not None:
            own = xp.sum(g * write, -1)[..., None]
            grad_v = grad_v + xp.sum(q * bonus * k, -1)[..., None] * g
            grad_q, grad_k = grad_q + own * bonus * k, grad_k + own * bonus * q
            grad_bonus = grad_bonus + xp.sum(own * q * k, 0)
            into = into + _outer(q, g)
        rows.append((grad_q, grad_k, grad_v, grad_decay, grad_rate))
    parts = zip(*rows[::-1], strict=True)
    grads = [None if part[0] is None else xp.stack(part, 2) for part in parts]
    if decay is not None and decay.shape[0] != query.shape[0]:
        grads[3] = xp.sum(grads[3], 0)[None]
    if decay is not None:
        grads[3] = xp.where(given < MIN_LOG_DECAY, 0.0, grads[3])
    return [*grads, grad_bonus, into]
