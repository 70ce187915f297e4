"""Self-training: what is trained on what, what is recorded, and which input is refused."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.configs import Config
from ember_ml.data import ArrayDataset, DataLoader, augmentation
from ember_ml.nn.features import Standardize
from ember_ml.nn.pipeline import InferencePipeline, SelfTrainingPipeline
from ember_ml.training import Trainer
from ember_ml.training.pipelines.self_training.consistency import ConsistencyTrainer
from ember_ml.training.pipelines.self_training.pseudo_labels import Labeling, PseudoLabels
from ember_ml.training.selection import Adaptive, Agreement, Threshold, TopK

RNG = np.random.default_rng(0)
CENTERS = np.array([[2.0, 0.0], [-1.0, 2.0], [-1.0, -2.0]])


def points(count, seed, spread=0.9):
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 3
    return (CENTERS[y] + spread * rng.standard_normal((count, 2))).astype("float32"), y


LABELED, POOL, HELD_OUT, TEST = points(9, 0), points(90, 1), points(30, 2), points(60, 3)
MODEL = {"type": "layers/mlp", "in_features": 2, "hidden_features": [8], "out_features": 3}
TRAINER = {"learning_rate": 0.05, "seed": 4}
STRONG = augmentation.Jitter(0.3)


def pipeline(folder, **options):
    options = {"trainer": TRAINER, "steps": 12, "batch_size": 8, "rounds": 2, **options}
    options = {"select": Threshold(0.6), **options}
    return SelfTrainingPipeline(options.pop("model", MODEL), folder=folder, **options)


def fit(folder, labeled=LABELED, unlabeled=POOL, validation=HELD_OUT, fitting=None, **options):
    built = pipeline(folder, **options)
    return built.fit(labeled, unlabeled, validation, progress=False, **(fitting or {}))


MODES = {
    "hard": {},
    "soft": {"pseudo_labels": "soft", "weighting": "confidence", "weight": 0.5},
    "augmented": {"augment": augmentation.Jitter(0.1), "select": Agreement(3), "rounds": 1},
    "cumulative": {"cumulative": True, "select": TopK(5)},
    "warm": {"warm_start": True, "trainer": {**TRAINER, "ema": 0.9}},
    "consistency": {"mode": "consistency", "strong": STRONG, "select": Adaptive(0.9)},
    "mean teacher": {
        "mode": "consistency",
        "strong": STRONG,
        "augment": augmentation.Jitter(0.05),
        "pseudo_labels": "soft",
        "trainer": {**TRAINER, "ema": 0.9},
        "rounds": 1,
    },
}


@pytest.fixture(scope="module")
def history_on_numpy(tmp_path_factory):
    """Return the history of a mode on NumPy."""

    @functools.cache
    def history(mode):
        with ember_ml.use_backend("numpy"):
            folder = tmp_path_factory.mktemp("numpy")
            return fit(folder, fitting={"test": TEST}, **MODES[mode]).history

    return history


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_on_every_backend(mode, backend, tmp_path, history_on_numpy):
    """The rounds are the same on all backends, up to rounding; the folder loads on another one."""
    built = fit(tmp_path, fitting={"test": TEST}, **MODES[mode])
    history = built.history
    assert [record["round"] for record in history] == list(range(len(history)))
    assert history.column("test_accuracy")[-1] > 0.8
    for record in history[1:]:
        assert sum(record["classes"]) == record["selected"] == record["known"] > 0
        assert 0.7 * record["known"] < record["correct"] <= record["known"]
    saved = json.loads((tmp_path / "history.json").read_text())
    assert saved == list(history) == built.results["rounds"]
    predicted = InferencePipeline.load(tmp_path)(TEST[0]).numpy().argmax(axis=1)
    assert np.mean(predicted == TEST[1]) == history.best["test_accuracy"]
    other = history_on_numpy(mode)
    np.testing.assert_allclose(history.column("loss"), other.column("loss"), rtol=2e-2, atol=2e-3)


def test_the_api_of_the_guide(tmp_path):
    def shift(x, rng):
        return x + np.float32(rng.normal(0, 0.05))

    built = SelfTrainingPipeline(
        nn.layers.MLP(2, [8], 3),
        select=Threshold(0.7),
        augment=shift,
        rounds=3,
        calibrate=True,
        rollback=True,
        folder=tmp_path,
        epochs=5,
    )
    history = built.fit(LABELED, POOL[0], HELD_OUT, progress=False).history
    assert all(record["temperature"] != 1.0 for record in history if "temperature" in record)
    assert "known" not in history[-1]
    assert history.plot(tmp_path / "plot.png").axes
    assert (tmp_path / "plot.png").stat().st_size > 5000


def test_round_zero_is_plain_supervised_training(tmp_path):
    """The same weights as a trainer on the labels alone, and labels of the pool have no effect."""
    built = fit(tmp_path / "one", rounds=1, select=Threshold(1.0))
    model = pipeline(tmp_path / "two")._build_model()
    trainer = Trainer(model, "cross_entropy", learning_rate=0.05, seed=4, progress=False)
    weights = np.ones(9, "float32")
    data = ArrayDataset({"inputs": LABELED[0], "targets": LABELED[1], "sample_weight": weights})
    trainer.fit(data, steps=12, batch_size=8)
    np.testing.assert_array_equal(
        built.inference(TEST[0]).numpy(), model.eval()(convert_to_tensor(TEST[0])).numpy()
    )
    wrong = (POOL[0], np.roll(POOL[1], 1))
    first, second = (
        fit(tmp_path / name, unlabeled=pool).inference(TEST[0]).numpy()
        for name, pool in (("three", POOL), ("four", wrong))
    )
    np.testing.assert_array_equal(first, second)


def test_pseudo_labels_are_trained_with_their_weights(tmp_path):
    """Round 1 equals a trainer on labels and the written pseudo-labels."""
    built = fit(tmp_path, rounds=1, weighting="confidence", weight=0.5)
    pseudo = PseudoLabels.read(tmp_path / "round-01" / "pseudo_labels.safetensors")
    assert set(np.unique(pseudo.weights.numpy() > 0.3)) == {True}
    model = pipeline(tmp_path / "other")._build_model()
    trainer = Trainer(model, "cross_entropy", learning_rate=0.05, seed=5, progress=False)
    inputs = np.concatenate([LABELED[0], POOL[0][pseudo.indices.numpy()]])
    targets = np.concatenate([LABELED[1], pseudo.labels()])
    weights = np.concatenate([np.ones(9), pseudo.weights.numpy()])
    data = {"inputs": inputs, "targets": targets, "sample_weight": weights.astype("float32")}
    trainer.fit(ArrayDataset(data), steps=12, batch_size=8)
    found = model.eval()(convert_to_tensor(TEST[0])).numpy()
    np.testing.assert_allclose(built.inference(TEST[0]).numpy(), found, rtol=1e-5, atol=1e-6)


def test_the_loss_of_fixmatch(backend):
    """Cross-entropy of labels, plus the masked cross-entropy of strong views over all of them."""
    ops.random.set_seed(0)
    model = nn.layers.Dense(2, 3)
    labeling = Labeling(Threshold(0.5), soft=False, weight=0.7, by_confidence=False)
    trainer = ConsistencyTrainer(model, labeling, 1.0, loss="cross_entropy", progress=False)
    x, y = (convert_to_tensor(part) for part in LABELED)
    weak, strong = (convert_to_tensor(POOL[0][at]) for at in (slice(0, 20), slice(20, 40)))
    w, b = model.weight.numpy().astype("float64"), model.bias.numpy().astype("float64")
    batch = {"labeled": {"inputs": x, "targets": y}, "strong": {"inputs": strong}}
    record = trainer.train_step({**batch, "weak": ({"inputs": weak},)})

    def log_p(inputs):
        logits = inputs.numpy().astype("float64") @ w.T + b
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    supervised = -log_p(x)[np.arange(9), LABELED[1]].mean()
    pseudo = log_p(weak).argmax(axis=1)
    mask = np.exp(log_p(weak)).max(axis=1) > 0.5
    consistency = -(0.7 * mask * log_p(strong)[np.arange(20), pseudo]).mean()
    assert 0 < mask.sum() < 20
    assert record["loss"] == pytest.approx(supervised + consistency, rel=1e-5)
    assert record["selected"] == mask.mean()


def test_the_mean_teacher_labels_with_averaged_weights(backend):
    model = nn.layers.Dense(2, 3)
    labeling = Labeling(Threshold(0.0), soft=True, weight=1.0, by_confidence=False)
    trainer = ConsistencyTrainer(
        model, labeling, 1.0, loss="cross_entropy", ema=0.9, learning_rate=1.0, progress=False
    )
    x, y = (convert_to_tensor(part) for part in LABELED)
    part = {"inputs": x}
    batch = {"labeled": {"inputs": x, "targets": y}, "strong": part, "weak": (part,)}
    trainer.train_step(batch)
    student = ops.softmax(model(x), axis=-1).numpy()
    with trainer.ema.applied():
        teacher = ops.softmax(model(x), axis=-1).numpy()
    seen = []
    trainer.compute = lambda batch: seen.append(batch) or Trainer.compute(trainer, batch["labeled"])
    trainer.train_step(batch)
    np.testing.assert_allclose(seen[0]["pseudo"].numpy(), teacher, rtol=1e-5)
    assert not np.allclose(teacher, student, atol=1e-3)


def test_strings_preprocessing_and_padded_sequences(tmp_path):
    names = np.array(["a", "b", "c"])
    shifted = [(x * 100 + 50, names[y]) for x, y in (LABELED, HELD_OUT)]
    pool = (POOL[0] * 100 + 50, ["" if at % 2 else names[y] for at, y in enumerate(POOL[1])])
    built = fit(tmp_path / "a", shifted[0], pool, shifted[1], preprocess=Standardize())
    assert set(built.inference(shifted[1][0])) <= set(names)
    assert built.history[-1]["known"] < built.history[-1]["selected"]
    both = np.concatenate([shifted[0][0], pool[0]])
    mean = built.inference["preprocess"].mean.numpy()
    np.testing.assert_allclose(mean, both.mean(axis=0), rtol=1e-5)


@pytest.mark.parametrize("mode", ["rounds", "consistency"])
def test_padding_does_not_matter(mode, tmp_path, backend):
    """Sequences with a mask: values at padded positions change nothing."""

    def sequences(count, seed, padding):
        rng = np.random.default_rng(seed)
        y, lengths = np.arange(count) % 2, rng.integers(3, 7, count)
        mask = np.arange(6) < lengths[:, None]
        x = rng.standard_normal((count, 6, 1)) * 0.3 + np.where(y, 1.0, -1.0)[:, None, None]
        x = np.where(mask[..., None], x, padding).astype("float32")
        return {"inputs": x, "mask": mask, "targets": y}

    model = {
        "type": "models/sequence_classifier",
        "layers": "gru",
        "num_classes": 2,
        "in_features": 1,
        "hidden_size": 4,
    }
    options = {"augment": augmentation.TimeShift(0.5), "strong": STRONG, "mode": mode}
    options |= {"rounds": 1, "steps": 3, "model": model, "select": Threshold(0.4)}
    found = [
        fit(
            tmp_path / str(padding),
            *[sequences(count, seed, padding) for seed, count in enumerate((8, 16, 8))],
            **options,
        ).history
        for padding in (0.0, 9.0)
    ]
    assert found[0][1]["selected"] == 16
    np.testing.assert_allclose(found[0].column("loss"), found[1].column("loss"), rtol=1e-4)


def test_rollback_keeps_the_best_model(tmp_path):
    """With wrong pseudo-labels the run ends at the supervised model, and says so."""
    x, y = points(30, 7)
    options = {"select": Threshold(0.0), "trainer": {"learning_rate": 0.5, "seed": 1}}
    far = (POOL[0] * 0 + RNG.normal(0, 20, POOL[0].shape).astype("float32"), POOL[1])
    naive = fit(tmp_path / "naive", unlabeled=far, validation=(x, y), rounds=4, **options)
    kept = fit(
        tmp_path / "kept", unlabeled=far, validation=(x, y), rounds=4, rollback=True, **options
    )
    scores = naive.history.column("val_accuracy")
    assert scores[-1] < scores[0]
    last = kept.history[-1]
    assert not last["accepted"]
    assert "rolled back to round" in last["note"]
    assert kept.history.best["val_accuracy"] == max(
        record["val_accuracy"] for record in kept.history
    )
    predicted = kept.inference(x).numpy().argmax(axis=1)
    assert np.mean(predicted == y) == kept.history.best["val_accuracy"] >= scores[0]


def test_nothing_selected_ends_the_run_with_a_record(tmp_path):
    built = fit(tmp_path / "none", select=Threshold(1.0))
    end = {"round": 1, "selected": 0, "accepted": False, "note": "nothing selected"}
    assert list(built.history)[1:] == [end]
    assert built.results["best_round"] == 0
    built = fit(tmp_path / "all", select=TopK(30), cumulative=True, rounds=9)
    assert built.history[-1]["note"] == "all examples are pseudo-labeled"
    assert built.history.column("selected")[-1] == 90


def test_the_config_describes_the_pipeline(tmp_path):
    built = pipeline(tmp_path, select=TopK(3), augment="jitter", strong=STRONG)
    text = built.config.to_yaml()
    assert Config.from_yaml(text).create().config.to_dict() == built.config.to_dict()
    assert built.config.to_dict()["select"]["type"] == "selections/top_k"


NAN = np.where(np.arange(90)[:, None] == 17, np.nan, POOL[0]).astype("float32")
BAD = {
    "empty": ({"labeled": (LABELED[0][:0], LABELED[1][:0])}, ArgumentError, "data is empty"),
    "no labels": ({"labeled": LABELED[0]}, ArgumentError, "labeled data has no targets"),
    "missing": (
        {"labeled": (LABELED[0][:2], LABELED[1][:2])},
        ArgumentError,
        "no example of class 2",
    ),
    "outside": ({"labeled": (LABELED[0], LABELED[1] + 1)}, ArgumentError, "from 0 to 2"),
    "floats": ({"labeled": (LABELED[0], LABELED[0][:, 0])}, ArgumentError, "class index"),
    "shape": (
        {"unlabeled": np.zeros((5, 3), "float32")},
        ShapeError,
        r"unlabeled inputs have the shape \(3,\), but the labeled inputs have \(2,\)",
    ),
    "nan": ({"unlabeled": NAN}, ArgumentError, "example 17 of the unlabeled inputs has NaN"),
    "large k": ({"select": TopK(91)}, ArgumentError, r"k \(91\) must be at most"),
    "calibrate": ({"validation": None, "calibrate": True}, ArgumentError, "calibrate=True need"),
    "rollback": ({"validation": None, "rollback": True}, ArgumentError, "rollback=True need"),
    "fraction": ({"validation": 0.001}, ArgumentError, "leave examples for both"),
    "loader": (
        {"unlabeled": DataLoader(ArrayDataset(POOL[0]), 4)},
        ArgumentTypeError,
        "unlabeled must be a dataset or arrays",
    ),
    "strong": ({"mode": "consistency"}, ArgumentError, "needs an augmentation"),
    "views": ({"select": Agreement()}, ArgumentError, "compares augmented views"),
    "rule": ({"select": lambda p: p}, ArgumentError, "select must be a SelectionRule"),
    "model": (
        {"model": nn.layers.GRU(2, 3), "labeled": (np.ones((9, 4, 2), "float32"), LABELED[1])},
        ShapeError,
        "unlabeled inputs|must return logits",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name, tmp_path):
    """Before anything is trained."""
    options, error, message = BAD[name]
    with pytest.raises(error, match=message):
        fit(tmp_path, **options)
    assert not (tmp_path / "round-00").exists()


def test_folders_are_not_overwritten_unasked(tmp_path):
    fit(tmp_path, rounds=1)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ArgumentError, match="already contains a training run"):
        fit(tmp_path, rounds=1)
    with pytest.raises(ArgumentError, match=r"another run: select is 'Threshold\(threshold=0.6\)'"):
        fit(tmp_path, select=Threshold(0.7), fitting={"resume": True})
    with pytest.raises(ArgumentError, match=r"another run: model is .*'hidden_features'"):
        fit(tmp_path, model=nn.layers.MLP(2, [5], 3), fitting={"resume": True})
    with pytest.raises(ArgumentError, match=r"another run: augment is .* not \['Jitter"):
        fit(tmp_path, augment=augmentation.Jitter(0.1), fitting={"resume": True})
    longer = fit(tmp_path, rounds=2, fitting={"resume": True})
    whole = fit(tmp_path / "whole", rounds=2)
    assert list(longer.history) == list(whole.history)
    fit(tmp_path, select=Threshold(0.7), rounds=1, fitting={"overwrite": True})
    assert not (tmp_path / "round-02").exists()
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["run.json", "history.json"])
@pytest.mark.parametrize("content", ["mine", "[1]", '{"a": 1}', "\xff"])
@pytest.mark.parametrize("fitting", [{}, {"resume": True}, {"overwrite": True}])
def test_files_of_the_user_are_neither_read_nor_replaced(name, content, fitting, tmp_path):
    (tmp_path / name).write_text(content, encoding="latin-1")
    with pytest.raises(ArgumentError, match=r"already contains|damaged, or was not written by"):
        fit(tmp_path, rounds=1, fitting=fitting)
    assert (tmp_path / name).read_text(encoding="latin-1") == content
