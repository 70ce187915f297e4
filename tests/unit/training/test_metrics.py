"""Metrics against scikit-learn, SciPy and torch: whole, in uneven batches, and merged."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from sklearn import metrics as sk

from ember_ml import GradientTape, ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.backend import available as backends
from ember_ml.backend import use_backend
from ember_ml.configs import Config, ConfigError
from ember_ml.nn import tensor
from ember_ml.registry import available, create
from ember_ml.training import metrics

Array = np.ndarray[Any, Any]
Reference = Callable[[Array, Array], Any]

RNG = np.random.default_rng(0)
SIZE, CLASSES = 61, 5
LOGITS = RNG.normal(0.0, 1.0, (SIZE, CLASSES)).astype(np.float32)
LABELS = RNG.integers(0, 4, SIZE)  # the last class has no targets
CHOICES = RNG.integers(0, CLASSES, SIZE)
SCORES = RNG.normal(0.0, 1.0, SIZE).round(1).astype(np.float32)  # rounded, for ties
SIDES = RNG.integers(0, 2, SIZE)
GUESSES = RNG.integers(0, 2, SIZE)
VALUES = (1000.0 + RNG.normal(0.0, 1.0, (SIZE, 3))).astype(np.float32)
TARGETS = (VALUES + RNG.normal(0.0, 0.5, (SIZE, 3))).astype(np.float32)
ALL = range(CLASSES)


def chosen(scores: Array) -> Array:
    if scores.dtype.kind == "i":
        return scores
    return scores.argmax(-1) if scores.ndim == 2 else (scores > 0).astype(int)


def by_class(score: Any, average: str | None) -> Reference:
    def reference(x: Array, y: Array) -> Any:
        options: dict[str, Any] = {"labels": ALL} if average is None else {}
        found = score(y, chosen(x), average=average, zero_division=0, **options)
        return found.tolist() if average is None else found

    return reference


def auroc(x: Array, y: Array) -> float:
    """One against the rest, over the classes that occur."""
    if x.ndim == 1:
        return float(sk.roc_auc_score(y, x))
    p = np.exp(x.astype(np.float64)) / np.exp(x.astype(np.float64)).sum(1, keepdims=True)
    return float(np.mean([sk.roc_auc_score(y == c, p[:, c]) for c in np.unique(y)]))


def perplexity(x: Array, y: Array) -> float:
    return math.exp(F.cross_entropy(torch.tensor(x).double(), torch.tensor(y)).item())


def cosine(x: Array, y: Array) -> float:
    return F.cosine_similarity(torch.tensor(x).double(), torch.tensor(y).double()).mean().item()


def confusion(normalize: str | None) -> Reference:
    return lambda x, y: sk.confusion_matrix(y, chosen(x), labels=ALL, normalize=normalize).tolist()


def pearson(x: Array, y: Array) -> float:
    return float(stats.pearsonr(x.ravel().astype(np.float64), y.ravel()).statistic)


def pearson_per_output(x: Array, y: Array) -> float:
    return float(np.mean([pearson(x[:, at], y[:, at]) for at in range(x.shape[1])]))


def flat(score: Any) -> Reference:
    return lambda x, y: score(y.ravel(), x.ravel())


CASES: list[tuple[str, dict[str, Any], Array, Array, Reference]] = [
    ("accuracy", {}, LOGITS, LABELS, lambda x, y: sk.accuracy_score(y, chosen(x))),
    ("accuracy", {}, CHOICES, LABELS, lambda x, y: sk.accuracy_score(y, x)),
    ("accuracy", {}, SCORES, SIDES, lambda x, y: sk.accuracy_score(y, x > 0)),
    (
        "accuracy",
        {"average": "macro"},
        LOGITS,
        LABELS,
        lambda x, y: sk.recall_score(y, chosen(x), labels=np.unique(y), average="macro"),
    ),
    ("binary_accuracy", {}, SCORES, SIDES, lambda x, y: sk.accuracy_score(y, x > 0)),
    (
        "binary_accuracy",
        {"threshold": 0.5},
        SCORES,
        SIDES.astype(np.float32),
        lambda x, y: sk.accuracy_score(y, x > 0.5),
    ),
    (
        "top_k_accuracy",
        {"k": 2},
        LOGITS,
        LABELS,
        lambda x, y: sk.top_k_accuracy_score(y, x, k=2, labels=ALL),
    ),
    *[
        (name, {"average": average}, LOGITS, LABELS, by_class(score, average))
        for name, score in (
            ("precision", sk.precision_score),
            ("recall", sk.recall_score),
            ("f1", sk.f1_score),
        )
        for average in ("micro", "macro", "weighted")
    ],
    ("precision", {"average": "none"}, LOGITS, LABELS, by_class(sk.precision_score, None)),
    ("recall", {"average": "none"}, LOGITS, LABELS, by_class(sk.recall_score, None)),
    ("f1", {"average": "none"}, LOGITS, LABELS, by_class(sk.f1_score, None)),
    ("f1", {"average": "binary"}, SCORES, SIDES, by_class(sk.f1_score, "binary")),
    (
        "precision",
        {"average": "binary"},
        GUESSES,
        SIDES,
        by_class(sk.precision_score, "binary"),
    ),
    ("recall", {"num_classes": 5}, CHOICES, LABELS, by_class(sk.recall_score, "macro")),
    ("confusion_matrix", {}, LOGITS, LABELS, confusion(None)),
    ("confusion_matrix", {"normalize": "true"}, LOGITS, LABELS, confusion("true")),
    ("confusion_matrix", {"normalize": "predicted"}, LOGITS, LABELS, confusion("pred")),
    ("confusion_matrix", {"normalize": "all"}, LOGITS, LABELS, confusion("all")),
    ("auroc", {}, SCORES, SIDES, auroc),
    ("auroc", {}, LOGITS, LABELS, auroc),
    ("perplexity", {}, LOGITS, LABELS, perplexity),
    ("mse", {}, VALUES, TARGETS, flat(sk.mean_squared_error)),
    ("rmse", {}, VALUES, TARGETS, flat(sk.root_mean_squared_error)),
    ("mae", {}, VALUES, TARGETS, flat(sk.mean_absolute_error)),
    ("r2", {}, VALUES, TARGETS, flat(sk.r2_score)),
    ("r2", {"per_output": True}, VALUES, TARGETS, lambda x, y: sk.r2_score(y, x)),
    ("pearson", {}, VALUES, TARGETS, pearson),
    ("pearson", {"per_output": True}, VALUES, TARGETS, pearson_per_output),
    ("cosine_similarity", {}, VALUES - 1000.0, TARGETS - 1000.0, cosine),
]
IDS = [f"{name}-{number}" for number, (name, *_) in enumerate(CASES)]
cases = pytest.mark.parametrize(("name", "options", "x", "y", "reference"), CASES, ids=IDS)
BATCHES = [slice(0, 7), slice(7, 8), slice(8, 40), slice(40, 40), slice(40, SIZE)]
NAMES = [entry.name.partition("/")[2] for entry in available("metrics")]


def test_every_metric_is_compared() -> None:
    assert set(NAMES) == {name for name, *_ in CASES} | {"mean"}


def fed(metric: Any, x: Array, y: Array, parts: list[slice], mask: Array | None = None) -> Any:
    for part in parts:
        counts = None if mask is None else tensor.array(mask[part])
        given = (tensor.array(np.ascontiguousarray(each[part])) for each in (x, y))
        metric.update(*given, counts)
    return metric


def check(given: Any, expected: Any) -> None:
    assert isinstance(given, (float, list))
    np.testing.assert_allclose(given, expected, rtol=5e-6, atol=1e-7)


@cases
def test_whole_and_in_batches(
    name: str, options: dict[str, Any], x: Array, y: Array, reference: Reference, backend: str
) -> None:
    metric = create(f"metrics/{name}", **options)
    check(fed(metric, x, y, [slice(None)]).compute(), reference(x, y))
    metric.reset()
    check(fed(metric, x, y, BATCHES).compute(), reference(x, y))


@cases
def test_merged_and_masked(
    name: str, options: dict[str, Any], x: Array, y: Array, reference: Reference, backend: str
) -> None:
    mask = np.random.default_rng(1).random(SIZE) < 0.7
    first = fed(create(f"metrics/{name}", **options), x, y, BATCHES[:2], mask)
    second = fed(create(f"metrics/{name}", **options), x, y, BATCHES[2:], mask)
    assert first.merge(second) is first
    check(first.compute(), reference(x[mask], y[mask]))
    second.merge(create(f"metrics/{name}", **options))


@cases
def test_state_goes_through_json_and_backends(
    name: str, options: dict[str, Any], x: Array, y: Array, reference: Reference, backend: str
) -> None:
    first = fed(create(f"metrics/{name}", **options), x, y, BATCHES[:3])
    state = json.loads(json.dumps(first.state_dict()))
    for other in backends():
        with use_backend(other):
            again = Config.from_dict(first.config.to_dict()).create().load_state_dict(state)
            assert again.compute() == first.compute()
        check(fed(again, x, y, BATCHES[3:]).compute(), reference(x, y))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("accuracy", {}),
        ("accuracy", {"average": "macro"}),
        ("top_k_accuracy", {"k": 2}),
        ("f1", {}),
        ("confusion_matrix", {}),
        ("auroc", {}),
        ("perplexity", {}),
    ],
)
@pytest.mark.parametrize("index", [-100, 2])
def test_ignored_targets(name: str, options: dict[str, Any], index: int, backend: str) -> None:
    labels = np.where(RNG.random(SIZE) < 0.3, index, LABELS)
    metric = create(f"metrics/{name}", **options, ignore_index=index)
    given = fed(metric, LOGITS, labels, BATCHES).compute()
    counts = labels != index
    check(
        given,
        fed(
            create(f"metrics/{name}", **options), LOGITS[counts], labels[counts], [slice(None)]
        ).compute(),
    )


def test_mean(backend: str) -> None:
    metric = metrics.Mean()
    metric.update(2.0, 3)
    metric.update(tensor.array([1.0, 5.0]), tensor.array([1.0, 2.0]))
    metric.update(tensor.array([[9.0, 9.0], [4.0, 6.0]]), mask=tensor.array([False, True]))
    assert metric.compute() == pytest.approx((6.0 + 1.0 + 10.0 + 10.0) / 8.0)
    assert metric.count == 8.0
    metric.reset()
    assert (metric.count, math.isnan(metric.compute())) == (0.0, True)


def test_sums_do_not_drift(backend: str) -> None:
    """200 small numbers on a large one: float32 alone would lose them all."""
    metric = metrics.Mean()
    metric.update(1e8)
    for _ in range(200):
        metric.update(1.0)
    assert metric.compute() == pytest.approx((1e8 + 200) / 201, rel=1e-12)


def test_sequences_and_leading_masks(backend: str) -> None:
    logits = LOGITS[:60].reshape(5, 12, CLASSES)
    labels = LABELS[:60].reshape(5, 12)
    rows = np.array([True, False, True, True, False])
    metric = metrics.Accuracy()
    metric.update(tensor.array(logits), tensor.array(labels), tensor.array(rows))
    assert metric.compute() == pytest.approx((logits.argmax(-1) == labels)[rows].mean())


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
@pytest.mark.parametrize(
    "name", ["accuracy", "top_k_accuracy", "f1", "confusion_matrix", "auroc", "perplexity"]
)
def test_narrow_classes(name: str, dtype: str, backend: str) -> None:
    wide, narrow = create(f"metrics/{name}"), create(f"metrics/{name}")
    fed(wide, LOGITS, LABELS, [slice(None)])
    fed(narrow, LOGITS, LABELS.astype(dtype), [slice(None)])
    assert narrow.compute() == wide.compute()


def test_narrow_predictions(backend: str) -> None:
    metric = metrics.ConfusionMatrix(num_classes=20)
    metric.update(tensor.array(np.array([19], np.uint8)), tensor.array(np.array([19], np.uint8)))
    assert metric.compute()[19][19] == 1


def test_ties_go_to_the_first_class(backend: str) -> None:
    scores = tensor.array(np.zeros((4, 4), np.float32))
    metric = metrics.TopKAccuracy(k=2)
    metric.update(scores, tensor.array([0, 1, 2, 3]))
    assert metric.compute() == 0.5
    metric.reset()
    metric.update(tensor.array(np.full((1, 4), np.nan, np.float32)), tensor.array([0]))
    assert metric.compute() == 0.0


def test_float64_is_kept() -> None:
    with use_backend("numpy"):
        x = 1e6 + RNG.normal(0.0, 1e-4, 50)
        y = x + RNG.normal(0.0, 1e-5, 50)
        given = fed(metrics.R2(), x, y, [slice(0, 20), slice(20, 50)]).compute()
        assert given == pytest.approx(sk.r2_score(y, x), rel=1e-6)


def test_degenerate(backend: str) -> None:
    same = tensor.array([2.0, 2.0, 2.0])
    other = tensor.array([1.0, 2.0, 3.0])
    for x, expected in ((same, 1.0), (other, 0.0)):
        metric = metrics.R2()
        metric.update(x, same)
        assert metric.compute() == expected
    pearson = metrics.Pearson()
    pearson.update(other, same)
    assert math.isnan(pearson.compute())
    single = metrics.AUROC()
    single.update(other, tensor.array([1, 1, 1]))
    assert math.isnan(single.compute())
    far = metrics.Perplexity()
    far.update(tensor.array([[2000.0, 0.0]]), tensor.array([1]))
    assert far.compute() == math.inf


@pytest.mark.parametrize("name", NAMES)
def test_nothing_seen(name: str) -> None:
    found = create(f"metrics/{name}").compute()
    assert found == [] if name == "confusion_matrix" else math.isnan(found)


def test_all_masked(backend: str) -> None:
    nothing = np.zeros(SIZE, bool)
    for name, x, y in (
        ("accuracy", LOGITS, LABELS),
        ("mse", VALUES, TARGETS),
        ("f1", LOGITS, LABELS),
    ):
        assert math.isnan(fed(create(f"metrics/{name}"), x, y, BATCHES, nothing).compute())


def test_other_backends_are_moved(backend: str) -> None:
    for other in backends():
        metric = metrics.F1()
        metric.update(tensor.array(LOGITS), tensor.array(LABELS).to_backend(other))
        metric.update(tensor.array(LOGITS).to_backend(other), tensor.array(LABELS))
        assert metric.compute() == pytest.approx(by_class(sk.f1_score, "macro")(LOGITS, LABELS))


def test_no_gradient_flows(backend: str) -> None:
    x = tensor.array(VALUES)
    metric = metrics.MSE()
    with GradientTape() as tape:
        tape.watch(x)
        y = ops.sum(x * 2.0)
        metric.update(x * 2.0, tensor.array(TARGETS))
    assert tape.gradient(y, x) is not None
    assert not getattr(metric._state["sum"].native, "requires_grad", False)


def test_many_updates(backend: str) -> None:
    metric = metrics.AUROC()
    parts = [slice(at, at + 2) for at in range(0, SIZE, 2)]
    check(fed(metric, SCORES, SIDES, parts).compute(), auroc(SCORES, SIDES))
    check(fed(metric, SCORES, SIDES, parts).compute(), auroc(SCORES, SIDES))


def test_names_and_repr() -> None:
    assert [metrics.get(name).name for name in NAMES if name != "top_k_accuracy"] == [
        name for name in NAMES if name != "top_k_accuracy"
    ]
    assert metrics.TopKAccuracy(k=3).name == "top_3_accuracy"
    assert metrics.F1(average="micro").name == "f1_micro"
    assert repr(metrics.F1(average="micro")) == "F1(average='micro')"


def test_errors(backend: str) -> None:
    logits, labels = tensor.array(LOGITS), tensor.array(LABELS)
    with pytest.raises(ShapeError, match=r"Accuracy: .*\(61, 5\); .* \(60,\) of the targets"):
        metrics.Accuracy().update(logits, labels[:60])
    with pytest.raises(ShapeError, match=r"Accuracy: .*\(61, 1\); .* \(61,\) of the targets"):
        metrics.Accuracy().update(logits[:, :1], labels)
    with pytest.raises(ShapeError, match=r"the mask has shape \(5,\); expected the shape \(61,\)"):
        metrics.Accuracy().update(logits, labels, tensor.array(np.ones(5, bool)))
    with pytest.raises(ShapeError, match=r"MSE: .*\(61, 5\) and targets \(61,\) must have"):
        metrics.MSE().update(logits, labels)
    with pytest.raises(ArgumentError, match="F1: num_classes is required"):
        metrics.F1().update(labels, labels)
    with pytest.raises(ArgumentError, match="F1: got scores of 5 classes; expected at most 2"):
        metrics.F1(average="binary").update(logits, labels)
    with pytest.raises(ArgumentTypeError, match="Perplexity: expected floating-point scores"):
        metrics.Perplexity().update(labels, labels)
    metric = metrics.F1()
    metric.update(logits, labels)
    with pytest.raises(ShapeError, match=r"have shape \(4,\), those before \(5,\)"):
        metric.update(logits[:, :4], labels)
    with pytest.raises(ArgumentTypeError, match="the same class and config"):
        metric.merge(metrics.Recall())
    with pytest.raises(ArgumentTypeError, match="the same class and config"):
        metric.merge(metrics.F1(average="micro"))
    with pytest.raises(ArgumentError, match="expected the result of state_dict"):
        metric.load_state_dict({"right": 3})
    with pytest.raises(ConfigError, match=r"F1.*average"):
        metrics.F1(average="median")
