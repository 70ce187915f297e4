"""Checkpoints of processes that train together: each writes some of the tensors."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml._core import checksums
from ember_ml._core.checksums import Entry
from ember_ml._core.errors import FolderError
from ember_ml._core.folders import Folder, write_folder, write_synced
from ember_ml._core.tensor import Tensor
from ember_ml.distributed.errors import DistributedError
from ember_ml.distributed.random_streams import start_random_stream
from ember_ml.nn import checkpoint
from ember_ml.nn._tensor_files import (
    INDEX,
    CheckpointError,
    Select,
    open_tensors,
    tensors_to_bytes,
)
from ember_ml.nn.checkpoint import KIND, WEIGHTS
from ember_ml.nn.parameter import Variable
from ember_ml.nn.state_dict import check_file, replace_values, saved_variables
from ember_ml.training.optimizer.plan import kernels
from ember_ml.training.optimizer.storage import Shape, decoded
from ember_ml.training.trainer import checkpoints as single

if TYPE_CHECKING:
    from ember_ml.distributed.run import ParallelRun
    from ember_ml.training.trainer import Trainer

RANDOM = "random_states"
"""Key of the random states of the processes that share batches."""


def save(run: ParallelRun, trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Save a checkpoint: the tensors in one file for each process, if they have parts of them.

    Args:
        run: The processes.
        trainer: Trainer of this process.
        path: The folder, on a file system that all processes share.
    """
    if trainer._runner.group.count:
        raise DistributedError("save: the step has batches left; save after it is complete")
    everyone = run.world.group("world")
    with single.saved_state(trainer) as state:
        state.data[RANDOM] = run.world.group("data").exchange(ops.random.get_state())
        if run.world.mesh.pp > 1:
            _gather_names(run, state.data)
        if not run.values.is_partial:
            with _same_outcome(run):
                if run.is_main:
                    log = single.history_file(trainer)
                    checkpoint.save(trainer.model, path, training=state, log=log)
            return
        training = _decoded(trainer, state.tensors, run.values.part_shape)
        tensors = {
            WEIGHTS: _owned(run, trainer, dict(saved_variables(trainer.model))),
            single.TENSORS: _owned(run, trainer, training),
        }
        files = {
            _file_name(kind, everyone.rank, everyone.size): tensors_to_bytes(owned)
            for kind, owned in tensors.items()
            if owned
        }
        maps = everyone.exchange({kind: _sizes(owned) for kind, owned in tensors.items()})
        with _same_outcome(run):
            if run.is_main:
                shared = {
                    **checkpoint.about_files(trainer.model),
                    "training.json": checkpoint.to_json(state.data),
                    **{kind + INDEX: _index(kind, maps) for kind in tensors},
                }
                _write_main(run, path, {**shared, **files}, trainer)
            else:
                _write_part(run, files)


def _write_main(
    run: ParallelRun, path: str | os.PathLike[str], files: dict[str, bytes], trainer: Trainer
) -> None:
    everyone = run.world.group("world")
    started = False

    def others(folder: Path) -> dict[str, Entry]:
        nonlocal started
        started = True
        everyone.exchange({"folder": str(folder.absolute())})
        answers = everyone.exchange({"files": {}})
        errors = [f"process {at}: {x['error']}" for at, x in enumerate(answers) if "error" in x]
        if errors:
            raise CheckpointError(f"{path} could not be saved by {errors[0]}")
        return {name: Entry(*entry) for x in answers for name, entry in x["files"].items()}

    try:
        write_folder(path, files, KIND, single.history_file(trainer), others)
    except BaseException as error:
        if not started:  # the others wait for the folder
            everyone.exchange({"error": str(error)})
        if isinstance(error, FolderError):
            raise CheckpointError(str(error)) from None
        raise


def _write_part(run: ParallelRun, files: Mapping[str, bytes]) -> None:
    """Write this process's files to the folder that the main process has created."""
    everyone = run.world.group("world")
    started = everyone.exchange({})[0]
    if "error" in started:
        raise CheckpointError(started["error"])
    answer: dict[str, Any] = {"files": {}}
    try:
        folder = Path(started["folder"])
        if files and not folder.is_dir():
            raise OSError(f"there is no {folder}; all processes need the same file system")
        for name, content in files.items():
            write_synced(folder / name, content)
            answer["files"][name] = checksums.entry(content)
    except OSError as error:
        answer = {"error": str(error)}
    everyone.exchange(answer)
    if "error" in answer:
        raise CheckpointError(answer["error"])


@contextlib.contextmanager
def _same_outcome(run: ParallelRun) -> Iterator[None]:
    """Let the block fail in all processes if it fails in one."""
    problem: BaseException | None = None
    try:
        yield
    except Exception as error:
        problem = error
    _raise_of_others(run, problem)
    if problem is not None:
        raise problem


def _raise_of_others(run: ParallelRun, problem: BaseException | None) -> None:
    """Tell the other processes of an error; raise an error if another one has one."""
    answers = run.world.group("world").exchange(None if problem is None else str(problem))
    failed = [(rank, text) for rank, text in enumerate(answers) if text is not None]
    if failed and problem is None:
        raise CheckpointError(f"process {failed[0][0]}: {failed[0][1]}")


def _owned(run: ParallelRun, trainer: Trainer, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the whole tensors that this process writes; the processes gather them together."""
    peers = run.world.environment.size // run.world.mesh.pp
    me = run.world.environment.rank % peers
    loads = [0] * peers
    owned: dict[str, Tensor] = {}
    for key, part in tensors.items():
        name = _parameter_name(key)
        if not run.values.has(name):
            if not run.values.is_variable(name) and me == 0 and run.is_main:
                owned[key] = part
            continue
        is_part = _is_shared(trainer, key) and part.shape == run.values.part_shape(name)
        whole = run.values.whole(name, part) if is_part else part
        owner = loads.index(min(loads))
        loads[owner] += whole.nbytes
        if owner == me:
            owned[key] = whole
    return owned


def _parameter_name(key: str) -> str:
    """Return the name of the parameter that a tensor belongs to: "optimizer/exp_avg/NAME"."""
    return key.rpartition("/")[2]


def _is_shared(trainer: Trainer, key: str) -> bool:
    """Return whether each process has a part of a tensor that has its parameter's shape.

    The state of an optimizer of whole parameters is whole in each process. Shapes do not show it:
    a parameter of one row is a whole in the first process, and nothing in the others.
    """
    return trainer.optimizer.sharing is None or not key.startswith("optimizer/")


def _file_name(kind: str, rank: int, size: int) -> str:
    stem, _, ending = kind.rpartition(".")
    return f"{stem}-{rank + 1:05d}-of-{size:05d}.{ending}"


def _sizes(tensors: Mapping[str, Tensor]) -> dict[str, int]:
    return {name: x.nbytes for name, x in tensors.items()}


def _index(kind: str, maps: list[dict[str, dict[str, int]]]) -> bytes:
    """Return the index of the files, as transformers has it."""
    total = sum(size for each in maps for size in each[kind].values())
    places = {
        name: _file_name(kind, rank, len(maps))
        for rank, each in enumerate(maps)
        for name in each[kind]
    }
    return checkpoint.to_json({"metadata": {"total_size": total}, "weight_map": places})


def resume(run: ParallelRun, trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Load a checkpoint of any number of processes; each keeps its parts.

    If a process cannot load it, nothing changes in any of them.

    Args:
        run: The processes.
        trainer: Trainer of this process.
        path: The folder.
    """
    values = run.values

    def select(key: str, whole: Tensor) -> Tensor | None:
        name = _parameter_name(key)
        if not values.has(name):
            return None if values.is_variable(name) else whole
        is_whole = _is_shared(trainer, key) and whole.shape == values.whole_shape(name)
        return values.part(name, whole) if is_whole else whole

    reported = False
    try:
        with checkpoint.open_checkpoint(path) as folder:
            load = functools.partial(_load_model, run, trainer, folder, select)
            keep = functools.partial(_keep_local, run)
            read = functools.partial(_read_parts, run, trainer, select)
            with single.restored(trainer, folder, load, read, keep) as data:
                _continue_alone(run, trainer, data)
                reported = True
                _raise_of_others(run, None)
    except BaseException as error:
        if not reported:
            _raise_of_others(run, error)
        raise


def _read_parts(
    run: ParallelRun, trainer: Trainer, select: Select, folder: Folder, name: str
) -> dict[str, Tensor]:
    """Return this process's parts of the tensors of the training state."""
    tensors = checkpoint.read_tensors(folder, name, select)
    values = _decoded(trainer, tensors, run.values.whole_shape)
    parts = {key: x if key in tensors else select(key, x) for key, x in values.items()}
    return {key: x for key, x in parts.items() if x is not None}


def _decoded(
    trainer: Trainer, tensors: Mapping[str, Tensor], shape_of: Callable[[str], Shape]
) -> Mapping[str, Tensor]:
    """Return tensors with the optimizer's state as values; blocks of 8 bits cannot be divided.

    An optimizer of whole parameters keeps them.
    """
    if trainer.optimizer.sharing is not None:
        return tensors
    return decoded(kernels(trainer.backend), tensors, shape_of)


def _gather_names(run: ParallelRun, data: dict[str, Any]) -> None:
    """Let the state of the optimizer list the parameters of all stages, in the model's order."""
    order = {name: at for at, (name, _) in enumerate(run.model.named_parameters())}
    optimizer = data["optimizer"]
    everyone = run.world.group("pp").exchange([group["params"] for group in optimizer["groups"]])
    for at, group in enumerate(optimizer["groups"]):
        names = {name for each in everyone for name in each[at]}
        group["params"] = sorted(names, key=order.__getitem__)
    lags = run.world.group("pp").exchange(optimizer["extra"].get("lags", {}))
    optimizer["extra"]["lags"] = {name: lag for each in lags for name, lag in each.items()}


def _keep_local(run: ParallelRun, data: dict[str, Any]) -> None:
    """Let the state of the optimizer list the parameters of this process only."""
    for group in data["optimizer"].get("groups", []):
        group["params"] = [name for name in group["params"] if run.values.has(name)]


def _continue_alone(run: ParallelRun, trainer: Trainer, data: Mapping[str, Any]) -> None:
    """Restore what differs between processes: the random stream, and parts of metrics."""
    group = run.world.group("data")
    if group.rank and trainer.train_metrics is not None:
        trainer.train_metrics.reset()  # the first process has the batches of all
    states = data.get(RANDOM, [])
    if len(states) == group.size:
        ops.random.set_state(states[group.rank])
    else:
        start_random_stream(data["random"], group.rank)


def _load_model(
    run: ParallelRun, trainer: Trainer, folder: Any, select: Callable[[str, Tensor], Tensor | None]
) -> None:
    variables: dict[str, Variable] = saved_variables(trainer.model)
    shapes = {
        name: run.values.whole_shape(name) if run.values.is_variable(name) else x.shape
        for name, x in variables.items()
    }
    with open_tensors(folder, WEIGHTS) as files:
        check_file(type(trainer.model).__name__, variables, files.tensors, shapes)
        places = {name: (x.backend, x.dtype.name, x.device) for name, x in variables.items()}
        replace_values(variables, files.read(places, select))
