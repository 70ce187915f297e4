"""Errors and warnings of Ember ML.

Each derives from the built-in exception that a Python programmer expects: `except ValueError`,
`except TypeError` and `except IndexError` work the same on every backend.
"""

from __future__ import annotations


class EmberError(Exception):
    """Base class of the errors of Ember ML; the message needs no further explanation."""


class UnknownBackendError(EmberError, ValueError):
    """Unknown name of a backend."""


class BackendNotInstalledError(EmberError, ImportError):
    """Backend whose framework cannot be imported."""


class UnsupportedOpError(EmberError, NotImplementedError):
    """Op that a backend does not offer."""


class UnsupportedDTypeError(EmberError, TypeError):
    """Dtype that a backend or an op does not support."""


class DTypeError(EmberError, TypeError):
    """Operands of incompatible dtypes."""


class ArgumentTypeError(EmberError, TypeError):
    """Argument of the wrong type."""


class ShapeError(EmberError, ValueError):
    """Operands of incompatible shapes."""


class AxisError(EmberError, ValueError, IndexError):
    """Axis that the operand does not have."""


class IndexOutOfRangeError(EmberError, IndexError):
    """Index out of range, or more indices than axes."""


class ArgumentError(EmberError, ValueError):
    """Argument of an invalid value."""


class SpikeError(EmberError, LookupError):
    """Query for a spike that did not happen, was not recorded or was dropped."""


class FolderError(EmberError, ValueError):
    """Folder with damaged files, or with files that a save must not overwrite."""


class ConcurrentUseError(EmberError, RuntimeError):
    """Conflicting use of a model or a trainer, for example by another thread."""


class LinAlgError(EmberError, ValueError):
    """Decomposition or solution that does not exist for the given matrix."""


class DeviceError(EmberError, ValueError):
    """Device that a backend does not have."""


class BackendTransferWarning(UserWarning):
    """Operands of several backends were moved to the active backend."""


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
