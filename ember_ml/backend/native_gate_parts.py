"""Arguments of the C kernels of Hyena's gates, for long filters by FFT."""

from __future__ import annotations

from typing import Any

from ember_ml._native.frame import Frame


class GateParts:
    """Short filters of `gated_long_conv`, in the layout (channels, batch, time).

    Args:
        frame: Access to the arrays.
        x: (batch, shared, time), not empty.
        weight: (3 * channels, taps).
        bias: (3 * channels,).
        mask: (batch, time), contiguous, False for padding; None if there is none.
    """

    def __init__(self, frame: Frame, x: Any, weight: Any, bias: Any, mask: Any) -> None:
        batch, shared, length = x.shape
        filters, taps = weight.shape
        padded = frame.empty((shared, batch, taps - 1 + length))  # zeros before each row
        padded[..., : taps - 1] = 0
        padded[..., taps - 1 :] = x.swapaxes(0, 1)
        threads = min(frame.threads_for(filters * batch * length * taps), shared)
        memory = frame.empty((threads, 3, batch, taps - 1 + length))
        weight, bias = (frame.copy(each, tuple(each.shape)) for each in (weight, bias))
        self._frame = frame
        self._arrays = (padded, weight, bias, mask, memory)
        self._sizes = (shared, filters // 3, batch, length, taps, threads)

    def run(self) -> tuple[Any, Any]:
        """Return the query, and the key times the value."""
        results = [self._frame.empty(self._sizes[1:4]) for _ in range(2)]
        self._frame.call_arrays("ember_gate_parts", (*self._arrays, *results), self._sizes)
        return results[0], results[1]

    def pull(self, *grads: Any) -> tuple[Any, Any, Any]:
        """Return the gradients of x (shared, batch, time), weight and bias.

        Args:
            grads: Gradients of the results of `run`.
        """
        frame, sizes = self._frame, self._sizes
        given = [frame.copy(g, sizes[1:4]) for g in grads]
        _, weight, bias, *_ = self._arrays
        shapes = ((sizes[0], *sizes[2:4]), tuple(weight.shape), tuple(bias.shape))
        of_x, of_weight, of_bias = results = [frame.empty(shape) for shape in shapes]
        frame.call_arrays("ember_gate_parts_adjoint", (*self._arrays, *given, *results), sizes)
        return of_x, of_weight, of_bias
