"""Training and evaluation on the positions that are read, compared with all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import GradientTape, nn, ops, registry
from ember_ml._core.errors import ShapeError
from ember_ml.mad.evaluation import ExampleCounts
from ember_ml.mad.tasks.draws import IGNORED
from ember_ml.nn.models.pooling import pool
from ember_ml.nn.sequence_module import SequenceModule, run, run_at
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer
from ember_ml.training.losses import CrossEntropy
from ember_ml.training.metrics import Accuracy, Metric
from tests.examples_of import config_of, inputs_of

VOCAB, BATCH, TIME = 11, 3, 8
RNG = np.random.default_rng(0)
TOKENS = RNG.integers(0, VOCAB, (BATCH, TIME))
TARGETS = np.where(RNG.random((BATCH, TIME)) < 0.4, TOKENS, -100)
WEIGHTS = (RNG.random((BATCH, TIME)) * (RNG.random((BATCH, TIME)) < 0.7)).astype("float32")
READ = int((TARGETS >= 0).sum())

LAYERS = [entry for kind in ("layers", "blocks") for entry in registry.available(kind)]


def model(layers: Any = "gru swiglu mlp", **options: Any) -> nn.models.LanguageModel:
    ops.random.set_seed(0)
    return nn.models.LanguageModel(layers, VOCAB, 8, **options)


def trainer(loss: Any = "cross_entropy", layers: Any = "gru swiglu mlp", **options: Any) -> Trainer:
    return Trainer(model(layers), loss, learning_rate=0.01, progress=False, seed=0, **options)


def batch(weights: bool = False) -> Any:
    return tuple(map(array, (TOKENS, TARGETS, WEIGHTS) if weights else (TOKENS, TARGETS)))


def test_position_wise_layers_do_not_mix_positions(on_numpy: None) -> None:
    checked = []
    for entry in LAYERS:
        layer: nn.Module = config_of(entry).create()
        if layer.is_position_wise:
            features = inputs_of(layer).shape[-1]
            x = RNG.standard_normal((2, 6, features)).astype("float32")
            expected = layer(x).numpy()[:, [1, 4, 5]]
            np.testing.assert_allclose(layer(x[:, [1, 4, 5]]).numpy(), expected, 1e-4, 1e-5)
            checked.append(entry.name)
    assert {"layers/dense", "layers/mlp", "layers/swiglu", "blocks/residual"} <= set(checked)
    assert {"layers/rms_norm", "layers/layer_norm"} <= set(checked)
    assert not {"layers/moe", "layers/batch_norm", "layers/attention"} & set(checked)


AT = [np.array([7, 0, 7, 11]), -1, 2]
"""Positions of sequences of 2 x 6."""


def sequence_layers() -> list[registry.Entry]:
    layers = registry.available("layers")
    return [entry for entry in layers if issubclass(entry.target, SequenceModule)]


@pytest.mark.parametrize("entry", sequence_layers(), ids=lambda entry: entry.name)
def test_outputs_at_positions_are_those_of_all(entry: registry.Entry, backend: str) -> None:
    """With and without a mask, in the layer and in a residual block around it."""
    layer = config_of(entry).create().eval()
    x = RNG.standard_normal((2, 6, inputs_of(layer).shape[-1])).astype("float32")
    real = np.arange(6) < np.array([[6], [5]])
    for mask in (None, array(real)):
        for module in (layer, residual(layer, x.shape[-1])):
            expected = run(module, array(x), mask).numpy()
            for at in AT:
                is_one = isinstance(at, int)
                rows = expected[:, [at]] if is_one else expected.reshape(1, 12, -1)[:, at]
                y = run_at(module, array(x), at if is_one else array(at), mask)
                np.testing.assert_allclose(y.numpy(), rows, rtol=1e-3, atol=1e-4)


def residual(layer: nn.Module, features: int) -> nn.Module:
    """Return a block whose layer has a residual connection if it preserves the shape."""
    block = nn.blocks.ResidualBlock("swiglu", features).eval()
    out = run(layer, ops.ones((1, 2, features)))
    if out.shape == (1, 2, features):
        block.layer = layer
    return block


@pytest.mark.parametrize(
    "options", [{}, {"window": 2}, {"positions": "alibi"}, {"num_kv_heads": 1}]
)
@pytest.mark.parametrize("causal", [True, False])
def test_last_query_of_attention(options: Any, causal: bool, backend: str) -> None:
    layer = nn.layers.SelfAttention(8, num_heads=2, causal=causal, **options)
    x = array(RNG.standard_normal((2, 6, 8)).astype("float32"))
    mask = array(np.arange(6) < np.array([[6], [4]]))
    for given in (None, mask):
        expected = layer(x, given)[:, -1:].numpy()
        np.testing.assert_allclose(run_at(layer, x, -1, given).numpy(), expected, 1e-4, 1e-5)


class Shifted(nn.layers.Mamba):
    """Layer whose outputs differ from those of its base class."""

    def mix(self, x: Any, mask: Any, state: Any) -> Any:
        y, state = super().mix(x, mask, state)
        return y + 1.0, state


def test_overridden_layers_are_used(on_numpy: None) -> None:
    layer, x = Shifted(8), array(RNG.standard_normal((2, 6, 8)).astype("float32"))
    np.testing.assert_allclose(run_at(layer, x, -1).numpy(), layer(x)[:, -1:].numpy(), rtol=1e-5)
    plain = nn.layers.Mamba(8)
    plain.forward = lambda x, mask=None: x * 2.0
    np.testing.assert_allclose(run_at(plain, x, -1).numpy(), 2.0 * x.numpy()[:, -1:])


@pytest.mark.parametrize("layers", ["gru swiglu mlp", "mlp swiglu", "gru", "attention moe"])
def test_chosen_logits_are_those_of_all(backend: str, layers: str) -> None:
    ours = model(layers)
    at = [0, 5, 5, BATCH * TIME - 1]
    expected = ours(TOKENS).numpy().reshape(-1, VOCAB)[at]
    tight = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(ours(TOKENS, at=array(at)).numpy(), expected, **tight)
    last = ours(TOKENS).numpy()[:, -1]
    np.testing.assert_allclose(ours(TOKENS, at=-1).numpy(), last, **tight)
    np.testing.assert_allclose(ours.prefill(TOKENS)[0].numpy(), last, **tight)
    logits, state = ours(TOKENS, state=ours.initial_state(BATCH), at=array(at))
    np.testing.assert_allclose(logits.numpy(), expected, **tight)
    after = ours(TOKENS, state=ours.initial_state(BATCH))[1]
    following = TOKENS[:, 0]
    np.testing.assert_allclose(
        ours.step(following, state)[0].numpy(), ours.step(following, after)[0].numpy(), **tight
    )


@pytest.mark.parametrize("layers", ["attention swiglu", "mamba", "hyena mlp", "mlp hyena"])
def test_gradients_through_layers_that_mix(backend: str, layers: str) -> None:
    ours = trainer(layers=layers)
    names, parameters = zip(*ours.model.named_parameters(), strict=True)
    for compute in (ours.compute_loss, ours.compute):
        with GradientTape() as tape:
            loss, outputs = compute(batch())
        gradients = [g.numpy() for g in tape.gradient(loss, list(parameters))]
        if compute == ours.compute_loss:
            assert outputs.shape == (READ, VOCAB)
            expected = gradients
    for name, g, want in zip(names, gradients, expected, strict=True):
        np.testing.assert_allclose(g, want, rtol=1e-3, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    "loss",
    [
        {"type": "cross_entropy"},
        {"type": "cross_entropy", "reduction": "sum", "label_smoothing": 0.1},
        {"type": "cross_entropy", "class_weight": [0.5] * 5 + [2.0] * 6},
        {"type": "chunked_cross_entropy", "chunk_size": 4},
    ],
    ids=lambda loss: "-".join(map(str, loss.values())),
)
def test_loss_and_gradients_are_those_of_all(backend: str, loss: Any, weights: bool) -> None:
    ours = trainer(loss)
    data = batch(weights)
    whole, all_gradients = nn.value_and_grad(ours.model, lambda: ours.compute(data)[0])()
    part, gradients = nn.value_and_grad(ours.model, lambda: ours.compute_loss(data)[0])()
    np.testing.assert_allclose(part.numpy(), whole.numpy(), rtol=1e-5)
    for name, g in gradients.items():
        np.testing.assert_allclose(
            g.numpy(), all_gradients[name].numpy(), rtol=1e-3, atol=1e-6, err_msg=name
        )


def test_only_positions_with_a_target_have_logits(on_numpy: None) -> None:
    assert trainer().compute(batch())[1].shape == (BATCH, TIME, VOCAB)
    assert trainer().compute_loss(batch())[1].shape == (READ, VOCAB)
    read = int(((TARGETS >= 0) & (WEIGHTS != 0)).sum())
    assert trainer().compute_loss(batch(weights=True))[1].shape == (read, VOCAB)


@pytest.mark.parametrize("options", [{}, {"accumulate": 2}, {"compile": False}], ids=str)
def test_training_reaches_the_same_weights(backend: str, options: Any) -> None:
    ours = trainer(**options)
    other = trainer(CrossEntropyOfAll(), **options)
    for each in (ours, other):
        each.fit([batch(), batch()], epochs=2)
    for (name, x), y in zip(ours.model.named_parameters(), other.model.parameters(), strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-3, atol=1e-4, err_msg=name)


class CrossEntropyOfAll(CrossEntropy):
    """Loss of a user, which may read all targets."""

    def __call__(self, prediction: Any, target: Any, sample_weight: Any = None) -> Any:
        assert prediction.ndim == 3
        return super().__call__(prediction, target, sample_weight)


@pytest.mark.parametrize(
    "targets", [np.full_like(TARGETS, -100), TOKENS, np.where(TOKENS > 0, TOKENS, -100)]
)
def test_all_or_no_targets(backend: str, targets: np.ndarray) -> None:
    ours = trainer()
    data = (array(TOKENS), array(targets))
    loss, outputs = ours.compute_loss(data)
    assert outputs.shape == (BATCH, TIME, VOCAB)
    np.testing.assert_allclose(loss.numpy(), ours.compute(data)[0].numpy())


class KeepsOutputs(Trainer):
    """Trainer that keeps the outputs of its steps."""

    shape: tuple[int, ...] = ()

    def compute(self, batch: object) -> Any:
        loss, outputs = super().compute(batch)
        self.shape = outputs.shape
        return loss, outputs


class Doubled(nn.Module):
    """Model that needs the logits of all positions of the language model inside."""

    default_loss = "cross_entropy"

    def __init__(self) -> None:
        self.inner = model()

    def forward(self, tokens: Any) -> Any:
        return 2.0 * self.inner(tokens)


def test_trainers_that_need_all_outputs_get_them(backend: str) -> None:
    ours = KeepsOutputs(model(), "cross_entropy", progress=False)
    ours.train_step(batch())
    assert ours.shape == (BATCH, TIME, VOCAB)
    measured = trainer(metrics=["accuracy"], train_metrics=True)
    assert 0 <= measured.train_step(batch())["accuracy"] <= 1
    assert Trainer(Doubled(), progress=False).compute_loss(batch())[1].ndim == 3


@pytest.mark.parametrize("part", ["norm", "head"])
def test_parts_that_mix_positions_run_on_all(on_numpy: None, part: str) -> None:
    ours = model()
    if part == "norm":
        ours.backbone.norm = nn.layers.BatchNorm(8)
    else:
        ours.head = nn.Sequential(nn.layers.Dense(8, VOCAB), nn.layers.BatchNorm(VOCAB))
    trained = Trainer(ours, "cross_entropy", progress=False)
    assert trained.compute_loss(batch())[1].shape[:2] == (BATCH, TIME)


def test_layers_whose_norm_mixes_positions_run_on_all(on_numpy: None) -> None:
    ours = model()
    ours.backbone.blocks.layers[-1].norm = nn.layers.BatchNorm(8)
    loss, outputs = Trainer(ours, "cross_entropy", progress=False).compute_loss(batch())
    assert outputs.shape == (READ, VOCAB)
    expected = CrossEntropy()(ours(TOKENS), array(TARGETS))
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=1e-5)


@pytest.mark.parametrize("place", ["", "backbone", "backbone.blocks.2.layer", "head"])
def test_hooks_see_all_positions(on_numpy: None, place: str) -> None:
    ours = trainer()
    shapes = []
    hooked = dict(ours.model.named_modules())[place]
    hooked.register_forward_hook(lambda module, args, output: shapes.append(output.shape[:2]))
    loss, _ = ours.compute_loss(batch())
    assert shapes == [(BATCH, TIME)]
    np.testing.assert_allclose(loss.numpy(), trainer().compute_loss(batch())[0].numpy(), rtol=1e-5)


def test_hooks_of_the_last_layers_see_prompts(on_numpy: None) -> None:
    ours = model()
    shapes = []
    layer = ours.backbone.blocks.layers[-1]
    expected = ours.prefill(TOKENS)[0].numpy()
    layer.register_forward_hook(lambda module, args, output: shapes.append(output[0].shape))
    np.testing.assert_allclose(ours.prefill(TOKENS)[0].numpy(), expected, rtol=1e-4, atol=1e-5)
    assert shapes == [(BATCH, TIME, 8)]


def test_examples_that_skip_a_layer_skip_it_as_a_whole(on_numpy: None) -> None:
    ours = model("mlp", stochastic_depth=0.5)
    block = ours.backbone.blocks.layers[-1]
    block.stochastic_depth = 0.5
    at = array(np.arange(BATCH * TIME))
    ops.random.set_seed(1)
    expected = ours(TOKENS).numpy().reshape(-1, VOCAB)
    ops.random.set_seed(1)
    np.testing.assert_allclose(ours(TOKENS, at=at).numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("pooling", ["last", "mean"])
@pytest.mark.parametrize("layers", ["gru swiglu", "attention mlp[in_features=8] moe"])
def test_pooled_features_are_those_of_all(backend: str, layers: str, pooling: str) -> None:
    ops.random.set_seed(0)
    ours = nn.models.SequenceClassifier(
        layers, 5, vocab_size=VOCAB, hidden_size=8, pooling=pooling
    ).eval()
    features = pool(ours.features_of(array(TOKENS), None, None), None, pooling)
    np.testing.assert_allclose(
        ours(TOKENS).numpy(), ours.head(features).numpy(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("block", [nn.blocks.Block, nn.blocks.ParallelBlock])
def test_blocks_return_chosen_positions(backend: str, block: type[nn.blocks.Block]) -> None:
    ours = block("", 8, "attention swiglu")
    x = RNG.standard_normal((BATCH, TIME, 8)).astype("float32")
    expected = ours(x).numpy().reshape(-1, 8)[[3, 9]]
    np.testing.assert_allclose(ours(x, at=array([3, 9])).numpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours(x, at=-2).numpy(), ours(x).numpy()[:, -2], 1e-4, 1e-5)
    outputs, state = ours(x, state=ours.initial_state(BATCH), at=array([3, 9]))
    np.testing.assert_allclose(outputs.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert len(state) == 2


def test_wrong_indices_are_refused(on_numpy: None) -> None:
    with pytest.raises(ShapeError, match=r"at must have the shape \(count,\).* shape \(1, 2\)"):
        model()(TOKENS, at=array([[0, 1]]))
    with pytest.raises(ShapeError, match=r"or be an int, not a tensor of the shape \(\)"):
        model()(TOKENS, at=array(np.int64(-1)))
    for wrong in (True, 1.0, "last", slice(0, 2)):
        with pytest.raises(TypeError, match="at must be an int or a tensor of indices, not"):
            model()(TOKENS, at=wrong)
    with pytest.raises(ShapeError, match=r"expected tokens of shape \(batch, time\), got \(8,\)"):
        model().prefill(TOKENS[0])
    with pytest.raises(IndexError, match="index 24 is out of bounds"):
        model()(TOKENS, at=array([BATCH * TIME]))
    for block in ("hyena", "mlp hyena", "hyena mlp", "mamba", "attention"):
        with pytest.raises(IndexError, match="at: index 8 is out of range for 8 positions"):
            model(block)(TOKENS, at=TIME)
    with pytest.raises(IndexError, match="at: index -9 is out of range for 8 positions"):
        model()(TOKENS, state=model().initial_state(BATCH), at=-TIME - 1)
    with pytest.raises(TypeError, match="indices must be integers, not float32"):
        model()(TOKENS, at=array([0.5]))
    for nothing in (array(np.zeros(0, int)), [], ()):
        assert model()(TOKENS, at=nothing).shape == (0, VOCAB)
    ours = model()
    np.testing.assert_array_equal(ours(TOKENS, at=np.int64(-2)).numpy(), ours(TOKENS, at=-2))
    for some in (range(2, 4), (2, 3), [2, 3]):
        np.testing.assert_array_equal(ours(TOKENS, at=some).numpy(), ours(TOKENS, at=array([2, 3])))


METRICS = [entry for entry in registry.available("metrics") if entry.target.skips_ignored]


class MeasuresAll(Trainer):
    """Trainer whose metrics need the outputs of all positions."""

    def measure(self, batch: object, outputs: Any) -> float:
        assert outputs.shape == (BATCH, TIME, VOCAB)
        return super().measure(batch, outputs)


class OfAll(Accuracy):
    """Metric of a user, which may read all targets."""

    def measure(self, prediction: Any, target: Any, mask: Any) -> Any:
        assert target.shape == (BATCH, TIME)
        return super().measure(prediction, target, mask)


@pytest.mark.parametrize("entry", METRICS, ids=lambda entry: entry.name)
def test_evaluation_is_that_of_all_positions(entry: registry.Entry, backend: str) -> None:
    metric = {"type": entry.name.removeprefix("metrics/")}
    check_evaluation("cross_entropy", metric, (TOKENS, TARGETS))
    check_evaluation("cross_entropy", metric, (TOKENS, TARGETS, WEIGHTS))


@pytest.mark.parametrize("ignored", [0, 3])
def test_evaluation_if_the_loss_ignores_other_targets(on_numpy: None, ignored: int) -> None:
    """A position is left out only if both the loss and the metric ignore its target."""
    targets = np.where(TARGETS < 0, [0, 3] * (TIME // 2), TARGETS)
    loss = {"type": "cross_entropy", "ignore_index": 3}
    check_evaluation(loss, {"type": "accuracy", "ignore_index": ignored}, (TOKENS, targets))


def check_evaluation(loss: Any, metric: Any, arrays: tuple[np.ndarray, ...]) -> None:
    """Compare an evaluation with that of all positions."""
    data = tuple(map(array, arrays))
    ours, other = (
        each(model(), loss, metrics=[metric], progress=False, seed=0)
        for each in (Trainer, MeasuresAll)
    )
    result, expected = ours.evaluate([data, data]), other.evaluate([data, data])
    assert result.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(result[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_metrics_see_rows_of_the_positions_that_are_read(on_numpy: None) -> None:
    shapes = []

    class Shapes(Metric[float]):
        ignore_index = -100
        skips_ignored = True

        def update(self, prediction: Any, target: Any, mask: Any = None) -> None:
            shapes.append((prediction.shape, target.shape, int((target >= 0).sum())))

        def compute(self) -> float:
            return 0.0

    longest = int((TARGETS >= 0).sum(1).max())
    assert longest < 0.75 * TIME
    trainer(metrics=[Shapes("shapes")]).evaluate([batch()])
    trainer({"type": "chunked_cross_entropy"}, metrics=[Shapes("shapes")]).evaluate([batch()])
    assert shapes == [((BATCH, longest, VOCAB), (BATCH, longest), READ)] * 2


@pytest.mark.parametrize("metric", [OfAll(), lambda x, y: x.argmax(-1) == y], ids=["own", "lambda"])
def test_metrics_that_may_read_all_targets_get_them(on_numpy: None, metric: Any) -> None:
    assert trainer(metrics=[metric]).evaluate_batch(batch())[1].shape == (BATCH, TIME, VOCAB)


class Seen:
    """Mixin that counts the targets that a metric gets."""

    seen = 0

    def update(self, prediction: Any, target: Any, mask: Any = None) -> None:
        self.seen += target.size
        super().update(prediction, target, mask)  # type: ignore[misc]


class SeenAccuracy(Seen, Accuracy):
    """Metric of a user, whose mixin may read all targets."""


def test_metrics_with_other_updates_get_all_targets(on_numpy: None) -> None:
    metric, patched = SeenAccuracy(), Accuracy()
    shapes, original = [], patched.update
    patched.update = lambda x, *rest: (shapes.append(x.shape), original(x, *rest))[1]  # type: ignore[method-assign]
    for each in (metric, patched):
        trainer(metrics=[each]).evaluate([batch()])
    assert metric.seen == BATCH * TIME
    assert shapes == [(BATCH, TIME, VOCAB)]


def test_metrics_without_weights_get_targets_of_weight_0(on_numpy: None) -> None:
    weights = np.zeros((BATCH, TIME), np.float32)
    weights[0, :2] = 1
    metric = ExampleCounts()
    loss = {"type": "cross_entropy", "ignore_index": IGNORED}
    targets = np.where(TARGETS < 0, IGNORED, TARGETS)
    trainer(loss, metrics=[metric]).evaluate([tuple(map(array, (TOKENS, targets, weights)))])
    assert metric.targets == (TARGETS >= 0).sum(1).tolist()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32"])
def test_narrow_integers_are_targets(backend: str, dtype: str) -> None:
    """An ignored index of -100 fits no uint8."""
    arrays = TOKENS, np.where(TARGETS < 0, 0, TARGETS)
    results = [
        trainer().evaluate([tuple(array(x.astype(each)) for x in arrays)])["loss"]
        for each in (dtype, "int64")
    ]
    assert results[0] == results[1]


def test_batches_that_do_not_count_leave_the_metrics(on_numpy: None) -> None:
    ours = trainer(metrics=["accuracy"])
    assert ours.evaluate_batch(batch(), counts=False)[2] == 0.0
    assert np.isnan(ours.metrics[0].compute())
    assert ours.evaluate_batch(batch())[2] == BATCH
    assert 0 <= ours.metrics[0].compute() <= 1


@pytest.mark.parametrize("shape", [(0, TIME), (BATCH, 0), (TIME,)], ids=str)
def test_batches_without_positions_are_those_of_the_model(on_numpy: None, shape: Any) -> None:
    data = (array(np.zeros(shape, int)), array(np.full(shape, -100)))
    results = []
    for each in (Trainer, KeepsOutputs):
        ours = each(model(), "cross_entropy", metrics=["accuracy"], progress=False)
        try:
            results.append(str(ours.evaluate([data])))
        except Exception as error:
            results.append(repr(error))
    assert results[0] == results[1]
