"""`ember wiring draw` and `ember convert`."""

from __future__ import annotations

import pytest

import ember_ml
from ember_ml.nn import tensor
from ember_ml.nn.models import MambaModel
from ember_ml.nn.wirings import AutoNCP
from tests.unit.cli.commands import ember

GRAPH = """
type: wirings/graph
blocks:
  encoder: {type: layers/dense, in_features: 8, out_features: 16}
  memory: {type: layers/gru, features: 16}
  head: {type: layers/dense, in_features: 16, out_features: 4}
connections: [[input, encoder], [encoder, memory], [memory, head], [encoder, head]]
"""


def test_a_wiring_of_neurons_by_name(tmp_path):
    out = tmp_path / "new" / "ncp.png"
    words = ("wiring", "draw", "auto_ncp", "units=12", "output_size=2", "--inputs", 3)
    output = ember(*words, "--out", out).stdout
    wiring = AutoNCP(12, 2).build(3)
    count = wiring.synapse_count + wiring.sensory_synapse_count
    assert output == f"{out}: AutoNCP, 3 inputs, 12 neurons, {count} synapses\n"
    assert out.read_bytes().startswith(b"\x89PNG")


def test_a_wiring_of_blocks_from_a_file(tmp_path):
    (tmp_path / "graph.yaml").write_text(GRAPH)
    out = tmp_path / "graph.svg"
    words = ("wiring", "draw", tmp_path / "graph.yaml", "merge=concat", "--out", out)
    assert ember(*words).stdout == f"{out}: GraphWiring, 3 blocks\n"
    drawn = out.read_text()
    assert "<svg" in drawn
    assert "<!-- concat -->" in drawn  # matplotlib tells what it draws as shapes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["auto_npc", "units=4"], "no wirings named 'auto_npc'; did you mean 'auto_ncp'"),
        (["auto_ncp", "units=12"], "output_size: is missing"),
        (["auto_ncp", "units=12", "output_size=2", "--out", "x.nope"], "'nope' is not supported"),
        (["none.yaml"], "none.yaml: cannot be read"),
        (["dense.yaml"], "must be one of the wirings, not 'layers/dense'"),
    ],
)
def test_errors(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dense = "type: layers/dense\nin_features: 2\nout_features: 2\n"
    (tmp_path / "dense.yaml").write_text(dense)
    assert message in ember("wiring", "draw", *words, code=2).stderr


def test_to_transformers_and_back(tmp_path, backend):
    model = MambaModel(16, 8, num_layers=1)
    model.save(tmp_path / "model")
    output = ember("convert", tmp_path / "model", tmp_path / "hf", "--export").stdout
    assert f"{model.num_parameters():,} parameters" in output
    ember("convert", tmp_path / "hf", tmp_path / "back")
    tokens = tensor.array([[1, 2, 3]])
    back = ember_ml.load(tmp_path / "back")
    assert back(tokens).tolist() == model(tokens).tolist()


def test_what_cannot_be_converted(tmp_path):
    assert "config.json" in ember("convert", tmp_path, tmp_path / "x", code=2).stderr
    ember_ml.save(ember_ml.nn.models.LanguageModel("gru", 8, 8), tmp_path / "gru")
    result = ember("convert", tmp_path / "gru", tmp_path / "x", "--export", code=2)
    assert "the model cannot be written as 'mamba', the nearest family" in result.stderr
