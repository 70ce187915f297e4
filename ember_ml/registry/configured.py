"""Argument validation of registered classes."""

from __future__ import annotations

import functools
import inspect
import typing
from typing import Any

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.registry.base import Entry, close_matches


def configured(cls: type, entry: Entry) -> None:
    """Wrap `__init__`: validate the arguments, accept `config=`, set `self.config`.

    Arguments that are not fields of the config, such as an optimizer's parameters, are passed
    through unchanged.
    """
    original: Any = cls.__init__  # type: ignore[misc]
    _declare_options(cls, original)
    signature = inspect.signature(original)
    kinds = {name: parameter.kind for name, parameter in signature.parameters.items()}
    star = next((name for name in kinds if kinds[name] is inspect.Parameter.VAR_POSITIONAL), "")
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    by_name = all(kind in named for kind in kinds.values())

    @functools.wraps(original)
    def init(self: Any, *args: Any, config: Any = None, **kwargs: Any) -> None:
        own: Any = cls
        if type(self) is not own:  # a subclass validates its own arguments
            original(self, *args, **kwargs)
            return
        if config is not None:
            kwargs = {**_fields(entry, config), **kwargs}
            args = (*args, *kwargs.pop(star, ()))
        bound = _bind(cls, signature, (self, *args), kwargs)
        given, fields = bound.arguments, entry.config.model_fields
        checked = entry.config.check({key: given[key] for key in given if key in fields}, cls)
        given.update({key: getattr(checked, key) for key in fields if key in given})
        if by_name:  # declared options can only be passed by name
            original(self, **dict(list(given.items())[1:]))
        else:
            original(*bound.args, **bound.kwargs)
        self.config = checked

    init.__signature__ = signature  # type: ignore[attr-defined]
    cls.__init__ = init  # type: ignore[misc]


def _declare_options(cls: type, init: Any) -> None:
    """Replace `**options: Unpack[Options]` in a signature by the keys of the TypedDict `Options`.

    Each default is that of the nearest base class whose `__init__` has the parameter.
    """
    parameters = list(inspect.signature(init).parameters.values())
    last = parameters[-1]
    if last.kind is not last.VAR_KEYWORD or "Unpack[" not in str(last.annotation):
        return
    options = inspect.signature(init, eval_str=True).parameters[last.name].annotation
    hints = typing.get_type_hints(typing.get_args(options)[0], include_extras=True)
    inherited: dict[str, inspect.Parameter] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited |= inspect.signature(base.__init__).parameters  # type: ignore[misc]
    parameters[-1:] = [inherited[name].replace(annotation=hints[name]) for name in hints]
    init.__signature__ = inspect.Signature(parameters)
    init.__annotations__ = {**init.__annotations__, **hints}


def _fields(entry: Entry, config: Any) -> dict[str, Any]:
    """Return the arguments that a config holds."""
    if isinstance(config, dict):
        config = entry.config.from_dict(config)
    if not isinstance(config, entry.config):
        raise ArgumentTypeError(
            f"{entry.name}: config must be a {entry.config.__name__}, not {config!r:.60}"
        )
    return {name: getattr(config, name) for name in entry.config.model_fields}


def _bind(
    cls: type, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        unknown = next((name for name in kwargs if name not in signature.parameters), "")
        hint = close_matches(unknown, signature.parameters) if unknown else ""
        raise ArgumentTypeError(f"{cls.__name__}: {error}{hint}") from None
