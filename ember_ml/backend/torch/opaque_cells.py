"""Recurrent cells as single ops for `torch.compile`, which would unroll their steps.

The adjoint recomputes the cell: a compiled graph stores the operands only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ember_ml import _native
from ember_ml._native.frame import Frame
from ember_ml.backend.torch import native_loops
from ember_ml.backend.torch.native import SUFFIXES, frame
from ember_ml.backend.torch.nesting import needs_plain_ops

Passes = Callable[..., native_loops.Pair]


class OpaqueCell:
    """Op of a cell's kernels, with its adjoint and its gradient.

    Args:
        name: Name of the op in `torch.ops.ember_ml`.
        passes: Function of the access to the tensors and the option that returns the two passes.
        operands: Schema of the operands; the first is x, and the next ones are the states.
        states: Number of states. The results are the sequence of the first state, and with `last`
            the states after the last step.
        last: Whether the last states are results, too.
    """

    def __init__(
        self, name: str, passes: Passes, operands: str, states: int, *, last: bool
    ) -> None:
        self.passes, self.states, self.last = passes, states, last
        self.count = operands.count("Tensor")
        results = ", ".join(["Tensor"] * (1 + states * last))
        self.run = torch.library.custom_op(
            f"ember_ml::{name}",
            self._run,
            mutates_args=(),
            schema=f"({operands}, bool option) -> ({results})",
        )
        self.pull = torch.library.custom_op(
            f"ember_ml::{name}_adjoint",
            self._pull,
            mutates_args=(),
            schema=f"({operands}, bool option, Tensor[] cotangents) -> Tensor[]",
        )
        self.run.register_fake(self._fake)
        self.pull.register_fake(self._fake_pull)
        self.run.register_autograd(self._backward, setup_context=self._save)

    def __call__(self, operands: Sequence[Any], option: bool = False) -> Any:
        """Return the results of the cell.

        Args:
            operands: Operands of the cell; None for one that is not given.
            option: Option of the cell, if it has one.
        """
        return self.run(*operands, option)

    def _split(self, args: Sequence[Any]) -> tuple[list[Any], bool]:
        return list(args[: self.count]), args[self.count]

    def _run(self, *args: Any) -> Any:
        operands, option = self._split(args)
        outs = self.passes(_access(operands), option)[0](*operands)[0]
        return tuple(x.contiguous() for x in outs) if self.last else outs.contiguous()

    def _pull(self, *args: Any) -> list[torch.Tensor]:
        operands, option = self._split(args)
        operands[0] = operands[0].detach().requires_grad_()  # `pull` reads `requires_grad`
        run, pull = self.passes(_access(operands), option)
        grads = pull(operands, run(*operands)[1], *args[-1])
        return [
            args[0].new_empty(0) if x is None else g.detach().contiguous().clone()
            for x, g in zip(operands, grads, strict=True)
        ]

    def _fake(self, *args: Any) -> Any:
        x, *states = args[: 1 + self.states]
        sequence = x.new_empty((*x.shape[:2], states[0].shape[1]))
        return (sequence, *map(torch.empty_like, states)) if self.last else sequence

    def _fake_pull(self, *args: Any) -> list[torch.Tensor]:
        operands, _ = self._split(args)
        return [args[0].new_empty(0 if x is None else x.shape) for x in operands]

    def _save(self, ctx: Any, inputs: Any, output: Any) -> None:
        operands, ctx.option = self._split(inputs)
        ctx.save_for_backward(*operands)

    def _backward(self, ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
        operands = ctx.saved_tensors
        grads = self.pull(*operands, ctx.option, list(cotangents))
        own = [None if x is None else g for x, g in zip(operands, grads, strict=True)]
        return *own, None


_LIBRARY = _native.library  # a compiled graph keeps it if the kernels are switched off later


def _access(operands: Sequence[Any]) -> Frame:
    access = frame(*operands, library=_LIBRARY)
    assert access is not None  # `accepts` has checked the operands
    return access


def accepts(operands: Sequence[Any]) -> bool:
    """Return whether a compiler sees the call as one op.

    Args:
        operands: Operands of a cell with shapes that fit; None for one that is not given.
    """
    if _native.library is None or needs_plain_ops():
        return False
    dtype = operands[0].dtype
    return (
        dtype in SUFFIXES
        and not torch.is_autocast_enabled("cpu")
        and all(
            x is None or (x.dtype is dtype and x.device.type == "cpu" and x.numel())
            for x in operands
        )
    )


_GATED = "Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh"
lstm = OpaqueCell(
    "lstm",
    lambda access, _: native_loops.lstm(access),
    f"Tensor x, Tensor h0, Tensor c0, {_GATED}",
    states=2,
    last=True,
)
gru = OpaqueCell(
    "gru",
    lambda access, _: native_loops.gru(access),
    f"Tensor x, Tensor h0, {_GATED}",
    states=1,
    last=True,
)
closed_form = OpaqueCell(
    "closed_form",
    native_loops.closed_form,
    "Tensor x, Tensor h0, Tensor weight_hh, Tensor? weight, Tensor? bias, Tensor? timespans",
    states=1,
    last=False,
)
liquid = OpaqueCell(
    "liquid",
    lambda access, _: native_loops.liquid(access),
    "Tensor x, Tensor v0, Tensor capacity, Tensor slopes, Tensor offsets, Tensor weights",
    states=1,
    last=False,
)
