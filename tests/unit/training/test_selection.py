"""Selection rules: the same examples as scikit-learn and as the definitions in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.semi_supervised import SelfTrainingClassifier

from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.configs import Config, ConfigError
from ember_ml.training.pipelines.self_training.measures import indices
from ember_ml.training.pipelines.self_training.predictions import host
from ember_ml.training.pipelines.self_training.pseudo_labels import Labeling
from ember_ml.training.selection import Adaptive, Agreement, Entropy, Margin, Threshold, TopK

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.full(5, 0.4), 200)
PEAK, LABEL = P.max(axis=1), P.argmax(axis=1)


class Table(ClassifierMixin, BaseEstimator):
    """Classifier whose probabilities are a function of the input and the number of the fit."""

    def fit(self, x, y):
        self.classes_ = np.arange(P.shape[1])
        return self

    def predict_proba(self, x):
        return P[x[:, 0].astype(int)]


def in_sklearn(**options):
    """Return the round in which scikit-learn selects each unlabeled example; 0: never."""
    labels = np.concatenate([np.arange(5), np.full(len(P), -1)])
    x = np.concatenate([np.zeros(5), np.arange(len(P))])[:, None]
    model = SelfTrainingClassifier(Table(), max_iter=3, **options).fit(x, labels)
    return np.maximum(model.labeled_iter_[5:], 0), model.transduction_[5:]


def in_ember(rule):
    labeling = Labeling(rule, soft=False, weight=1.0, by_confidence=False)
    found, labels = np.zeros(len(P), int), np.full(len(P), -1)
    for number in range(1, 4):
        pseudo = labeling(host(P[None]), indices(np.flatnonzero(found == 0)))
        at = pseudo.indices.numpy()
        found[at], labels[at] = number, pseudo.labels()
    return found, labels


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        (Threshold(0.6), {"threshold": 0.6}),
        (Threshold(0.95), {"threshold": 0.95}),
        (TopK(30, per_class=False), {"criterion": "k_best", "k_best": 30}),
        (TopK(90, per_class=False), {"criterion": "k_best", "k_best": 90}),
    ],
    ids=str,
)
def test_the_examples_of_scikit_learn(rule, options):
    """In each round, and with the same labels; the last k-best round takes all that remain."""
    for own, theirs in zip(in_ember(rule), in_sklearn(**options), strict=True):
        np.testing.assert_array_equal(own, theirs)


@pytest.mark.parametrize("dtype", ["float32"])
def test_rules_on_every_backend(backend, dtype):
    p = P.astype(dtype)
    ordered = np.sort(p, axis=1)
    entropy = -(p * np.log(np.maximum(p, 1e-30))).sum(axis=1) / np.log(5)
    expected = {
        Threshold(0.7): p.max(axis=1) > 0.7,
        Margin(0.4): ordered[:, -1] - ordered[:, -2] > 0.4,
        Entropy(0.5): entropy < 0.5,
        TopK(7): _top_of_each_class(p, 7),
        TopK(7, threshold=0.8): _top_of_each_class(p, 7) & (p.max(axis=1) >= 0.8),
        Adaptive(): _freematch(p),
    }
    for rule, mask in expected.items():
        found = rule(p).numpy()
        assert found.dtype == bool
        np.testing.assert_array_equal(found, mask, err_msg=str(rule))
        assert 0 < mask.sum() < len(p)


def _top_of_each_class(p, k):
    mask = np.zeros(len(p), bool)
    for label in range(p.shape[1]):
        members = np.flatnonzero(p.argmax(axis=1) == label)
        mask[members[np.argsort(-p[members].max(axis=1), kind="stable")[:k]]] = True
    return mask


def _freematch(p):
    means = p.mean(axis=0, dtype="float64")
    thresholds = p.max(axis=1).mean(dtype="float64") * means / means.max()
    return p.max(axis=1) >= thresholds[p.argmax(axis=1)]


def test_adaptive_averages_over_batches_as_freematch():
    """The moving averages start at 1 / classes; a saved state continues them."""
    rule, decay = Adaptive(decay=0.8), 0.8
    confidence, means = 0.2, np.full(5, 0.2)
    for number, batch in enumerate(np.split(P, 5)):
        if number == 3:
            saved, rule = rule.state_dict(), Adaptive(decay=0.8)
            rule.load_state_dict(saved)
        confidence = decay * confidence + (1 - decay) * batch.max(axis=1).mean()
        means = decay * means + (1 - decay) * batch.mean(axis=0)
        thresholds = confidence * means / means.max()
        found = rule.select_batch(host(batch)).numpy()
        np.testing.assert_allclose(rule.thresholds, thresholds, rtol=1e-12)
        own = thresholds[batch.argmax(axis=1)]
        np.testing.assert_array_equal(found, batch.max(axis=1) >= own)
    assert Adaptive(minimum=0.99)(P).numpy().sum() == (PEAK >= 0.99).sum()


def test_agreement_counts_views():
    views = RNG.dirichlet(np.full(3, 0.5), (5, 100))
    votes = views.argmax(axis=-1)
    label = views.mean(axis=0).argmax(axis=-1)
    agreeing = (votes == label).sum(axis=0)
    for share, needed in ((1.0, 5), (0.6, 3), (0.61, 4)):
        found = Agreement(share=share)(views).numpy()
        np.testing.assert_array_equal(found, agreeing >= needed)
    confident = views.mean(axis=0).max(axis=-1) > 0.5
    both = Agreement(share=0.6, threshold=0.5)(views).numpy()
    np.testing.assert_array_equal(both, (agreeing >= 3) & confident)


def test_several_views_are_averaged():
    views = np.stack([P, np.roll(P, 1, axis=1)])
    np.testing.assert_array_equal(
        Threshold(0.5)(views).numpy(), views.mean(axis=0).max(axis=1) > 0.5
    )


def test_soft_and_hard_targets_with_weights():
    pool, rest = host(P[None]), indices(range(len(P)))
    hard = Labeling(Threshold(0.6), soft=False, weight=0.5, by_confidence=False)(pool, rest)
    soft = Labeling(Threshold(0.6), soft=True, weight=0.5, by_confidence=True)(pool, rest)
    chosen = np.flatnonzero(PEAK > 0.6)
    np.testing.assert_array_equal(hard.indices.numpy(), chosen)
    np.testing.assert_array_equal(hard.targets.numpy(), np.eye(5)[LABEL[chosen]])
    np.testing.assert_array_equal(hard.weights.numpy(), 0.5)
    np.testing.assert_array_equal(soft.targets.numpy(), P[chosen])
    np.testing.assert_array_equal(soft.weights.numpy(), 0.5 * PEAK[chosen])


def test_rules_have_configs():
    rule = Config.from_dict({"type": "top_k", "k": 3, "per_class": False}, kind="selections")
    assert Config.from_yaml(rule.to_yaml()).create().config == TopK(3, per_class=False).config
    assert repr(TopK(3)) == "TopK(k=3, per_class=True, threshold=0.0)"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Threshold(1.5), ConfigError, "threshold"),
        (lambda: TopK(0), ConfigError, "k: "),
        (lambda: Agreement(views=1), ConfigError, "views"),
        (lambda: Threshold()([0.5, 0.5]), ShapeError, "Threshold: probabilities must have"),
        (lambda: TopK(11).check(10, 3), ArgumentError, r"TopK: k \(11\) must be at most"),
    ],
)
def test_bad_arguments_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
