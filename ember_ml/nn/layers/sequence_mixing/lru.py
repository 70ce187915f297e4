"""The linear recurrent unit."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import NonNegative, Probability, Size
from ember_ml.nn.initializers import Normal, Uniform
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, State, zeros_beside
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


@register("layers/lru")
class LRU(SequenceMixer):
    r"""A linear recurrence with complex eigenvalues inside the unit circle.

    .. math::
        h_t = \lambda \odot h_{t-1} + \gamma \odot B x_t, \qquad
        y_t = \mathrm{Re}(C h_t) + D \odot x_t

    with lambda = exp(-exp(nu) + i exp(theta)) and gamma = sqrt(1 - abs(lambda)^2).

    Args:
        features: the number of features in and out.
        d_state: the number of complex states; as many as features if not given.
        r_min: the smallest absolute value of lambda at first.
        r_max: the greatest one.
        max_phase: the greatest angle of lambda at first.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> create("layers/lru", features=4)(ops.ones((2, 5, 4))).shape
        (2, 5, 4)

    Reference: Orvieto et al., "Resurrecting Recurrent Neural Networks for Long Sequences", 2023.
    """

    def __init__(
        self,
        features: Size,
        d_state: Size | None = None,
        r_min: Probability = 0.0,
        r_max: Annotated[float, Field(gt=0, le=1)] = 1.0,
        max_phase: NonNegative = 6.283,
    ) -> None:
        if r_min >= r_max:
            raise ArgumentError(f"LRU: r_min={r_min} must be below r_max={r_max}")
        self.features = features
        states = d_state or features
        self.d_state = states
        # uniform in the ring, but for its rims, whose logarithms are not finite
        square = Uniform(r_min**2, r_max**2)((states,))
        square = ops.clip(square, 1e-8, 1.0 - 1e-6)
        phase = Uniform(0.0, max_phase)((states,))
        self.nu = Parameter(ops.log(-0.5 * ops.log(square)), decay=False)
        self.theta = Parameter(ops.log(ops.maximum(phase, 1e-8)), decay=False)
        self.gamma_log = Parameter(0.5 * ops.log(1.0 - square), decay=False)
        self.write = Parameter(Normal(0.0, (2 * features) ** -0.5)((2, states, features)))
        self.read = Parameter(Normal(0.0, states**-0.5)((2, features, states)))
        self.skip = Parameter(Normal(0.0, 1.0)((features,)), decay=False)

    @property
    def state_size(self) -> int:
        """The real and imaginary parts of the states."""
        return 2 * self.d_state

    def _factor(self) -> Tensor:
        """Lambda."""
        nu, theta = (ops.cast(v, "float32") for v in (self.nu, self.theta))
        size, angle = ops.exp(-ops.exp(nu)), ops.exp(theta)
        return _complex(size * ops.cos(angle), size * ops.sin(angle))

    def _entry(self, x: Tensor) -> Tensor:
        """Gamma B x, complex."""
        scaled = self.write * ops.expand_dims(ops.exp(self.gamma_log), 1)
        flat = ops.linear(x, ops.reshape(scaled, (2 * self.d_state, self.features)))
        real, imag = ops.split(ops.cast(flat, "float32"), 2, axis=-1)
        return _complex(real, imag)

    def _read_out(self, h: Tensor, x: Tensor) -> Tensor:
        flat = ops.cast(ops.concat([ops.real(h), -ops.imag(h)], axis=-1), x.dtype)
        weight = ops.concat([self.read[0], self.read[1]], axis=-1)
        return ops.linear(flat, weight) + self.skip * x

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mixed."""
        self.check_sequence(x, mask)
        if x.size == 0:
            return x
        if mask is not None:
            x = ops.where(ops.expand_dims(mask, -1), x, 0.0)
        h, _ = ops.linear_recurrence(self._factor(), self._entry(x))
        return self._read_out(h, x)

    def initial_state(self, batch: int) -> State:
        """States of zero, complex."""
        return zeros_beside(self.skip, (batch, self.d_state), "complex64")

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The output of one position, and the state after it."""
        h = self._factor() * state + self._entry(x)
        return self._read_out(h, x), h


def _complex(real: Tensor, imag: Tensor) -> Tensor:
    return ops.cast(real, "complex64") + 1j * ops.cast(imag, "complex64")
