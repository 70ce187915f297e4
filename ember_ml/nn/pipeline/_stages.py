"""What pipelines do with a stage: check, fit, invert and describe it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.backend import use_backend
from ember_ml.nn import _traversal
from ember_ml.nn.module import Module
from ember_ml.registry.base import close_matches

if TYPE_CHECKING:
    from ember_ml.nn.pipeline.base import Pipeline


@runtime_checkable
class SupportsFit(Protocol):
    """Stage that learns from batches."""

    def fit(self, data: Any) -> Any:
        """Fit the stage to an iterable of batches."""


@runtime_checkable
class SupportsPartialFit(Protocol):
    """Stage that learns from one batch after the other."""

    def partial_fit(self, batch: Any) -> Any:
        """Update the fit with a batch."""


@runtime_checkable
class SupportsInverse(Protocol):
    """Stage that has an inverse."""

    def inverse(self, x: Any) -> Any:
        """Return the input that has the given output."""


class StageErrors(AbstractContextManager[None]):
    """Adds a note with the stage and the pipeline to errors of the block.

    Args:
        title: Class and name of the pipeline.
        name: Name of the stage.
    """

    __slots__ = ("name", "title")

    def __init__(self, title: str, name: str) -> None:
        self.title = title
        self.name = name

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            error.add_note(f"in stage {self.name!r} of {self.title}")


def check(pipeline: Pipeline, stage: object) -> None:
    """Raise an error unless an object can be a stage of a pipeline.

    Args:
        pipeline: The pipeline.
        stage: The object.
    """
    title = pipeline._title()
    if isinstance(stage, type) and issubclass(stage, Module):
        raise ArgumentTypeError(
            f"{title}.add_stage: {stage.__name__} is a class; pass an instance: {stage.__name__}()"
        )
    if not callable(stage):
        raise ArgumentTypeError(
            f"{title}.add_stage: a stage must be a module, a feature extractor, a pipeline or a "
            f"function of one argument, not {stage!r:.60}"
        )
    if isinstance(stage, Module) and any(part is pipeline for part in stage.modules()):
        raise ArgumentError(f"{title}.add_stage: a pipeline cannot be a stage of itself")
    for name, other in pipeline.stages.items():
        if other is stage and needs_fit(stage):
            raise ArgumentError(
                f"{title}.add_stage: this {type(stage).__name__} is stage {name!r} already, and a "
                "second fit would replace its first one; pass another instance"
            )


def needs_fit(stage: object) -> bool:
    """Return whether a stage learns from data.

    Args:
        stage: The stage.
    """
    return isinstance(stage, SupportsFit) and bool(getattr(stage, "needs_fit", True))


def is_fitted(stage: object) -> bool:
    """Return whether a stage can be used; True if it does not say.

    Args:
        stage: The stage.
    """
    return bool(getattr(stage, "is_fitted", True))


def count_fits(stage: object) -> int:
    """Return how often the fit of a stage reads the data.

    Args:
        stage: A stage that learns from data.
    """
    from ember_ml.nn.pipeline.base import Pipeline

    if not isinstance(stage, Pipeline):
        return 1
    return sum(count_fits(inner) for inner in stage if needs_fit(inner))


def fit(stage: object, batches: Any) -> None:
    """Fit a stage.

    Args:
        stage: A stage that learns from data.
        batches: Re-iterable batches.
    """
    assert isinstance(stage, SupportsFit)
    stage.fit(batches)


def check_partial_fit(title: str, name: str, stage: object) -> None:
    """Raise an ArgumentError if a stage that learns from data has no `partial_fit`.

    Args:
        title: Class and name of the pipeline.
        name: Name of the stage.
        stage: The stage.
    """
    from ember_ml.nn.pipeline.base import Pipeline

    if isinstance(stage, Pipeline):
        stage._check_partial_fit()
    elif not isinstance(stage, SupportsPartialFit):
        raise _no_partial_fit(title, name, stage)


def _no_partial_fit(title: str, name: str, stage: object) -> ArgumentError:
    return ArgumentError(
        f"{title}.partial_fit: stage {name!r} ({type(stage).__name__}) cannot be fitted batch by "
        "batch; call fit(data)"
    )


def partial_fit(title: str, name: str, stage: object, batch: Any) -> None:
    """Update the fit of a stage with a batch.

    Args:
        title: Class and name of the pipeline.
        name: Name of the stage.
        stage: The stage.
        batch: The batch.
    """
    assert isinstance(stage, SupportsPartialFit)
    try:
        stage.partial_fit(batch)
    except NotImplementedError as error:
        raise _no_partial_fit(title, name, stage) from error


def inverse(title: str, name: str, stage: object, x: Any) -> Any:
    """Return the inverse of a stage.

    Args:
        title: Class and name of the pipeline.
        name: Name of the stage.
        stage: The stage.
        x: Output of the stage.
    """
    if not isinstance(stage, SupportsInverse):
        raise NotImplementedError(f"{title}: stage {name!r} ({describe(stage)}) has no inverse")
    return stage.inverse(x)


def describe(stage: object) -> str:
    """Return what a stage is, in a few words.

    Args:
        stage: The stage.
    """
    name = getattr(stage, "__name__", None)
    return f"the function {name}" if name else type(stage).__name__


def by_name(title: str, stages: Mapping[str, Callable[[Any], Any]], name: str) -> Any:
    """Return the stage with a name; raise a KeyError that suggests similar names.

    Args:
        title: Class and name of the pipeline.
        stages: Stages by name.
        name: Name of the stage.
    """
    if name in stages:
        return stages[name]
    hint = close_matches(name, stages) or f"; there are {', '.join(stages) or 'none'}"
    raise KeyError(f"{title}: no stage named {name!r}{hint}")


def by_position(title: str, items: Sequence[tuple[str, Any]], at: int) -> Any:
    """Return the stage at a position.

    Args:
        title: Class and name of the pipeline.
        items: Names and stages.
        at: Position; negative ones count from the end.
    """
    try:
        return items[at][1]
    except IndexError:
        raise IndexError(f"{title}: there is no stage {at}; there are {len(items)}") from None


@contextlib.contextmanager
def changed_as_a_whole(pipeline: Module) -> Iterator[None]:
    """Restore the stages of a pipeline if the block raises an error; else compute their values.

    Lazy values could not be used in other threads, such as the workers of a `DataLoader`.

    Args:
        pipeline: The pipeline.
    """
    attributes = [(vars(module), dict(vars(module))) for module in pipeline.modules()]
    values = [(x, x.value()) for _, x in _traversal.named_variables(pipeline)]
    try:
        yield
        ops.synchronize(*pipeline.buffers())
    except BaseException:
        for now, before in attributes:
            now.clear()
            now.update(before)
        for variable, value in values:
            variable.become(value)
        raise


def backend_of(pipeline: Module) -> AbstractContextManager[object]:
    """Return a context in which new tensors are on the backend of a pipeline's values.

    Without values it changes nothing.

    Args:
        pipeline: The pipeline.
    """
    for module in pipeline.modules():
        for _, variable in _traversal.parts(module)[0]:
            return use_backend(variable.backend)
    return contextlib.nullcontext()
