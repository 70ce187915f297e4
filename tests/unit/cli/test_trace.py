"""`ember trace`."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ember_ml
from ember_ml._core import array_files
from ember_ml.nn import layers
from ember_ml.nn.models import LanguageModel
from ember_ml.training import tracing
from tests.unit.cli.commands import ember, ember_json
from tests.unit.training.spiking_model import spike_input, spiking_model, targets


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a saved spiking model, inputs and targets."""
    ember_ml.save(spiking_model(positions=0), tmp_path / "model")
    np.save(tmp_path / "x.npy", spike_input())
    np.save(tmp_path / "y.npy", targets())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def content(path):
    """Return the data of a page."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text.partition('id="results">')[2].partition("</script>")[0])


@pytest.mark.usefixtures("backend")
def test_page(folder):
    result = ember("trace", "model", "--input", "x.npy", "--target", "y.npy", "--row", 1)
    assert result.stdout.startswith("trace.html: 1 ")
    data = content(folder / "trace.html")
    model = ember_ml.load(folder / "model")
    assert [layer["kind"] for layer in data["layers"]] == ["inputs", "RecurrentLIF", "LIF"]
    recorded = tracing.trace(model, ember_ml.nn.tensor.array(spike_input()))
    assert recorded.loss is None
    events = sorted(recorded.context.spikes(batch=1), key=lambda event: event.time)
    inputs = int(spike_input()[1].sum())
    assert len(data["spikes"]) == inputs + len(events)
    for event, causes in zip(events, data["causes"][inputs:], strict=True):
        expected = recorded.context.causes(event, top=24)
        parts = sum(value for _, value in causes["spikes"])
        rest = sum(causes[name] for name in ("others", "external", "resets", "initial"))
        assert parts + rest == pytest.approx(expected.voltage, abs=1e-4)
        assert len(causes["spikes"]) == len(expected)
    output = model(ember_ml.nn.tensor.array(spike_input())).numpy().astype(float)
    logs = output - np.log(np.exp(output).sum(-1, keepdims=True))
    loss = -np.take_along_axis(logs, targets()[..., None], -1).mean()
    assert data["loss"] == pytest.approx(loss, rel=1e-4)
    assert not model._hooks


def test_json(folder):
    data = ember_json("trace", "model", "--input", "x.npy", "--output", "page.html")
    assert data["path"] == "page.html"
    assert data["loss"] is None
    assert set(data["spikes"]) == {"1", "3"}


def test_kinds_of_files(folder):
    x = spike_input()[0]
    np.savez(folder / "x.npz", inputs=x[None], targets=targets()[:1])
    arrays = {"inputs": (x, "float32"), "other": (x, "float32")}
    (folder / "x.safetensors").write_bytes(array_files.serialize(arrays, {}))
    rows = "\n".join(",".join(map(str, row)) for row in x)
    (folder / "x.csv").write_text("a,b,c,d,e,f\n" + rows + "\n")
    (folder / "plain.csv").write_text(rows + "\n")
    np.save(folder / "one.npy", x)
    pages = []
    for name in ("x.npz", "x.safetensors", "x.csv", "plain.csv", "one.npy"):
        ember("trace", "model", "--input", name, "--output", f"{name}.html")
        pages.append(content(folder / f"{name}.html"))
    assert all(page == pages[0] for page in pages)
    ember("trace", "model", "--input", "x.npz", "--target", "x.npz")
    assert content(folder / "trace.html")["loss"] > 0


def test_nothing_else_is_overwritten(folder):
    words = ("trace", "model", "--input", "x.npy", "--output")
    (folder / "notes.html").write_text("mine")
    error = ember(*words, "notes.html", code=2).stderr
    assert "notes.html exists and is not a trace page" in error
    assert (folder / "notes.html").read_text() == "mine"
    assert "is a folder" in ember(*words, "model", code=2).stderr
    ember(*words, "notes.html", "--overwrite")
    ember(*words, "notes.html")  # a trace page is replaced
    ember(*words, "new/folder/page.html")
    assert content(folder / "new/folder/page.html") == content(folder / "notes.html")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--input", "none.npy"], "--input: there is no file none.npy"),
        (["--input", "x.txt"], "--input: x.txt must be a .npy, .npz, .safetensors or .csv file"),
        (["--input", "flat.npy"], "--input: flat.npy has shape (6,); expected (batch, time"),
        (["--input", "empty.npy"], "--input: empty.npy has shape (1, 0, 6); expected"),
        (["--input", "wide.npy"], "does not take the input of shape (1, 5, 7), (batch, time"),
        (["--input", "x.npy", "--row", 2], "--row 2: x.npy has 2 rows, counted from 0"),
        (["--input", "two.npz"], "--input: two.npz has no array 'inputs'; it has a, b"),
        (["--input", "x.npy", "--target", "few.npy"], "has 3 rows, and the input has 2"),
        (["--input", "x.npy", "--target", "short.npy"], "the targets of shape (2, 3) do not fit"),
        (["--input", "bad.npy"], "bad.npy cannot be mapped as an .npy file"),
        (["--input", "x.npy", "--target", "y.npy", "--loss", "none"], "no losses named 'none'"),
        (["--input", "x.npy", "--loss", "mse"], "--loss mse needs targets: pass --target"),
        (["--input", "x.npy", "--target", "nans.npy"], "the loss is nan: check the targets"),
        (["--input", "nan.npy"], "a voltage is NaN"),
    ],
)
def test_errors(folder, words, message):
    np.save(folder / "nan.npy", np.full((2, 25, 6), np.nan, np.float32))
    np.save(folder / "nans.npy", np.full((2, 25, 4), np.nan, np.float32))
    np.save(folder / "flat.npy", np.zeros(6, np.float32))
    np.save(folder / "empty.npy", np.zeros((1, 0, 6), np.float32))
    np.save(folder / "wide.npy", np.zeros((1, 5, 7), np.float32))
    np.save(folder / "few.npy", np.zeros((3, 25), int))
    np.save(folder / "short.npy", np.zeros((2, 3), int))
    np.savez(folder / "two.npz", a=np.zeros(2), b=np.zeros(2))
    for name in ("x.txt", "bad.npy"):
        (folder / name).write_text("no array")
    assert message in ember("trace", "model", *words, code=2).stderr
    assert not (folder / "trace.html").exists()


def test_a_model_without_spikes(folder):
    ember_ml.save(layers.MLP(6, [4], 2), folder / "mlp")
    error = ember("trace", "mlp", "--input", "x.npy", code=2).stderr
    assert "the model MLP has no spiking layers, such as LIF; it has Dense" in error


def test_a_language_model(folder):
    ember_ml.save(LanguageModel("lif swiglu", vocab_size=8, hidden_size=16), folder / "lm")
    tokens = np.random.default_rng(0).integers(0, 8, 12)
    np.savez(folder / "text.npz", inputs=tokens, targets=tokens)
    ember("trace", "lm", "--input", "text.npz", "--target", "text.npz")
    data = content(folder / "trace.html")
    assert [layer["kind"] for layer in data["layers"]] == ["LIF"]
    assert data["loss"] > 0
    assert (
        "expected (batch, time) or (time,)"
        in ember("trace", "lm", "--input", "x.npy", code=2).stderr
    )


def test_integers_are_spikes(folder):
    np.save(folder / "ints.npy", spike_input().astype(np.uint8))
    ember("trace", "model", "--input", "ints.npy", "--output", "ints.html")
    ember("trace", "model", "--input", "x.npy")
    assert content(folder / "ints.html") == content(folder / "trace.html")


def test_inputs_that_are_not_spikes(folder):
    """Real numbers are part of the external drive; spikes of any size are shown."""
    np.save(folder / "real.npy", np.random.default_rng(0).normal(0.5, 0.5, (1, 9, 6)))
    ember("trace", "model", "--input", "real.npy", "--top", 3)
    data = content(folder / "trace.html")
    assert [layer["kind"] for layer in data["layers"]] == ["RecurrentLIF", "LIF"]
    for causes in data["causes"]:
        assert len(causes["spikes"]) <= 3
        names = ("others", "external", "resets", "initial")
        total = sum(value for _, value in causes["spikes"]) + sum(causes[each] for each in names)
        assert total == pytest.approx(causes["voltage"], abs=1e-4)
    np.save(folder / "large.npy", 3.0 * spike_input())
    ember("trace", "model", "--input", "large.npy")
    assert content(folder / "trace.html")["layers"][0]["kind"] == "inputs"


def test_silent_neurons(folder):
    np.save(folder / "quiet.npy", np.zeros((1, 5, 6), np.float32))
    ember("trace", "model", "--input", "quiet.npy")
    assert content(folder / "trace.html")["spikes"] == []
