"""Shapes of the outputs of a wiring's blocks, determined by running each block once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

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
def without_side_effects(module: Module) -> Iterator[None]:
    """Let a module run in inference mode without gradients, and restore its buffers afterwards."""
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
    """Return the outputs of all blocks for given inputs.

    In a loop, a block runs before all of its inputs are known. Unknown terms of a sum are left out;
    unknown parts of a concatenation have the width that their source declares.
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
    """Return a block that can run, and its inputs."""
    for find in (_whole, _some, _guessed):
        for name in waiting:
            edges = wiring.plan.into[name]
            _check_sequences([edge for edge in edges if edge.source in known], known)
            parts = find(wiring, name, known)
            if parts:
                return name, parts
    edge = next(e for name in waiting for e in wiring.plan.into[name] if e.source not in known)
    raise WiringError(
        f"the number of output features of {edge.source!r} is unknown before it runs, and "
        f"{edge.target!r} reads them before; set the attribute out_features of the block"
    )


def _whole(wiring: BlockWiring, name: str, known: Mapping[str, Tensor]) -> list[Tensor]:
    """Return all inputs of a block, if they are known."""
    parts = [known.get(edge.source) for edge in wiring.plan.into[name]]
    return _complete(parts)


def _some(wiring: BlockWiring, name: str, known: Mapping[str, Tensor]) -> list[Tensor]:
    """Return the known terms of a sum."""
    if wiring.rule(name) == "concat":
        return []
    return [known[edge.source] for edge in wiring.plan.into[name] if edge.source in known]


def _guessed(wiring: BlockWiring, name: str, known: Mapping[str, Tensor]) -> list[Tensor]:
    """Return all inputs of a block, with the widths that their sources declare."""
    sources = [edge.source for edge in wiring.plan.into[name]]
    return _complete(
        [known[name] if name in known else _guess(wiring, name, known) for name in sources]
    )


def _complete(parts: Sequence[Tensor | None]) -> list[Tensor]:
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) else []


def _guess(wiring: BlockWiring, name: str, known: Mapping[str, Tensor]) -> Tensor | None:
    """Return zeros of the width that a block declares."""
    width = _declared_width(wiring.blocks[name], "out_features")
    like = next(iter(known.values()))
    return None if width is None else _flow.zeros((*like.shape[:2], width), like)


def _check_sequences(edges: Sequence[Connection], known: Mapping[str, Tensor]) -> None:
    """Raise a ShapeError if the input of a block is not a sequence."""
    first = next(iter(known.values())).shape[:2]
    for source, target, _ in edges:
        shape = known[source].shape
        tokens = len(shape) == 2 and not known[source].dtype.is_floating
        if shape[:2] != first or not (len(shape) == 3 or tokens):
            raise ShapeError(
                f"{source!r} returns shape {shape} for a batch and time of {first}, but {target!r} "
                "expects (batch, time, features)"
            )


def _declared_width(block: Module, *names: str) -> int | None:
    """Return the number of features that a module declares in an attribute."""
    for name in (*names, "features"):
        value = getattr(block, name, None)
        if isinstance(value, int):
            return value
    return None


def mismatch(
    sources: Sequence[str], target: str, block: Module, x: Tensor, error: ShapeError
) -> ShapeError:
    """Return the error of a block that does not accept its input."""
    subject = f"{joined(sources)} {'return' if len(sources) > 1 else 'returns'}"
    expected = _declared_width(block, "in_features")
    if x.ndim and expected is not None and expected != x.shape[-1]:
        return ShapeError(f"{subject} {x.shape[-1]} features, {target!r} expects {expected}")
    return ShapeError(f"{subject} shape {x.shape}, which {target!r} does not accept: {error}")


def unequal(sources: Sequence[str], target: str, parts: Sequence[Tensor]) -> ShapeError:
    """Return the error of outputs that cannot be added."""
    widths = joined([part.shape[-1] for part in parts])
    return ShapeError(
        f"{joined(sources)} return {widths} features, which cannot be added at {target!r}; "
        f'merge={{{target!r}: "concat"}} concatenates them'
    )


def joined(names: Sequence[object]) -> str:
    """Return "'a', 'b' and 'c'"."""
    *most, last = [repr(name) for name in names]
    return f"{', '.join(most)} and {last}" if most else last
