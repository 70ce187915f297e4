"""Arguments of the C kernels of linear attention, for the arrays of any framework.

Operands are query, key, value, decay, rate and bonus. With rates, the kernels compute the delta
rule, otherwise attention; decay, rate and bonus may be None.
"""

from __future__ import annotations

from typing import Any

from ember_ml._native.frame import Frame

MOST = 1 << 14
"""Elements of a state above which matrix products of chunks are faster, with a decay per head."""
MOST_CORRECTED = 1 << 16
"""The same for the delta rule and for decays per key feature, whose chunks take more steps."""
_NONE = (None, 0, 0, 0)
_COST = 2  # of an element of a state and a step, in operations of a thread's work


def fits(operands: Any, *states: Any, errors: Any = None, grad: Any = None) -> bool:
    """Return whether the kernels take these arrays: in shapes that agree, not empty, not too large.

    Args:
        operands: The operands.
        states: Arrays in the shape of the state, or None.
        errors: Errors of the delta rule, or None.
        grad: Gradient of the output, or None.
    """
    query, key, value, decay, rate, bonus = operands
    if len(query.shape) != 4 or len(value.shape) != 4 or 0 in (*query.shape, *value.shape):
        return False
    batch, heads, time, keys = query.shape
    features = decay is not None and decay.shape[-1] > 1
    if keys * value.shape[3] > (MOST if rate is None and not features else MOST_CORRECTED):
        return False
    sequence = (batch, heads, time, value.shape[3])
    expected = [(key, query.shape), (rate, (*sequence[:3], 1)), (bonus, (heads, keys))]
    expected += [(x, sequence) for x in (value, errors, grad)]
    expected += [(x, (batch, heads, keys, value.shape[3])) for x in states]
    if rate is not None and (features or bonus is not None):  # the delta rule has neither
        return False
    decays = [(b, heads, time, n) for b in (1, batch) for n in (1, keys)]
    right = decay is None or tuple(decay.shape) in decays
    return right and all(x is None or tuple(x.shape) == tuple(shape) for x, shape in expected)


def has_enough_heads(frame: Frame, operands: Any) -> bool:
    """Return whether at least half of the threads have a head to compute.

    Args:
        frame: Access to the arrays.
        operands: The operands.
    """
    query, value = operands[0], operands[2]
    return 2 * query.shape[0] * query.shape[1] >= frame.threads_for(_work(query, value))


def _work(query: Any, value: Any) -> int:
    batch, heads, time, keys = query.shape
    return batch * heads * time * keys * value.shape[3] * _COST


def _rows(frame: Frame, x: Any, batch: int) -> tuple[Any, int, int, int]:
    """Return an array with contiguous rows, and its strides of batch, heads and time."""
    if x is None:
        return _NONE
    if x.shape[3] != 1 and frame.strides(x)[3] != 1:
        x = frame.copy(x, tuple(x.shape))
    first, heads, time, _ = frame.strides(x)
    return x, first if x.shape[0] == batch else 0, heads, time


def _empty(frame: Frame, like: Any) -> Any:
    """Return a new array in the shape of an operand; layers store the heads of a step together."""
    batch, heads, time, features = like.shape
    _, head_stride, time_stride, _ = frame.strides(like)
    if head_stride < time_stride:
        return frame.empty((batch, time, heads, features)).swapaxes(1, 2)
    return frame.empty((batch, heads, time, features))


def _call(
    frame: Frame, name: str, operands: Any, state: Any, grad: Any, results: Any, others: Any
) -> None:
    """Call a kernel.

    Args:
        frame: Access to the arrays.
        name: Name of the kernel.
        operands: The operands.
        state: Initial state, or None.
        grad: Gradient of the output, or None.
        results: Output, errors, gradients of query, key and value; None for missing ones.
        others: Further arrays of the kernel.
    """
    *rows, bonus = operands
    query, value, decay = rows[0], rows[2], rows[3]
    (batch, heads, time, keys), values = query.shape, value.shape[3]
    decays = 0 if decay is None else decay.shape[3]
    slots = min(batch * heads, frame.threads_for(_work(query, value)))
    size = frame.size("ember_linear_attention_workspace", time, keys, values, decays)
    numbers = [batch, heads, time, keys, values, decays, slots, size]
    series = [_rows(frame, x, batch) for x in (*rows, grad, *results)]
    for _, *strides in series:
        numbers += strides
    bonus = None if bonus is None else frame.copy(bonus, (heads, keys))
    arrays = [frame.empty((slots * size,)), *(x for x, *_ in series), bonus, state, *others]
    frame.call_arrays(name, arrays, numbers)


def forward(frame: Frame, operands: Any, state: Any) -> tuple[Any, Any, Any]:
    """Return the output, the last state, and the errors of the delta rule: v - s' k.

    Args:
        frame: Access to the arrays.
        operands: The operands, not empty.
        state: Contiguous initial state, or None; the last state is then None.
    """
    _, _, value, _, rate, _ = operands
    y, errors = _empty(frame, value), None if rate is None else _empty(frame, value)
    last = None if state is None else frame.empty(tuple(state.shape))
    results = (y, errors, None, None, None)
    _call(frame, "ember_linear_attention", operands, state, None, results, [last])
    return y, last, errors


def adjoint(
    frame: Frame, operands: Any, state: Any, errors: Any, grad: Any, grad_last: Any
) -> list[Any]:
    """Return the gradients of the operands and of the initial state; None for missing operands.

    Args:
        frame: Access to the arrays.
        operands: The operands, not empty.
        state: Contiguous initial state, or None.
        errors: Errors of the delta rule, or None.
        grad: Gradient of the output.
        grad_last: Contiguous gradient of the last state, or None.
    """
    query, _, _, decay, rate, bonus = operands
    batch, heads, time, keys = query.shape
    lead = (batch, heads, time)
    grad_decay = None if decay is None else frame.empty((*lead, decay.shape[3]))
    grad_rate = None if rate is None else frame.empty((*lead, 1))
    grad_bonus = None if bonus is None else frame.empty((batch, heads, keys))
    grad_state = None if state is None else frame.empty(tuple(state.shape))
    grads = [_empty(frame, x) for x in operands[:3]]
    others = [grad_last, grad_decay, grad_rate, grad_bonus, grad_state]
    results = (None, errors, *grads)
    _call(frame, "ember_linear_attention_adjoint", operands, state, grad, results, others)
    if grad_decay is not None and decay.shape[0] != batch:
        grad_decay = grad_decay.sum(0)[None]
    total = None if grad_bonus is None else grad_bonus.sum(0)
    return [*grads, grad_decay, grad_rate, total, grad_state]
