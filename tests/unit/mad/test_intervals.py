"""Confidence intervals and paired comparisons, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ember_ml import mad
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.intervals import (
    bootstrap,
    difference_interval,
    mean_interval,
    t_interval,
    wilson,
)
from ember_ml.mad.scores import overall
from ember_ml.mad.store import Done
from tests.unit.mad.sweeps import result

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 12, 30])
def test_bootstrap_over_seeds_is_scipys(count: int) -> None:
    values = RNG.beta(8, 2, count)
    low, high = bootstrap(values.tolist())
    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    step = np.ptp(values) / count  # the means of few values are coarse
    assert low == pytest.approx(expected.low, abs=0.15 * step + 1e-9)
    assert high == pytest.approx(expected.high, abs=0.15 * step + 1e-9)
    assert values.min() <= low <= values.mean() <= high <= values.max()


def test_intervals_of_two_seeds_are_bounded() -> None:
    """Student's interval of these is 78.1 +- 277.9."""
    assert bootstrap([0.562, 1.0]) == (0.562, 1.0)
    assert bootstrap([1.0, 1.0]) == (1.0, 1.0)


@pytest.mark.parametrize("count", [1, 8, 128, 1280])
@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.875, 1.0])
def test_wilson_over_examples_is_scipys(count: int, share: float) -> None:
    successes = round(share * count)
    expected = stats.binomtest(successes, count).proportion_ci(0.95, "wilson")
    found = wilson(successes / count, count)
    assert found == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert 0.0 <= found[0] <= successes / count <= found[1] <= 1.0


@pytest.mark.parametrize("count", [2, 3, 11, 12, 30])
def test_paired_interval_is_students(count: int) -> None:
    one, other = RNG.random((2, count))
    expected = stats.ttest_rel(one, other).confidence_interval(0.95)
    assert t_interval((one - other).tolist()) == pytest.approx(
        (expected.low, expected.high), abs=2e-3
    )


def test_the_mean_of_independent_proportions_covers_the_truth() -> None:
    """A simulation: the interval contains the true mean in about 95 % of samples."""
    truth, count = np.array([0.99, 0.6, 0.3]), 128
    draws = RNG.binomial(count, truth, (2000, 3)) / count
    hits, differences = 0, 0
    for row in draws:
        parts = [wilson(share, count) for share in row]
        low, high = mean_interval(row.tolist(), parts)
        hits += low <= truth.mean() <= high
        low, high = difference_interval(row[0], parts[0], row[1], parts[1])
        differences += low <= truth[0] - truth[1] <= high
    assert 0.93 < hits / 2000 < 0.97
    assert 0.93 < differences / 2000 < 0.97


def cell(name: str, accuracies: dict[int, float], task: str = "memorization", **fields):
    runs = [
        Done(
            RunConfig(architecture=name, layers="gru", seed=seed, task={"type": task}),
            result(accuracy)._replace(**fields),
        )
        for seed, accuracy in accuracies.items()
    ]
    (found,) = mad.cells(runs)
    return found


def counted(name: str, correct: np.ndarray, targets: int):
    fields = {"correct": tuple(correct.tolist()), "targets": (targets,) * len(correct)}
    return cell(name, {0: float(correct.mean()) / targets}, **fields)


def test_one_seed_is_compared_on_the_same_examples() -> None:
    """Paired differences by example, against SciPy's test of related samples."""
    skill = RNG.random(400)
    one = RNG.binomial(8, skill)
    other = np.maximum(one - RNG.binomial(1, 0.2, 400), 0)
    found = mad.compare([counted("a", one, 8)], [counted("b", other, 8)])
    expected = stats.ttest_rel(one / 8, other / 8).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high), abs=1e-3)
    assert not found.tied
    unpaired = mad.compare([cell("a", {0: one.mean() / 8})], [cell("b", {0: other.mean() / 8})])
    assert unpaired.tied, "without the pairs the same difference is not significant"


def test_several_seeds_are_compared_on_the_same_seeds() -> None:
    one = cell("a", {0: 0.50, 1: 0.70, 2: 0.90})
    other = cell("b", {0: 0.48, 1: 0.681, 2: 0.879})
    found = mad.compare([one], [other])
    expected = stats.ttest_rel([0.5, 0.7, 0.9], [0.48, 0.681, 0.879]).confidence_interval(0.95)
    assert found.difference == pytest.approx(0.02, abs=1e-9)
    assert found.interval == pytest.approx((expected.low, expected.high), abs=1e-4)
    assert not found.tied
    assert mad.compare([one], [cell("c", {0: 0.8, 1: 0.3, 2: 0.7})]).tied
    assert mad.compare([one], [cell("d", {7: 0.1})]).tied, "no seed in common"


def test_false_positives_are_rare() -> None:
    """Equal architectures are told apart in about one of 20 comparisons, with any seeds."""
    for seeds in (2, 3, 5):
        one, other = RNG.normal(0.7, 0.05, (2, 300, seeds))
        pairs = [
            mad.compare([cell("a", dict(enumerate(x)))], [cell("b", dict(enumerate(y)))])
            for x, y in zip(one.tolist(), other.tolist(), strict=True)
        ]
        assert 0.0 <= np.mean([not pair.tied for pair in pairs]) < 0.09


def test_ties_make_a_range_of_ranks() -> None:
    scores = {"a": (0.9, 0.91, 0.92), "b": (0.89, 0.92, 0.91), "c": (0.5, 0.51, 0.52)}
    places = mad.standings([cell(name, dict(enumerate(values))) for name, values in scores.items()])
    found = {each.architecture: (each.rank, each.tied_with) for each in places}
    assert found == {"a": ("1-2", ("b",)), "b": ("1-2", ("a",)), "c": ("3", ())}


def test_tasks_with_other_seeds_keep_an_interval() -> None:
    row = [cell("a", {0: 0.5, 1: 0.7}), cell("a", {0: 0.9}, "compression")]
    found = overall(row)
    assert found.mean == pytest.approx(0.75)
    assert 0.6 < found.interval[0] < found.mean <= found.interval[1] <= 0.85
