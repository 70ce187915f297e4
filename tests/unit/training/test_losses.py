"""Losses against torch: values, gradients, weights, far values, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ember_ml import GradientTape
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.backend import available as backends
from ember_ml.configs import Config, ConfigError
from ember_ml.nn import tensor
from ember_ml.registry import available, create
from ember_ml.training import losses

Array = np.ndarray[Any, Any]
TorchLoss = Callable[..., torch.Tensor]

RNG = np.random.default_rng(0)
X = RNG.normal(0.0, 2.0, (3, 4, 5)).astype(np.float32)
Y = RNG.normal(0.0, 2.0, (3, 4, 5)).astype(np.float32)
P = RNG.dirichlet(np.ones(5), (3, 4)).astype(np.float32)
SIGNS = np.sign(Y)
COUNTS = RNG.poisson(2.0, X.shape)
CLASSES = RNG.integers(0, 5, (3, 4))
IGNORED = np.where(RNG.random((3, 4)) < 0.4, -100, CLASSES)
CLASS_WEIGHT = [0.5, 1.0, 0.0, 2.0, 3.0]
LOG_P = np.log(RNG.dirichlet(np.ones(5), (3, 4))).astype(np.float32)


def classes_second(loss: TorchLoss) -> TorchLoss:
    """Return the loss with the class axis moved to where torch expects it."""
    return lambda x, y, **options: loss(
        x.movedim(-1, 1), y.movedim(-1, 1) if y.is_floating_point() else y, **options
    )


def log_cosh(x: torch.Tensor, y: torch.Tensor, reduction: str) -> torch.Tensor:
    loss = torch.log(torch.cosh(x.double() - y.double()))
    return loss if reduction == "none" else getattr(loss, reduction)()


def cosine(x: torch.Tensor, y: torch.Tensor, reduction: str) -> torch.Tensor:
    ones = torch.ones(x.shape[:-1]).flatten()
    flat = F.cosine_embedding_loss(x.flatten(0, -2), y.flatten(0, -2), ones, reduction=reduction)
    return flat.reshape(x.shape[:-1]) if reduction == "none" else flat


def hinge(x: torch.Tensor, y: torch.Tensor, reduction: str, power: int = 1) -> torch.Tensor:
    loss = torch.clamp(1 - x * y, min=0) ** power
    return loss if reduction == "none" else getattr(loss, reduction)()


def kl_div(
    x: torch.Tensor, y: torch.Tensor, reduction: str, log_target: bool = False
) -> torch.Tensor:
    """torch's, whose own mean comes with a warning."""
    loss = F.kl_div(x, y, reduction="none", log_target=log_target)
    return loss if reduction == "none" else getattr(loss, reduction)()


def spike_rate(
    x: torch.Tensor, y: torch.Tensor, reduction: str, correct: float = 1.0, incorrect: float = 0.0
) -> torch.Tensor:
    rates = torch.full((3, 5), incorrect)
    if y.ndim == 1:
        rates[torch.arange(3), y] = correct
    return F.mse_loss(x.mean(1), rates if y.ndim == 1 else y, reduction=reduction)


def spike_count(x: torch.Tensor, y: torch.Tensor, reduction: str) -> torch.Tensor:
    return F.cross_entropy(x.sum(1), y, reduction=reduction)


def van_rossum(x: torch.Tensor, y: torch.Tensor, reduction: str, tau: float) -> torch.Tensor:
    """Sum over pairs of steps: each spike's exponential is written out."""
    ages = torch.arange(4)[:, None] - torch.arange(4)
    kernel = torch.exp(-ages / tau) * (ages >= 0)
    traces = torch.einsum("ts,bsn->btn", kernel, x - y)
    loss = traces.square().sum(1) / tau
    return loss if reduction == "none" else getattr(loss, reduction)()


def with_options(loss: Any, **options: Any) -> TorchLoss:
    return lambda x, y, **more: loss(x, y, **options, **more)


CASES: list[tuple[str, dict[str, Any], Array, Array, TorchLoss]] = [
    ("mse", {}, X, Y, F.mse_loss),
    ("mae", {}, X, Y, F.l1_loss),
    ("huber", {"delta": 0.7}, X, Y, with_options(F.huber_loss, delta=0.7)),
    ("smooth_l1", {"beta": 0.7}, X, Y, with_options(F.smooth_l1_loss, beta=0.7)),
    ("smooth_l1", {"beta": 0.0}, X, Y, with_options(F.smooth_l1_loss, beta=0.0)),
    ("log_cosh", {}, X, Y, log_cosh),
    ("cosine", {}, X, Y, cosine),
    ("binary_cross_entropy", {}, X, P, F.binary_cross_entropy_with_logits),
    (
        "binary_cross_entropy",
        {"positive_weight": 3.0},
        X,
        P,
        with_options(F.binary_cross_entropy_with_logits, pos_weight=torch.tensor(3.0)),
    ),
    ("binary_cross_entropy", {"from_logits": False}, P, SIGNS > 0, F.binary_cross_entropy),
    ("hinge", {}, X, SIGNS, hinge),
    ("squared_hinge", {}, X, SIGNS, with_options(hinge, power=2)),
    ("cross_entropy", {}, X, CLASSES, classes_second(F.cross_entropy)),
    ("cross_entropy", {}, X, IGNORED, classes_second(F.cross_entropy)),
    (
        "cross_entropy",
        {"ignore_index": 2, "label_smoothing": 0.1, "class_weight": CLASS_WEIGHT},
        X,
        CLASSES,
        classes_second(
            with_options(
                F.cross_entropy,
                ignore_index=2,
                label_smoothing=0.1,
                weight=torch.tensor(CLASS_WEIGHT),
            )
        ),
    ),
    ("cross_entropy", {"axis": 1}, X.transpose(0, 2, 1), CLASSES, F.cross_entropy),
    (
        "chunked_cross_entropy",  # in chunks: tests/unit/memory/test_chunked_loss.py
        {"label_smoothing": 0.1, "class_weight": CLASS_WEIGHT},
        X,
        IGNORED,
        classes_second(
            with_options(F.cross_entropy, label_smoothing=0.1, weight=torch.tensor(CLASS_WEIGHT))
        ),
    ),
    ("categorical_cross_entropy", {}, X, P, classes_second(F.cross_entropy)),
    (
        "categorical_cross_entropy",
        {"label_smoothing": 0.2, "class_weight": CLASS_WEIGHT},
        X,
        P,
        classes_second(
            with_options(F.cross_entropy, label_smoothing=0.2, weight=torch.tensor(CLASS_WEIGHT))
        ),
    ),
    ("kl_div", {}, LOG_P, P, kl_div),
    ("spike_rate", {}, X, P[:, 0], spike_rate),
    (
        "spike_rate",
        {"correct": 0.8, "incorrect": 0.1},
        X,
        CLASSES[:, 0],
        with_options(spike_rate, correct=0.8, incorrect=0.1),
    ),
    ("spike_count", {}, X, CLASSES[:, 0], spike_count),
    ("van_rossum", {"tau": 3.0}, X, Y, with_options(van_rossum, tau=3.0)),
    ("kl_div", {"log_target": True}, LOG_P, LOG_P[::-1], with_options(kl_div, log_target=True)),
    ("poisson", {}, X, COUNTS, F.poisson_nll_loss),
    ("poisson", {"full": True}, X, COUNTS, with_options(F.poisson_nll_loss, full=True)),
    (
        "poisson",
        {"log_input": False},
        np.abs(X),
        COUNTS,
        with_options(F.poisson_nll_loss, log_input=False),
    ),
]
IDS = [f"{name}-{number}" for number, (name, *_) in enumerate(CASES)]
NAMES = [entry.name.partition("/")[2] for entry in available("losses")]
OF_CLASSES = ("cross_entropy", "chunked_cross_entropy")
OF_TRAINS = ("spike_rate", "spike_count", "van_rossum")


def test_every_loss_is_compared() -> None:
    assert set(NAMES) == {name for name, *_ in CASES} | {"ctc"}


def as_torch(target: Array) -> torch.Tensor:
    made = torch.tensor(np.ascontiguousarray(target))
    return made.float() if made.dtype is torch.bool else made


def gradient(loss: Callable[[Any], Any], x: Array) -> Array:
    variable = tensor.array(np.ascontiguousarray(x))
    with GradientTape() as tape:
        tape.watch(variable)
        value = loss(variable)
    return np.asarray(tape.gradient(value, variable).numpy())


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "options", "x", "y", "reference"), CASES, ids=IDS)
def test_values_and_gradients(
    name: str,
    options: dict[str, Any],
    x: Array,
    y: Array,
    reference: TorchLoss,
    reduction: str,
    backend: str,
) -> None:
    leaf = torch.tensor(np.ascontiguousarray(x), requires_grad=True)
    expected = reference(leaf, as_torch(y), reduction=reduction)
    loss = create(f"losses/{name}", **options, reduction=reduction)
    target = tensor.array(np.ascontiguousarray(y))
    given = loss(tensor.array(np.ascontiguousarray(x)), target)
    assert given.dtype == tensor.float32
    np.testing.assert_allclose(given.numpy(), expected.detach().numpy(), rtol=2e-5, atol=2e-6)
    if reduction == "none":
        return
    expected.backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(
        gradient(lambda v: loss(v, target), x), leaf.grad.numpy(), rtol=1e-4, atol=2e-6
    )


@pytest.mark.parametrize(("name", "options", "x", "y", "reference"), CASES, ids=IDS)
def test_function_and_object_agree(
    name: str, options: dict[str, Any], x: Array, y: Array, reference: TorchLoss
) -> None:
    given = tensor.array(np.ascontiguousarray(x)), tensor.array(np.ascontiguousarray(y))
    function = getattr(losses, name)
    loss = create(f"losses/{name}", **options)
    assert function(*given, **options).item() == loss(*given).item()
    assert Config.from_dict(loss.config.to_dict()).create()(*given).item() == loss(*given).item()


@pytest.mark.parametrize(("name", "options", "x", "y", "reference"), CASES, ids=IDS)
def test_sample_weights(
    name: str, options: dict[str, Any], x: Array, y: Array, reference: TorchLoss, backend: str
) -> None:
    """The weighted mean equals that of torch's losses per element."""
    each = reference(as_torch(x), as_torch(y), reduction="none").numpy()
    weight = np.array([0.0, 0.5, 2.0], np.float32)
    spread = np.broadcast_to(weight.reshape(3, *(1,) * (each.ndim - 1)), each.shape)
    share = np.ones_like(each)
    if name in OF_CLASSES:
        share = np.asarray(options.get("class_weight", np.ones(5)))[np.maximum(y, 0)]
        share = np.where(y == options.get("ignore_index", -100), 0.0, share)
    given = tensor.array(np.ascontiguousarray(x)), tensor.array(np.ascontiguousarray(y))
    for reduction, expected in (
        ("mean", (each * spread).sum() / (spread * share).sum()),
        ("sum", (each * spread).sum()),
        ("none", each * spread),
    ):
        loss = create(f"losses/{name}", **options, reduction=reduction)
        value = loss(*given, sample_weight=tensor.array(weight)).numpy()
        np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-6)


def test_a_mask_hides_what_is_not_finite(backend: str) -> None:
    x = tensor.array([[1.0, float("nan")], [2.0, 3.0]])
    mask = tensor.array([[True, False], [True, True]])
    assert losses.mse(x, [[0.0, 0.0], [0.0, 0.0]], sample_weight=mask).item() == pytest.approx(
        14 / 3
    )


def test_no_target_at_all_is_zero(backend: str) -> None:
    ignored = tensor.array(np.full((3, 4), -100))
    assert losses.cross_entropy(tensor.array(X), ignored).item() == 0.0
    np.testing.assert_array_equal(gradient(lambda x: losses.cross_entropy(x, ignored), X), 0.0)
    nothing = tensor.array(np.zeros(3, bool))
    assert losses.mse(tensor.array(X), tensor.array(Y), sample_weight=nothing).item() == 0.0


FAR = np.array([[-1e4, 0.0, 1e4], [1e4, -1e4, 3e4], [-80.0, 80.0, 0.0]], np.float32)


@pytest.mark.parametrize(
    ("name", "y", "reference"),
    [
        ("cross_entropy", np.array([0, 1, 2]), F.cross_entropy),
        ("binary_cross_entropy", np.eye(3, dtype=np.float32), F.binary_cross_entropy_with_logits),
        ("categorical_cross_entropy", np.eye(3, dtype=np.float32), F.cross_entropy),
        ("huber", np.zeros((3, 3), np.float32), F.huber_loss),
        ("log_cosh", np.zeros((3, 3), np.float32), None),
    ],
)
def test_far_values(name: str, y: Array, reference: TorchLoss | None, backend: str) -> None:
    leaf = torch.tensor(FAR, dtype=torch.float64, requires_grad=True)
    if reference is None:
        expected = (leaf.abs() + torch.log1p(torch.exp(-2 * leaf.abs())) - np.log(2)).mean()
    else:
        wide = torch.tensor(y, dtype=torch.float64) if y.dtype.kind == "f" else torch.tensor(y)
        expected = reference(leaf, wide)
    expected.backward()
    assert leaf.grad is not None
    loss = create(f"losses/{name}")
    assert loss(tensor.array(FAR), tensor.array(y)).item() == pytest.approx(expected.item(), 1e-5)
    given = gradient(lambda x: loss(x, tensor.array(y)), FAR)
    np.testing.assert_allclose(given, leaf.grad.numpy(), rtol=1e-4, atol=1e-7)


def test_log_cosh_of_small_distances(backend: str) -> None:
    small = np.array([1e-6, 1e-4, 1e-2], np.float32)
    given = losses.log_cosh(tensor.array(small), np.zeros(3), reduction="none").numpy()
    np.testing.assert_allclose(given, small.astype(np.float64) ** 2 / 2, rtol=1e-4)


def test_halves_are_summed_in_float32(backend: str) -> None:
    """1000 tokens with a loss of about 100 sum to more than float16 holds."""
    logits = np.zeros((1000, 4), np.float32)
    logits[:, 0] = 100.0
    given = tensor.array(logits).astype("float16"), tensor.array(np.ones(1000, np.int64))
    value = losses.cross_entropy(*given)
    assert value.dtype == tensor.float32
    assert value.item() == pytest.approx(100.0)
    assert losses.mse(given[0], given[0] * 0).item() == pytest.approx(2500.0)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2, 0, 3)])
def test_awkward_shapes(shape: tuple[int, ...], backend: str) -> None:
    x = torch.full(shape, 0.5)
    given = losses.mse(tensor.array(x.numpy()), tensor.array(np.zeros(shape, np.float32)))
    np.testing.assert_allclose(given.item(), F.mse_loss(x, torch.zeros(shape)).item())


def test_one_example_without_batch(backend: str) -> None:
    given = losses.cross_entropy(tensor.array([1.0, 2.0, 3.0]), tensor.array(1))
    expected = F.cross_entropy(torch.tensor([1.0, 2.0, 3.0]), torch.tensor(1))
    assert given.item() == pytest.approx(expected.item())


LABELS = np.array([[1, 2, 2, 3], [4, 1, -1, -1], [3, 0, 0, 0]])
LENGTHS = np.array([4, 2, 1])
TIMES = np.array([7, 6, 2])
SCORES = RNG.normal(0.0, 1.0, (3, 7, 5)).astype(np.float32)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ctc(reduction: str, backend: str) -> None:
    leaf = torch.tensor(SCORES, requires_grad=True)
    expected = F.ctc_loss(
        F.log_softmax(leaf, -1).transpose(0, 1),
        torch.tensor(np.maximum(LABELS, 0)),
        torch.tensor(TIMES),
        torch.tensor(LENGTHS),
        reduction=reduction,
    )
    loss = losses.CTC(reduction=reduction)
    times = tensor.array(TIMES)
    target = tensor.array(LABELS)
    given = loss(tensor.array(SCORES), target, input_lengths=times)
    np.testing.assert_allclose(given.numpy(), expected.detach().numpy(), rtol=1e-5)
    if reduction == "none":
        return
    expected.backward()
    assert leaf.grad is not None
    found = gradient(lambda x: loss(x, target, input_lengths=times), SCORES)
    np.testing.assert_allclose(found, leaf.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_ctc_weights_and_lengths(backend: str) -> None:
    each = losses.ctc(tensor.array(SCORES), tensor.array(LABELS), reduction="none").numpy()
    same = losses.ctc(
        tensor.array(SCORES), LABELS, [7, 7, 7], LENGTHS.tolist(), reduction="none"
    ).numpy()
    np.testing.assert_array_equal(each, same)
    weight = np.array([1.0, 0.0, 3.0], np.float32)
    given = losses.ctc(tensor.array(SCORES), tensor.array(LABELS), sample_weight=weight).item()
    assert given == pytest.approx((each / LENGTHS * weight).sum() / 4.0, rel=1e-5)


def test_targets_of_other_backends_are_moved(backend: str) -> None:
    for other in backends():
        x = tensor.array(X)
        target = tensor.array(CLASSES).to_backend(other)
        assert losses.cross_entropy(x, target).backend == backend
        assert losses.mse(x, tensor.array(Y).to_backend(other)).backend == backend


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
def test_narrow_classes(dtype: str, backend: str) -> None:
    given = losses.cross_entropy(tensor.array(X), tensor.array(CLASSES.astype(dtype)))
    assert given.item() == losses.cross_entropy(tensor.array(X), tensor.array(CLASSES)).item()


def test_batchmean() -> None:
    expected = F.kl_div(torch.tensor(LOG_P), torch.tensor(P), reduction="batchmean").item()
    given = losses.KLDiv(reduction="batchmean")(tensor.array(LOG_P), tensor.array(P)).item()
    assert given == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("ctc", *OF_CLASSES, *OF_TRAINS)]
)
def test_shapes_must_be_equal(name: str, backend: str) -> None:
    with pytest.raises(ShapeError, match=rf"{name}: .*\(2, 3\).*\(2, 1\)"):
        create(f"losses/{name}")(np.zeros((2, 3), np.float32), np.zeros((2, 1), np.float32))


@pytest.mark.parametrize("name", OF_TRAINS)
def test_spike_trains_have_a_time_axis(name: str, backend: str) -> None:
    with pytest.raises(ShapeError, match=rf"{name}: .*\(batch, time, neurons\).*\(2, 3\)"):
        create(f"losses/{name}")(np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32))
    if name != "spike_count":
        target = np.zeros((2, 4, 1) if name == "van_rossum" else (2, 1), np.float32)
        with pytest.raises(ShapeError, match=rf"{name}: .*3\).*1\)"):
            create(f"losses/{name}")(np.zeros((2, 4, 3), np.float32), target)
    with pytest.raises(ArgumentError, match="tau"):
        losses.van_rossum(tensor.array(X), tensor.array(Y), tau=0.0)


@pytest.mark.parametrize("index", [-1, 3])
def test_rates_of_unknown_neurons(index: int, backend: str) -> None:
    loss = losses.spike_rate(np.zeros((2, 4, 3), np.float32), [0, index], reduction="none")
    assert np.isnan(loss.numpy()).tolist() == [[False] * 3, [True] * 3]


def test_errors(backend: str) -> None:
    x = tensor.array(X)
    with pytest.raises(ShapeError, match=r"shape \(3, 4\) for .* \(3, 4, 5\) .* not \(3, 3\)"):
        losses.cross_entropy(x, tensor.array(CLASSES[:, :3]))
    with pytest.raises(ArgumentTypeError, match="for probabilities use categorical_cross_entropy"):
        losses.cross_entropy(x, tensor.array(P))
    with pytest.raises(ShapeError, match=r"losses, \(3, 4, 5\), .* not \(4,\)"):
        losses.mse(x, tensor.array(Y), sample_weight=[1.0, 1.0, 1.0, 1.0])
    with pytest.raises(ArgumentError, match=r"mse: reduction must be one of .* not 'average'"):
        losses.mse(x, tensor.array(Y), reduction="average")
    with pytest.raises(ShapeError, match=r"ctc: expected .* got \(3, 4, 5\) and \(3,\)"):
        losses.ctc(x, tensor.array([1, 2, 3]))
    with pytest.raises(ConfigError, match=r"CrossEntropy.*label_smoothing"):
        losses.CrossEntropy(label_smoothing=1.5)
    with pytest.raises(ConfigError, match=r"MSE.*reduction"):
        losses.MSE(reduction="average")


def test_repr_and_get() -> None:
    assert repr(losses.get({"type": "huber", "delta": 2.0})) == "Huber(delta=2.0)"
    assert isinstance(losses.get("bce"), losses.BinaryCrossEntropy)
    assert losses.get(losses.mse) is losses.mse
    with pytest.raises(KeyError, match="did you mean"):
        losses.get("crossentropy")
