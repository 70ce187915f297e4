"""The examples of docs/cli.md run and print what the page shows."""

from __future__ import annotations

import functools
import re
import shlex
from pathlib import Path

import pytest
import typer

from ember_ml.cli.app import app
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


def command_words(group, before=()):
    """Yield the words of each command, with those of its groups."""
    for name, inner in group.commands.items():
        words = [*before, name]
        if hasattr(inner, "commands"):
            yield from command_words(inner, words)
        else:
            yield words


@functools.cache
def help_texts() -> list[str]:
    commands = [[], *command_words(typer.main.get_command(app))]
    return [ember(*words, "--help").stdout for words in commands]


@pytest.mark.parametrize("word", sorted(set(re.findall(r"`(--[a-z-]+)[ `]", PAGE))))
def test_options_of_the_page_are_there(word):
    assert any(word in text for text in help_texts())
