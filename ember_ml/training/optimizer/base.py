"""What every optimizer offers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.nn import Parameter
from ember_ml.training.optimizer.groups import read_groups, saved_options
from ember_ml.training.optimizer.plan import Member, Piece, Planner
from ember_ml.training.optimizer.reading import by_parameter, read_gradients
from ember_ml.training.optimizer.rules import Options, Rule, Shape
from ember_ml.training.optimizer.store import Layout


class Optimizer:
    """Changes parameters by their gradients.

    What others hold of a parameter's old value, or of a view of it, stays as it is. While a step is
    made, no other thread may use the parameters.

    Weight decay is for parameters whose `decay` is True. Parameters of half precision have their
    state, and compute their steps, in float32.

    Subclasses give their options to this `__init__` and say by which rule a parameter learns.

    Args:
        params: a module, parameters, (name, parameter) pairs, or groups: dicts with "params" and
            options of their own.
        options: what a group that does not say otherwise has.

    Attributes:
        groups: the parameters with their options.
        names: the parameters' names, in the order of their gradients.
        parameters: the parameters.
        step_count: how many steps were made.
        training: whether the parameters are those to train with.
        factor: what a schedule multiplies the learning rates by.

    Example:
        >>> from ember_ml.training.optimizer import SGD
        >>> weight = Parameter([1.0, 2.0], name="weight")
        >>> optimizer = SGD([weight], learning_rate=0.5)
        >>> optimizer.step({"weight": tensor.array([1.0, 1.0])})
        >>> weight.tolist()
        [0.5, 1.5]
    """

    config: Any = None
    """What it was built by, if its class is registered."""
    options_type: ClassVar[Any] = None
    """The config class that checks the options of groups."""

    def __init__(self, params: Any, **options: Any) -> None:
        self.groups = read_groups(type(self).__name__, params, options)
        for group in self.groups:
            group.set_options(self._checked(group.all_options()))
        self.names = [name for group in self.groups for name in group.names]
        self.parameters = [each for group in self.groups for each in group.parameters]
        self.step_count = 0
        self.training = True
        self.factor = 1.0
        self._lags = [0] * len(self.names)
        self._state: list[Any] = []
        self._tags: list[str] = []
        self._absent: tuple[int, ...] | None = None

    def rule(self, shape: Shape, options: Options) -> Rule:
        """By which rule a parameter of a shape learns."""
        raise NotImplementedError

    @property
    def learning_rate(self) -> float:
        """The learning rate of the first group, before a schedule's factor; setting it sets all."""
        return self.groups[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        for group in self.groups:
            group.learning_rate = value

    def train(self) -> Self:
        """Make the parameters those to train with; most optimizers have no others."""
        self.training = True
        return self

    def eval(self) -> Self:
        """Make the parameters those to use; most optimizers have no others."""
        self.training = False
        return self

    def step(self, grads: Any) -> None:
        """Change the parameters.

        Args:
            grads: by name, or in the parameters' order; one that is None, or whose name is left
                out, leaves its parameter as it is.
        """
        arrays = self._read(grads)
        absent = tuple(at for at, array in enumerate(arrays) if array is None)
        for piece in self._pieces(absent):
            params, state = piece.run(
                [self.parameters[at]._data for at in piece.indices],
                [arrays[at] for at in piece.indices],
                {slot: [self._state[at] for at in places] for slot, places in piece.slots.items()},
                self._scalars_of(piece),
            )
            self._store(piece, params, state)
        self._count(absent)

    def apply_gradients(self, grads_and_params: Iterable[tuple[Any, Parameter]]) -> None:
        """Change the parameters by (gradient, parameter) pairs."""
        self.step(by_parameter(type(self).__name__, grads_and_params, self.parameters))

    def scalars(self) -> list[float]:
        """The numbers of the next step that change from step to step, for `update`."""
        self._prepare()
        return [value for piece in self._pieces(()) for value in self._scalars_of(piece)]

    def state_arrays(self) -> list[Any]:
        """The native arrays that are kept from step to step, for `update`."""
        self._prepare()
        return list(self._state)

    def update(
        self,
        params: Sequence[Any],
        grads: Sequence[Any],
        state: Sequence[Any],
        scalars: Sequence[Any],
    ) -> tuple[list[Any], list[Any]]:
        """A step as a pure function of native arrays, which a compiler can trace.

        Args:
            params: the parameters' arrays, in order.
            grads: their gradients.
            state: what `state_arrays` gave.
            scalars: what `scalars` gave, as numbers or 0-d arrays.

        Returns:
            The new parameters and the new state, for `commit`.
        """
        new_params, new_state, at = list(params), list(state), 0
        for piece, count in zip(self._pieces(()), self._counts, strict=True):
            renewed, kept = piece.pure(
                [params[index] for index in piece.indices],
                [grads[index] for index in piece.indices],
                {slot: [state[place] for place in places] for slot, places in piece.slots.items()},
                scalars[at : at + count],
            )
            at += count
            for index, value in zip(piece.indices, renewed, strict=True):
                new_params[index] = value
            _put(new_state, piece, kept)
        return new_params, new_state

    def commit(self, params: Sequence[Any], state: Sequence[Any]) -> None:
        """Take over what `update` gave, and count the step."""
        for parameter, value in zip(self.parameters, params, strict=True):
            parameter._data = value
        self._state = list(state)
        self._count(())

    def state_dict(self) -> dict[str, Any]:
        """What a later run goes on from: plain data, and tensors under "tensors"."""
        self._prepare()
        return {
            "type": self._type(),
            "step": self.step_count,
            "groups": [group.plain() for group in self.groups],
            "extra": self._extra(),
            "tensors": self._layout.saved(self._state),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Go on from what `state_dict` gave, on any backend; nothing changes if it does not fit."""
        if state.get("type") != self._type():
            raise ArgumentError(f"{self._type()}: this is the state of {state.get('type')!r}")
        saved = saved_options(type(self).__name__, self.groups, state.get("groups", []))
        options = [
            self._checked({**group.all_options(), **own})
            for group, own in zip(self.groups, saved, strict=True)
        ]
        layout = self._make_layout(options)
        arrays = layout.take(type(self).__name__, state.get("tensors", {}))
        for group, own in zip(self.groups, options, strict=True):
            group.set_options(own)
        self._settle(layout, arrays)
        self.step_count = int(state["step"])
        self._load_extra(state.get("extra", {}))
        return self

    def __repr__(self) -> str:
        groups = ", ".join(repr(group) for group in self.groups)
        return f"{type(self).__name__}({groups}, step {self.step_count})"

    def _type(self) -> str:
        return self.config.component if self.config is not None else type(self).__name__

    def _extra(self) -> dict[str, Any]:
        """Plain data beside the groups."""
        lags = {name: lag for name, lag in zip(self.names, self._lags, strict=True) if lag}
        return {"factor": self.factor, "lags": lags}

    def _load_extra(self, extra: Mapping[str, Any]) -> None:
        self.factor = float(extra.get("factor", 1.0))
        lags = extra.get("lags", {})
        self._lags = [int(lags.get(name, 0)) for name in self.names]

    def _scalars_of(self, piece: Piece) -> tuple[float, ...]:
        rate = piece.group.learning_rate * self.factor
        return piece.rule.scalars(piece.options, rate, self.step_count + 1 - piece.lag)

    def _checked(self, options: dict[str, Any]) -> dict[str, Any]:
        if self.options_type is None:
            return options
        checked = self.options_type.check(options, type(self))
        return {name: getattr(checked, name) for name in options}

    def _read(self, grads: Any) -> list[Any]:
        """The native gradients in order; a short way for those that fit as they are."""
        self._prepare()
        try:
            found = [grads[name] for name in self.names] if type(grads) is dict else grads
            if len(grads) == len(self.names) and {each._backend for each in found} == self._backend:
                arrays = [each._data for each in found]
                if self._planner.kernels.shapes(arrays) == self._shapes:
                    return arrays
        except (KeyError, AttributeError, TypeError):
            pass  # the long way names what is wrong
        return read_gradients(type(self).__name__, grads, self.names, self.parameters)

    def _prepare(self) -> None:
        """Make the state fit the parameters, which may have moved or not have been used yet."""
        if self._tags == [parameter._tag for parameter in self.parameters]:
            return
        layout = self._make_layout([group.options for group in self.groups])
        if self._tags:
            backend = self._tags[0].partition(":")[0]
            arrays = layout.take(type(self).__name__, self._layout.named(self._state, backend))
        else:
            arrays = layout.fresh()
        self._settle(layout, arrays)

    def _make_layout(self, options: Sequence[Options]) -> Layout:
        slots = []
        for group, own in zip(self.groups, options, strict=True):
            for parameter in group.parameters:
                rule = self.rule(parameter.shape, own)
                slots.append(rule.slots(parameter.shape, rule.read(own)))
        return Layout(self.names, self.parameters, slots)

    def _settle(self, layout: Layout, arrays: list[Any]) -> None:
        backends = {parameter.backend for parameter in self.parameters}
        if len(backends) > 1:
            raise ArgumentTypeError(
                f"{type(self).__name__}: the parameters are on several backends: "
                f"{', '.join(sorted(backends))}; move them with module.to_backend(...)"
            )
        self._layout, self._state = layout, arrays
        self._backend = backends
        self._tags = [parameter._tag for parameter in self.parameters]
        self._planner = Planner(backends.copy().pop())
        self._shapes = self._planner.kernels.shapes([each._data for each in self.parameters])
        self._absent = None

    def _pieces(self, absent: tuple[int, ...]) -> list[Piece]:
        if absent != self._absent:
            missing = set(absent)
            owners = [group for group in self.groups for _ in group.names]
            members = [
                Member(
                    at,
                    parameter,
                    group,
                    self.rule(parameter.shape, group.options),
                    self._layout.places[at],
                    self._lags[at],
                )
                for at, (parameter, group) in enumerate(zip(self.parameters, owners, strict=True))
                if at not in missing
            ]
            self._plan = self._planner.pieces(members)
            self._counts = [len(self._scalars_of(piece)) for piece in self._plan]
            self._absent = absent
        return self._plan

    def _store(self, piece: Piece, params: Sequence[Any], state: Mapping[str, Any]) -> None:
        for at, value in zip(piece.indices, params, strict=True):
            self.parameters[at]._data = value
        _put(self._state, piece, state)

    def _count(self, absent: tuple[int, ...]) -> None:
        self.step_count += 1
        for at in absent:
            self._lags[at] += 1


def _put(arrays: list[Any], piece: Piece, state: Mapping[str, Any]) -> None:
    for slot, places in piece.slots.items():
        for place, value in zip(places, state[slot], strict=True):
            arrays[place] = value
