"""Background workers: same batches, reported errors, no leftover threads or processes."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.data import (
    ArrayDataset,
    DataLoader,
    GeneratedDataset,
    IterableDataset,
    MemoryMappedDataset,
    WorkerError,
)

from .samples import (
    Deadly,
    Endless,
    Squares,
    Tensors,
    count_then_fail,
    count_to_ten,
    double,
    listed,
    noise,
    odd,
    summed,
    unsendable,
)

KINDS = ["thread", "process"]
PROCESS = {"worker_type": "process", "backend": "numpy"}


def workers_left() -> list:
    threads = [thread for thread in threading.enumerate() if "data worker" in thread.name]
    return threads + multiprocessing.active_children()


def test_processes_give_the_same_batches(backend: str) -> None:
    dataset = GeneratedDataset(noise, 11, seed=1)
    options = {"shuffle": True, "seed": 3}
    with DataLoader(dataset, 3, num_workers=2, worker_type="process", **options) as loader:
        batches = list(loader)
    assert {batch["noise"].backend for batch in batches} == {backend}
    assert listed(batches) == listed(DataLoader(dataset, 3, backend="numpy", **options))
    assert workers_left() == []


def test_processes_resume_and_collate_and_read_files(tmp_path) -> None:
    files = MemoryMappedDataset.create(tmp_path / "x.npy", np.arange(20.0).reshape(10, 2))
    options = {"shuffle": True, "num_workers": 1, "worker_type": "process", "backend": "numpy"}
    whole = listed(DataLoader(files, 4, shuffle=True, backend="numpy"))
    first = DataLoader(files, 4, **options)
    assert next(iter(first)).tolist() == whole[0]
    second = DataLoader(files, 4, **options)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert listed(second) == whole[1:]
    sums = DataLoader(Squares(5), 2, collate=summed, **options | {"shuffle": False})
    assert [batch.item() for batch in sums] == [1, 5, 4]


def test_a_stream_in_a_process() -> None:
    stream = IterableDataset(count_to_ten).map(double)
    loader = DataLoader(stream, 4, num_workers=1, worker_type="process", backend="numpy")
    assert listed(loader) == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]


def test_a_process_makes_its_tensors_in_host_memory(backend: str) -> None:
    loader = DataLoader(Tensors(2), 2, num_workers=1, worker_type="process")
    values, names = next(iter(loader))
    assert values.backend == backend
    assert names == ["numpy", "numpy"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_workers_error_has_its_traceback_and_index(kind: str) -> None:
    loader = DataLoader(Squares(20, bad=7), 3, num_workers=2, worker_type=kind, backend="numpy")
    with loader, pytest.raises(WorkerError, match=r"batch 2 \(examples 6, 7, 8\)") as caught:
        listed(loader)
    assert loader.state_dict()["batches"] == 2
    text = str(caught.value)
    for part in ("Traceback", "samples.py", "ValueError: no number 7", "in example 7 of Squares"):
        assert part in text
    assert isinstance(caught.value.__cause__, ValueError) == (kind == "thread")
    assert workers_left() == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_of_a_stream(kind: str) -> None:
    stream = IterableDataset(count_then_fail)
    loader = DataLoader(stream, 2, num_workers=1, worker_type=kind, backend="numpy")
    with pytest.raises(WorkerError, match=r"batch 2:\n(.|\n)*ValueError: the stream is broken"):
        listed(loader)


def test_a_process_that_dies_is_an_error() -> None:
    loader = DataLoader(Deadly(4), 2, num_workers=1, **PROCESS)
    with pytest.raises(WorkerError, match=r"worker 0 \(process \d+\) exited with code 3"):
        listed(loader)
    assert workers_left() == []


def test_an_unpicklable_dataset_is_reported() -> None:
    loader = DataLoader(Squares(4).map(lambda x: x), num_workers=2, worker_type="process")
    with pytest.raises(ArgumentTypeError, match="worker_type='thread'"):
        listed(loader)
    assert workers_left() == []


def test_an_unpicklable_batch_is_reported() -> None:
    loader = DataLoader(Squares(4), 2, collate=unsendable, num_workers=1, worker_type="process")
    with loader, pytest.raises(WorkerError, match=r"batch 0 (.|\n)*unsendable"):
        listed(loader)
    assert workers_left() == []


def test_arrays_of_every_layout_come_from_a_process(backend: str) -> None:
    loader = DataLoader(Squares(4), 2, collate=odd, num_workers=1, worker_type="process")
    assert listed(loader) == listed(DataLoader(Squares(4), 2, collate=odd, backend="numpy"))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_after_a_break(kind: str) -> None:
    options = {"worker_type": kind, "backend": "numpy", "persistent": False}
    loader = DataLoader(Squares(10_000), 2, num_workers=2, **options)
    for _ in loader:
        assert len(workers_left()) >= 2
        break
    assert workers_left() == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_after_an_error_in_the_loop(kind: str) -> None:
    options = {"worker_type": kind, "backend": "numpy", "persistent": False}
    loader = DataLoader(Squares(10_000), 2, num_workers=2, **options)

    def loop() -> None:
        for _ in loader:
            raise KeyError("of the user's")

    with pytest.raises(KeyError):
        loop()
    assert workers_left() == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_after_garbage_collection(kind: str) -> None:
    running = iter(DataLoader(Squares(10_000), 2, num_workers=2, worker_type=kind, backend="numpy"))
    next(running)
    cycle = [running]
    cycle.append(cycle)
    assert workers_left() != []
    del running, cycle
    gc.collect()
    assert workers_left() == []


def test_a_break_does_not_wait_for_a_process_in_the_middle_of_an_example() -> None:
    loader = DataLoader(Endless(9), 2, num_workers=1, persistent=False, **PROCESS)
    running = iter(loader)
    next(running)
    (process,) = multiprocessing.active_children()
    running.close()
    assert process.exitcode is not None
    assert workers_left() == []


def test_workers_read_no_further_ahead_than_asked() -> None:
    read = []

    def record(example):
        read.append(example)
        return example

    dataset = ArrayDataset(np.arange(1000)).map(record)
    running = iter(DataLoader(dataset, 1, num_workers=2, prefetch=3, backend="numpy"))
    next(running)
    deadline = time.monotonic() + 20
    while len(read) < 7 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    assert len(read) == 7  # one received, 2 workers x 3 ahead
    running.close()


SCRIPT = """
import multiprocessing, sys, time
from ember_ml.data import DataLoader
from tests.unit.data.samples import SlowToArrive, Squares

if __name__ == "__main__":
    dataset = SlowToArrive(9, sys.argv[3]) if sys.argv[2] == "slow" else Squares(10**6)
    loader = DataLoader(dataset, 2, num_workers=2, worker_type=sys.argv[1], backend="numpy")
    running = iter(loader)
    next(running)
    print(*(process.pid for process in multiprocessing.active_children()), flush=True)
    if sys.argv[2] == "idle":
        running.close()
    if sys.argv[2] == "loop":
        for batch in running:
            time.sleep(0.001)
"""


def run(tmp_path, *arguments: str) -> subprocess.Popen:
    """Start the script in a new process group."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(path), *arguments],
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def started(tmp_path, *arguments: str) -> tuple[subprocess.Popen, list[int]]:
    """Return the script after its first batch, and the process ids of its workers."""
    process = run(tmp_path, *arguments)
    return process, [int(word) for word in process.stdout.readline().split()]


def all_end(pids: list[int]) -> bool:
    """Return whether the processes end in time; zombies count as ended."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        command = ["ps", "-o", "stat=", "-p", ",".join(map(str, pids))]
        states = subprocess.run(command, capture_output=True, text=True).stdout.split()
        if all(state.startswith("Z") for state in states):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_ends_the_loop_and_its_workers(tmp_path, kind: str) -> None:
    process, workers = started(tmp_path, kind, "loop")
    assert len(workers) == (2 if kind == "process" else 0)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: to the workers too
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert errors.count("KeyboardInterrupt") == 1
    assert not workers or all_end(workers)


def test_an_interrupt_while_processes_start(tmp_path) -> None:
    process = run(tmp_path, "process", "slow", str(tmp_path))
    deadline = time.monotonic() + 30
    while len(list(tmp_path.glob("*.worker"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    workers = [int(file.stem) for file in tmp_path.glob("*.worker")]
    assert len(workers) == 2
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert errors.count("KeyboardInterrupt") == 1
    assert all_end(workers)


@pytest.mark.parametrize(
    ("kind", "state"), [("thread", "open"), ("process", "open"), ("process", "idle")]
)
def test_workers_do_not_hold_up_the_end_of_the_program(tmp_path, kind: str, state: str) -> None:
    process, workers = started(tmp_path, kind, state)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert not workers or all_end(workers)


def test_processes_end_with_a_parent_that_is_killed(tmp_path) -> None:
    process, workers = started(tmp_path, "process", "loop")
    process.kill()
    process.communicate(timeout=60)
    assert all_end(workers)


def test_a_dataset_of_a_notebook_in_a_process_needs_a_module() -> None:
    code = """
import ember_ml.data
class Numbers(ember_ml.data.Dataset):
    def __len__(self): return 2
    def __getitem__(self, index): return index
list(ember_ml.data.DataLoader(Numbers(), num_workers=1, worker_type="process"))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert "exited with code 1; put classes and functions of a notebook" in run.stderr
