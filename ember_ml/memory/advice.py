"""Options of training that need less memory, and whether a step fits with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ember_ml._core import runtime
from ember_ml._core.errors import ArgumentError, EmberError
from ember_ml.configs import Config
from ember_ml.configs.training import TrainerConfig
from ember_ml.memory.estimation import Estimate, estimate
from ember_ml.nn.models.language import LanguageModel
from ember_ml.nn.module import Module
from ember_ml.nn.remat import chosen_modules

Changes = dict[str, Any]
"""Fields of a `TrainerConfig`."""


class Option(NamedTuple):
    """A change of the training options, and the memory of a step with it."""

    name: str
    changes: Changes
    """Fields of the trainer's config."""
    batch_size: int
    """Number of examples of a batch; with accumulation, several batches are a step."""
    peak: int
    """Estimated peak in bytes."""
    largest_batch: int | None
    """Largest batch size that fits; None without a limit, and with accumulation."""
    fits: bool | None
    """Whether the peak is within the limit; None without a limit."""

    def to_dict(self) -> dict[str, Any]:
        """Return the option as plain data."""
        plain = {key: _plain(value) for key, value in self.changes.items()}
        return {**self._asdict(), "changes": plain}


def options_that_fit(
    model: Module,
    batch: object,
    config: TrainerConfig | None = None,
    *,
    limit: int | None = None,
) -> list[Option]:
    """Return options that need less memory, each alone and together, with their estimates.

    Args:
        model: The model.
        batch: A batch of the data.
        config: Options of the trainer so far. Default: the defaults.
        limit: Number of bytes to fit into. Default: none; peaks are returned only.

    Example:
        >>> model = nn.models.LanguageModel("attention swiglu", 64, 32)
        >>> tokens = ops.zeros((8, 32), dtype="int64")
        >>> options = ember_ml.memory.options_that_fit(model, (tokens, tokens))
        >>> [option.name for option in options][:3]
        ['remat', 'chunked loss', '8-bit optimizer state']
    """
    base = TrainerConfig() if config is None else config
    if base.loss is None and model.default_loss is not None:
        base = base.override(loss=model.default_loss)
    options: list[Option] = []
    together: Changes = {}
    for name, changes in _candidates(model, base):
        report = _estimate(model, batch, base, changes)
        options.append(_option(name, changes, report, limit))
        if name != "bfloat16":  # it changes the results
            together |= changes
    if len(together) > 1:
        report = _estimate(model, batch, base, together)
        options.append(_option("all in float32", together, report, limit))
    if limit is not None:
        options += _accumulated(model, batch, base, limit)
    return options


def _candidates(model: Module, config: TrainerConfig) -> Iterator[tuple[str, Changes]]:
    """Return the changes that apply to a model and its options so far."""
    if config.remat is None and _has_blocks(model):
        yield "remat", {"remat": "blocks"}
    loss = getattr(config.loss, "component", config.loss)
    if isinstance(model, LanguageModel) and loss in ("cross_entropy", "losses/cross_entropy"):
        kept = ("ignore_index", "label_smoothing", "class_weight", "reduction")
        own = {name: getattr(config.loss, name) for name in kept if hasattr(config.loss, name)}
        chunked = Config.from_dict({"type": "losses/chunked_cross_entropy", **own})
        yield "chunked loss", {"loss": chunked}
    optimizer = config.optimizer
    if isinstance(optimizer, str):
        optimizer = Config.from_dict({"type": optimizer}, kind="optimizers")
    if getattr(optimizer, "state_bits", 8) == 32:
        yield "8-bit optimizer state", {"optimizer": optimizer.override(state_bits=8)}
    has_bfloat16 = "bfloat16" in runtime.load(model.parameters()[0].backend).DTYPES
    if config.precision == "float32" and has_bfloat16:
        yield "bfloat16", {"precision": "bfloat16"}


def _has_blocks(model: Module) -> bool:
    try:
        return bool(chosen_modules(model, "blocks"))
    except ArgumentError:
        return False


def _estimate(model: Module, batch: object, config: TrainerConfig, changes: Changes) -> Estimate:
    try:
        return estimate(model, batch, config=config.override(**changes))
    except EmberError as error:
        error.add_note(f"while estimating {', '.join(changes)}")
        raise


def _option(name: str, changes: Changes, report: Estimate, limit: int | None) -> Option:
    largest = None if limit is None else report.largest_batch(limit)
    fits = None if limit is None else report.peak <= limit
    return Option(name, changes, report.batch_size, report.peak, largest, fits)


def _accumulated(
    model: Module, batch: object, config: TrainerConfig, limit: int
) -> Iterator[Option]:
    """Return the smallest number of batches to accumulate that fits, for steps as large as now."""
    report = _estimate(model, batch, config, {"accumulate": 2 * config.accumulate})
    size = report.batch_size
    counts = [count for count in range(2, size + 1) if size % count == 0]
    parts = {count: report.for_batch(size // count) for count in counts}
    if parts:
        count = next((n for n in counts if parts[n].peak <= limit), counts[-1])
        part = parts[count]
        changes = {"accumulate": count * config.accumulate}
        yield Option("accumulate", changes, part.batch_size, part.peak, None, part.peak <= limit)


def _plain(value: Any) -> Any:
    return value.to_dict() if isinstance(value, Config) else value
