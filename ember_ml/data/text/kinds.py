"""Kinds of tokenizers that can be trained: their models, and how texts become words."""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ember_ml._core.errors import ArgumentError
from ember_ml._core.requirements import import_optional
from ember_ml.data.errors import check_integer
from ember_ml.data.text import special_tokens

if TYPE_CHECKING:
    import tokenizers

PURPOSE = "data.text.Tokenizer"


class Settings(NamedTuple):
    """Settings of a training run.

    Attributes:
        vocab_size: Maximum number of tokens, special ones included. None: no limit.
        special_tokens: Special tokens in the order of their ids.
        unk_token: Token of everything unknown. None: there is none.
        lowercase: Whether texts are converted to lower case.
    """

    vocab_size: int | None
    special_tokens: list[str]
    unk_token: str | None
    lowercase: bool


class Kind(NamedTuple):
    """Kind of tokenizer.

    Attributes:
        train: Returns a tokenizer trained on lists of texts.
        has_unknown: Whether the tokenizer needs a token for unknown characters.
        needs_size: Whether `vocab_size` is required.
        least: Number of tokens that it always has in addition to the special ones.
    """

    train: Callable[[Iterator[list[str]], Settings], tokenizers.Tokenizer]
    has_unknown: bool
    needs_size: bool
    least: int


def byte_characters() -> list[str]:
    """Return the printable character that stands for each byte in byte-level tokenizers."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def _byte_bpe(texts: Iterator[list[str]], settings: Settings) -> tokenizers.Tokenizer:
    tk = import_optional("tokenizers", PURPOSE)
    tokenizer = tk.Tokenizer(tk.models.BPE())
    tokenizer.normalizer = _lowercase(settings)
    tokenizer.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tk.decoders.ByteLevel()
    trainer = tk.trainers.BpeTrainer(
        vocab_size=settings.vocab_size,
        special_tokens=settings.special_tokens,
        initial_alphabet=sorted(byte_characters()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _char_bpe(texts: Iterator[list[str]], settings: Settings) -> tokenizers.Tokenizer:
    tk = import_optional("tokenizers", PURPOSE)
    tokenizer = tk.Tokenizer(tk.models.BPE(unk_token=settings.unk_token))
    tokenizer.normalizer = _lowercase(settings)
    tokenizer.pre_tokenizer = tk.pre_tokenizers.Metaspace()
    tokenizer.decoder = tk.decoders.Metaspace()
    trainer = tk.trainers.BpeTrainer(
        vocab_size=settings.vocab_size,
        special_tokens=settings.special_tokens,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _wordpiece(texts: Iterator[list[str]], settings: Settings) -> tokenizers.Tokenizer:
    # The package numbers the first pieces in the random order of a hash table, which changes the
    # result from run to run. A first training run finds them, the second one numbers them in order.
    batches = list(texts)
    first = _train_wordpiece(batches, settings._replace(vocab_size=1), [])
    special = set(settings.special_tokens)
    pieces = sorted(set(first.get_vocab()) - special, key=lambda piece: (len(piece), piece))
    _check_room(len(pieces), settings)
    trained = _train_wordpiece(batches, settings, pieces)
    data = json.loads(trained.to_str())
    data["added_tokens"] = [each for each in data["added_tokens"] if each["content"] in special]
    return type(trained).from_str(json.dumps(data))


def _check_room(pieces: int, settings: Settings) -> None:
    """Raise an ArgumentError if the vocabulary has no room for the characters of the texts."""
    least = pieces + len(settings.special_tokens)
    if settings.vocab_size is not None and settings.vocab_size < least:
        raise ArgumentError(
            f"Tokenizer.train: the characters of the texts need {least} tokens, more than "
            f"vocab_size={settings.vocab_size}; pass a larger vocab_size, or kind='bpe'"
        )


def _train_wordpiece(
    texts: list[list[str]], settings: Settings, pieces: list[str]
) -> tokenizers.Tokenizer:
    """Return a tokenizer whose first tokens are the special ones and the pieces, in this order."""
    tk = import_optional("tokenizers", PURPOSE)
    tokenizer = tk.Tokenizer(tk.models.WordPiece(unk_token=settings.unk_token))
    tokenizer.normalizer = tk.normalizers.BertNormalizer(lowercase=settings.lowercase)
    tokenizer.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tk.decoders.WordPiece()
    trainer = tk.trainers.WordPieceTrainer(
        vocab_size=settings.vocab_size,
        special_tokens=[*settings.special_tokens, *pieces],
        show_progress=False,
    )
    tokenizer.train_from_iterator(iter(texts), trainer)
    return tokenizer


def _byte(texts: Iterator[list[str]], settings: Settings) -> tokenizers.Tokenizer:
    tk = import_optional("tokenizers", PURPOSE)
    vocabulary = {character: byte for byte, character in enumerate(byte_characters())}
    tokenizer = tk.Tokenizer(tk.models.BPE(vocabulary, []))
    tokenizer.normalizer = _lowercase(settings)
    tokenizer.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = tk.decoders.ByteLevel()
    tokenizer.add_special_tokens(settings.special_tokens)
    return tokenizer


def _char(texts: Iterator[list[str]], settings: Settings) -> tokenizers.Tokenizer:
    counts: collections.Counter[str] = collections.Counter()
    for batch in texts:
        counts.update("".join(batch).lower() if settings.lowercase else "".join(batch))
    size = settings.vocab_size
    room = None if size is None else max(0, size - len(settings.special_tokens))
    if room is not None and room < len(counts) and settings.unk_token is None:
        raise ArgumentError(
            f"Tokenizer.train: the texts have {len(counts)} characters, but vocab_size={size} has "
            f"room for {room}; pass an unk token"
        )
    frequent = sorted(counts, key=lambda character: (-counts[character], character))[:room]
    tokenizer = character_tokenizer(
        [*settings.special_tokens, *sorted(frequent)], settings.unk_token
    )
    tokenizer.normalizer = _lowercase(settings)
    tokenizer.add_special_tokens(settings.special_tokens)
    return tokenizer


def character_tokenizer(tokens: Iterable[str], unk_token: str | None) -> tokenizers.Tokenizer:
    """Return a tokenizer whose tokens are characters.

    Args:
        tokens: Characters and special tokens in the order of their ids.
        unk_token: Token of unknown characters. None: they raise an error.
    """
    tk = import_optional("tokenizers", PURPOSE)
    vocabulary = {token: at for at, token in enumerate(tokens)}
    unknown = {} if unk_token is None else {"unk_token": unk_token}
    tokenizer = tk.Tokenizer(tk.models.WordLevel(vocabulary, **unknown))
    tokenizer.pre_tokenizer = tk.pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = tk.decoders.Fuse()
    return tokenizer


def _lowercase(settings: Settings) -> tokenizers.normalizers.Normalizer | None:
    tk = import_optional("tokenizers", PURPOSE)
    return tk.normalizers.Lowercase() if settings.lowercase else None


KINDS = {
    "bpe": Kind(_byte_bpe, has_unknown=False, needs_size=True, least=256),
    "byte_bpe": Kind(_byte_bpe, has_unknown=False, needs_size=True, least=256),
    "char_bpe": Kind(_char_bpe, has_unknown=True, needs_size=True, least=1),
    "wordpiece": Kind(_wordpiece, has_unknown=True, needs_size=True, least=1),
    "byte": Kind(_byte, has_unknown=False, needs_size=False, least=256),
    "char": Kind(_char, has_unknown=True, needs_size=False, least=1),
}
"""Name -> kind; "bpe" is "byte_bpe"."""


def special_tokens_for(kind: str, tokens: Mapping[str, str] | None) -> dict[str, str]:
    """Return the checked special tokens of a tokenizer to train, by role.

    Args:
        kind: Name of the kind.
        tokens: Role -> token. None: the default tokens of the kind.
    """
    has_unknown = KINDS[kind].has_unknown
    if tokens is None:
        defaults = special_tokens.DEFAULTS
        return {role: defaults[role] for role in defaults if role != "unk" or has_unknown}
    checked = special_tokens.check("Tokenizer.train", tokens)
    if has_unknown and kind != "char" and "unk" not in checked:
        raise ArgumentError(
            f"Tokenizer.train: {kind!r} needs a special token for unknown characters: "
            "special_tokens={'unk': '<unk>', ...}"
        )
    return checked


def check_vocab_size(kind: str, vocab_size: int | None, special: int) -> int | None:
    """Return the checked vocabulary size of a tokenizer to train.

    Args:
        kind: Name of the kind.
        vocab_size: Maximum number of tokens, special ones included.
        special: Number of special tokens.
    """
    if vocab_size is not None:
        least = KINDS[kind].least + special
        return check_integer("Tokenizer.train", "vocab_size", vocab_size, least)
    if KINDS[kind].needs_size:
        raise ArgumentError(f"Tokenizer.train: {kind!r} needs a vocab_size")
    return None
