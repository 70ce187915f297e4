"""Pipelines: stages that process data one after the other."""

from ember_ml._core import namespaces as _namespaces

_NAMES: dict[str, str] = {}
__getattr__, __dir__ = _namespaces.attach(__name__, _NAMES)
