"""The examples of docs/cli.md run and print what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.unit.cli.commands import ember

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, list[str]]]:
    """Return the commands and the output that the page shows for each."""
    found: list[tuple[str, list[str]]] = []
    for line in "".join(BLOCKS).splitlines():
        if line.startswith("$ ember "):
            found.append((line.removeprefix("$ ember "), []))
        elif line != "...":
            found[-1][1].append(line)
    return found


def test_the_page_has_examples():
    assert len(examples()) > 20


def test_examples(tmp_path, monkeypatch):
    for name in ("examples", "LICENSE"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    for text, lines in examples():
        words, _, code = text.partition("  # exit code ")
        result = ember(*shlex.split(words), code=int(code or 0))
        output = (result.stdout + result.stderr).splitlines()
        for line in lines:
            assert line in output, text


@pytest.mark.parametrize("word", sorted(set(re.findall(r"`(--[a-z-]+)[ `]", PAGE))))
def test_options_of_the_page_are_there(word):
    commands = (
        [],
        ["mad", "run"],
        ["mad", "tasks"],
        ["train"],
        ["tune"],
        ["generate"],
        ["serve"],
        ["convert"],
        ["quantize"],
    )
    texts = [ember(*words, "--help").stdout for words in commands]
    assert any(word in text for text in texts)
