"""Chat templates."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ember_ml._core.errors import EmberError
from ember_ml._core.files import write_atomically

FILES = ("chat_template.jinja", "tokenizer_config.json")
"""Files with a chat template, as transformers writes them."""


class ChatTemplateError(EmberError, ValueError):
    """Chat template that is damaged, or that refuses the messages."""


class ChatTemplate:
    """Template that converts the messages of a chat to a prompt.

    It is rendered in a sandbox without access to attributes or files.

    Args:
        source: Template in the language of Jinja.
        special_tokens: Values such as `bos_token`, which templates use.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str] | None = None) -> None:
        jinja2 = importlib.import_module("jinja2")
        sandbox = importlib.import_module("jinja2.sandbox")
        environment = sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        self._error = jinja2.TemplateError
        self._tokens = dict(special_tokens or {})
        try:
            self._template = environment.from_string(source)
        except self._error as error:
            raise ChatTemplateError(f"the chat template is not valid: {error}") from None

    def render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the prompt for the next message of the assistant.

        Args:
            messages: Mappings with "role" and "content".
        """
        try:
            return str(
                self._template.render(
                    messages=list(messages), add_generation_prompt=True, **self._tokens
                )
            )
        except (self._error, TypeError, ValueError, KeyError, OverflowError) as error:
            raise ChatTemplateError(f"the chat template failed: {error}") from None

    @classmethod
    def find(cls, folder: Path) -> ChatTemplate | None:
        """Return the template in a folder; None if it has none, or Jinja is not installed.

        Args:
            folder: Folder of a model or tokenizer.
        """
        config = _config(folder)
        source = config.get("chat_template")
        file = folder / FILES[0]
        if file.is_file():
            source = file.read_text(encoding="utf-8")
        if not isinstance(source, str) or importlib.util.find_spec("jinja2") is None:
            return None
        names = [name for name in config if name.endswith("_token")]
        return cls(source, {name: _content(config[name]) for name in names})


def copy_template(source: Path, target: Path) -> None:
    """Copy the files with the chat template of a folder, if it has any.

    Args:
        source: Folder of a model of transformers.
        target: Folder of the converted model.
    """
    for name in FILES:
        if (source / name).is_file():
            write_atomically(target / name, (source / name).read_bytes())


def _refuse(message: str) -> None:
    raise ChatTemplateError(message)


def _config(folder: Path) -> dict[str, Any]:
    file = folder / FILES[1]
    if not file.is_file():
        return {}
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ChatTemplateError(f"{file} is not valid JSON: {error}") from None
    return config if isinstance(config, dict) else {}


def _content(token: object) -> str:
    """Return a special token, which may be a mapping with its content."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""
