"""Worker processes that stay between loops: reuse, cancellation, ends, failures, shared memory."""

from __future__ import annotations

import copy
import gc
import itertools
import multiprocessing
import os
import pickle
import signal
import threading
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest

from ember_ml.data import ArrayDataset, DataLoader, IterableDataset, WorkerError, shared_memory
from ember_ml.data.shared_memory import Receiver, Sender

from .samples import (
    Deadly,
    Endless,
    Pages,
    Recorder,
    Squares,
    add_noise,
    count_to_ten,
    double,
    listed,
    odd,
)

OPTIONS = {"worker_type": "process", "backend": "numpy"}


def processes() -> list[BaseProcess]:
    return sorted(multiprocessing.active_children(), key=lambda process: process.name)


def pids() -> list[int]:
    return [process.pid for process in processes()]


def wait_until(condition) -> None:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_processes_stay_for_every_kind_of_loop() -> None:
    data = ArrayDataset(np.arange(20, dtype=np.float32)).map(add_noise, seed=3)
    plain = DataLoader(data, 3, shuffle=True, backend="numpy")
    epochs = [listed(plain) for _ in range(5)]
    loader = DataLoader(data, 3, shuffle=True, num_workers=2, **OPTIONS)
    assert listed(loader) == epochs[0]
    first = pids()
    assert len(first) == 2
    assert [batch.tolist() for batch in itertools.islice(loader, 2)] == epochs[1][:2]
    assert listed(loader) == epochs[2]
    assert listed(loader.once()) == epochs[3]
    loader.load_state_dict(loader.state_dict() | {"epoch": 4, "batches": 5})
    assert listed(loader) == epochs[4][5:]
    assert pids() == first
    loader.close()
    assert pids() == []


def test_processes_stay_after_an_error_in_an_example() -> None:
    with DataLoader(Squares(9, bad=4), 2, num_workers=2, **OPTIONS) as loader:
        for _ in range(2):
            with pytest.raises(WorkerError, match=r"batch 2 (.|\n)*no number 4"):
                listed(loader)
            before = pids()
        assert len(before) == 2
        assert pids() == before


def test_a_stream_begins_again_in_the_same_process() -> None:
    stream = IterableDataset(count_to_ten).map(double)
    with DataLoader(stream, 4, num_workers=1, **OPTIONS) as loader:
        whole = [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]
        assert listed(loader) == whole
        before = pids()
        assert [batch.tolist() for batch in itertools.islice(loader, 1)] == whole[:1]
        assert listed(loader) == whole
        loader.load_state_dict(loader.state_dict() | {"batches": 2})
        assert listed(loader) == whole[2:]
        assert pids() == before


def test_a_loop_within_a_loop_has_processes_of_its_own() -> None:
    data = ArrayDataset(np.arange(12))
    with DataLoader(data, 4, shuffle=True, num_workers=1, **OPTIONS) as loader:
        plain = DataLoader(data, 4, shuffle=True, backend="numpy")
        epochs = [listed(plain) for _ in range(2)]
        outer = []
        for batch in loader:
            outer.append(batch.tolist())
            if len(outer) == 2:
                assert listed(loader) == epochs[1]
                assert len(pids()) == 2
        assert outer == epochs[0]
        wait_until(lambda: len(pids()) == 1)


def test_a_break_cancels_the_tasks_that_have_not_started(tmp_path: Path) -> None:
    dataset = Recorder(1000, tmp_path, seconds=0.2)
    with DataLoader(dataset, 1, num_workers=1, prefetch=9, **OPTIONS) as loader:
        next(iter(loader))
        loader.load_state_dict(loader.state_dict() | {"batches": 500})
        next(iter(loader))
    read = {int(file.stem) for file in tmp_path.iterdir()}
    assert {0, 500} <= read
    assert not read & {4, 5, 6, 7, 8, 9}  # the break arrives while it reads one of 1, 2, 3


def test_processes_read_no_further_ahead_than_asked(tmp_path: Path) -> None:
    with DataLoader(Recorder(1000, tmp_path), 1, num_workers=2, prefetch=3, **OPTIONS) as loader:
        running = iter(loader)
        next(running)
        wait_until(lambda: len(list(tmp_path.iterdir())) == 7)
        time.sleep(0.2)
        assert len(list(tmp_path.iterdir())) == 7  # one received, 2 workers x 3 ahead


@pytest.mark.parametrize("end", ["close", "with", "collect", "cycle"])
def test_nothing_is_left_at_the_end(end: str) -> None:
    before = descriptors()
    loader = DataLoader(Pages(60), 2, num_workers=1, **OPTIONS)
    next(iter(loader))
    listed(loader)
    assert len(processes()) == 1
    if end == "close":
        loader.close()
        loader.close()
    elif end == "with":
        with loader:
            pass
    elif end == "cycle":
        loader.itself = loader
    del loader
    gc.collect()
    assert pids() == []
    assert [thread for thread in threading.enumerate() if "data" in thread.name] == []
    assert descriptors() <= before + 1  # the resource tracker, which Python starts once


def test_a_closed_loader_starts_again() -> None:
    loader = DataLoader(Squares(4), 2, num_workers=1, **OPTIONS)
    expected = listed(DataLoader(Squares(4), 2, backend="numpy"))
    for _ in range(2):
        with loader:
            assert listed(loader) == expected
        assert pids() == []


def test_closing_in_the_middle_of_a_loop_is_an_error_in_the_loop() -> None:
    loader = DataLoader(Endless(9), 2, num_workers=1, **OPTIONS)
    running = iter(loader)
    next(running)
    loader.close()
    assert pids() == []
    with pytest.raises(WorkerError, match="closed while a loop was running"):
        next(running)


@pytest.mark.parametrize("when", ["reading", "idle"])
def test_a_killed_process_is_named_and_the_next_loop_works(when: str) -> None:
    dataset = Squares(4000)
    expected = listed(DataLoader(dataset, 100, backend="numpy"))
    with DataLoader(dataset, 100, num_workers=2, **OPTIONS) as loader:
        running = iter(loader)
        assert [part.tolist() for part in next(running)] == expected[0]
        victim = processes()[1].pid
        if when == "reading":
            os.kill(victim, signal.SIGKILL)
            match = rf"worker 1 \(process {victim}\) was killed by signal SIGKILL"
            with pytest.raises(WorkerError, match=match):
                listed(running)
            assert pids() == []
        else:
            listed(running)
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda: len(pids()) == 1)
        assert listed(loader) == expected
        assert len(pids()) == 2
        assert victim not in pids()


def test_a_process_that_dies_twice_is_an_error_twice() -> None:
    with DataLoader(Deadly(4), 2, num_workers=2, **OPTIONS) as loader:
        for _ in range(2):
            with pytest.raises(WorkerError, match="exited with code 3"):
                listed(loader)


def test_an_interrupt_in_the_loop_leaves_a_loader_that_works() -> None:
    """The interrupts arrive at any point of the transfer."""
    expected = listed(DataLoader(Pages(40), 2, backend="numpy"))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    try:
        with DataLoader(Pages(40), 2, num_workers=2, **OPTIONS) as loader:
            listed(loader)
            for delay in (0.0005, 0.005, 0.02):
                try:
                    signal.setitimer(signal.ITIMER_REAL, delay)
                    for _ in range(50):
                        listed(loader)
                except KeyboardInterrupt:
                    interrupted += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
                assert listed(loader) == expected
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted == 3
    assert pids() == []


def test_changed_settings_start_new_processes() -> None:
    with DataLoader(Squares(4), 2, num_workers=1, **OPTIONS) as loader:
        listed(loader)
        before = pids()
        loader.dataset = Squares(4).map(str)
        assert listed(loader)[0] == [str(Squares(4)[0]), str(Squares(4)[1])]
        assert len(pids()) == 1
        assert pids() != before


def test_a_copied_loader_has_processes_of_its_own() -> None:
    with DataLoader(Squares(4), 2, num_workers=1, **OPTIONS) as loader:
        expected = listed(loader)
        before = pids()
        for other in (copy.copy(loader), pickle.loads(pickle.dumps(loader))):
            with other:
                other.epoch = 0
                assert listed(other) == expected
            assert pids() == before


def test_batches_that_are_kept_do_not_change() -> None:
    before = descriptors()
    with DataLoader(Pages(120), 2, num_workers=2, **OPTIONS) as loader:
        kept = list(loader)
        listed(loader)
        assert descriptors() < before + 40
    plain = DataLoader(Pages(120), 2, backend="numpy")
    assert [listed([batch]) for batch in kept] == [listed([batch]) for batch in plain]
    kept[0]["rows"].numpy()[...] = 5  # still writable after the end of the processes


def test_shared_memory_is_used_again() -> None:
    with DataLoader(Pages(400), 2, num_workers=1, prefetch=2, **OPTIONS) as loader:
        for _ in range(2):
            for batch in loader:
                (worker,) = next(iter(loader._pools._started)).workers
                assert len(worker.receiver.segments) <= 5
                base = batch["rows"].numpy()
                while isinstance(base.base, np.ndarray):
                    base = base.base
                assert isinstance(base.base, shared_memory.Lease)
                del base, batch


@pytest.mark.parametrize("way", ["memfd", "file", "pipe"])
def test_each_way_of_transfer(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender and a receiver in this process; the sender writes from a thread."""
    if way == "file":
        monkeypatch.delattr(os, "memfd_create")
    if way == "pipe":
        monkeypatch.setattr(shared_memory, "AVAILABLE", False)
    monkeypatch.setattr(shared_memory, "THRESHOLD", 1)
    ours, theirs = multiprocessing.Pipe()
    sender, receiver = Sender(theirs), Receiver(ours, limit=2)
    items = [(n, np.full(3, n**2, np.float32)) for n in range(3)]
    batches = [odd(items), {"big": np.arange(10**6)}, odd(items), [np.arange(5.0), "text", None]]
    kept = []
    for batch in batches * 3:
        thread = threading.Thread(target=sender.send, args=(batch,))
        thread.start()
        kept.append(receiver.receive())
        thread.join()
        sender.release(receiver.collect())
    assert (len(receiver.segments) > 0) == (way != "pipe")
    for received, sent in zip(kept, batches * 3, strict=True):
        assert listed([received]) == listed([sent])
    assert receiver.in_use <= set(receiver.segments)
    assert len(receiver.segments) <= 4
    del kept, received
    sender.release(receiver.collect())
    assert receiver.in_use == set()
    ours.close()
    theirs.close()


def test_a_large_task_and_a_large_batch_do_not_block_each_other() -> None:
    """Both are larger than the buffers of the connection."""
    dataset = ArrayDataset(np.arange(150_000)).map(str)
    loader = DataLoader(dataset, 50_000, num_workers=1, prefetch=3, **OPTIONS)
    with loader:
        assert sum(len(batch) for batch in loader) == 150_000
