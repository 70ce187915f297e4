"""The base class of optimizers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeAlias, TypedDict

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike, native_arrays, set_natives
from ember_ml.backend.interface import Array, Arrays, Optimization, StepNumber
from ember_ml.configs import Config
from ember_ml.nn import Parameter
from ember_ml.registry import REGISTRY
from ember_ml.registry.base import close_matches
from ember_ml.training.optimizer.groups import (
    MatchedGroups,
    Options,
    ParametersLike,
    read_groups,
    saved_options,
)
from ember_ml.training.optimizer.plan import Batch, Plan, Shape, Slot, State
from ember_ml.training.optimizer.storage import StateOptions, Storage

GradientsLike: TypeAlias = Mapping[str, TensorLike | None] | Iterable[TensorLike | None]
"""Gradients by parameter name, or in the order of the parameters."""


class StepValues(NamedTuple):
    """The numbers of a step: what changes from step to step, by name."""

    learning_rate: float


class Sharing(Protocol):
    """How processes share parameters, of which each has a part."""

    def whole_shape(self, name: str, shape: Shape) -> Shape:
        """Return the shape of a whole parameter, for the shape of a part."""

    def whole(self, names: Sequence[str], parts: Arrays) -> list[Array]:
        """Return whole arrays from the parts of all processes."""

    def parts(self, names: Sequence[str], arrays: Arrays) -> list[Array]:
        """Return the parts of this process of whole arrays."""


class OptimizerState(TypedDict):
    """The state of an optimizer: plain data, and tensors."""

    type: str
    step: int
    groups: list[dict[str, Any]]
    extra: dict[str, Any]
    tensors: dict[str, Tensor]


class Optimizer:
    """Base class of optimizers, which update parameters by their gradients.

    To write an optimizer, pass the options to this `__init__` and define `update_step`; define
    `slots` if it stores arrays for each parameter, and `step_values` if it needs other numbers than
    the learning rate.

    A step leaves the old values of a parameter, and views of them, unchanged where other code holds
    them. No other thread may use the parameters during a step. Weight decay applies to parameters
    whose `decay` is True. Half-precision parameters have float32 state and updates.

    Args:
        params: A module, parameters, (name, parameter) pairs, or groups: dicts with "params" and
            options of their own.
        groups: Options of parameters by name: {"match": patterns, option: value}. A pattern is as
            in file names ("*.bias"). The first matching group applies.
        state_bits: Bits of the state: 32, or 8 with a scale for each block of 256 elements.
            State of less than 4096 elements, and state that needs exact values, has 32 bits.
        state_device: Device on which the state is stored between steps, such as "cpu". Default:
            that of the parameters.
        options: The learning rate and the other options of groups that do not set their own.

    Attributes:
        groups: Parameter groups with their options.
        names: Names of the parameters, in the order of their gradients.
        parameters: The parameters.
        step_count: Number of steps done.
        training: Whether the parameters have their training values (see `train` and `eval`).
        factor: Factor on the learning rates, set by a schedule.
        storage: How the state is stored between steps.

    Example:
        >>> from ember_ml.training.optimizer import SGD
        >>> weight = Parameter([1.0, 2.0], name="weight")
        >>> optimizer = SGD([weight], learning_rate=0.5)
        >>> optimizer.step({"weight": tensor.array([1.0, 1.0])})
        >>> weight.tolist()
        [0.5, 1.5]
    """

    config: Config | None = None
    """The config it was built from, if its class is registered."""
    ELEMENTWISE: ClassVar[bool] = False
    """Whether each element of a parameter is updated on its own. Other optimizers need whole
    parameters: if several processes share them, they are gathered for the update."""
    sharing: Sharing | None = None
    """How processes share the parameters, if the update needs whole ones."""
    in_place = False
    """Whether a step writes into the memory of the parameters, which others share on purpose."""

    def __init__(
        self,
        params: ParametersLike,
        groups: MatchedGroups = (),
        *,
        state_bits: Literal[8, 32] = 32,
        state_device: str | None = None,
        **options: Any,
    ) -> None:
        self.storage = Storage(state_bits, state_device)
        self.groups = read_groups(type(self).__name__, params, options, groups)
        for group in self.groups:
            group.set_options(self._checked(group.all_options()))
        self._list_parameters()
        self.step_count = 0
        self.training = True
        self.factor = 1.0
        self._lags = [0] * len(self.names)
        self._plan: Plan | None = None
        self._absent: tuple[int, ...] | None = None

    @staticmethod
    def check_config(config: Any) -> None:
        """Raise an error if a group has an option that the optimizer does not have."""
        own = ("groups", *StateOptions.__annotations__)
        fields = [name for name in type(config).model_fields if name not in own]
        for group in getattr(config, "groups", ()):
            for name in group:
                if name != "match" and name not in fields:
                    raise ValueError(f"a group has no option {name!r}{close_matches(name, fields)}")

    def _list_parameters(self) -> None:
        """Collect the parameters of the groups; new lists replace the old ones."""
        self.names = [name for group in self.groups for name in group.names]
        self.parameters = [each for group in self.groups for each in group.parameters]
        frozen = [each for group in self.groups for _, each in group.frozen]
        self._frozen = [each for each in frozen if each.dtype.is_floating]

    def add_unfrozen(self) -> bool:
        """Add the parameters that were frozen before and are trainable now.

        They join their groups, with a new state; the state of the others stays. `step` calls it.

        Returns:
            Whether there are such parameters. `parameters` is then a new list.
        """
        if not self._frozen or not any(x.trainable for x in self._frozen):
            return False
        saved = self._current_plan().tensors()
        lags = dict(zip(self.names, self._lags, strict=True))
        for group in self.groups:
            added = [name for name, x in group.frozen if x.trainable and x.dtype.is_floating]
            group.include([*group.names, *added])
        self._list_parameters()
        self._lags = [lags.get(name, self.step_count) for name in self.names]
        options = [group.options for group in self.groups]
        self._plan, self._absent = Plan(self, options, saved, partial=True), None
        return True

    def options_for(self, parameter: Parameter, options: Options) -> Options:
        """Return the options of a parameter; by default, the options of its group.

        Args:
            parameter: The parameter.
            options: The options of its group, without the learning rate.
        """
        return options

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """Return the arrays to store for a parameter from step to step; by default, none.

        Args:
            shape: The shape of the parameter.
            options: The options of the parameter.
        """
        return {}

    def step_values(self, options: Options, learning_rate: float, step: int) -> tuple[float, ...]:
        """Return the numbers of a step as a NamedTuple of floats; by default, `StepValues`.

        What `update_step` reads from here may change from step to step; a compiler treats
        everything else as constant.

        Args:
            options: The options of the parameters.
            learning_rate: The learning rate of this step, including the schedule's factor.
            step: Number of the step: 1, 2, 3 ...
        """
        return StepValues(learning_rate)

    def update_step(
        self,
        k: Optimization,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        values: Any,
    ) -> tuple[Arrays, State]:
        """Return the updated parameters and their new state.

        Args:
            k: The backend's arithmetic on lists of arrays.
            params: Arrays of parameters that share their options; may be overwritten.
            grads: Their gradients; must not be overwritten.
            state: The arrays of each slot; may be overwritten.
            options: Options, which are the same in every step.
            values: The result of `step_values`. Its numbers are 0-d arrays during compilation.
        """
        raise NotImplementedError

    @property
    def learning_rate(self) -> float:
        """Learning rate of the first group without the schedule's factor; setting it sets all."""
        return self.groups[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        for group in self.groups:
            group.learning_rate = value

    def train(self) -> Self:
        """Give the parameters their training values; most optimizers have no others."""
        self.training = True
        return self

    def eval(self) -> Self:
        """Give the parameters their values for evaluation; most optimizers have no others."""
        self.training = False
        return self

    def training_values(self) -> AbstractContextManager[None]:
        """Return a context in which the parameters have their training values."""
        return contextlib.nullcontext()

    def step(self, grads: GradientsLike) -> None:
        """Update the parameters.

        Args:
            grads: Gradients by name, or in the order of the parameters. A parameter whose gradient
                is None, or whose name is missing, stays unchanged.
        """
        self._before_step()
        self.add_unfrozen()
        plan = self._current_plan()
        arrays = self._native_gradients(plan, grads)
        absent = tuple(at for at, array in enumerate(arrays) if array is None)
        for batch in self._batches(plan, absent):
            own = [arrays[at] for at in batch.indices]
            params, state = self._run(batch, native_arrays(batch.parameters), own, plan)
            set_natives(batch.parameters, params)
            batch.write(state, plan.state)
        self._count(absent)

    def _run(self, batch: Batch, params: Arrays, grads: Arrays, plan: Plan) -> tuple[Arrays, State]:
        """Return the updated parameters of a batch, or of their parts, and the new state."""
        state, values = batch.read(plan.state), self._values(batch)
        if self.sharing is None:
            return batch.run(params, grads, state, values)
        names = [self.names[at] for at in batch.indices]
        whole = self.sharing.whole(names, params), self.sharing.whole(names, grads)
        params, state = batch.run(*whole, state, values)
        return self.sharing.parts(names, params), state

    def apply_gradients(
        self, grads_and_params: Iterable[tuple[TensorLike | None, Parameter]]
    ) -> None:
        """Update the parameters.

        Args:
            grads_and_params: (gradient, parameter) pairs, such as a tape's gradients with the
                parameters.
        """
        places = {id(parameter): at for at, parameter in enumerate(self.parameters)}
        grads: list[TensorLike | None] = [None] * len(self.parameters)
        for grad, parameter in grads_and_params:
            if id(parameter) not in places:
                raise ArgumentError(
                    f"{type(self).__name__}.apply_gradients: {parameter!r:.60} is not one of the "
                    "optimizer's parameters"
                )
            grads[places[id(parameter)]] = grad
        self.step(grads)

    def scalars(self) -> list[float]:
        """Return the numbers of the next step that change from step to step, for `update`."""
        self._before_step()
        batches = self._batches(self._current_plan(), ())
        return [value for batch in batches for value in self._values(batch)]

    def state_arrays(self) -> list[Array]:
        """Return the native arrays that are stored from step to step, for `update`."""
        return list(self._current_plan().state)

    def update(
        self,
        params: Arrays,
        grads: Arrays,
        state: Arrays,
        scalars: Sequence[StepNumber],
    ) -> tuple[list[Array], list[Array]]:
        """Compute a step as a pure function of native arrays, which a compiler can trace.

        Args:
            params: Arrays of the parameters, in order.
            grads: Their gradients.
            state: The result of `state_arrays`.
            scalars: The result of `scalars`, as numbers or 0-d arrays.

        Returns:
            The new parameters and the new state, for `commit`.
        """
        new_params, new_state, at = list(params), list(state), 0
        batches = self._batches(self._current_plan(), ())
        for batch, values_cls in zip(batches, self._values_classes, strict=True):
            count = len(values_cls._fields)
            updated, batch_state = batch.pure(
                [params[index] for index in batch.indices],
                [grads[index] for index in batch.indices],
                batch.read(state),
                values_cls(*scalars[at : at + count]),
            )
            at += count
            for index, value in zip(batch.indices, updated, strict=True):
                new_params[index] = value
            batch.write(batch_state, new_state)
        return new_params, new_state

    def commit(self, params: Arrays, state: Arrays, count: bool = True) -> None:
        """Store the result of `update`, and count the step.

        Args:
            params: The new arrays of the parameters.
            state: The new state.
            count: Whether to count the step. If False, call `count_step` after an update.
        """
        set_natives(self.parameters, params)
        self._current_plan().state = list(state)
        if count:
            self._count(())

    def count_step(self) -> None:
        """Count a step in which all parameters had a gradient."""
        self._count(())

    def lags(self) -> tuple[int, ...]:
        """Return the number of steps in which each parameter had no gradient."""
        return tuple(self._lags)

    def state_bytes(self) -> int:
        """Return the memory of the stored state in bytes."""
        return sum(x.nbytes for x in self._current_plan().tensors().values())

    def overrides_step(self) -> bool:
        """Return whether `step` is overridden, so that `update` alone would not be a step."""
        return type(self).step is not Optimizer.step or "step" in vars(self)

    def state_dict(self) -> OptimizerState:
        """Return the state to save: plain data, and tensors under "tensors"."""
        return {
            "type": self._type(),
            "step": self.step_count,
            "groups": [group.plain() for group in self.groups],
            "extra": self._extra(),
            "tensors": self._current_plan().tensors(copy=True),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Restore a state. If it does not fit, raise an error and change nothing.

        Args:
            state: The result of `state_dict`, on any backend.
        """
        if state.get("type") != self._type():
            raise ArgumentError(
                f"{self._type()}: cannot load the state of {state.get('type')!r}; build the "
                "optimizer that was saved"
            )
        saved = saved_options(type(self).__name__, self.groups, state.get("groups", []))
        options = [
            self._checked({**group.all_options(), **own})
            for group, own in zip(self.groups, saved, strict=True)
        ]
        self._plan = self._saved_plan(options, state)
        self._absent = None
        for group, own in zip(self.groups, options, strict=True):
            group.set_options(own)
        self.step_count = int(state["step"])
        self._load_extra(state.get("extra", {}))
        return self

    def _saved_plan(self, options: list[dict[str, Any]], state: Mapping[str, Any]) -> Plan:
        """Return the plan for a state, and include the parameters that it has."""
        before = [group.names for group in self.groups]
        try:
            for group, saved in zip(self.groups, state["groups"], strict=True):
                group.include(saved["params"])
            self._list_parameters()
            return Plan(self, options, state.get("tensors", {}))
        except Exception:
            for group, names in zip(self.groups, before, strict=True):
                group.include(names)
            self._list_parameters()
            raise

    def __repr__(self) -> str:
        groups = ", ".join(repr(group) for group in self.groups)
        return f"{type(self).__name__}({groups}, step {self.step_count})"

    def _before_step(self) -> None:
        """Check the state before a step; by default, nothing is wrong."""

    def _type(self) -> str:
        return self.config.component if self.config is not None else type(self).__name__

    def _extra(self) -> dict[str, Any]:
        """Return further state as plain data."""
        lags = {name: lag for name, lag in zip(self.names, self._lags, strict=True) if lag}
        return {"factor": self.factor, "lags": lags}

    def _load_extra(self, extra: Mapping[str, Any]) -> None:
        self.factor = float(extra.get("factor", 1.0))
        lags = extra.get("lags", {})
        self._lags = [int(lags.get(name, 0)) for name in self.names]

    def _values(self, batch: Batch) -> tuple[float, ...]:
        """Return the numbers of the next step for a batch of parameters."""
        learning_rate = batch.group.learning_rate * self.factor
        return self.step_values(batch.options, learning_rate, self.step_count + 1 - batch.lag)

    def _checked(self, options: dict[str, Any]) -> dict[str, Any]:
        """Validate options by the config of this class, or of the registered class it extends."""
        entry = next(filter(None, map(REGISTRY.entry_of, type(self).__mro__)), None)
        if entry is None:
            return options
        fields = entry.config.model_fields
        if entry.target is not type(self) and any(name not in fields for name in options):
            return options  # a subclass with options of its own
        checked = entry.config.check(options, type(self))
        return {name: getattr(checked, name) for name in options}

    def _current_plan(self) -> Plan:
        """Return the plan; a new one if the parameters have moved since the last step."""
        if self._plan is None or not self._plan.is_current():
            options = [group.options for group in self.groups]
            saved = None if self._plan is None else self._plan.tensors()
            self._plan = Plan(self, options, saved)
            self._absent = None
        return self._plan

    def _batches(self, plan: Plan, absent: tuple[int, ...]) -> list[Batch]:
        if absent != self._absent:
            self._cached_batches = plan.batches(absent, self._lags)
            self._values_classes: list[Any] = [
                type(self._values(batch)) for batch in self._cached_batches
            ]
            self._absent = absent
        return self._cached_batches

    def _count(self, absent: tuple[int, ...]) -> None:
        self.step_count += 1
        for at in absent:
            self._lags[at] += 1

    def _native_gradients(self, plan: Plan, grads: GradientsLike) -> Sequence[Array | None]:
        """Return the gradients in order; fast if they fit as they are."""
        try:
            given: Any = [grads[name] for name in self.names] if type(grads) is dict else grads
            arrays = plan.native_gradients(given)
            if arrays is not None and len(grads) == len(arrays):  # type: ignore[arg-type]
                return arrays
        except (KeyError, AttributeError, TypeError):
            pass  # the slow path says what is wrong
        listed = zip(self._listed(grads), self.names, self.parameters, strict=True)
        return [self._native_gradient(*each) for each in listed]

    def _listed(self, grads: GradientsLike) -> list[TensorLike | None]:
        owner = f"{type(self).__name__}.step"
        if isinstance(grads, Mapping):
            for name in grads:
                if name not in self.names:
                    hint = close_matches(name, self.names)
                    raise ArgumentError(f"{owner}: there is no parameter {name!r}{hint}")
            return [grads.get(name) for name in self.names]
        if not isinstance(grads, Iterable):
            raise ArgumentTypeError(
                f"{owner}: gradients must be a dict by name or a list, not {grads!r:.60}"
            )
        given = list(grads)
        if len(given) != len(self.names):
            raise ArgumentError(
                f"{owner}: expected a gradient for each of {len(self.names)} parameters, got "
                f"{len(given)}"
            )
        return given

    def _native_gradient(
        self, value: TensorLike | None, name: str, parameter: Parameter
    ) -> Array | None:
        if value is None:
            return None
        grad = convert_to_tensor(value, backend=parameter.backend)
        if grad.shape != parameter.shape:
            raise ShapeError(
                f"{type(self).__name__}.step: the parameter {name!r} has the shape "
                f"{parameter.shape}, its gradient {grad.shape}"
            )
        return grad.native
