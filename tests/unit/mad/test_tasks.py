"""The six tasks: examples are checked against a plain Python reference."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from ember_ml import mad, registry
from ember_ml.backend import available, use_backend
from ember_ml.configs import Config, ConfigError
from ember_ml.data import DataLoader
from ember_ml.mad.scales import SCALES, make_runs, settings, task_class
from ember_ml.mad.tasks import TaskError

IGNORED = -100
TASKS = [entry.name.partition("/")[2] for entry in registry.available("tasks")]


def rows(name: str, split: str, count: int = 300, **sizes) -> tuple[np.ndarray, np.ndarray]:
    task = mad.task(name, **{f"num_{split}": count, **sizes})
    return task.arrays(split)


@pytest.mark.parametrize(
    ("name", "sizes", "digest"),
    [
        ("in-context-recall", {}, "e9a791513acd3e31"),
        ("noisy-in-context-recall", {"multi_query": False}, "aa53b1b9af3c1bb2"),
        ("fuzzy-in-context-recall", {"train_on": "known"}, "c2b3dc41136968c0"),
        ("memorization", {}, "2d6b2f3c979ab6ee"),
        ("compression", {"vocab_size": 4, "seq_len": 8, "num_train": 1000}, "915377d55c372ac6"),
        ("selective-copying", {}, "e44007ebe3e9b3ae"),
    ],
)
def test_the_data_never_changes(name: str, sizes: dict, digest: str) -> None:
    """Published results are comparable only if the same seed generates the same examples."""
    counts = {"num_train": 3000, "num_validation": 100, "num_test": 100, "seed": 7}
    task = mad.task(name, **{**counts, **sizes})
    arrays = [array for split in ("train", "validation", "test") for array in task.arrays(split)]
    data = b"".join(array.astype("<i8").tobytes() for array in arrays)
    assert hashlib.sha256(data).hexdigest()[:16] == digest


def targets_per_row(targets: np.ndarray) -> float:
    return float((targets != IGNORED).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("name", "length", "count", "within"),
    [
        ("in-context-recall", 127, 56.0, 0.1),
        ("noisy-in-context-recall", 127, 43.7, 0.3),
        ("fuzzy-in-context-recall", 128, 4.5, 0.2),
        ("memorization", 32, 16.0, 0.0),
        ("compression", 32, 32.0, 0.0),
        ("selective-copying", 256, 16.0, 0.0),
    ],
)
def test_sizes_and_targets_of_the_test_split(name, length, count, within) -> None:
    inputs, targets = rows(name, "test", 1280, num_train=64)
    assert inputs.shape == targets.shape == (1280, length)
    assert targets_per_row(targets) == pytest.approx(count, abs=within or 1e-9)


@pytest.mark.parametrize("name", TASKS)
def test_tokens_are_in_the_vocabulary(name: str) -> None:
    for split in ("train", "test"):
        inputs, targets = rows(name, split, num_train=300)
        size = mad.task(name).vocab_size
        assert inputs.min() >= 0
        assert inputs.max() < size
        asked = targets[targets != IGNORED]
        assert asked.min() >= 0
        assert asked.max() < size


def follow_recall(tokens: list[int], keys: range, values: range, noise: range) -> list[int]:
    """Return the positions of the values that can be known, reading pair by pair."""
    bound: dict[int, int] = {}
    known = []
    for at in range(0, len(tokens) - 1, 2):
        key, value = tokens[at], tokens[at + 1]
        if key in noise:
            assert value in noise
            continue
        assert key in keys
        assert value in values
        if key in bound:
            assert bound[key] == value
            known.append(at + 1)
        bound[key] = value
    return known


@pytest.mark.parametrize(
    ("name", "size", "noise"), [("in-context-recall", 16, 0), ("noisy-in-context-recall", 32, 16)]
)
def test_recall_asks_for_what_can_be_known(name: str, size: int, noise: int) -> None:
    inputs, targets = rows(name, "test", num_train=64)
    half = (size - noise) // 2
    for row, wanted in zip(inputs.tolist(), targets.tolist(), strict=True):
        whole = [*row, wanted[-1]]
        known = follow_recall(whole, range(half), range(half, 2 * half), range(size - noise, size))
        assert [at + 1 for at, target in enumerate(wanted) if target != IGNORED] == known
        assert all(wanted[at - 1] == whole[at] for at in known)
        assert known[-1] == len(whole) - 1


def test_training_learns_every_next_token() -> None:
    inputs, targets = rows("in-context-recall", "train")
    assert (targets[:, :-1] == inputs[:, 1:]).all()


def test_values_may_repeat_and_bindings_differ_between_sequences() -> None:
    inputs, _ = rows("in-context-recall", "train", 500)
    first = {(int(row[0]), int(row[1])) for row in inputs}
    assert len(first) == 64  # every key with every value


def test_the_share_of_noise() -> None:
    inputs, _ = rows("noisy-in-context-recall", "train", 2000, frac_noise=0.6)
    noisy = (inputs[:, 0:126:2] >= 16).mean()
    assert noisy == pytest.approx(0.6 * 62 / 63, abs=0.01)  # one pair in 63 is always shown


def test_single_query_asks_once_after_the_prefix() -> None:
    inputs, targets = rows("in-context-recall", "test", num_train=64, multi_query=False)
    assert inputs.shape == (300, 128)
    assert targets_per_row(targets) == 1.0
    assert (inputs[:, -2] == 15).all()
    for row, wanted in zip(inputs.tolist(), targets.tolist(), strict=True):
        pairs = dict(zip(row[:126:2], row[1:126:2], strict=True))
        assert pairs[row[-1]] == wanted[-1]


def parse_fuzzy(whole: list[int]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Keys (below 7) and values (7 to 14) of a sequence, in order; 15 is the padding."""
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    key: list[int] = []
    value: list[int] = []
    for token in [t for t in whole if t != 15] + [0]:
        if token < 7 and value:
            pairs.append((tuple(key), tuple(value)))
            key, value = [], []
        (key if token < 7 else value).append(token)
    return pairs


@pytest.mark.parametrize("split", ["train", "test"])
def test_fuzzy_motifs(split: str) -> None:
    inputs, targets = rows("fuzzy-in-context-recall", split, num_train=300)
    sizes = set()
    for row, wanted in zip(inputs.tolist(), targets.tolist(), strict=True):
        whole = [*row, wanted[-1]]
        pairs = parse_fuzzy(whole)
        bound: dict[tuple[int, ...], tuple[int, ...]] = {}
        known = 0
        for key, value in pairs:
            assert len(set(key)) == len(key) <= 3
            assert len(set(value)) == len(value) <= 3
            sizes.add((len(key), len(value)))
            known += len(value) if key in bound else 0
            assert bound.setdefault(key, value) == value
        assert pairs[-1][0] in [key for key, _ in pairs[:-1]], "the probe was shown before"
        if split == "test":
            assert known == sum(target != IGNORED for target in wanted)
    keys = {3} if split == "test" else {1, 2, 3}
    assert sizes == {(key, value) for key in keys for value in (1, 2, 3)}


def test_fuzzy_padding_is_not_a_target() -> None:
    inputs, targets = rows("fuzzy-in-context-recall", "train")
    assert not (targets == 15).any()
    padded = inputs[:, 1:] == 15
    assert (targets[:, :-1][padded] == IGNORED).all()
    assert (targets[:, :-1][~padded] == inputs[:, 1:][~padded]).all()


def test_fuzzy_with_a_large_vocabulary_is_drawn_not_enumerated() -> None:
    inputs, _ = rows("fuzzy-in-context-recall", "train", 200, vocab_size=1024)
    assert len(np.unique(inputs)) > 900


def test_the_map_of_memorization_is_drawn_independently_of_the_examples() -> None:
    """Were they those of the first example, its first key would be near the lowest value's key."""
    near = 0
    for seed in range(20):
        inputs, targets = mad.task("memorization", num_train=256, seed=seed).arrays("train")
        pairs = dict(zip(targets[:, 1::2].flat, inputs[:, 0::2].flat, strict=True))
        near += abs(int(pairs[min(pairs)]) - int(inputs[0, 0])) < 15
    assert near < 12, "by chance it is one in five"


def test_memorization_has_one_map() -> None:
    task = mad.task("memorization")
    found: dict[int, int] = {}
    for split in ("train", "validation", "test"):
        inputs, targets = task.arrays(split)
        assert (inputs[:, 1::2] == 255).all()
        assert (targets[:, 0::2] == IGNORED).all()
        for key, value in zip(inputs[:, 0::2].flat, targets[:, 1::2].flat, strict=True):
            assert found.setdefault(int(key), int(value)) == int(value)
    assert set(found) == set(range(127))
    assert len(set(found.values())) == 127
    assert set(found.values()) <= set(range(127, 255))
    assert [found[key] - 127 for key in range(127)] != list(range(127)), "it is shuffled"
    other = mad.task("memorization", seed=1).arrays("train")
    assert any(
        found[int(k)] != int(v) for k, v in zip(other[0][0, ::2], other[1][0, 1::2], strict=True)
    )


def test_compression_says_all_again() -> None:
    inputs, targets = rows("compression", "train", 2000)
    assert (inputs == targets).all()
    assert (inputs[:, -1] == 15).all()
    counts = np.bincount(inputs[:, :-1].flat, minlength=15)
    assert len(counts) == 15
    assert counts.min() / counts.max() > 0.9


def test_copying_keeps_the_order() -> None:
    inputs, targets = rows("selective-copying", "train")
    for row, wanted in zip(inputs.tolist(), targets.tolist(), strict=True):
        shown = [token for token in row if token < 14]
        assert len(shown) == 16
        assert wanted[-16:] == shown
        assert set(wanted[:-16]) == {IGNORED}
        copy = row.index(15)
        assert copy == 256 - 17
        assert row[copy - 1] < 14, "no blank after the last token"
        assert set(row[copy + 1 :]) == {14}


@pytest.mark.parametrize("name", TASKS)
def test_the_same_seed_gives_the_same_data_on_every_backend(name: str) -> None:
    found = []
    for backend in available():
        with use_backend(backend):
            task = mad.task(name, num_train=40)
            loader = DataLoader(task, batch_size=16, shuffle=True, seed=3)
            found.append([[part.numpy() for part in batch] for batch in loader.once()])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert all((x == y).all() for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", TASKS)
def test_an_example_depends_on_its_own_index_alone(name: str) -> None:
    few, many = mad.task(name, num_train=10), mad.task(name, num_train=3000)
    for a, b in zip(few.arrays("train"), many.arrays("train"), strict=True):
        assert (a == b[:10]).all()
    other = mad.task(name, num_train=10, seed=1).arrays("train")[0]
    assert (other != few.arrays("train")[0]).any()


@pytest.mark.parametrize("name", [name for name in TASKS if task_class(name).held_out])
def test_no_test_example_is_in_training(name: str) -> None:
    task = mad.task(name, num_train=2000)
    train, validation, test = (
        {row.tobytes() for row in task.arrays(split)[0]}
        for split in ("train", "validation", "test")
    )
    assert not train & test
    assert not train & validation
    assert not validation & test


def test_examples_that_are_in_training_are_drawn_anew() -> None:
    sizes = {"vocab_size": 4, "seq_len": 8, "num_train": 1000, "num_test": 100}
    task = mad.task("compression", **sizes, num_validation=100)  # 3 ** 7 = 2187 sequences
    train = {row.tobytes() for row in task.arrays("train")[0]}
    test = [row.tobytes() for row in task.arrays("test")[0]]
    assert not train & set(test)
    assert len(test) == 100


def test_too_few_sequences_is_an_error() -> None:
    task = mad.task("compression", vocab_size=2, seq_len=3)
    with pytest.raises(TaskError, match=r"compression.*1280.*vocab_size=2"):
        task.arrays("test")
    with pytest.raises(TaskError, match="'tset'"):
        task.arrays("tset")


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("in-context-recall", {"seq_len": 31}, "even"),
        ("in-context-recall", {"vocab_size": 1}, "vocab_size must be at least 2"),
        ("noisy-in-context-recall", {"vocab_size": 16}, "at least 18"),
        ("fuzzy-in-context-recall", {"vocab_size": 6}, "at least 7"),
        ("fuzzy-in-context-recall", {"seq_len": 10}, "at least 18"),
        ("selective-copying", {"seq_len": 32}, "at least 33"),
        ("memorization", {"seq_len": 5}, "even"),
        ("compression", {"vocab": 5}, "vocab_size"),
    ],
)
def test_impossible_sizes(name: str, sizes: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        mad.task(name, **sizes)


def test_an_unknown_task_has_close_matches() -> None:
    with pytest.raises(ConfigError, match=r"did you mean.*'memorization'"):
        mad.task("memorizaton")


@pytest.mark.parametrize("name", TASKS)
def test_config_round_trip(name: str) -> None:
    task = mad.task(name, seed=5)
    twin = Config.from_yaml(task.config.to_yaml()).create()
    assert (twin.arrays("test")[0] == task.arrays("test")[0]).all()


def test_the_whole_protocol_has_396_runs_an_architecture() -> None:
    full = SCALES["full"]
    counts = {name: len(settings(full, name)) for name in TASKS}
    assert counts == {
        "in-context-recall": 11,
        "noisy-in-context-recall": 14,
        "fuzzy-in-context-recall": 11,
        "memorization": 6,
        "compression": 11,
        "selective-copying": 13,
    }
    runs = make_runs(full, [mad.architecture("attention+swiglu")])
    assert len(runs) == 396
    assert {run.steps for run in runs if run.task.num_train == 12800} == {20000}
