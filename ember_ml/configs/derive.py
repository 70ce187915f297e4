"""Config classes derived from the signatures of components."""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
import types
import typing
import warnings
from collections import ChainMap
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, Union

from pydantic import BaseModel, BeforeValidator, Field, create_model, model_validator

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Flag, Integer, Unconfigured, unwrap_single_list
from ember_ml.registry.base import Entry, RegistrationError

_UNCONFIGURED = Unconfigured.__metadata__[0]


def derive(entry: Entry) -> type[Config]:
    """Return the config class of a component, with a field for each parameter of its signature.

    The keys of a TypedDict `Options` in `**options: Unpack[Options]` are fields too. Parameters
    annotated `Unconfigured[...]`, positional-only parameters and other `**kwargs` are not. The
    class may define two static methods: `prepare_config(values)` returns the values to validate,
    and `check_config(config)` raises a ValueError if fields contradict each other.

    Args:
        entry: The registry entry of the component.
    """
    target, source = entry.target, signature_source(entry.target)
    hints = _hints(source)
    described = target.__mro__ if isinstance(target, type) else (target,)
    descriptions = dict(ChainMap(*map(argument_docs, described)))
    fields: dict[str, Any] = {}
    for parameter in configured_parameters(target, hints):
        _refuse_reserved(entry, parameter.name)
        default = ... if parameter.default is parameter.empty else parameter.default
        hint: Any = _strict(hints.get(parameter.name, Any))
        metadata: list[Any] = [Field(description=descriptions.get(parameter.name))]
        if parameter.kind is parameter.VAR_POSITIONAL:
            hint, default = types.GenericAlias(tuple, (hint, ...)), ()
            metadata.insert(0, BeforeValidator(unwrap_single_list))
        fields[parameter.name] = Annotated[hint, *metadata], default
    with warnings.catch_warnings():  # a field may shadow a deprecated method, such as `copy`
        warnings.filterwarnings("ignore", "Field name", UserWarning)
        config_cls: type[Config] = create_model(
            entry.config_name,
            __base__=Config,
            __module__=config_module(entry),
            __doc__=entry.summary,
            __validators__=_validators(target),
            **fields,
        )
    config_cls.component = entry.name
    return config_cls


def signature_source(target: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function whose signature describes a component: its own `__init__`, or itself."""
    if not isinstance(target, type):
        return target
    return inspect.unwrap(target.__init__)  # type: ignore[misc]


def _refuse_reserved(entry: Entry, name: str) -> None:
    if name in vars(Config) or (name.startswith("model_") and hasattr(BaseModel, name)):
        raise RegistrationError(
            f"{entry.name}: the parameter {name!r} is an attribute of Config; rename it"
        )


def configured_parameters(
    target: Callable[..., Any], hints: dict[str, Any]
) -> list[inspect.Parameter]:
    """Return the parameters of a component that are fields of its config."""
    parameters = list(inspect.signature(signature_source(target)).parameters.values())
    return [
        parameter
        for parameter in parameters[isinstance(target, type) :]  # without self
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY)
        and not (parameter.kind is parameter.VAR_POSITIONAL and parameter.name not in hints)
        and _UNCONFIGURED not in getattr(hints.get(parameter.name), "__metadata__", ())
    ]


def _hints(source: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations, except those that name something missing at run time."""
    try:
        return typing.get_type_hints(source, include_extras=True)
    except NameError:
        annotations = getattr(source, "__annotations__", {})
    hints: dict[str, Any] = {}
    for name, annotation in annotations.items():
        alone = types.SimpleNamespace(__annotations__={name: annotation})
        with contextlib.suppress(NameError):
            hints |= typing.get_type_hints(alone, source.__globals__, include_extras=True)
    return hints


def _strict(hint: Any) -> Any:
    """Return a hint in which `bool` and `int` accept no other types, such as strings."""
    if hint is bool:
        return Flag
    if hint is int:
        return Integer
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_strict(arg) for arg in args)]  # noqa: UP007
    if origin in (tuple, dict):
        return origin[tuple(arg if arg is ... else _strict(arg) for arg in args)]
    if isinstance(hint, TypeVar):
        return Any
    return hint


def _validators(target: Callable[..., Any]) -> dict[str, Any]:
    """Return the pydantic validators that call the two optional static methods."""
    validators: dict[str, Any] = {}
    prepare = getattr(target, "prepare_config", None)
    check = getattr(target, "check_config", None)
    if prepare is not None:

        def run_prepare(cls: type[Config], values: Any) -> Any:
            return prepare(values)

        before: Any = classmethod(run_prepare)
        validators["validate_before"] = model_validator(mode="before")(before)
    if check is not None:

        def run_check(self: Config) -> Config:
            check(self)
            return self

        validators["validate_after"] = model_validator(mode="after")(run_check)
    return validators


_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n(?:     .*)?)*)", re.MULTILINE)


def argument_docs(target: Callable[..., Any]) -> dict[str, str]:
    """Return the description of each argument in the "Args:" section of a docstring."""
    _, _, section = (inspect.getdoc(target) or "").partition("\nArgs:\n")
    section = re.split(r"^\S", section, maxsplit=1, flags=re.MULTILINE)[0]
    return {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(section)}


def config_module(entry: Entry) -> str:
    """Return the module from which the config class of a component is imported."""
    module = entry.target.__module__
    if not module.startswith("ember_ml."):
        return module
    folders = ("channel_mixing", "sequence_mixing")
    folder = next((name for name in folders if f".layers.{name}" in module), None)
    return f"ember_ml.configs.{entry.kind}" + (f".{folder}" if folder else "")


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a module of `ember_ml.configs`.

    The module then has the config class of each component of its kind, derived at first use.

    Args:
        package: The name of the module, such as "ember_ml.configs.layers".
    """
    kind = package.split(".")[2]

    def entries() -> dict[str, Entry]:
        from ember_ml import registry

        return {
            entry.config_name: entry
            for entry in registry.REGISTRY.available(kind, plugins=False)
            if f"{config_module(entry)}.".startswith(f"{package}.")
        }

    def __getattr__(name: str) -> Any:  # noqa: N807
        entry = entries().get(name) if name.endswith("Config") else None
        if entry is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, entry.config)
        return entry.config

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(sys.modules[package]), *entries()})

    return __getattr__, __dir__
