"""Arguments of the C kernels of linear recurrences, for the arrays of any framework."""

from __future__ import annotations

from typing import Any

from ember_ml._native.frame import Frame
from ember_ml.backend.recurrences import (
    Shape,
    Strides,
    contiguous_strides,
    sizes,
    strides_in_time,
)


class _Arguments:
    """Arguments of a call, in the order of the kernel's arrays; a state has a time axis of 1."""

    def __init__(self, frame: Frame, shape: Shape, axis: int, reverse: bool) -> None:
        self.frame, self.shape, self.axis, self.reverse = frame, shape, axis, reverse
        self.state = (*shape[:axis], 1, *shape[axis + 1 :])
        self.arrays: list[Any] = []  # kept alive until the call returns
        self.pointers: list[int | None] = []
        self.numbers = [*sizes(shape, axis)]
        elements = self.numbers[0] * self.numbers[1] * self.numbers[2]
        self.numbers.append(frame.threads_for(elements))

    def read(self, x: Any) -> None:
        """Add an operand of all steps."""
        self._read(x, self.shape, x.shape)

    def read_state(self, x: Any) -> None:
        """Add a state, or None."""
        if x is None:
            self.pointers.append(None)
            self.numbers += (0, 0, 0)
            return
        missing = len(self.shape) - 1 - len(x.shape)
        lengths = (1,) * missing + tuple(x.shape)
        self._read(x, self.state, (*lengths[: self.axis], 1, *lengths[self.axis :]))

    def _read(self, x: Any, shape: Shape, lengths: Shape) -> None:
        frame, axis = self.frame, self.axis
        strides = [*frame.strides(x)]
        if len(lengths) != len(x.shape):  # a state: insert the axes of length 1
            strides = [0] * (len(lengths) - 1 - len(x.shape)) + strides
            strides.insert(axis, 0)
        flat = strides_in_time(lengths, strides, shape, axis)
        if flat is None:
            x = frame.copy(x, shape if shape is self.shape else shape[:axis] + shape[axis + 1 :])
            flat = contiguous_strides(shape, axis)
        self._add(x, flat if shape is self.shape else (flat[0], 0, flat[2]))

    def write(self, shape: Shape, state: bool = False) -> Any:
        """Add a new array for a result, and return it."""
        out = self.frame.empty(shape)
        outer, time, inner = contiguous_strides(self.state if state else self.shape, self.axis)
        self._add(out, (outer, 0 if state else time, inner))
        return out

    def _add(self, x: Any, strides: Strides) -> None:
        pointer, (outer, time, inner) = self.frame.pointer(x), strides
        if self.reverse and time:
            pointer += (self.shape[self.axis] - 1) * time * x.itemsize
            time = -time
        self.arrays.append(x)
        self.pointers.append(pointer)
        self.numbers += (outer, time, inner)

    def call(self, name: str) -> None:
        """Call a kernel."""
        self.frame.call(name, self.pointers, self.numbers)


def forward(
    frame: Frame, a: Any, b: Any, h0: Any, shape: Shape, axis: int, reverse: bool
) -> tuple[Any, Any]:
    """Return the states and the last state.

    Args:
        frame: Access to the arrays.
        a: Factors.
        b: Inputs.
        h0: Initial state, or None.
        shape: Joint shape of a and b, not empty.
        axis: Time axis, not negative.
        reverse: Whether time runs backward.
    """
    arguments = _Arguments(frame, shape, axis, reverse)
    arguments.read(a)
    arguments.read(b)
    arguments.read_state(h0)
    h = arguments.write(shape)
    last = arguments.write(shape[:axis] + shape[axis + 1 :], state=True)
    arguments.call("ember_linear_recurrence")
    return h, last


def adjoint(
    frame: Frame, a: Any, h0: Any, h: Any, grad_h: Any, grad_last: Any, axis: int, reverse: bool
) -> tuple[Any, Any, Any]:
    """Return the gradients of a, b and h0, in the shape of the states; None if h0 is None.

    Args:
        frame: Access to the arrays.
        a: Factors.
        h0: Initial state, or None.
        h: States, not empty.
        grad_h: Gradient of the states.
        grad_last: Gradient of the last state, or None.
        axis: Time axis, not negative.
        reverse: Whether time runs backward.
    """
    shape = tuple(h.shape)
    arguments = _Arguments(frame, shape, axis, reverse)
    arguments.read(a)
    arguments.read(h)
    arguments.read_state(h0)
    arguments.read(grad_h)
    arguments.read_state(grad_last)
    grad_a, grad_b = arguments.write(shape), arguments.write(shape)
    grad_h0 = None
    if h0 is None:
        arguments.read_state(None)
    else:
        grad_h0 = arguments.write(shape[:axis] + shape[axis + 1 :], state=True)
    arguments.call("ember_linear_recurrence_adjoint")
    return grad_a, grad_b, grad_h0
