"""Shared behavior of all commands: help, options, errors, completion."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import ember_ml
from ember_ml.backend import BACKENDS
from ember_ml.cli import completion, main
from ember_ml.cli.app import app
from ember_ml.cli.settings import Settings
from ember_ml.registry import get
from tests.unit.cli.commands import ember, ember_json

FRAMEWORKS = {"numpy", "torch", "mlx", "jax", "matplotlib"}


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["mad", "run", "-h"]])
def test_help_loads_no_framework(words):
    code = (
        "import sys\n"
        "from ember_ml.cli import main\n"
        f"sys.argv = ['ember', *{words!r}]\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        f"print('loaded', sorted({FRAMEWORKS!r} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: ember" in done.stdout
    assert done.stdout.endswith("loaded []\n")


def test_the_module_is_the_command(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ember", "--version"])
    with pytest.raises(SystemExit):
        main()
    output = capsys.readouterr().out
    done = subprocess.run(
        [sys.executable, "-m", "ember_ml", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == output == f"ember {ember_ml.__version__}\n"


def test_an_error_is_a_line():
    result = ember("layers", "atention", code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("error: no layers named 'atention'; did you mean 'attention'")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("words", [["--debug", "layers", "nope"], ["layers", "nope", "--debug"]])
def test_debug_shows_where_it_comes_from(words):
    result = ember(*words, code=2)
    assert "Traceback" in result.stderr
    assert "registry/base.py" in result.stderr


def test_a_file_that_is_missing_is_named(tmp_path):
    result = ember("mad", "report", tmp_path / "nowhere", code=2)
    assert str(tmp_path / "nowhere") in result.stderr
    assert result.stderr.startswith("error: ")


def test_an_unknown_command_is_refused():
    result = CliRunner().invoke(app, ["laiers"])
    assert result.exit_code == 2
    assert "laiers" in result.stderr


@pytest.mark.parametrize("name", list(BACKENDS))
def test_the_backend_before_and_after_the_command(name, backend):
    for words in (["--backend", name, "backends"], ["backends", "--backend", name]):
        found = ember_json(*words)
        assert [each["name"] for each in found["backends"] if each["active"]] == [name]
        assert found["reason"] == "--backend"
    assert ember_ml.get_backend() == backend


def test_options_after_the_command_take_precedence():
    found = ember_json("--backend", "numpy", "backends", "--backend", "torch")
    assert [each["name"] for each in found["backends"] if each["active"]] == ["torch"]
    before, after = (
        Settings("torch", "cpu", 3, plugin=["a"]),
        Settings("numpy", seed=0, plugin=["b"]),
    )
    assert after.over(before) == Settings("numpy", "cpu", 0, plugin=("a", "b"))


def test_an_unknown_backend_or_device():
    assert "did you mean 'torch'?" in ember("backends", "--backend", "tourch", code=2).stderr
    result = ember("backends", "--backend", "numpy", "--device", "tpu", code=2)
    assert "no device 'tpu'" in result.stderr


def test_a_closed_pipe_is_not_an_error():
    one = subprocess.Popen(
        [sys.executable, "-m", "ember_ml", "layers", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    one.stdout.close()  # before it has written anything
    assert "Traceback" not in one.stderr.read()
    one.stderr.close()
    one.wait()


def test_completion():
    assert completion.backends("m") == ["mlx"]
    assert "cpu" in completion.devices("")
    assert [name for name, _ in completion.scales("mi")] == ["mini"]
    tasks = dict(completion.components("tasks")("in-"))
    assert tasks == {"in-context-recall": get("tasks/recall").summary}
    assert "attention+swiglu" in dict(completion.patterns("attention+swi"))
    assert "(mamba swiglu" in dict(completion.patterns("(mamba swi"))
    assert "ours=hyena" in dict(completion.patterns("ours=hy"))


def test_the_shell_completes_names():
    words = {
        "_EMBER_COMPLETE": "complete_bash",
        "COMP_WORDS": "ember layers swi",
        "COMP_CWORD": "2",
    }
    result = CliRunner().invoke(app, [], env=words, prog_name="ember")
    assert result.stdout.split() == ["swiglu"]
