"""Architectures: patterns of layers, and the checks made before they are trained."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ember_ml import ops
from ember_ml._core.errors import EmberError
from ember_ml.backend import use_backend
from ember_ml.configs.base import Config
from ember_ml.configs.errors import ConfigError
from ember_ml.configs.mad import RunConfig
from ember_ml.configs.patterns import LayersLike, check_names, entry_of, items_of
from ember_ml.mad.run import make_model
from ember_ml.mad.tasks import Task
from ember_ml.nn.module import inference_mode
from ember_ml.nn.tensor import array
from ember_ml.registry import get

NUM_LAYERS = 4
"""Number of layers of MAD's models."""


class ArchitectureError(EmberError, ValueError):
    """Raised for an architecture that cannot be built, or that is not causal."""


class Architecture(NamedTuple):
    """Name and layers of an architecture."""

    name: str
    layers: str
    """Pattern of layers."""


def architecture(pattern: str, name: str | None = None) -> Architecture:
    """Return the architecture of a pattern, which is repeated to make four layers.

    Args:
        pattern: Layers, such as "attention+swiglu" or "hyena+swiglu+attention+swiglu".
        name: Name in tables and reports. Default: the pattern.

    Example:
        >>> from ember_ml.mad.architecture import architecture
        >>> architecture("mamba+swiglu").layers
        '(mamba+swiglu)x2'
    """
    try:
        count = len(items_of(check_names(pattern)))
    except ConfigError as error:
        raise ConfigError(f"architecture {pattern!r}", error.problems) from None
    times = NUM_LAYERS // count if NUM_LAYERS % count == 0 else 1
    layers = pattern if times == 1 else f"({pattern})x{times}"
    return Architecture(name or pattern, layers)


def code_of(layers: LayersLike, task: Config) -> str:
    """Return a digest of the plugin files that define the layers and the task.

    A result is reused only if this digest is unchanged.

    Returns:
        Ten hexadecimal digits; an empty string if Ember ML defines all components.
    """
    names = sorted({name for name in _modules(layers, task) if not name.startswith("ember_ml.")})
    files = [getattr(sys.modules.get(name), "__file__", None) for name in names]
    contents = [Path(file).read_bytes() for file in files if file]
    return hashlib.sha256(b"".join(contents)).hexdigest()[:10] if contents else ""


def _modules(layers: LayersLike, task: Config) -> Iterator[str]:
    for item in items_of(layers):
        name = item.get("type") if isinstance(item, Mapping) else item
        yield entry_of(name).target.__module__
    yield get(task.component).target.__module__


def check_architectures(runs: Iterable[RunConfig]) -> None:
    """Build each architecture once for each kind of model, and check that it is causal.

    Causality is tested by running the model, because plugins may define any layer. Autoencoders
    need not be causal.

    Args:
        runs: Runs of a sweep.
    """
    runs_to_check: dict[tuple[str, str], RunConfig] = {}
    for run in runs:
        model_kind = get(run.task.component).target.model  # type: ignore[attr-defined]
        runs_to_check.setdefault((run.architecture, model_kind), run)
    with use_backend("numpy"):
        for (name, model_kind), run in runs_to_check.items():
            if not _is_causal(name, run) and model_kind == Task.model:
                raise ArchitectureError(
                    f"architecture {name!r} is not causal: its output at a position depends on "
                    "later tokens, which are the targets; use causal layers"
                )


def _is_causal(name: str, run: RunConfig) -> bool:
    """Return whether the output at a position is independent of the next token."""
    try:
        model = make_model(run)
        with inference_mode(model.modules()):
            one, other = (model(array([[0, last]])) for last in (0, 1))
    except ConfigError as error:
        raise ConfigError(f"architecture {name!r}", error.problems) from None
    except Exception as error:  # plugin layers may raise anything
        raise ArchitectureError(f"architecture {name!r}: {error}") from error
    return bool(ops.allclose(one[:, 0], other[:, 0], atol=1e-5))
