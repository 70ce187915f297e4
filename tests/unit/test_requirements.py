"""Hints that name the packages to install, and what runs without optional packages."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from ember_ml._core.requirements import REQUIREMENTS, install_command
from ember_ml.backend import BACKENDS

ROOT = Path(__file__).parents[2]


def declared() -> set[str]:
    """Return the requirements of the project and its extras that apply to this platform."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [*project["dependencies"]]
    for name, extra in project["optional-dependencies"].items():
        listed += extra if name not in ("test", "docs") else []
    markers = [line.partition(";") for line in listed]
    return {text.strip() for text, _, marker in markers if not marker or sys.platform in marker}


def test_hints_are_the_requirements_of_the_project() -> None:
    linux_only = set() if sys.platform == "linux" else {REQUIREMENTS["triton"]}
    assert set(REQUIREMENTS.values()) - linux_only <= declared()
    assert {entry.requirement for entry in BACKENDS.values()} <= set(REQUIREMENTS.values())


def test_no_hint_names_an_extra_of_a_published_package() -> None:
    """An extra of "ember-ml" cannot be installed from a clone by that name."""
    files = [*ROOT.glob("ember_ml/**/*.py"), *ROOT.glob("docs/*.md"), ROOT / "README.md"]
    naming = [path for path in files if "ember-ml[" in path.read_text(encoding="utf-8")]
    assert naming == []


WITHOUT = """
import sys
sys.modules["networkx"] = None
import matplotlib
matplotlib.use("Agg")
from ember_ml.nn import wirings
wiring = wirings.AutoNCP(8, 2)
wiring.build(3)
print(len(wiring.draw().texts))
try:
    wiring.to_networkx()
except ImportError as error:
    print(error)
"""


def test_wirings_are_drawn_without_networkx() -> None:
    out = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60
    )
    count, hint = out.stdout.splitlines()
    assert int(count) > 5
    assert hint.endswith(install_command("networkx")), out.stderr


WITHOUT_TEXT = """
import sys
for name in ("tokenizers", "pyarrow", "datasets"):
    sys.modules[name] = None
from pathlib import Path
from typer.testing import CliRunner
from ember_ml.cli.app import app
from ember_ml.data.tables import CSVDataset
from ember_ml.data.text import LineDataset, Tokenizer, pack, pad

Path("text.txt").write_text("some text to learn " * 20)
Path("run.yaml").write_text(
    "model: {type: lm, layers: gru, hidden_size: 8}\\ndata: {text: {path: text.txt, seq_len: 8}}\\n"
)
for words in (["train", "run.yaml"], ["generate", "runs/train", "--prompt", "some"]):
    result = CliRunner().invoke(app, [*words, "--backend", "numpy"])
    assert result.exit_code == 0, result.output
print(len(list(LineDataset("text.txt"))))
for call in (lambda: Tokenizer.train(["a"], "byte"), lambda: CSVDataset("text.txt")):
    try:
        call()
    except ImportError as error:
        print(error)
"""


def test_text_by_characters_needs_no_optional_package(tmp_path: Path) -> None:
    out = subprocess.run(
        [sys.executable, "-c", WITHOUT_TEXT],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert out.returncode == 0, out.stderr
    lines, *hints = out.stdout.splitlines()
    assert lines == "1"
    packages = ("tokenizers", "pyarrow")
    assert all(map(str.endswith, hints, map(install_command, packages))), hints
    assert len(hints) == 2
