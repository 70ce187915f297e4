"""Compiled decoding."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, native_arrays, wrap_all
from ember_ml.autodiff.transforms.compiling import CompileCache
from ember_ml.nn import _traversal, states
from ember_ml.nn.functional import current_values, substitute
from ember_ml.nn.models.decoding.decoder import Decoder
from ember_ml.nn.parameter import Variable
from ember_ml.nn.states import State

if TYPE_CHECKING:
    from ember_ml.nn.models.generation import Generator

OPTIONS: dict[str, object] = {"trusted": True}
"""Options of the framework's compiler."""
MIN_CAPACITY = 256
"""Smallest number of positions of a compiled KV cache."""
MAX_ROOM = 4096
"""Number of new positions for which a compiled KV cache has room at first, at most."""
MIN_TOKENS = 256
"""Number of new tokens from which a framework that compiles quickly does so by default."""


class CompiledStep:
    """The `step` of a model, compiled by the framework.

    The parameters are arguments of the compiled code, so it stays valid when their values change.
    It is compiled for each form of the state, once for each batch size and capacity.

    Args:
        model: The model, in inference mode. It is not kept alive.
        variables: Its parameters and buffers.
    """

    def __init__(self, model: Generator, variables: list[Variable]) -> None:
        self._model = weakref.ref(model)
        self.variables = variables
        self._cache = CompileCache(self._step, OPTIONS)

    @property
    def num_compiled(self) -> int:
        """Number of forms of the arguments that were compiled."""
        return self._cache.num_compiled

    def __call__(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits after one more token, and the next state; see `Generator.step`."""
        backend = tokens.backend
        values = native_arrays(current_values(self.variables))
        outputs, template = self._cache(backend, values, (tokens, state))
        result: tuple[Tensor, State] = template.fill(wrap_all(outputs, backend))
        return result

    def _step(self, values: Any, nest: Any) -> tuple[Tensor, State]:
        model = self._model()
        assert model is not None
        with substitute(self.variables, values):
            return model.step(*nest)


_STEPS: weakref.WeakKeyDictionary[Generator, CompiledStep] = weakref.WeakKeyDictionary()
"""Compiled step of each model, for later calls."""


def compiled_step(model: Generator) -> CompiledStep:
    """Return the compiled step of a model; a new one if its layers have changed.

    Args:
        model: The model, in inference mode.
    """
    variables = [variable for _, variable in _traversal.named_variables(model)]
    step = _STEPS.get(model)
    if step is None or list(map(id, step.variables)) != list(map(id, variables)):
        step = _STEPS[model] = CompiledStep(model, variables)
    return step


def obstacle(model: Generator) -> str:
    """Return the reason why decoding of a model cannot be compiled; empty if it can.

    Args:
        model: The model.
    """
    backend = model.parameters()[0].backend
    reason = runtime.LOADED[backend].autodiff.COMPILE_UNAVAILABLE
    if reason:
        return reason
    if any(module._training for module in model.modules()):
        return "the model is in training mode; call eval() first"
    try:
        state = states.fix(model.initial_state(1), 1)
        model.step(convert_to_tensor([0], backend=backend), state)
    except NotImplementedError as error:
        return str(error)
    return ""


def is_worthwhile(model: Generator, count: int, chosen: bool | None) -> bool:
    """Return whether to compile the decoding of some tokens.

    Args:
        model: The model.
        count: Number of new tokens.
        chosen: The option `compile`: None compiles long generations where that is quick.

    Raises:
        ArgumentError: If `chosen` is True and the decoding cannot be compiled.
    """
    if chosen is None:
        quick = runtime.LOADED[model.parameters()[0].backend].autodiff.COMPILES_QUICKLY
        return quick and count >= MIN_TOKENS and not obstacle(model)
    if chosen and (reason := obstacle(model)):
        raise ArgumentError(f"{type(model).__name__}.generate: compile=True: {reason}")
    return chosen


def round_capacity(positions: int) -> int:
    """Return a capacity for some positions: one of four for each doubling of the length.

    Args:
        positions: Number of positions that must fit.

    Example:
        >>> from ember_ml.nn.models.decoding.compiled import round_capacity
        >>> round_capacity(30), round_capacity(1030), round_capacity(1600)
        (256, 1280, 1792)
    """
    step = max(1, 1 << (positions - 1).bit_length() >> 3)
    return max(MIN_CAPACITY, -(-positions // step) * step)


class CompiledDecoder(Decoder):
    """Decoder whose steps are compiled; a step overwrites the state before it.

    Args:
        model: The model, in inference mode.
    """

    def __init__(self, model: Generator) -> None:
        super().__init__(model)
        self._step = compiled_step(model)
        self._positions = self._capacity = 0

    def ready(self, state: State, length: int, count: int) -> State:
        """Return the state in a form of constant shape, with room for new tokens."""
        last = length + min(count, MAX_ROOM)
        self._positions = length
        self._capacity = round_capacity(last)
        return states.fix(state, self._capacity)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits after one more token of each row, and the next state."""
        if self._positions == self._capacity:
            self._capacity *= 2
            state = states.fix(state, self._capacity)
        self._positions += 1
        return self._step(tokens, state)
