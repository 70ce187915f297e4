"""VJP rule of einsum: the gradient of an operand is another einsum."""

from __future__ import annotations

import functools
import string
from collections.abc import Sequence
from typing import NamedTuple

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.autodiff.rules.helpers import conj
from ember_ml.ops.contraction import _einsum
from ember_ml.ops.creation import filled

Shape = tuple[int, ...]


class Plan(NamedTuple):
    """An einsum of the result's gradient, the other operands, and extra ones and identities."""

    subscripts: str
    ones: tuple[int, ...]
    identities: tuple[int, ...]


def _letters(subscripts: str, shapes: Sequence[Shape]) -> tuple[list[str], str]:
    """Return a letter per axis of each operand and of the result, with "..." and "->" expanded."""
    given, _, result = subscripts.partition("->")
    parts = given.split(",")
    unused = [one for one in string.ascii_letters if one not in subscripts]
    widths = [
        len(shape) - len(part.replace("...", "")) for part, shape in zip(parts, shapes, strict=True)
    ]
    max_width = max(
        [width for width, part in zip(widths, parts, strict=True) if "..." in part], default=0
    )
    dots = "".join(unused[:max_width])
    if "->" not in subscripts:
        flat = given.replace(",", "").replace("...", "")
        result = "..." + "".join(sorted({one for one in flat if flat.count(one) == 1}))
    expanded = [
        part.replace("...", dots[max_width - width :] if "..." in part else "")
        for part, width in zip(parts, widths, strict=True)
    ]
    return expanded, result.replace("...", dots)


@functools.lru_cache(maxsize=1024)
def _plan(subscripts: str, shapes: tuple[Shape, ...], at: int) -> Plan:
    parts, result = _letters(subscripts, shapes)
    lengths: dict[str, int] = {}
    for part, shape in zip(parts, shapes, strict=True):
        for letter, length in zip(part, shape, strict=True):
            lengths[letter] = max(lengths.get(letter, 1), length) if length else 0
    used = "".join(parts) + result
    unused = iter([one for one in string.ascii_letters if one not in used])
    sources = [result, *parts[:at], *parts[at + 1 :]]
    available = set(result)
    for part, shape in zip(sources[1:], (*shapes[:at], *shapes[at + 1 :]), strict=True):
        available |= {one for one, n in zip(part, shape, strict=True) if n == lengths[one]}
    ones: list[int] = []
    identities: list[int] = []
    repeated = []
    target = ""
    for letter, length in zip(parts[at], shapes[at], strict=True):
        if length == 1 and lengths[letter] > 1:
            continue  # broadcast: summed over
        if letter in target:
            other = next(unused)
            identities.append(length)
            repeated.append(letter + other)
            target += other
            continue
        if letter not in available:
            ones.append(length)
            sources.append(letter)
        target += letter
    return Plan(",".join([*sources, *repeated]) + "->" + target, tuple(ones), tuple(identities))


@vjp_rule(_einsum)
def _(g: Tensor, out: Tensor, tensors: Sequence[Tensor], subscripts: str) -> list[Tensor]:
    shapes = tuple([x.shape for x in tensors])
    factors = [conj(x) for x in tensors]
    grads = []
    for at, x in enumerate(tensors):
        plan = _plan(subscripts, shapes, at)
        unit = convert_to_tensor(1.0, g.dtype, backend=g.backend)
        extra = [filled(unit, length) for length in plan.ones]
        extra += [ops.diag_embed(filled(unit, length)) for length in plan.identities]
        others = [*factors[:at], *factors[at + 1 :]]
        grads.append(ops.reshape(_einsum([g, *others, *extra], plan.subscripts), x.shape))
    return grads
