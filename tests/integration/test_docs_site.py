"""Rendering of the documentation site: equations and definition lists."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("mkdocs", "material", "mkdocstrings", "latex2mathml")
LAYER = "::: ember_ml.nn.layers.sequence_mixing.recurrent.LSTM"
PAGE = f"""# Page

With :math:`x_t` in a sentence, and

.. math:: y = W_3 x

term
:   its definition

{LAYER}
"""


@pytest.fixture(autouse=True)
def _needs_mkdocs() -> None:
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        why = f"the site needs {', '.join(missing)} (make docs installs them)"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)


def build(folder: Path, page: str, without: str = "") -> subprocess.CompletedProcess[str]:
    """Build a site of one page with the settings of the project."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[0]
    (folder / "mkdocs.yml").write_text(settings.replace(without, ""), encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "hooks", folder / "docs" / "hooks")
    (folder / "docs" / "index.md").write_text(page, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet"],
        cwd=folder,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_equations_and_definition_lists_are_rendered(tmp_path: Path) -> None:
    """In pages and in docstrings, without requests to other hosts."""
    out = build(tmp_path, PAGE)
    assert out.returncode == 0, out.stderr
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert page.count('display="block"') == 1 + 2  # of the page, and of the LSTM
    assert page.count('display="inline"') >= 1
    assert "math::" not in page
    assert ":math:" not in page
    assert "<dt>term</dt>" in page
    assert 'src="http' not in page
    assert "<mover" in page or "<msub" in page
    assert not (tmp_path / "site" / "hooks").exists()


@pytest.mark.parametrize(
    ("page", "without", "what"),
    [
        ("term\n:   its definition\n", "  - def_list\n", "a definition list"),
        ("A sentence with :math: no equation.\n", "", "an equation"),
    ],
)
def test_markup_that_is_not_rendered_ends_the_build(
    tmp_path: Path, page: str, without: str, what: str
) -> None:
    out = build(tmp_path, page, without or "no such line")
    assert out.returncode != 0
    assert f"index.md: {what} is not rendered" in out.stderr
