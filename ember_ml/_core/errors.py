"""Errors and warnings of Ember ML.

Each derives from the built-in exception a Python programmer would expect, so `except ValueError`
and the like work the same on every backend.
"""

from __future__ import annotations


class EmberError(Exception):
    """Base of every error raised on purpose by Ember ML; its message is complete as it stands."""


class UnknownBackendError(EmberError, ValueError):
    """A backend name that no backend has."""


class BackendNotInstalledError(EmberError, ImportError):
    """A known backend whose framework cannot be imported."""


class UnsupportedOpError(EmberError, NotImplementedError):
    """An op that a backend does not offer."""


class UnsupportedDTypeError(EmberError, TypeError):
    """A dtype that a backend, or an op, does not take."""


class DTypeError(EmberError, TypeError):
    """Operands whose dtypes do not go together."""


class ArgumentTypeError(EmberError, TypeError):
    """An argument of a type that the op does not take."""


class ShapeError(EmberError, ValueError):
    """Operands whose shapes do not go together."""


class AxisError(EmberError, ValueError, IndexError):
    """An axis that the operand does not have."""


class IndexOutOfRangeError(EmberError, IndexError):
    """An index beyond the end of an axis, or more indices than axes."""


class ArgumentError(EmberError, ValueError):
    """An argument whose value the op does not take."""


class LinAlgError(EmberError, ValueError):
    """A decomposition or a solve that does not exist for the given matrix."""


class DeviceError(EmberError, ValueError):
    """A device that a backend does not have."""


class BackendTransferWarning(UserWarning):
    """Operands of several backends met in one op and were moved to the active one."""


def named(name: str, error: ValueError | TypeError) -> Exception:
    """Return the error with the name of the op in front of its message.

    Errors of Ember ML and plain `ValueError` and `TypeError` keep their class. Those of frameworks
    may not take a message alone; they become `ArgumentError` or `ArgumentTypeError`.

    Args:
        name: Name of the op.
        error: Error raised while its operands were converted.
    """
    text = str(error)
    text = text if text.startswith(name) else f"{name}: {text}"
    if isinstance(error, EmberError) or type(error) in (ValueError, TypeError):
        return type(error)(text)
    return ArgumentTypeError(text) if isinstance(error, TypeError) else ArgumentError(text)
