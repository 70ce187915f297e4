"""Rows for `ember_ml.ops.nn.attention`."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import FLOATS, case, mask, real


def attention(query, key, value, given=None, causal=False, window=None, scale=None, softcap=None):
    """Compute one query at a time, by the definition."""
    if query.ndim == 2:
        parts = (query[None], key[None], value[None])
        return attention(*parts, given, causal, window, scale, softcap)[0]
    groups = query.shape[-3] // key.shape[-3]
    key, value = np.repeat(key, groups, -3), np.repeat(value, groups, -3)
    queries, keys = query.shape[-2], key.shape[-2]
    out = np.zeros((*query.shape[:-1], value.shape[-1]))
    for place in np.ndindex(query.shape[:-1]):
        at = place[-1] + keys - queries
        sees = [
            j
            for j in range(keys)
            if (not causal or j <= at) and (window is None or abs(at - j) < window)
        ]
        scores = (
            key[place[:-1]] @ query[place] * (query.shape[-1] ** -0.5 if scale is None else scale)
        )
        if softcap is not None:
            scores = softcap * np.tanh(scores / softcap)
        if given is not None:
            row = np.broadcast_to(given, (*query.shape[:-1], keys))[place]
            sees = [j for j in sees if (row[j] if given.dtype == bool else row[j] > -np.inf)]
            scores = scores if given.dtype == bool else scores + row
        if sees:
            weights = np.exp(scores[sees] - scores[sees].max())
            out[place] = weights / weights.sum() @ value[place[:-1]][sees]
    return out


def qkv(batch, heads, shared, queries, keys, features, values):
    return (
        real(*batch, heads, queries, features, low=-2, high=2),
        real(*batch, shared, keys, features, low=-2, high=2),
        real(*batch, shared, keys, values, low=-2, high=2),
    )


A = "nn.attention.attend"
SIZES = [
    qkv((2,), 4, 4, 5, 5, 8, 8),
    qkv((2,), 4, 2, 5, 7, 8, 3),
    qkv((), 2, 1, 7, 5, 4, 4),
    qkv((2, 3), 2, 2, 3, 4, 4, 4),
    qkv((1,), 1, 1, 1, 1, 1, 1),
    qkv((1,), 2, 2, 0, 3, 4, 4),
    qkv((0,), 2, 2, 2, 3, 4, 4),
    (real(5, 4), real(6, 4), real(6, 3)),
]
POSITIONS = [{}, {"causal": True}, {"causal": True, "window": 2}, {"window": 3, "scale": 0.5}]
for sizes in SIZES:
    for options in POSITIONS:
        case(A, *sizes, dtypes=FLOATS, reference=attention, **options)
case(A, *qkv((2,), 4, 2, 5, 5, 8, 8), reference=attention)
case(
    A,
    *qkv((1,), 2, 2, 70, 70, 4, 4),
    reference=attention,
    dtypes=("float32", "float16"),
    causal=True,
)
case(
    A,
    *qkv((1,), 2, 1, 37, 90, 4, 4),
    reference=attention,
    dtypes=("float32",),
    causal=True,
    window=9,
)
huge = tuple(real(1, 2, 4, 8, low=-90, high=90) for _ in range(3))
case(A, *huge, dtypes=FLOATS, reference=attention)


def some(probability):
    return lambda x: np.where(np.random.default_rng(3).random(x.shape) < probability, x, -np.inf)


for options in POSITIONS:
    for bools in (mask(5, 7), mask(2, 1, 1, 7), mask(2, 4, 5, 7), mask(4, 1, 7)):
        case(A, *qkv((2,), 4, 2, 5, 7, 8, 3), bools, dtypes=FLOATS, reference=attention, **options)
    bias = real(2, 4, 5, 7, transform=some(0.3))
    case(A, *qkv((2,), 4, 4, 5, 7, 8, 3), bias, dtypes=FLOATS, reference=attention, **options)
    case(
        A,
        *qkv((2, 2), 4, 2, 5, 7, 8, 3),
        real(5, 7, dtype="float32", transform=some(0.5)),
        dtypes=FLOATS,
        reference=attention,
        **options,
    )
nothing = real(2, 3, transform=lambda x: x * 0 > 1, dtype="bool")
case(A, *qkv((1,), 2, 2, 2, 3, 4, 4), nothing, dtypes=FLOATS, reference=attention)


def dropped(result, query, key, value, rate, seed):
    weights = attention(
        query, key, np.broadcast_to(np.eye(key.shape[-2]), (*key.shape[:-1], key.shape[-2]))
    )
    kept = (
        np.random.Generator(np.random.PCG64(seed)).random(weights.shape).astype(np.float32) >= rate
    )
    want = np.where(kept, weights / (1 - rate), 0) @ value
    np.testing.assert_allclose(result.astype("float32").numpy(), want, rtol=4e-2, atol=4e-2)


case(
    "nn.attention.attend_with_dropout",
    *qkv((2,), 3, 3, 4, 5, 8, 8),
    dtypes=FLOATS,
    check=dropped,
    rate=0.4,
    seed=11,
)
for options in POSITIONS:
    case(
        "nn.attention.attend_with_dropout",
        *qkv((2,), 4, 2, 5, 7, 8, 3),
        mask(5, 7),
        dtypes=FLOATS,
        reference=attention,
        softcap=1.5,
        **options,
    )
