"""Checkpoints of a trainer: everything that a run needs to continue."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import ops
from ember_ml._core.errors import EmberError
from ember_ml._core.folders import Folder, Log
from ember_ml._core.tensor import Tensor
from ember_ml.backend import use_backend
from ember_ml.nn import _extra_files, checkpoint
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.training.callbacks.base import callback_states
from ember_ml.training.schedules import Schedule
from ember_ml.training.trainer import history_log, plain_data
from ember_ml.training.trainer.history import History
from ember_ml.training.trainer.limits import Start

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer

FILE, TENSORS = "training.json", "training.safetensors"


class State(NamedTuple):
    """What a run needs to continue: plain data, and tensors by name."""

    data: dict[str, Any]
    tensors: dict[str, Tensor]


def save(trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Save the model with its weights for evaluation, and the training state."""
    with saved_state(trainer) as state:
        checkpoint.save(trainer.model, path, training=state, log=history_file(trainer))


def history_file(trainer: Trainer) -> Log:
    """Return the file of the history, which a save extends."""
    return Log(history_log.NAME, trainer.history.log.write)


@contextlib.contextmanager
def saved_state(trainer: Trainer) -> Iterator[State]:
    """Yield what a run needs to continue; in the block the model has its weights for evaluation."""
    evaluation = not trainer.optimizer.training
    with trainer.optimizer.training_values():
        state = _state(trainer, evaluation)
        weights = {name: x.value() for name, x in trainer.model.named_parameters()}
        if trainer.parallel is not None:  # evaluation may change their memory
            weights = {name: ops.copy(x) for name, x in weights.items()}
        with trainer.evaluating() as others:
            if others:
                state.tensors.update(_prefixed("weights", weights))
            yield state


def _state(trainer: Trainer, evaluation: bool) -> State:
    optimizer_state: dict[str, Any] = {**trainer.optimizer.state_dict()}
    tensors = _prefixed("optimizer", optimizer_state.pop("tensors"))
    schedule = trainer.schedule if isinstance(trainer.schedule, Schedule) else None
    data: dict[str, Any] = {
        "step": trainer.step,
        "epoch": trainer.epoch,
        "optimizer": optimizer_state,
        "schedule": None
        if schedule is None
        else {"class": type(schedule).__name__, "state": schedule.state_dict()},
        "loader": None if trainer.loader is None else trainer.loader.state_dict(),
        "random": ops.random.get_state(),
        "history": trainer.history.position(),
        "callbacks": callback_states(trainer.callbacks),
        "evaluation": evaluation,
        "skipped": trainer.skipped,
        "start": list(trainer.start),
        "metrics": None if trainer.train_metrics is None else trainer.train_metrics.state_dict(),
        "group": trainer._runner.group.state_dict(),
        "scale": None if trainer._runner.scale is None else trainer._runner.scale.state_dict(),
    }
    tensors |= _prefixed("group", trainer._runner.tensors())
    if trainer.ema is not None:
        averaged = trainer.ema.state_dict()
        tensors |= _prefixed("ema", averaged.pop("tensors"))
        data["ema"] = averaged
    return State(data, tensors)


def resume(trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Restore what `save` wrote. If anything does not fit, raise an error and change nothing."""
    load = functools.partial(checkpoint.load, path, into=trainer.model)
    with checkpoint.open_checkpoint(path) as folder, restored(trainer, folder, load):
        pass


@contextlib.contextmanager
def restored(
    trainer: Trainer,
    folder: Folder,
    load: Callable[[], object],
    read: Callable[[Folder, str], dict[str, Tensor]] = checkpoint.read_tensors,
    prepare: Callable[[dict[str, Any]], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Restore the state of a checkpoint, and yield its plain data.

    If anything does not fit, or the block raises an error, nothing is changed.

    Args:
        trainer: The trainer.
        folder: The checkpoint.
        load: Function that loads the model.
        read: Function of the folder and a file that returns the tensors of the training state.
        prepare: Function that changes the plain data before it is restored.
    """
    data = checkpoint.read_json(folder, FILE)
    where = str(folder.path / FILE)
    plain_data.check(where, data)
    if prepare is not None:
        prepare(data)
    tensors = read(folder, TENSORS)
    history = _history(folder, data["history"])
    with _undone_on_error(trainer, where):
        load()
        _apply(trainer, data, tensors, where)
        trainer.history.become(history)
        yield data


def _apply(trainer: Trainer, data: dict[str, Any], tensors: dict[str, Tensor], where: str) -> None:
    saved = data["optimizer"]
    with plain_data.checkpoint_errors(f"{where}: optimizer"):
        own = trainer.optimizer._extra()
        plain_data.check_types(f"{where}: optimizer: extra", own, saved.get("extra", {}))
        trainer.optimizer.load_state_dict({**saved, "tensors": _unprefixed("optimizer", tensors)})
    trainer.model.load_state_dict(_unprefixed("weights", tensors), strict=False)
    if trainer.ema is not None and "ema" in data:
        trainer.ema.load_state_dict({**data["ema"], "tensors": _unprefixed("ema", tensors)})
    elif trainer.ema is not None:
        trainer.ema.reset()
    for name, owner, state in _saved_states(trainer, data):
        plain_data.check_types(f"{where}: {name}", owner.state_dict(), state)
        with plain_data.checkpoint_errors(f"{where}: {name}"):
            owner.load_state_dict(state)
    trainer.step, trainer.epoch = data["step"], data["epoch"]
    trainer.loader_state = data["loader"]
    if data.get("evaluation", False):
        trainer.optimizer.eval()
    trainer.skipped = data.get("skipped", 0)
    trainer.start = trainer.resumed_start = Start(*data.get("start", (0, 0)))
    with plain_data.checkpoint_errors(f"{where}: group"):
        trainer._runner.load_group(data.get("group"), _unprefixed("group", tensors))
    if trainer.train_metrics is not None and data.get("metrics") is not None:
        with plain_data.checkpoint_errors(f"{where}: metrics"), use_backend(trainer.backend):
            trainer.train_metrics.load_state_dict(data["metrics"])
    with plain_data.checkpoint_errors(f"{where}: random"):
        ops.random.set_state(data["random"])


def _saved_states(
    trainer: Trainer, data: Mapping[str, Any]
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield name, object and saved state of the schedule, the loss scale and the callbacks."""
    schedule, saved = trainer.schedule, data["schedule"]
    if isinstance(schedule, Schedule) and saved and saved["class"] == type(schedule).__name__:
        yield "schedule", schedule, saved["state"]
    if trainer._runner.scale is not None and data["scale"] is not None:
        yield "scale", trainer._runner.scale, data["scale"]
    left = list(data["callbacks"])
    for callback in trainer.callbacks:  # each gets the first remaining state of its class
        name = type(callback).__name__
        match = next((each for each in left if each[0] == name), None)
        if match is not None:
            left.remove(match)
            yield f"callbacks: {name}", callback, match[1]


@contextlib.contextmanager
def _undone_on_error(trainer: Trainer, where: str) -> Iterator[None]:
    """Restore the trainer if the block raises. No tensor changes in place, so none is copied."""
    undo = _snapshot(trainer)
    try:
        yield
    except BaseException as error:
        undo()
        if isinstance(error, Exception) and not isinstance(error, (EmberError, OSError)):
            raise CheckpointError(f"{where} does not fit this trainer: {error!r}") from error
        raise


def _snapshot(trainer: Trainer) -> Callable[[], None]:
    """Return a function that restores everything that `resume` changes."""
    variables = [*trainer.model.parameters(), *trainer.model.buffers()]
    values = [variable.value() for variable in variables]
    stateful: list[Any] = [*trainer.callbacks]
    if isinstance(trainer.schedule, Schedule):
        stateful.append(trainer.schedule)
    states = [copy.deepcopy(each.state_dict()) for each in stateful]
    optimizer = trainer.optimizer
    others: list[object] = [optimizer, *optimizer.groups, trainer.ema, trainer.history]
    others += [trainer._runner.scale, trainer.train_metrics]
    attributes = [
        (vars(each), dict(vars(each))) for each in (*others, *stateful) if hasattr(each, "__dict__")
    ]
    random = ops.random.get_state()
    position = trainer.step, trainer.epoch, trainer.loader_state
    start = trainer.skipped, trainer.start, trainer.resumed_start
    group = trainer._runner.group
    undo_files = _extra_files.snapshot(trainer.model)

    def undo() -> None:
        for variable, value in zip(variables, values, strict=True):
            variable.become(value)
        for now, before in attributes:
            now.clear()
            now.update(before)
        for each, state in zip(stateful, states, strict=True):
            with contextlib.suppress(Exception):
                each.load_state_dict(state)
        trainer.step, trainer.epoch, trainer.loader_state = position
        trainer.skipped, trainer.start, trainer.resumed_start = start
        trainer._runner.group = group
        undo_files()
        ops.random.set_state(random)

    return undo


def _history(folder: Folder, saved: Mapping[str, Any]) -> History:
    """Return the history of a checkpoint; versions before the log had it in training.json."""
    history = History()
    if "size" not in saved:
        history.load_state_dict(saved)
        return history
    newest = {"step": saved["newest_steps"], "epoch": saved["newest_epochs"]}
    position = history_log.Position(*(saved[name] for name in history_log.Position._fields))
    path = folder.file(history_log.NAME)
    if not position.size:
        return History.from_log(history_log.HistoryLog(), newest)
    try:
        return History.from_log(history_log.read(path, position), newest)
    except FileNotFoundError:
        warnings.warn(
            f"{path} is missing: the run resumes without its earlier records", stacklevel=4
        )
        return History.from_log(history_log.HistoryLog(), newest)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path} is damaged: {error}; restore it from a backup, or delete it to resume "
            "without the earlier records"
        ) from None


def _unprefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    head = f"{prefix}/"
    return {name.removeprefix(head): x for name, x in tensors.items() if name.startswith(head)}


def _prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": x for name, x in tensors.items()}
