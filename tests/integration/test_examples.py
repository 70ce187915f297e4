"""The examples run on every backend, and do what they say."""

from __future__ import annotations

import importlib
import itertools
import json
import operator
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import load, nn, ops
from ember_ml.backend import available, use_backend
from ember_ml.data import audio
from ember_ml.nn import tensor
from tests.unit.cli.commands import ember, running

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def _examples_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])


@pytest.fixture
def own_parts(scratch_registry: None) -> Any:
    """The module."""
    import own_parts

    return importlib.reload(own_parts)


def test_the_forms_of_the_own_layer_agree(own_parts: Any, backend: str) -> None:
    layer = own_parts.SignedGate(4)
    x = ops.random.normal((2, 9, 4), seed=3)
    whole, (stepped, state) = layer(x), layer.unroll(x)
    assert ops.allclose(whole, stepped, atol=1e-5)
    assert state.size == 2 * layer.state_size
    mask = np.arange(9) < 6
    padded = layer(x, mask=ops.stack([tensor.array(mask)] * 2))
    assert ops.allclose(padded[:, :6], whole[:, :6], atol=1e-5)
    assert ops.allclose(padded[:, 8], whole[:, 5], atol=1e-5)


def test_the_own_task_asks_for_parity(own_parts: Any) -> None:
    bits, parity = own_parts.Parity(num_train=50).arrays("train")
    odd = [list(itertools.accumulate(row, operator.xor)) for row in bits.tolist()]
    assert parity.tolist() == odd


def test_own_parts_are_compared_by_the_command_line(tmp_path: Path) -> None:
    """Also in the processes that it starts; and a report names what it needs."""
    plugin = ["--plugin", "own_parts.py"]
    words = ["mad", "run", "signed-gate+swiglu", *plugin, "--task", "parity", "--scale", "tiny"]
    words += ["--backend", "numpy", "--out", str(tmp_path / "s")]
    with running(*words, folder=EXAMPLES) as process:
        out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "signed-gate+swiglu on parity" in out
    (result,) = (tmp_path / "s" / "runs").glob("parity.signed-gate-swiglu.*/result.json")
    assert json.loads(result.read_text())["state"] == 2 * 16
    stderr = ember("mad", "report", tmp_path / "s", code=2).stderr
    assert "no tasks named 'parity'" in stderr
    assert "--plugin" in stderr


def is_png(path: Path) -> bool:
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_spiking_digits(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import spiking_digits

    spiking_digits.main(["--quick", "--backend", backend, "--out", str(tmp_path)])
    digits, *intervals = re.findall(r"test accuracy ([\d.]+)%", capsys.readouterr().out)
    assert float(digits) > 60.0  # after 2 epochs
    assert len(intervals) == 3
    assert is_png(tmp_path / "spiking.png")
    spikes, labels = spiking_digits.intervals(50, seed=0)
    times = spikes.argmax(axis=1)
    assert (times[:, 1] - times[:, 0] == 2 * (1 + labels)).all()
    with use_backend(backend):
        assert load(tmp_path / "digits")(tensor.array(spikes_of_one())).shape == (1, 10)


def spikes_of_one() -> Any:
    return np.zeros((1, 12, 64), np.float32)


def test_control(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import control

    control.main(["--quick", "--backend", backend, "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    rows = dict(re.findall(r"^(expert|NCP 0|GRU 0) +([\d.]+) ", printed, re.MULTILINE))
    assert list(rows) == ["expert", "NCP 0", "GRU 0"]
    assert 0.0 < float(rows["NCP 0"]) < 0.1
    circuit, gru = map(int, re.findall(r"(?:NCP|GRU) (\d+)", printed.splitlines()[-1]))
    assert abs(gru - circuit) <= 0.05 * circuit
    assert is_png(tmp_path / "control.png")


def test_the_simulated_car_keeps_the_circle_that_its_steering_makes() -> None:
    import control

    radius = 40.0  # a road without waves is straight: the car leaves it on a circle
    roads = control.Roads(
        np.zeros((3, 1, 6)), np.array([10.0]), np.ones((1, 1)), np.zeros((1, 1, 3))
    )
    angle = np.arctan(control.WHEELBASE / radius)
    car = np.array([[0.0], [0.0], [0.0], [angle]])
    for _ in range(100):
        car = control.move(car, np.array([angle]), roads, np.array([0.01]))
    turned = 10.0 / radius
    expected = [radius * np.sin(turned), radius * (1 - np.cos(turned)), turned, angle]
    assert np.allclose(car[:, 0], expected, rtol=2e-3)


def test_the_expert_comes_back_to_the_lane() -> None:
    import control

    roads = control.make_roads(np.random.default_rng(0), 16, 100)
    path = control.drive(roads, lambda car, *_: control.expert(car, roads), start=1.5)[2]
    assert np.abs(path[0, 1]).max() == 1.5
    assert np.abs(path[50:, 1]).max() < 0.3


def test_characters(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import characters

    characters.main(["--quick", "--backend", backend, "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    samples = re.findall(r"--- temperature (?:0\.5|1\.0)\n(The .{40})", printed, re.DOTALL)
    assert len(samples) == 2
    assert samples[0] != samples[1]
    before, after = re.findall(r"has (\d+) values after 100 characters and (\d+) after", printed)[0]
    assert before == after
    others = [name for name in available() if name != backend]
    assert not others or f"{others[0]}, from the checkpoint: the same" in printed
    assert is_png(tmp_path / "characters.png")
    assert isinstance(nn.models.LanguageModel.load(tmp_path / "model"), nn.models.LanguageModel)


def test_counted_bits_of_a_predictable_text() -> None:
    import characters

    train, test = "ab" * 500, "ab" * 50
    assert characters.counted_bits(train, test, 1, 2) == pytest.approx(1.0, abs=0.01)
    assert characters.counted_bits(train, test, 2, 2) < 0.01


def test_the_chances_of_counted_characters_add_up_to_one() -> None:
    import characters

    train, context, letters = "abracadabra", "ab", "abcdr"
    bits = [characters.counted_bits(train, context + letter, 2, 5) for letter in letters]
    assert sum(2.0**-x for x in bits) == pytest.approx(1.0)


def test_no_paragraph_of_the_reference_is_there_twice() -> None:
    import characters

    parts = [" ".join(part.split()) for part in characters.read().split("\n\n")]
    assert len(parts) > 1000
    assert len(set(parts)) == len(parts)


def test_spoken_digits(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import spoken_digits

    spoken_digits.main(["--quick", "--backend", backend, "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "80 training and 40 test recordings of 10 words" in printed
    rows = re.findall(r"^with(?:out)? augmentation +((?:[\d.]+% *){6})$", printed, re.MULTILINE)
    assert len(rows) == 2
    assert float(re.findall(r"differ by at most (\S+)", printed)[0]) < 1e-4
    assert is_png(tmp_path / "spoken_digits.png")
    samples = audio.read(tmp_path / "test_4" / "7" / "speaker_1000.wav").samples
    scores = load(tmp_path / "model", backend=backend)(samples[None])
    assert scores.shape == (1, 10)


def test_spoken_digits_of_recordings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], on_numpy: None
) -> None:
    import spoken_digits

    time = np.arange(4000) / 16000
    for number in range(10):
        for word, pitch in (("low", 200.0), ("high", 1000.0)):
            tone = 0.5 * np.sin(2 * np.pi * (pitch + number) * time)
            audio.write(tmp_path / "data" / word / f"{number}.wav", tone, 16000)
    words = ["--data", str(tmp_path / "data"), "--quick", "--backend", "numpy"]
    spoken_digits.main([*words, "--out", str(tmp_path / "out")])
    assert "16 training and 4 test recordings of 2 words" in capsys.readouterr().out
    assert is_png(tmp_path / "out" / "spoken_digits.png")


def test_synthesized_words_have_the_pitch_and_formants_of_the_voice() -> None:
    import spoken_digits

    samples = spoken_digits.speak("a" * 6, np.random.default_rng(0), 100.0, 1.0)
    power = np.abs(np.fft.rfft(samples * np.hanning(len(samples)))) ** 2
    frequencies = np.fft.rfftfreq(len(samples), 1 / spoken_digits.RATE)
    formant = frequencies[np.where(frequencies > 400, power, 0).argmax()]
    assert abs(formant - 730) < 120
    hiss = spoken_digits.speak("s" * 6, np.random.default_rng(0), 100.0, 1.0)
    assert (np.diff(np.sign(hiss)) != 0).mean() > 2 * (np.diff(np.sign(samples)) != 0).mean()


def test_images(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import images

    workers = str(int(backend == available()[0]))  # processes cost more than the training
    images.main(["--quick", "--workers", workers, "--backend", backend, "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    rows = re.findall(
        r"^(conv net|patch transformer) +(plain|augmented) .* ([\d.]+)%", printed, re.M
    )
    assert [row[:2] for row in rows] == list(
        itertools.product(["conv net", "patch transformer"], ["plain", "augmented"])
    )
    assert all(0.0 <= float(accuracy) <= 100.0 for *_, accuracy in rows)
    assert is_png(tmp_path / "images.png")


def test_a_quick_conv_net_reads_digits(tmp_path: Path) -> None:
    """More than chance after a few epochs, without worker processes."""
    import argparse

    import images

    images.write_files(tmp_path, 700)
    options = argparse.Namespace(seed=0, workers=0, epochs=5)
    accuracy = images.train("conv net", False, tmp_path, options)[-1]
    assert accuracy > 0.25


def test_text_bpe(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import text_bpe

    text_bpe.main(["--quick", "--backend", backend, "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    bits = dict(re.findall(r"(xz|bzip2|model) ([\d.]+)", printed))
    assert 1.0 < float(bits["xz"]) < float(bits["model"]) < 8.0  # four steps learn little
    assert len(re.findall(r"--- temperature (?:0\.5|1\.0)\nReturn the", printed)) == 2
    assert is_png(tmp_path / "text_bpe.png")


def test_compressed_bits_of_a_known_text() -> None:
    import text_bpe

    text = "".join(map(chr, np.random.default_rng(0).integers(32, 96, 4000)))  # 6 bits each
    assert text_bpe.compressed_bits("", text, text_bpe.lzma.compress) == pytest.approx(6, rel=0.1)
    assert text_bpe.compressed_bits(text, text, text_bpe.lzma.compress) < 0.1


def test_no_held_out_docstring_is_a_training_docstring() -> None:
    import text_bpe

    train, held_out = text_bpe.read(60)
    assert min(len(train), len(held_out)) > 50
    assert not set(train) & set(held_out)


def test_time_series(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import time_series

    time_series.main(["--quick", "--backend", backend, "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    rows = re.findall(r"^(\S.*?) +accuracy ([\d.]+) .* ([\d.]+)$", printed, re.MULTILINE)
    assert [name for name, *_ in rows] == ["features + MLP", "GRU", "Mamba"]
    assert all(0.0 <= float(score) <= 1.0 for _, *scores in rows for score in scores)
    assert is_png(tmp_path / "time_series.png")


def test_features_tell_the_vibrations_apart(tmp_path: Path) -> None:
    import argparse

    import time_series

    options = argparse.Namespace(epochs=5, seed=0, out=tmp_path)
    data, test = time_series.Machines(240, 0), time_series.Machines(80, 1)
    (accuracy,), _ = time_series.train_features(data, [test], options)
    assert accuracy > 0.6  # chance is 0.25


def test_a_loop_of_torch_trains_ember_layers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import inside_torch

    with use_backend("torch"):
        inside_torch.main(4, tmp_path / "layers")
    out = capsys.readouterr().out
    assert re.search(r"step 4: loss \d\.\d+", out)
    assert float(out.split("differ by ")[1]) < 1e-4


def test_spatial_networks(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import spatial_networks

    spatial_networks.main(["--quick", "--backend", backend, "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    for name, gamma in spatial_networks.GAMMAS.items():
        assert f"{name}, gamma=0, 1 seed(s)" in printed
        assert f"{name}, gamma={gamma:g}, 1 seed(s)" in printed
        assert is_png(tmp_path / f"{name.lower()}.png")
    assert len(re.findall(r"accuracy, 90% pruned, one more epoch +[01]\.\d{3}", printed)) == 4


def test_the_mazes_ask_for_the_direction_of_the_goal() -> None:
    import spatial_networks

    x, y = spatial_networks.mazes(200, np.random.default_rng(0))
    shown = x.round().astype(int)
    for steps, direction in zip(shown, y, strict=True):
        goal = int(steps[0, :4].argmax())
        left_or_right = 4 in np.flatnonzero(steps[-1])
        assert direction == (goal % 2 if left_or_right else 2 + goal // 2)
        assert (steps[:20] == steps[0]).all()
        assert not steps[20:30].any()
        assert (steps[30:] == steps[-1]).all()
        assert steps[-1].sum() == 2
