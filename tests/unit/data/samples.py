"""Datasets and functions that worker processes import by name."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from ember_ml import get_backend, ops
from ember_ml.data import Dataset


class Squares(Dataset):
    """Example i is (i, a row of i squared); example `bad` cannot be read."""

    def __init__(self, length, bad=None):
        self.length = length
        self.bad = bad

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index == self.bad:
            raise ValueError(f"no number {index}")
        return index, np.full(3, index**2, np.float32)


class Deadly(Squares):
    """Its process ends without a word."""

    def __getitem__(self, index):
        os._exit(3)


class Endless(Squares):
    """Dataset that blocks from example 2 on."""

    def __getitem__(self, index):
        time.sleep(3600 if index >= 2 else 0)
        return super().__getitem__(index)


class SlowToArrive(Squares):
    """Dataset that is slow to unpickle in another process, and announces it by a file."""

    def __init__(self, length, folder):
        super().__init__(length)
        self.folder = folder

    def __setstate__(self, state):
        self.__dict__.update(state)
        (Path(self.folder) / f"{os.getpid()}.worker").touch()
        time.sleep(3600)


class Recorder(Squares):
    """Writes a file for each example that it reads; each takes some time."""

    def __init__(self, length, folder, seconds=0.0):
        super().__init__(length)
        self.folder = folder
        self.seconds = seconds

    def __getitem__(self, index):
        (Path(self.folder) / f"{index}.{os.getpid()}").touch()
        time.sleep(self.seconds)
        return super().__getitem__(index)


class Pages(Squares):
    """Example i is (a large row of i, its process); rows differ in length by batch."""

    def batch(self, indices):
        rows = np.full((len(indices), 20_000 + 5_000 * (indices[0] % 3)), indices[0], np.float32)
        return {"rows": rows, "index": np.array(indices), "text": [str(i) for i in indices]}


class Tensors(Squares):
    """Examples are tensors of the active backend."""

    def __getitem__(self, index):
        return ops.array([index, index]), get_backend()


def noise(index, rng):
    return {"index": index, "noise": rng.standard_normal(4).astype(np.float32)}


def add_noise(x, rng):
    """Random transform whose number of draws also depends on the generator."""
    return x + rng.standard_normal(rng.integers(1, 4)).sum().astype(np.float32)


def scale(x, rng):
    return x * rng.random(dtype=np.float32)


def count_to_ten():
    return iter(range(10))


def count_then_fail():
    yield from range(5)
    raise ValueError("the stream is broken")


def double(x):
    return 2 * x


def summed(items):
    return np.array([number for number, _ in items]).sum()


def unsendable(items):
    return lambda: items


def odd(items):
    """Arrays of every layout."""
    rows = np.array([number for number, _ in items], np.float32)[:, None] * np.ones(3, np.float32)
    return {
        "fortran": np.asfortranarray(rows),
        "strided": rows[::-1, ::2],
        "foreign": rows.astype(">f4"),
        "single": np.array(rows.sum()),
        "empty": rows[:0],
        "bool": rows > 1,
        "texts": ("a", None),
    }


def listed(loader):
    """Return every batch of an epoch as lists."""
    return [nest_lists(batch) for batch in loader]


def nest_lists(batch):
    if isinstance(batch, dict):
        return {key: nest_lists(part) for key, part in batch.items()}
    if isinstance(batch, (tuple, list)):
        return [nest_lists(part) for part in batch]
    return batch.tolist() if hasattr(batch, "tolist") else batch
