"""Features, tokenizers and loaders against scikit-learn, librosa, tokenizers and torch, in one run.

- features: CPU time of `fit` and `extract` on the NumPy backend, relative to scikit-learn and
  librosa.
- tokens: CPU time of encoding lines and documents, relative to bare `tokenizers`.
- loader: examples per second of a `DataLoader` that decodes and augments images in worker
  processes, relative to torch's `DataLoader` with the same dataset and number of workers. Both keep
  their processes between epochs. The first epoch contains their start: torch forks its processes,
  Ember starts new interpreters, which takes longer and is safe next to threads. The CPU time, of
  all processes together, depends less on the load of the machine.

Each figure is the best of many repetitions; the libraries take turns, so that noise affects all of
them equally. Everything runs on one thread per process, except in `tokenizers`.

    python benchmarks/pipelines.py [features | tokens | loader ...]
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # before NumPy is imported; worker processes inherit it
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import io
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ember_ml.data import DataLoader, Dataset

# Other packages are imported where they are used: worker processes import this file.
FEATURES_GOAL, TOKENS_GOAL, LOADER_GOAL = 1.2, 1.1, 1.0
SECONDS, REPEATS = 3.0, 15
RATE = 16_000
FILES, EXAMPLES, BATCH, WORKERS, EPOCHS = 64, 768, 32, 2, 10

Contestant = Callable[[], Any]


def seconds(function: Contestant, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the time of a call."""
    start = clock()
    result = function()
    duration = clock() - start
    del result
    return duration


def race(ours: Contestant, theirs: Contestant) -> tuple[float, float]:
    """Return the best CPU times of two functions, called in turns after a first call of each."""
    ours(), theirs()
    best = [math.inf, math.inf]
    start, turns = time.perf_counter(), 0
    while turns < REPEATS or time.perf_counter() - start < SECONDS:
        times = seconds(ours, time.process_time), seconds(theirs, time.process_time)
        best = [min(pair) for pair in zip(best, times, strict=True)]
        turns += 1
    return best[0], best[1]


def show(name: str, peer: str, times: tuple[float, float], goal: float) -> None:
    """Print both times and their ratio."""
    ratio = times[0] / times[1]
    print(
        f"{name:34} {times[0] * 1e3:9.2f} ms  {peer} {times[1] * 1e3:9.2f} ms  ratio {ratio:5.2f} "
        f"(goal {goal}){'' if ratio <= goal else '  MISSED'}",
        flush=True,
    )


def table_features() -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, our extractor and scikit-learn's for each feature of tables."""
    from sklearn import decomposition, preprocessing

    from ember_ml.nn import features

    yield "PCA(16)", lambda: features.PCA(16), lambda: decomposition.PCA(16)
    yield "Standardize", features.Standardize, preprocessing.StandardScaler
    yield "Normalize(minmax)", lambda: features.Normalize("minmax"), preprocessing.MinMaxScaler
    yield "Normalize(robust)", lambda: features.Normalize("robust"), preprocessing.RobustScaler
    yield "Normalize(l2)", lambda: features.Normalize("l2"), preprocessing.Normalizer


def measure_table(rows: int, columns: int, dtype: str) -> None:
    """Compare features of a table with scikit-learn."""
    import ember_ml as ember

    x = np.random.default_rng(0).standard_normal((rows, columns)).astype(dtype)
    tensor = ember.ops.array(x, dtype=dtype)

    def compare(name: str, our_class: Callable[[], Any], their_class: Callable[[], Any]) -> None:
        ours, theirs = our_class().fit(tensor), their_class().fit(x)
        values = np.abs(ours(tensor).numpy()), np.abs(theirs.transform(x))  # PCA: signs differ
        np.testing.assert_allclose(*values, rtol=1e-3, atol=1e-3)
        label = f"{name} {rows}x{columns} {dtype}"
        if name != "Normalize(l2)":  # it has nothing to fit
            times = race(lambda: our_class().fit(tensor), lambda: their_class().fit(x))
            show(f"{label} fit", "scikit-learn", times, FEATURES_GOAL)
        times = race(lambda: ours(tensor), lambda: theirs.transform(x))
        show(label, "scikit-learn", times, FEATURES_GOAL)

    for name, our_class, their_class in table_features():
        compare(name, our_class, their_class)


def measure_audio(duration: int) -> None:
    """Compare mel spectrograms and MFCCs of a signal with librosa."""
    from librosa import feature as peer

    import ember_ml as ember
    from ember_ml.nn import features

    x = np.random.default_rng(0).standard_normal(duration * RATE).astype(np.float32)
    tensor = ember.ops.array(x)
    options = {"y": x, "sr": RATE, "n_fft": 400, "hop_length": 160, "n_mels": 80}

    def compare(name: str, ours: Contestant, theirs: Contestant) -> None:
        np.testing.assert_allclose(ours().numpy(), theirs().T, rtol=1e-3, atol=1e-2)
        show(f"{name} {duration} s", "librosa", race(ours, theirs), FEATURES_GOAL)

    mel = features.MelSpectrogram(RATE, n_mels=80, n_fft=400, hop=160)
    compare("MelSpectrogram", lambda: mel(tensor), lambda: peer.melspectrogram(**options))
    mfcc = features.MFCC(RATE, n_mfcc=20, n_mels=80, n_fft=400, hop=160)
    compare("MFCC", lambda: mfcc(tensor), lambda: peer.mfcc(n_mfcc=20, **options))


def measure_features() -> None:
    """Compare features on the NumPy backend with scikit-learn and librosa."""
    import ember_ml as ember

    with ember.use_backend("numpy"):
        measure_table(50_000, 64, "float32")
        measure_table(2_000, 20, "float64")
        measure_audio(1)
        measure_audio(30)


def measure_tokenizer(kind: str, lines: list[str]) -> None:
    """Compare a kind of tokenizer with the same one of `tokenizers`, which runs underneath."""
    import tokenizers

    from ember_ml.data import text

    ours = text.Tokenizer.train(lines, kind, 1000)
    theirs = tokenizers.Tokenizer.from_str(ours.to_json())

    def compare(label: str, texts: list[str]) -> None:
        def bare() -> object:
            return [encoding.ids for encoding in theirs.encode_batch_fast(texts)]

        assert ours.encode_batch(texts) == bare()
        times = race(lambda: ours.encode_batch(texts), bare)
        show(f"{kind}: batch of {len(texts)} {label}", "tokenizers", times, TOKENS_GOAL)

    compare("lines", lines)
    compare("documents", ["\n".join(lines[at : at + 50]) for at in range(0, len(lines), 50)])
    times = race(
        lambda: [ours.encode(line) for line in lines[:500]],
        lambda: [theirs.encode(line).ids for line in lines[:500]],
    )
    show(f"{kind}: 500 single lines", "tokenizers", times, TOKENS_GOAL)


def measure_tokens() -> None:
    """Compare encoding with bare `tokenizers`."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("etaoinshrdlu"), rng.integers(2, 9))) for _ in range(3000)]
    lines = [" ".join(rng.choice(words, 12)) for _ in range(5000)]
    for kind in ("bpe", "wordpiece"):
        measure_tokenizer(kind, lines)


class Images(Dataset):
    """Encoded images in memory, which are decoded on access; an example is (image, label)."""

    def __init__(self, files: list[bytes], length: int) -> None:
        self.files = files
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        from PIL import Image

        with Image.open(io.BytesIO(self.files[index % len(self.files)])) as image:
            return np.asarray(image.convert("RGB")), index % 10


def augment(example: tuple[np.ndarray, int], rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return a random crop of 7/8 of the size, flipped and brightened at random, normalized."""
    image, label = example
    size = image.shape[0] * 7 // 8
    top, left = rng.integers(0, image.shape[0] - size + 1, 2)
    image = image[top : top + size, left : left + size]
    if rng.random() < 0.5:
        image = image[:, ::-1]
    scale = np.float32(rng.uniform(0.8, 1.2) / 255)
    return (image * scale - np.float32(0.5)).transpose(2, 0, 1), label


def encoded_images(kind: str, size: int) -> list[bytes]:
    """Return images of smooth noise as files of one kind."""
    from PIL import Image

    rng = np.random.default_rng(0)
    files = []
    for _ in range(FILES):
        coarse = Image.fromarray(rng.integers(0, 256, (size // 8, size // 8, 3), np.uint8))
        file = io.BytesIO()
        coarse.resize((size, size)).save(file, kind, **({"quality": 90} if kind == "JPEG" else {}))
        files.append(file.getvalue())
    return files


class Measured:
    """Loader with the times of its epochs, the first one with the start of its processes.

    Args:
        loader: The loader.
    """

    def __init__(self, loader: Iterable[Any]) -> None:
        self.loader = loader
        self.times: list[float] = []
        self.cpu_times: list[float] = []
        self.processes: list[int] = []

    def run_epoch(self) -> None:
        """Read an epoch, and append its time and its CPU time in all processes."""
        known = {process.pid for process in multiprocessing.active_children()}
        cpu = self._cpu_time()
        self.times.append(seconds(lambda: sum(len(labels) for _, labels in self.loader)))
        self.cpu_times.append(self._cpu_time() - cpu)
        children = {process.pid for process in multiprocessing.active_children()}
        self.processes += [pid for pid in children - known if pid is not None]

    def _cpu_time(self) -> float:
        """Return the CPU time of this process and the workers (of the workers on Linux only)."""
        threads = [task for pid in self.processes for task in Path(f"/proc/{pid}/task").glob("*")]
        workers = sum(int((task / "schedstat").read_text().split()[0]) for task in threads)
        return time.process_time() + workers / 1e9


def measure_loader() -> None:
    """Compare loaders over several epochs, with processes that stay between them."""
    for kind, size in (("JPEG", 256), ("PNG", 256), ("JPEG", 64)):
        compare_loaders(f"{kind} {size}x{size}", encoded_images(kind, size))


def compare_loaders(name: str, files: list[bytes]) -> None:
    """Compare the loaders on images that are decoded and augmented in two processes."""
    import torch.utils.data

    class View(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __init__(self, dataset: Dataset) -> None:
            self.dataset = dataset

        def __len__(self) -> int:
            return len(self.dataset)

        def __getitem__(self, index: int) -> Any:
            return self.dataset[index]

    dataset = Images(files, EXAMPLES).map(augment, seed=1)
    options: dict[str, Any] = {"shuffle": True, "num_workers": WORKERS}
    peer = torch.utils.data.DataLoader(
        View(dataset), BATCH, persistent_workers=True, prefetch_factor=2, **options
    )
    with DataLoader(dataset, BATCH, worker_type="process", backend="torch", **options) as loader:
        ours, theirs = Measured(loader), Measured(peer)
        for _ in range(EPOCHS):
            ours.run_epoch()
            theirs.run_epoch()
    for label, first, last in (("first epoch", 0, 1), ("all epochs", 0, EPOCHS)):
        rates = [EXAMPLES * (last - first) / sum(side.times[first:last]) for side in (ours, theirs)]
        show_rates(f"{name}: {label}, with start", "", *rates)
    rates = [EXAMPLES / min(side.times) for side in (ours, theirs)]
    show_rates(f"{name}: best epoch", "", *rates, goal=LOADER_GOAL)
    rates = [EXAMPLES / min(side.cpu_times[1:]) for side in (ours, theirs)]
    show_rates(f"{name}: best epoch", "CPU ", *rates, goal=LOADER_GOAL)


def show_rates(
    name: str, unit: str, ours: float, theirs: float, *, goal: float | None = None
) -> None:
    """Print examples per (CPU) second, and the ratio."""
    ratio = ours / theirs
    verdict = "" if goal is None else f" (goal {goal}){'' if ratio >= goal else '  MISSED'}"
    print(
        f"{name:38} {ours:6.0f}/{unit}s  torch {theirs:6.0f}/{unit}s  ratio {ratio:5.2f}{verdict}",
        flush=True,
    )


MEASUREMENTS = {"features": measure_features, "tokens": measure_tokens, "loader": measure_loader}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or MEASUREMENTS:
        MEASUREMENTS[chosen]()
