"""Whether architectures can be run at all, found out before any of them is."""

from __future__ import annotations

from collections.abc import Iterable

from ember_ml import ops
from ember_ml._core.errors import EmberError
from ember_ml.backend import use_backend
from ember_ml.configs.errors import ConfigError
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.run import make_model
from ember_ml.mad.tasks.base import Task
from ember_ml.nn.module import inference_mode
from ember_ml.nn.tensor import array
from ember_ml.registry import get


class ArchitectureError(EmberError, ValueError):
    """An architecture that cannot be compared."""


def check_architectures(runs: Iterable[RunConfig]) -> None:
    """Build each architecture once for each kind of model, which is an error if it cannot be.

    Models of language must not see the tokens that come later, which are what is asked for. This
    is tried, and not only looked up, for layers may be anybody's.
    """
    once: dict[tuple[str, str], RunConfig] = {}
    for run in runs:
        once.setdefault((run.architecture, _kind(run)), run)
    with use_backend("numpy"):
        for (name, kind), run in once.items():
            if _looks_ahead(name, run) and kind == Task.model:
                raise ArchitectureError(
                    f"architecture {name!r}: what it says of a token depends on later ones, which "
                    "is to see the answers; its layers must be causal"
                )


def _kind(run: RunConfig) -> str:
    return str(get(run.task.component).target.model)  # type: ignore[attr-defined]


def _looks_ahead(name: str, run: RunConfig) -> bool:
    """Whether the model says something else of a token if the next one is another."""
    try:
        model = make_model(run)
        with inference_mode(model.modules()):
            one, other = (model(array([[0, last]])) for last in (0, 1))
    except ConfigError as error:
        raise ConfigError(f"architecture {name!r}", error.problems) from None
    except Exception as error:  # of layers that may be anybody's
        raise ArchitectureError(f"architecture {name!r}: {error}") from error
    return not bool(ops.allclose(one[:, 0], other[:, 0], atol=1e-5))
