"""Profiles of training runs."""

from __future__ import annotations

import itertools
import json
import os
import warnings

import pytest

from ember_ml import nn, ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.backend import use_backend
from ember_ml.memory import measure
from ember_ml.training import ProfileOptions, Trainer
from ember_ml.training.callbacks import Callback
from ember_ml.training.trainer import profiling
from tests.backends import compiles, is_lazy

BLOCKS = ["backbone.blocks.0", "backbone.blocks.1"]
NAMES = ["profile.html", "profile.json", "trace.json"]


def model_of(layers="attention swiglu", **options):
    ops.random.set_seed(0)
    return nn.models.LanguageModel(layers, 8, 16, dropout=0.1, **options)


def data():
    tokens = ops.arange(16 * 12, dtype="int64").reshape(16, 12) % 8
    return tokens, tokens


def fitted(options, steps=8, **trainer_options):
    """Return a trainer after some steps."""
    trainer = Trainer(
        model_of(), "cross_entropy", progress=False, seed=1, profile=options, **trainer_options
    )
    trainer.fit(data(), steps=steps, batch_size=4)
    return trainer


def test_training_is_the_same(backend, tmp_path):
    plain = fitted(False)
    profiled = fitted(ProfileOptions(2, 1, tmp_path / "p"))
    assert plain.profiler is None
    assert profiled.history.losses == pytest.approx(plain.history.losses, rel=1e-5)
    result = profiled.profiler.result
    assert profiled.profiler.is_done
    assert (result.backend, result.steps, result.title) == (backend, 2, "LanguageModel")
    assert set(result.parts) == {"forward", "backward", "update"}
    assert all(value > 0 for value in result.parts.values())
    assert result.plain > 0
    assert 0 <= result.outside[1] < 1
    assert result.replayed == is_lazy(backend)
    assert list(result.layers) == ["embedding", *BLOCKS, "backbone.norm", "head"]
    assert result.between > 0
    calls = {row.name: row.calls for row in result.ops}
    assert calls["nn.projection.linear"] == 5
    assert sorted(os.listdir(tmp_path / "p")) == NAMES
    saved = json.loads((tmp_path / "p" / "profile.json").read_text())
    assert saved == json.loads(json.dumps(result.to_dict()))
    assert saved["share_of_peak"] == pytest.approx(
        saved["flops"] / saved["plain"] / saved["matrix_product"]["flops"]
    )


def test_operations_are_those_of_a_step(backend):
    result = fitted(ProfileOptions(2, 0, None)).profiler.result
    linear = next(row for row in result.ops if row.name == "nn.projection.linear")
    # 4 x 12 tokens: qkv, out, expand (2 x 48), reduce and head, and three times for gradients
    weights = 16 * 48 + 16 * 16 + 16 * 96 + 48 * 16 + 16 * 8
    assert linear.flops == 3 * 48 * (2 * weights + 48 + 16)


def test_memory_is_that_of_a_step(backend):
    trainer = fitted(ProfileOptions(1, 0, None), steps=4)
    result, batch = trainer.profiler.result, tuple(x[:4] for x in data())
    whole = measure(trainer.model, batch, loss="cross_entropy")
    assert result.memory["parameters"] == whole.parameters
    assert result.memory["optimizer_state"] == whole.optimizer_state
    # The order in which lazy arrays are computed and freed varies.
    tolerance = 0.5 if is_lazy(backend) else 0.25
    assert result.memory["peak"] == pytest.approx(whole.peak, rel=tolerance)
    for name, kept in result.layer_memory.items():
        assert kept == pytest.approx(whole.activations[name], rel=tolerance, abs=4096)


def test_compiled_steps(backend):
    result = fitted(ProfileOptions(1, 1, None), compile=None).profiler.result
    wanted = fitted(False, steps=1)._runner._policy is not None
    assert result.compiled is wanted
    assert len(result.ops) > 5
    if wanted:
        assert compiles(backend)


@pytest.mark.usefixtures("backend")
def test_accumulation_and_rematerialization():
    trainer = fitted(ProfileOptions(1, 1, None), accumulate=2, remat="blocks", steps=5)
    result = trainer.profiler.result
    calls = {row.name: row.calls for row in result.ops}
    assert calls["nn.projection.linear"] >= 10  # MLX calls checkpointed functions several times
    assert set(result.parts) == {"forward", "backward", "update"}


def test_epochs_that_end_within_a_step():
    """The last step of an epoch counts, although it has fewer batches."""
    with use_backend("numpy"):
        options = ProfileOptions(2, 1, None)
        trainer = fitted(options, accumulate=3, steps=options.total)  # 2 steps an epoch
        assert trainer.profiler.is_done
        assert len(trainer.history.losses) == options.total
        result = trainer.profiler.result
        assert {row.name: row.calls for row in result.ops}["nn.projection.linear"] == 10
        trainer = fitted(ProfileOptions(1, 0, None), accumulate=8, steps=4)  # 1 step an epoch
        assert trainer.profiler.is_done
        assert set(trainer.profiler.result.parts) == {"forward", "backward", "update"}


def test_the_time_of_a_step_is_that_of_its_shapes(monkeypatch):
    """The last batch of an epoch is smaller, and its step is shorter."""
    with use_backend("numpy"):
        seconds = {4: 5.0, 1: 1.0}
        clock = itertools.count()
        trainer = Trainer(model_of(), progress=False, profile=ProfileOptions(3, 0, None))
        runner, now = trainer._runner, [0.0]
        monkeypatch.setattr(profiling.time, "perf_counter", lambda: now[0] + 1e-9 * next(clock))

        class Slow:
            def __getattr__(self, name):
                return getattr(runner, name)

            def __call__(self, batch):
                now[0] += seconds[len(batch[0])]
                return runner(batch)

        trainer._runner = Slow()
        tokens = data()[0][:5]
        trainer.fit((tokens, tokens), steps=trainer.profiler.options.total, batch_size=4)
    # steps 4 to 6 are profiled: 4, 1 and 4 examples
    assert trainer.profiler.result.plain == pytest.approx(11 / 3, rel=1e-3)


def test_gaps_between_steps_are_those_between_batches_together(monkeypatch):
    with use_backend("numpy"):
        clock = itertools.count()
        monkeypatch.setattr(profiling.time, "perf_counter", lambda: float(next(clock)))
        plain = fitted(ProfileOptions(2, 1, None), steps=6).profiler.result
        twice = fitted(ProfileOptions(2, 1, None), steps=6, accumulate=2).profiler.result
    assert twice.between == pytest.approx(2 * plain.between)


def test_profile_of_a_model_that_has_moved():
    with use_backend("numpy"):
        trainer = Trainer(model_of(), progress=False, profile=ProfileOptions(1, 0, None))
        trainer.model.to_backend("torch")
        trainer.fit(data(), steps=4, batch_size=4)
    result = trainer.profiler.result
    assert result.backend == "torch"
    assert result.flops > 0


def test_functions_of_the_objects_stay():
    """A profile restores what a program has set on the trainer and the optimizer."""
    with use_backend("numpy"):
        trainer = Trainer(model_of(), progress=False, profile=ProfileOptions(1, 0, None))
        steps, losses = [], []
        step, compute_loss = trainer.optimizer.step, trainer.compute_loss
        trainer.optimizer.step = lambda grads: (steps.append(1), step(grads))[1]
        trainer.compute_loss = lambda batch: (losses.append(1), compute_loss(batch))[1]
        trainer.fit(data(), steps=6, batch_size=4)
    assert len(steps) == len(losses) == 6


def test_positions_without_a_target(backend):
    """Profiled steps leave out what other steps leave out, and so does the memory."""
    tokens, targets = data()
    sparse = ops.where(ops.arange(12) == 7, targets, -100)
    results = []
    for wanted in (targets, sparse):
        trainer = Trainer(
            model_of("gru hyena", max_length=12),
            "cross_entropy",
            progress=False,
            compile=False,
            profile=ProfileOptions(1, 0, None),
        )
        trainer.fit((tokens, wanted), steps=4, batch_size=4)
        results.append(trainer.profiler.result)
    whole, part = ({row.name: row for row in result.modules} for result in results)
    assert part["head"].flops == pytest.approx(whole["head"].flops / 12)
    projection = 3 * 2 * 16 * 16 * 4 * 11  # what the mixer leaves out of a step
    name = "backbone.blocks.1"
    assert part[name].flops <= whole[name].flops - projection
    kept = [result.layer_memory.get("head", 0) for result in results]
    assert kept[1] < kept[0] or is_lazy(backend)


def test_memory_of_accumulated_gradients(backend):
    if is_lazy(backend):
        pytest.skip("the order in which lazy arrays are computed and freed varies")
    trainer = fitted(ProfileOptions(1, 0, None), accumulate=2, steps=4)
    batch = tuple(x[:4] for x in data())
    whole = measure(trainer.model, batch, loss="cross_entropy", accumulate=2)
    assert trainer.profiler.result.memory["peak"] == pytest.approx(whole.peak, rel=0.1)


def test_profiles_of_torch_are_silent(capfd):
    """Its record of allocations warns of memory that was allocated before, at this step."""
    with use_backend("torch"):
        fitted(ProfileOptions(1, 10, None), steps=14, metrics=["accuracy"], train_metrics=True)
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("backend")
def test_training_that_ends_early(tmp_path):
    trainer = Trainer(
        model_of(),
        "cross_entropy",
        progress=False,
        profile=ProfileOptions(4, 1, tmp_path / "p"),
    )
    match = "ended after 3 steps, before a step was profiled"
    with pytest.warns(UserWarning, match=match) as record:
        trainer.fit(data(), steps=3, batch_size=4)
    assert record[0].filename == __file__
    with pytest.raises(ArgumentError, match="complete after 11 steps; 3 have run"):
        _ = trainer.profiler.result
    trainer.fit(data(), steps=5, batch_size=4)
    assert trainer.profiler.result.steps == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer.fit(data(), steps=4, batch_size=4)
    assert trainer.profiler.is_done


def test_errors_are_not_hidden_by_a_warning():
    class Stop(Callback):
        def on_step_end(self, trainer, record):
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fitted(ProfileOptions(1, 1, None), callbacks=[Stop()])


def test_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fitted(True, steps=15).profiler.is_done
    assert sorted(os.listdir("profile")) == NAMES
    assert fitted("other", steps=15).profiler.options.folder.name == "other"
    for value, error, match in (
        (3, ArgumentTypeError, "must be True, a folder or ProfileOptions"),
        (["x"], ArgumentTypeError, "must be True, a folder"),
    ):
        with pytest.raises(error, match=match):
            fitted(value)
    for options, match in (
        ({"steps": 0}, "steps must be at least 1"),
        ({"warmup": -1}, "warmup must be at least 0"),
        ({"steps": 1.5}, "steps"),
        ({"out": 3}, "out must be a folder or None"),
        ({"memory": "no"}, "memory must be True or False, not 'no'"),
        ({"overwrite": None}, "overwrite must be True or False"),
    ):
        with pytest.raises((ArgumentError, ArgumentTypeError), match=match):
            ProfileOptions(**options)


def test_files_of_others_stay(tmp_path):
    for name in NAMES:
        folder = tmp_path / name.partition(".")[0] / name[-1]
        folder.mkdir(parents=True)
        (folder / name).write_text("mine")
        with pytest.raises(ArgumentError, match="is not part of a profile"):
            fitted(folder)
        assert (folder / name).read_text() == "mine"
        assert os.listdir(folder) == [name]
    fitted(ProfileOptions(1, 0, folder, overwrite=True))
    assert sorted(os.listdir(folder)) == NAMES
    (folder / "notes.txt").write_text("mine")
    fitted(ProfileOptions(1, 0, folder))  # replaces the earlier profile
    assert (folder / "notes.txt").read_text() == "mine"
    with pytest.raises(ArgumentError, match="is a file; choose a folder"):
        fitted(folder / "notes.txt")
    (tmp_path / "d" / "trace.json").mkdir(parents=True)
    with pytest.raises(ArgumentError, match="is a folder; choose another"):
        fitted(tmp_path / "d")


def test_folders_that_cannot_be_written_are_refused_before_training(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ArgumentError, match=r"file is a file; choose another folder than .*deep"):
        fitted(tmp_path / "file" / "very" / "deep")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(ArgumentError, match="is not writable"):
        fitted(tmp_path / "new" / "folder")
    assert sorted(os.listdir(tmp_path)) == ["file"]
