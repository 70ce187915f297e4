"""What a wiring's blocks give and take, found out by running them once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml._core import recording
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.functional import current_values, substitute
from ember_ml.nn.module import Module, inference_mode
from ember_ml.nn.wirings import _flow
from ember_ml.nn.wirings._plan import Connection
from ember_ml.nn.wirings.base import WiringError

if TYPE_CHECKING:
    from ember_ml.nn.wirings.blocks import BlockWiring


@contextlib.contextmanager
def unnoticed(module: Module) -> Iterator[None]:
    """Let a module run as in use within the block, without gradient, and leave it as it was."""
    buffers = module.buffers()
    state = ops.random.get_state()
    try:
        with (
            inference_mode(module.modules()),
            recording.only(),
            substitute(buffers, current_values(buffers)),
        ):
            yield
    finally:
        ops.random.set_state(state)


def trace(wiring: BlockWiring, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What each input and block gives, for given inputs.

    In a loop a block runs before all that it reads is known: what is added to the rest is left out,
    and what is put beside it is as wide as its source says.
    """
    known, waiting = dict(inputs), list(wiring.plan.order)
    while waiting:
        name, parts = _next(wiring, waiting, known)
        known[name] = wiring.run_block(name, parts)
        waiting.remove(name)
    for name in wiring.plan.order:
        edges = wiring.plan.into[name]
        _check_sequences(edges, known)
        wiring.merged(name, [known[edge.source] for edge in edges])
    return known


def _next(
    wiring: BlockWiring, waiting: Sequence[str], known: Mapping[str, Tensor]
) -> tuple[str, list[Tensor]]:
    """A block that can run, and what it is given."""
    for find in (_whole, _some, _guessed):
        for name in waiting:
            edges = wiring.plan.into[name]
            _check_sequences([edge for edge in edges if edge.source in known], known)
            parts = find(wiring, name, known)
            if parts:
                return name, parts
    edge = next(e for name in waiting for e in wiring.plan.into[name] if e.source not in known)
    raise WiringError(
        f"how many features {edge.source!r} gives is not known before it runs, and {edge.target!r} "
        "reads them before; give the block an attribute out_features"
    )


def _whole(wiring: BlockWiring, name: str, known: Mapping[str, Tensor]) -> list[Tensor]:
    """All that a block reads, if it is known."""
    parts = [known.get(edge.source) for edge in wiring.plan.into[name]]
    return _complete(parts)


def _some(wiring: BlockWiring, name: str, known: Mapping[str, Tensor]) -> list[Tensor]:
    """Of what is added up, that which is known."""
    if wiring.rule(name) == "concat":
        return []
    return [known[edge.source] for edge in wiring.plan.into[name] if edge.source in known]


def _guessed(wiring: BlockWiring, name: str, known: Mapping[str, Tensor]) -> list[Tensor]:
    """All that a block reads, as wide as its sources say."""
    sources = [edge.source for edge in wiring.plan.into[name]]
    return _complete(
        [known[name] if name in known else _guess(wiring, name, known) for name in sources]
    )


def _complete(parts: Sequence[Tensor | None]) -> list[Tensor]:
    found = [part for part in parts if part is not None]
    return found if len(found) == len(parts) else []


def _guess(wiring: BlockWiring, name: str, known: Mapping[str, Tensor]) -> Tensor | None:
    """What a block will give, by what it says."""
    width = _says(wiring.blocks[name], "out_features")
    like = next(iter(known.values()))
    return None if width is None else _flow.zeros((*like.shape[:2], width), like)


def _check_sequences(edges: Sequence[Connection], known: Mapping[str, Tensor]) -> None:
    """Raise a ShapeError if what is read is no sequence."""
    first = next(iter(known.values())).shape[:2]
    for source, target, _ in edges:
        shape = known[source].shape
        tokens = len(shape) == 2 and not known[source].dtype.is_floating
        if shape[:2] != first or not (len(shape) == 3 or tokens):
            raise ShapeError(
                f"{source!r} gives the shape {shape} for a batch and time of {first}, and "
                f"{target!r} takes (batch, time, features)"
            )


def _says(block: Module, *names: str) -> int | None:
    """What a module says of its features."""
    for name in (*names, "features"):
        value = getattr(block, name, None)
        if isinstance(value, int):
            return value
    return None


def mismatch(
    sources: Sequence[str], target: str, block: Module, x: Tensor, error: ShapeError
) -> ShapeError:
    """The error of a block that does not take what it is given."""
    givers = f"{joined(sources)} {'give' if len(sources) > 1 else 'gives'}"
    taken = _says(block, "in_features")
    if x.ndim and taken is not None and taken != x.shape[-1]:
        return ShapeError(f"{givers} {x.shape[-1]} features, {target!r} takes {taken}")
    return ShapeError(f"{target!r} does not take what {givers}, {x.shape}: {error}")


def unequal(sources: Sequence[str], target: str, parts: Sequence[Tensor]) -> ShapeError:
    """The error of outputs that cannot be added."""
    widths = joined([part.shape[-1] for part in parts])
    return ShapeError(
        f"{joined(sources)} give {widths} features, which cannot be added at {target!r}; "
        f'merge={{{target!r}: "concat"}} puts them side by side'
    )


def joined(names: Sequence[Any]) -> str:
    """'a', 'b' and 'c'."""
    *most, last = [repr(name) for name in names]
    return f"{', '.join(most)} and {last}" if most else last
