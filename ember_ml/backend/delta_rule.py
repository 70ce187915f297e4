"""Delta rule in chunks, shared by the ops and the torch backend."""

from __future__ import annotations

from typing import Any

from ember_ml._core.errors import ShapeError
from ember_ml.backend.linear_attention import Arrays, chunk_length, head_decay, mt, split_chunks


def check(query: Any, key: Any, value: Any, rate: Any, decay: Any) -> None:
    """Raise a ShapeError unless the shapes agree.

    Args:
        query: (batch, heads, time, key features).
        key: In the shape of the query.
        value: (batch, heads, time, value features).
        rate: (batch, heads, time, 1).
        decay: (batch, heads, time, 1), or None.
    """
    lead = tuple(query.shape[:-1])
    right = len(lead) == 3 and tuple(key.shape) == tuple(query.shape)
    rows = [rate] if decay is None else [rate, decay]
    right = right and tuple(value.shape[:-1]) == lead
    if right and all(tuple(x.shape) == (*lead, 1) for x in rows):
        return
    shapes = ", ".join(str(tuple(x.shape)) for x in (query, key, value, *rows))
    raise ShapeError(
        f"gated_delta_rule: got shapes {shapes}; expected query and key (batch, heads, time, key "
        "features), value (batch, heads, time, value features), rate and decay (batch, heads, "
        "time, 1)"
    )


def apply(
    arrays: Arrays, query: Any, key: Any, value: Any, rate: Any, decay: Any, state: Any
) -> tuple[Any, Any]:
    """Return the outputs of a sequence, and the last state if there is a first one.

    The corrections within a chunk depend on each other through a triangular system. It is solved
    once for the values and once for the keys, which yields the corrections for any initial state.

    Args:
        arrays: Functions of the array library.
        query: Queries, (batch, heads, time, key features).
        key: Keys, in the shape of the queries.
        value: Values, (batch, heads, time, value features).
        rate: Step sizes of the corrections, (batch, heads, time, 1).
        decay: Log decays, in the shape of `rate` and not below `MIN_LOG_DECAY`, or None.
        state: State before the first position, (batch, heads, key, value features), or None.
    """
    xp = arrays.xp
    time, size = query.shape[2], chunk_length(query.shape[2], query.shape[3])
    q, k, v, rate = (split_chunks(arrays, part, size) for part in (query, key, value, rate))
    decay = xp.zeros_like(rate) if decay is None else split_chunks(arrays, decay, size)
    total = xp.cumsum(decay, -2)
    decays = head_decay(xp, total, total, strict=False)
    system = xp.matmul(rate * k, mt(xp, k)) * decays
    solution = arrays.solve(system, xp.concat([rate * v, rate * (k * xp.exp(total))], -1))
    scores = xp.matmul(q, mt(xp, k)) * decays
    last = total[..., -1:, :]
    writes = mt(xp, k * xp.exp(last - total))
    parts = (solution, scores, q * xp.exp(total), writes, xp.exp(last))
    y, after = _scan_chunks(xp, parts, value.shape[-1], state)
    y = xp.reshape(y, (*y.shape[:2], y.shape[2] * y.shape[3], y.shape[4]))[:, :, :time]
    return y, None if state is None else after


def _scan_chunks(xp: Any, parts: tuple[Any, ...], values: int, state: Any) -> tuple[Any, Any]:
    """Process the chunks in order, passing the state from one to the next."""
    outputs = []
    for at in range(parts[0].shape[2]):
        solution, scores, query, writes, decay = (part[:, :, at] for part in parts)
        value, key = solution[..., :values], solution[..., values:]
        value = value if state is None else value - xp.matmul(key, state)
        output = xp.matmul(scores, value)
        outputs.append(output if state is None else output + xp.matmul(query, state))
        update = xp.matmul(writes, value)
        state = update if state is None else decay * state + update
    return xp.stack(outputs, 2), state
