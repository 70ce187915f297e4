"""Random damage of files: bytes, JSON values, headers of safetensors files and lines of text."""

from __future__ import annotations

import copy
import json
import random
import struct
from typing import Any

VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**31,
    2**62,
    10**30,
    10**400,
    1e308,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "text",
    "\x00",
    [],
    [[]],
    {},
    {"type": "layers/dense"},
]
DEEP = "[" * 3000 + "]" * 3000


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Return the content of a file with some damage.

    Args:
        content: Content of a JSON, safetensors, text or binary file.
        rng: Source of the choices.
    """
    actions = [_flip, _flip, _truncate, _insert, _duplicate, _blank]
    if content[:1] in (b"{", b"["):
        actions += [_json_value] * 8 + [_deep]
    elif content[8:9] == b"{":
        actions += [_header] * 8
    else:
        actions += [_line] * 4
    return rng.choice(actions)(content, rng)


def _flip(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 8])):
        if damaged:
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def _truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _insert(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.randbytes(rng.randrange(1, 20)) + content[at:]


def _duplicate(content: bytes, rng: random.Random) -> bytes:
    start, stop = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:stop] + content[start:stop] + content[stop:]


def _blank(content: bytes, rng: random.Random) -> bytes:
    start, stop = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + bytes(stop - start) + content[stop:]


def _deep(content: bytes, rng: random.Random) -> bytes:
    return b'{"config": ' + DEEP.encode() + b"}"


def _line(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    words = [b"*a", b"&a [*a]", b"!!python/none", DEEP.encode(), b"-", b"a: b: c", b"9" * 400]
    lines[at] = rng.choice([b"", lines[at] * 2, lines[at].partition(b":")[0], *words])
    if b":" in content and rng.random() < 0.5:
        key = lines[at].partition(b":")[0]
        lines[at] = key + b": " + json.dumps(rng.choice(VALUES)).encode()
    return b"\n".join(lines)


def _json_value(content: bytes, rng: random.Random) -> bytes:
    """Remove, replace or add a value at any depth; of a log, in one of its lines."""
    lines = content.split(b"\n")
    try:
        return json.dumps(changed(json.loads(content), rng)).encode()
    except ValueError:
        at = rng.randrange(len(lines))
    try:
        lines[at] = json.dumps(changed(json.loads(lines[at]), rng)).encode()
    except ValueError:
        lines[at] = b"{}"
    return b"\n".join(lines)


def changed(data: Any, rng: random.Random) -> Any:
    """Return nested data with one value removed, replaced or added."""
    data = copy.deepcopy(data)
    places = list(_places(data))
    if not places:
        return rng.choice(VALUES)
    parent, key = rng.choice(places)
    action = rng.random()
    if action < 0.25:
        del parent[key]
    elif action < 0.85:
        parent[key] = copy.deepcopy(rng.choice(VALUES))
    elif isinstance(parent, dict):
        parent[rng.choice(["type", "unknown", ""])] = copy.deepcopy(rng.choice(VALUES))
    else:
        parent.append(copy.deepcopy(rng.choice(VALUES)))
    return data


def enlarge(content: bytes, rng: random.Random) -> bytes:
    """Return a JSON file with some of its integers, or missing values, replaced by large ones."""
    data = json.loads(content)
    places = [
        (parent, key)
        for parent, key in _places(data)
        if parent[key] is None or (type(parent[key]) is int and key != "format")
    ]
    for parent, key in rng.sample(places, min(len(places), rng.choice([1, 1, 2, 3]))):
        parent[key] = rng.choice([30_000, 10**5, 10**6, 2**31, 10**9, 2**40, 2**62])
    return json.dumps(data).encode()


def _places(data: Any) -> Any:
    keys = list(data) if isinstance(data, dict) else range(len(data))
    for key in keys:
        yield data, key
        if isinstance(data[key], (dict, list)):
            yield from _places(data[key])


def _header(content: bytes, rng: random.Random) -> bytes:
    """Change the header of a safetensors file."""
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    kind = rng.random()
    if kind < 0.2:
        other = rng.choice([0, 1, length - 1, length + 1, 2**31, 2**63, 2**64 - 1])
        return struct.pack("<Q", other) + content[8:]
    if kind < 0.4:
        names = [name for name in header if name != "__metadata__"]
        first, second = rng.choice(names), rng.choice(names)
        header[first], header[second] = header[second], header[first]
    else:
        header = changed(header, rng)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + length :]
