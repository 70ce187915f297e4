"""Special tokens of a tokenizer, by role."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ember_ml._core.errors import ArgumentError
from ember_ml._core.files import read_regular
from ember_ml.data.errors import DataFileError

MAP = "special_tokens_map.json"
"""Name of the file with the special tokens, next to that of the tokenizer."""
_MAPS = (MAP, "tokenizer_config.json")
ROLES = ("pad", "bos", "eos", "unk")
DEFAULTS = {"pad": "<pad>", "bos": "<bos>", "eos": "<eos>", "unk": "<unk>"}
_NAMES = {
    "pad": ("<pad>", "[PAD]", "<|pad|>", "<|padding|>"),
    "bos": ("<bos>", "<s>", "[BOS]", "<|begin_of_text|>", "<|startoftext|>", "[CLS]"),
    "eos": ("<eos>", "</s>", "[EOS]", "<|end_of_text|>", "<|endoftext|>", "<|im_end|>", "[SEP]"),
    "unk": ("<unk>", "[UNK]"),
}
"""Usual names of special tokens, the preferred ones first."""


def check(where: str, tokens: Mapping[str, str]) -> dict[str, str]:
    """Return special tokens by role; raise an error for unknown roles and empty tokens.

    Args:
        where: Name of the function in errors.
        tokens: Role -> token.
    """
    for role, token in tokens.items():
        if role not in ROLES:
            raise ArgumentError(
                f"{where}: special_tokens has the role {role!r}; the roles are {', '.join(ROLES)}"
            )
        if not isinstance(token, str) or not token:
            raise ArgumentError(f"{where}: the {role} token must be a string, not {token!r}")
    return {role: tokens[role] for role in ROLES if role in tokens}


def usual(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the special tokens that have a usual name in the content of a `tokenizer.json`.

    Args:
        data: Parsed content of the file.
    """
    special = {token["content"] for token in data.get("added_tokens") or () if token["special"]}
    tokens = {}
    for role, names in _NAMES.items():
        name = next((name for name in names if name in special), None)
        if name is not None:
            tokens[role] = name
    model = data["model"]
    unk = model.get("unk_token")
    if isinstance(unk, str) and unk in model.get("vocab", ()):
        tokens["unk"] = unk
    return tokens


def parse_map(content: bytes) -> dict[str, str]:
    """Return the special tokens in a `special_tokens_map.json` or `tokenizer_config.json`.

    Args:
        content: Content of the file.

    Raises:
        ValueError: If the content is not a JSON object.
    """
    data = json.loads(content)
    if not isinstance(data, dict):
        raise ValueError("it must hold a JSON object")
    tokens = {}
    for role in ROLES:
        token = data.get(f"{role}_token")
        token = token.get("content") if isinstance(token, dict) else token
        if isinstance(token, str):
            tokens[role] = token
    return tokens


def read_map(folder: Path) -> dict[str, str] | None:
    """Return the special tokens in the files next to a tokenizer; None if there are none.

    Args:
        folder: Folder of the tokenizer.

    Raises:
        DataFileError: If a file is damaged.
    """
    for name in _MAPS:
        try:
            tokens = parse_map(read_regular(folder / name))
        except FileNotFoundError:
            continue
        except (ValueError, RecursionError) as error:
            raise DataFileError(f"{folder / name} is damaged: {error}") from None
        if tokens:
            return tokens
    return None


def to_map(tokens: Mapping[str, str]) -> bytes:
    """Return the content of `special_tokens_map.json`, which transformers reads too.

    Args:
        tokens: Role -> token.
    """
    data = {f"{role}_token": token for role, token in tokens.items()}
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode()
