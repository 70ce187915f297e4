"""Pipelines: stages that process data one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Self, TypeAlias, overload

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.base import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.configs.stages import StagesField, check_name, default_name, unique_name
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.nn.features.base import FitData, NotFittedError
from ember_ml.nn.module import Module
from ember_ml.nn.pipeline import _batches, _stages, _transfer
from ember_ml.registry import REGISTRY, build, register

Stage: TypeAlias = Callable[[Any], Any]
"""A stage: a module, a feature extractor, another pipeline or a function of one argument."""


@register("pipelines/pipeline")
class Pipeline(Module):
    """Stages that process data one after the other.

    A stage is a module, a feature extractor, another pipeline or a function of one argument. The
    output of each is the input of the next. Of a tuple (inputs, targets, ...) the stages process
    the inputs, and the rest is returned with the result.

    A pipeline is a module: it can be saved, loaded on another backend and be a stage itself.
    Functions cannot be saved.

    Args:
        name: Name of the pipeline in error messages. Default: none.
        stages: The first stages, as a list or by name. A stage may be given by its registry name or
            config. Default: none.

    Example:
        >>> from ember_ml.nn.pipeline import Pipeline
        >>> pipeline = Pipeline("scores").add_stage(nn.layers.Dense(4, 2))
        >>> pipeline = pipeline.add_stage(lambda x: x.sum(axis=1), "total")
        >>> pipeline.run(ops.ones((3, 4))).shape
        (3,)
        >>> list(pipeline.stages), len(pipeline[:1])
        (['dense', 'total'], 1)
    """

    ITEMS = "_stages"

    def __init__(self, name: str | None = None, stages: StagesField = ()) -> None:
        self.name = name
        self._stages: dict[str, Stage] = {}
        named = stages if isinstance(stages, Mapping) else dict(enumerate(stages))
        for stage_name, stage in named.items():
            self.add_stage(stage, stage_name if isinstance(stage_name, str) else None)

    @property
    def config(self) -> Config | None:
        """Config with the current stages, including those added or fitted later.

        None if the class is not registered.
        """
        entry = REGISTRY.entry_of(type(self))
        return None if entry is None else entry.config(**self._fields())

    @config.setter
    def config(self, config: Config) -> None:
        """Ignore the original config, which does not know the stages added later."""

    def _fields(self) -> dict[str, Any]:
        """Return the fields of the config."""
        stages = {name: getattr(x, "config", None) or x for name, x in self._stages.items()}
        return {"name": self.name, "stages": stages}

    @property
    def stages(self) -> Mapping[str, Stage]:
        """Stages by name, in order; a view that cannot be changed."""
        return MappingProxyType(self._stages)

    def add_stage(self, stage: ComponentLike, name: str | None = None) -> Self:
        """Add a stage at the end, and return the pipeline.

        Args:
            stage: Module, feature extractor, pipeline, function of one argument, or the registry
                name or config of a component.
            name: Name of the stage, without dots; no other stage may have it. Default: the name of
                the component, class or function, with a number if another stage has it.
        """
        built: Stage = build("", stage) if isinstance(stage, (str, Mapping, Config)) else stage
        _stages.check(self, built)
        if name is None:
            name = unique_name(default_name(built), self._stages)
        elif check_name(name) in self._stages:
            raise ArgumentError(
                f"{self._title()}: there is a stage named {name!r} already; the stages are "
                f"{', '.join(self._stages)}"
            )
        self._stages[name] = built
        return self

    def run(self, data: Any) -> Any:
        """Return the result of the last stage; the same as calling the pipeline.

        Args:
            data: Input of the first stage, or a tuple (inputs, targets, ...).

        Raises:
            NotFittedError: If a stage is not fitted.
        """
        return self(data)

    def __call__(self, data: Any) -> Any:
        """Return the result of the last stage. Modules among the stages convert arrays.

        Args:
            data: Input of the first stage, or a tuple (inputs, targets, ...).
        """
        if self._hooks is not None:
            return self._hooks.run(self, (data,), {})
        return self.forward(data)

    def forward(self, data: Any) -> Any:
        """Return the result of the last stage.

        Args:
            data: Input of the first stage, or a tuple (inputs, targets, ...).
        """
        self.check_fitted()
        with _stages.backend_of(self):
            return self._run(data, self._stages)

    def _run(self, data: Any, stages: Iterable[str]) -> Any:
        """Return the result of some stages, which are fitted."""
        if isinstance(data, tuple) and data:
            return self._run(data[0], stages), *data[1:]
        for name in stages:
            with self._errors_of(name):
                data = self._stages[name](data)
            if data is None:
                raise ArgumentError(
                    f"{self._title()}: stage {name!r} returned None; a stage must return its result"
                )
        return data

    def stream(self, source: FitData, batch_size: int | None = None) -> Iterator[Any]:
        """Yield the result for each batch of a source, one batch at a time.

        Args:
            source: An array, a dataset, or an iterable of batches such as a `DataLoader`; with
                `batch_size`, an iterable of examples.
            batch_size: Number of examples of a batch. Default: that of the source; 4096 for an
                array or a dataset.
        """
        self.check_fitted()
        return map(self, _batches.batches(f"{self._title()}.stream", source, batch_size))

    def fit(self, data: FitData) -> Self:
        """Fit each stage to the result of the stages before it, and return the pipeline.

        The data is read once for each stage that learns from it, one batch at a time. What was
        fitted before is forgotten. If a stage raises an error, the earlier fit of all is kept.

        Args:
            data: An array, a dataset, or an iterable of batches such as a `DataLoader`. Of a batch
                that is a tuple, the first part is used. A generator can be read once, so it fits
                only one stage.
        """
        names = [name for name, stage in self._stages.items() if _stages.needs_fit(stage)]
        source = _batches.Source(f"{self._title()}.fit", data)
        source.check_passes(sum(_stages.count_fits(self._stages[name]) for name in names), names)
        with _stages.changed_as_a_whole(self):
            for name in names:
                before = list(self._stages)[: list(self._stages).index(name)]
                with self._errors_of(name):
                    _stages.fit(self._stages[name], self._batches_after(source, before))
        return self

    def _batches_after(self, source: _batches.Source, stages: list[str]) -> _batches.Source:
        """Return the source of what some stages make of each batch."""

        def transform(batch: Any) -> Any:
            with _stages.backend_of(self):
                return self._run(batch, stages)

        return source.map(transform)

    def partial_fit(self, batch: Any) -> Self:
        """Update the fit of each stage with one more batch, and return the pipeline.

        A stage gets the result of the updated stages before it. So several calls equal one `fit`
        only if those stages do not change between the calls.

        Args:
            batch: A batch, or a tuple whose first part is one.

        Raises:
            ArgumentError: If a stage has no `partial_fit`. No stage is changed then.
        """
        data = batch[0] if isinstance(batch, tuple) and batch else batch
        self._check_partial_fit()
        with _stages.changed_as_a_whole(self), _stages.backend_of(self):
            for name, stage in self._stages.items():
                with self._errors_of(name):
                    if _stages.needs_fit(stage):
                        _stages.partial_fit(self._title(), name, stage, data)
                data = self._run(data, [name])
        return self

    def _check_partial_fit(self) -> None:
        for name, stage in self._stages.items():
            if _stages.needs_fit(stage):
                _stages.check_partial_fit(self._title(), name, stage)

    def fit_transform(self, data: Any) -> Any:
        """Fit the pipeline to an array, and return the result for the array.

        Args:
            data: Array or tensor.
        """
        return self.fit(data).run(data)

    def inverse(self, x: Any) -> Any:
        """Return the input that has the given result: the inverses of the stages, last one first.

        Args:
            x: Result of the last stage.

        Raises:
            NotImplementedError: If a stage has no inverse; the error names it.
        """
        self.check_fitted()
        with _stages.backend_of(self):
            for name, stage in reversed(self._stages.items()):
                with self._errors_of(name):
                    x = _stages.inverse(self._title(), name, stage, x)
        return x

    @property
    def needs_fit(self) -> bool:
        """Whether any stage learns from data."""
        return any(map(_stages.needs_fit, self._stages.values()))

    @property
    def is_fitted(self) -> bool:
        """Whether every stage that learns from data is fitted."""
        return all(map(_stages.is_fitted, self._stages.values()))

    def check_fitted(self) -> None:
        """Raise a NotFittedError that names a stage unless all stages are fitted."""
        for name, stage in self._stages.items():
            if not _stages.is_fitted(stage):
                raise NotFittedError(
                    f"{self._title()}: stage {name!r} ({type(stage).__name__}) is not fitted: call "
                    "fit(data) or partial_fit(batch) on the pipeline first"
                )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features of the result, as the last stage reports them."""
        if not self._stages:
            raise ArgumentError(f"{self._title()}.feature_names: the pipeline has no stages")
        name, stage = next(reversed(self._stages.items()))
        names = getattr(stage, "feature_names", None)
        if names is None:
            raise ArgumentError(
                f"{self._title()}.feature_names: stage {name!r} ({type(stage).__name__}) does not "
                "name its features"
            )
        return tuple(names)

    @overload
    def __getitem__(self, index: int | str) -> Stage: ...
    @overload
    def __getitem__(self, index: slice) -> Pipeline: ...
    def __getitem__(self, index: int | str | slice) -> Stage | Pipeline:
        """Return a stage by position or name, or a pipeline of some of the same stages."""
        if isinstance(index, str):
            return _stages.by_name(self._title(), self._stages, index)
        items = list(self._stages.items())
        if not isinstance(index, slice):
            return _stages.by_position(self._title(), items, index)
        part = Pipeline(self.name)
        for name, stage in items[index]:
            part.add_stage(stage, name)
        return part

    def __len__(self) -> int:
        return len(self._stages)

    def __iter__(self) -> Iterator[Stage]:
        return iter(self._stages.values())

    def __contains__(self, name: object) -> bool:
        return name in self._stages

    def extra_files(self) -> dict[str, bytes]:
        """Return no files.

        Raises:
            CheckpointError: If a stage is a function, which cannot be saved.
        """
        for name, stage in self._stages.items():
            if not isinstance(stage, Module):
                raise CheckpointError(
                    f"{self._title()}: stage {name!r} ({_stages.describe(stage)}) cannot be saved; "
                    "use a registered module with this forward(), or save the other stages: "
                    "pipeline[:n]"
                )
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a worker process needs; tensors themselves cannot be pickled."""
        return _transfer.unpack, _transfer.pack(self)

    def extra_repr(self) -> str:
        """Return the name; the repr lists the modules below, and functions here."""
        others = [
            f"{name}={_stages.describe(stage)}"
            for name, stage in self._stages.items()
            if not isinstance(stage, Module)
        ]
        return ", ".join([*([repr(self.name)] if self.name else []), *others])

    def _title(self) -> str:
        return type(self).__name__ + (f" {self.name!r}" if self.name else "")

    def _errors_of(self, name: str) -> _stages.StageErrors:
        return _stages.StageErrors(self._title(), name)
