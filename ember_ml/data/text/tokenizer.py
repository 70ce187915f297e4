"""Tokenizers on top of Hugging Face `tokenizers`."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.files import read_regular, write_atomically
from ember_ml._core.tensor import TensorLike
from ember_ml.data.conversion import to_host
from ember_ml.data.errors import DataFileError
from ember_ml.data.text import calls, kinds, parallelism, special_tokens
from ember_ml.data.text.calls import TokenizerError
from ember_ml.data.text.sources import Texts, batches, texts_of
from ember_ml.data.text.special_tokens import MAP, read_map
from ember_ml.data.text.vocabulary import Vocabulary
from ember_ml.registry.base import close_matches

if TYPE_CHECKING:
    import tokenizers

FILE = "tokenizer.json"
"""Name of the file of a tokenizer in a folder."""


class Encoded(NamedTuple):
    """Token ids of a text with their positions."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    """Start and end of each token in the text, in characters."""


class Tokenizer:
    """Text tokenizer on top of Hugging Face `tokenizers`.

    Create it with `train` or `load`. It is picklable, and safe in worker processes and after a
    fork. The settings of a `tokenizer.json` for padding and truncation are not used; see `pad` and
    `pack`.

    Args:
        tokenizer: Tokenizer of the package `tokenizers`, which is copied.
        special_tokens: Role ("pad", "bos", "eos", "unk") -> token. Default: special tokens of the
            tokenizer with usual names, such as "<pad>" or "[PAD]".

    Example:
        >>> from ember_ml.data.text import Tokenizer
        >>> tokenizer = Tokenizer.train(["low lower lowest", "new newer newest"], "bpe", 280)
        >>> ids = tokenizer.encode("newest low")
        >>> tokenizer.decode(ids)
        'newest low'
        >>> tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id
        (0, 1, 2)
    """

    def __init__(
        self, tokenizer: tokenizers.Tokenizer, special_tokens: Mapping[str, str] | None = None
    ) -> None:
        self._set(tokenizer.to_str(), special_tokens)

    def _set(self, content: str, tokens: Mapping[str, str] | None) -> None:
        self._tokenizer, data = calls.parse(content)
        self.special_tokens = special_tokens.check(
            "Tokenizer", special_tokens.usual(data) if tokens is None else tokens
        )
        """Role -> special token."""
        for role, token in self.special_tokens.items():
            if self._tokenizer.token_to_id(token) is None:
                raise TokenizerError(f"the {role} token {token!r} is not in the vocabulary")
        self.vocab_size = max(self._tokenizer.get_vocab().values(), default=-1) + 1
        """Number of token ids, special ones included."""
        self.pad_id, self.bos_id, self.eos_id, self.unk_id = map(self._id, special_tokens.ROLES)

    def _id(self, role: str) -> int | None:
        token = self.special_tokens.get(role)
        return None if token is None else self._tokenizer.token_to_id(token)

    @classmethod
    def train(
        cls,
        source: Texts,
        kind: str = "bpe",
        vocab_size: int | None = None,
        *,
        special_tokens: Mapping[str, str] | None = None,
        extra_tokens: Sequence[str] = (),
        lowercase: bool = False,
    ) -> Tokenizer:
        """Return a tokenizer trained on texts; the same texts result in the same tokenizer.

        Args:
            source: Texts, such as a list or a `LineDataset`; or a file, or a list of `Path`s.
            kind: "bpe" (or "byte_bpe": byte-pair encoding of bytes, lossless), "char_bpe"
                (byte-pair encoding of characters), "wordpiece", "byte" (the ids are bytes), or
                "char".
            vocab_size: Maximum number of tokens, special ones included. Optional for "char" and
                "byte".
            special_tokens: Role ("pad", "bos", "eos", "unk") -> token. Default: "<pad>", "<bos>",
                "<eos>" and, for kinds with unknown characters, "<unk>". They have the first ids;
                for "byte", the last ones.
            extra_tokens: Further special tokens.
            lowercase: Whether to convert all texts to lower case.
        """
        if kind not in kinds.KINDS:
            names = ", ".join(kinds.KINDS)
            hint = close_matches(str(kind), kinds.KINDS)
            raise ArgumentError(f"Tokenizer.train: kind must be one of {names}, not {kind!r}{hint}")
        tokens = kinds.special_tokens_for(kind, special_tokens)
        special = list(dict.fromkeys([*tokens.values(), *extra_tokens]))
        settings = kinds.Settings(
            kinds.check_vocab_size(kind, vocab_size, len(special)),
            special,
            tokens.get("unk"),
            lowercase,
        )
        texts = batches(texts_of("Tokenizer.train", source), allow_empty=kind == "byte")
        return cls(kinds.KINDS[kind].train(texts, settings), tokens)

    @classmethod
    def from_vocabulary(cls, vocabulary: Vocabulary) -> Tokenizer:
        """Return the character tokenizer with the ids of a vocabulary.

        Args:
            vocabulary: Characters, such as those of a `vocab.json` of `ember train`.
        """
        return cls(kinds.character_tokenizer(vocabulary.tokens, None))

    @classmethod
    def from_json(
        cls, content: str | bytes, special_tokens: Mapping[str, str] | None = None
    ) -> Tokenizer:
        """Return the tokenizer in the content of a `tokenizer.json`.

        Args:
            content: The content.
            special_tokens: As in the constructor.

        Raises:
            TokenizerError: If the content is damaged.
        """
        tokenizer = cls.__new__(cls)
        try:
            text = content if isinstance(content, str) else content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise TokenizerError(f"not valid UTF-8: {error.reason} at {error.start}") from None
        tokenizer._set(text, special_tokens)
        return tokenizer

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], special_tokens: Mapping[str, str] | None = None
    ) -> Tokenizer:
        """Return the tokenizer in a file or folder.

        Args:
            path: A `tokenizer.json`, a folder with one, or a `vocab.json` of `ember train`.
            special_tokens: Role -> token. Default: those in `special_tokens_map.json` or
                `tokenizer_config.json` next to the file, or tokens with usual names.

        Raises:
            DataFileError: If a file is missing or damaged.
        """
        file = Path(path)
        file = file / FILE if file.is_dir() else file
        if file.name == "vocab.json":
            return cls.from_vocabulary(Vocabulary.read(file))
        try:
            content = read_regular(file)
            if special_tokens is None:
                special_tokens = read_map(file.parent)
            return cls.from_json(content, special_tokens)
        except FileNotFoundError:
            raise DataFileError(f"Tokenizer.load: there is no file {file}") from None
        except (OSError, TokenizerError) as error:
            raise DataFileError(f"{file} is not a tokenizer: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tokenizer to a file or folder, in the format of `tokenizers`.

        Args:
            path: A name that ends in .json, or a folder for `tokenizer.json` and
                `special_tokens_map.json`, which transformers reads too.
        """
        target = Path(path)
        if target.suffix != ".json":
            for name, content in self.to_files().items():
                write_atomically(target / name, content)
            return
        if special_tokens.usual(json.loads(self.to_json())) != self.special_tokens:
            raise ArgumentError(
                f"Tokenizer.save: {target.name} alone does not record which tokens are "
                f"{self.special_tokens}; save to a folder"
            )
        write_atomically(target, self.to_json().encode())

    def to_json(self) -> str:
        """Return the content of `tokenizer.json`."""
        return str(self._tokenizer.to_str(pretty=True)) + "\n"

    def to_files(self) -> dict[str, bytes]:
        """Return the files of the tokenizer, such as for `Module.extra_files`."""
        return {
            FILE: self.to_json().encode(),
            MAP: special_tokens.to_map(self.special_tokens),
        }

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> Tokenizer:
        """Return the tokenizer of the files that `to_files` returned.

        Args:
            files: File name -> content.

        Raises:
            TokenizerError: If a file is missing or damaged.
        """
        if FILE not in files:
            raise TokenizerError(f"there is no {FILE} among {', '.join(files) or 'no files'}")
        try:
            tokens = special_tokens.parse_map(files[MAP]) if MAP in files else None
        except (ValueError, RecursionError) as error:
            raise TokenizerError(f"{MAP} is damaged: {error}") from None
        return cls.from_json(files[FILE], tokens)

    @property
    def checksum(self) -> str:
        """SHA-256 of the content, which identifies the tokenizer."""
        return hashlib.sha256(self._tokenizer.to_str().encode()).hexdigest()

    def __len__(self) -> int:
        return self.vocab_size

    def __repr__(self) -> str:
        tokens = "".join(f", {role}={token!r}" for role, token in self.special_tokens.items())
        return f"Tokenizer({type(self._tokenizer.model).__name__}, {self.vocab_size}{tokens})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return (self.special_tokens, self.to_json()) == (other.special_tokens, other.to_json())

    def __hash__(self) -> int:
        return hash(self.checksum)

    def __getstate__(self) -> dict[str, Any]:
        return {"content": self._tokenizer.to_str(), "tokens": self.special_tokens}

    def __setstate__(self, state: dict[str, Any]) -> None:
        parallelism.disable_in_workers()
        self._set(state["content"], state["tokens"])

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token; None if it is not in the vocabulary.

        Args:
            token: The token, as in the vocabulary.
        """
        return self._tokenizer.token_to_id(token)

    def id_to_token(self, token_id: int) -> str | None:
        """Return the token of an id; None if it is not in the vocabulary.

        Args:
            token_id: The id.
        """
        return self._tokenizer.id_to_token(token_id) if 0 <= token_id < self.vocab_size else None

    @overload
    def encode(
        self, text: str, *, offsets: Literal[False] = False, add_special_tokens: bool = True
    ) -> list[int]: ...
    @overload
    def encode(
        self, text: str, *, offsets: Literal[True], add_special_tokens: bool = True
    ) -> Encoded: ...
    def encode(
        self, text: str, *, offsets: bool = False, add_special_tokens: bool = True
    ) -> list[int] | Encoded:
        """Return the token ids of a text.

        Args:
            text: The text.
            offsets: Whether to return `Encoded`, with the position of each token in the text.
            add_special_tokens: Whether to add the tokens of the post-processor, such as [CLS].
                Trained tokenizers have none.
        """
        if not isinstance(text, str):
            raise ArgumentTypeError(f"Tokenizer.encode: expected a text, not {text!r:.60}")
        if offsets:
            return self.encode_batch([text], offsets=True, add_special_tokens=add_special_tokens)[0]
        return self.encode_batch([text], add_special_tokens=add_special_tokens)[0]

    @overload
    def encode_batch(
        self,
        texts: Sequence[str],
        *,
        offsets: Literal[False] = False,
        add_special_tokens: bool = True,
    ) -> list[list[int]]: ...
    @overload
    def encode_batch(
        self, texts: Sequence[str], *, offsets: Literal[True], add_special_tokens: bool = True
    ) -> list[Encoded]: ...
    def encode_batch(
        self, texts: Sequence[str], *, offsets: bool = False, add_special_tokens: bool = True
    ) -> list[list[int]] | list[Encoded]:
        """Return the token ids of texts, computed in parallel.

        Args:
            texts: The texts.
            offsets: As in `encode`.
            add_special_tokens: As in `encode`.
        """
        if isinstance(texts, str):
            raise ArgumentTypeError("Tokenizer.encode_batch: expected texts, not one text")
        texts = texts if isinstance(texts, list) else list(texts)
        try:
            with calls.own_errors("the text cannot be encoded"):
                if offsets:
                    encodings = self._tokenizer.encode_batch(
                        texts, add_special_tokens=add_special_tokens
                    )
                    return [Encoded(each.ids, each.offsets) for each in encodings]
                fast = self._tokenizer.encode_batch_fast(
                    texts, add_special_tokens=add_special_tokens
                )
                return [each.ids for each in fast]
        except TokenizerError:
            for at, text in enumerate(texts):
                calls.check_text(text, at)
            raise

    def decode(self, ids: Iterable[int] | TensorLike, *, skip_special_tokens: bool = True) -> str:
        """Return the text of token ids; unknown ids become the replacement character.

        Args:
            ids: Token ids: a list, an array or a tensor of one axis.
            skip_special_tokens: Whether to leave out special tokens.
        """
        values = _values(ids)
        known = range(self.vocab_size)
        if not values or (min(values) in known and max(values) in known):
            return self._decode(values, skip_special_tokens)
        parts: list[list[int]] = [[]]
        for value in values:
            parts[-1].append(value) if value in known else parts.append([])
        return "\ufffd".join(self._decode(part, skip_special_tokens) for part in parts)

    def _decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        with calls.own_errors("the ids cannot be decoded"):
            return str(self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens))

    def decode_batch(
        self, batch: Iterable[Iterable[int] | TensorLike], *, skip_special_tokens: bool = True
    ) -> list[str]:
        """Return the texts of several sequences of token ids.

        Args:
            batch: Sequences of ids, or an array or tensor of two axes.
            skip_special_tokens: As in `decode`.
        """
        return [self.decode(ids, skip_special_tokens=skip_special_tokens) for ids in batch]

    def decode_stream(
        self, ids: Iterable[int], *, after: Sequence[int] = (), skip_special_tokens: bool = True
    ) -> Iterator[str]:
        """Yield the text of token ids piece by piece, for generation.

        The pieces concatenated are the text of all ids. A character whose bytes are spread over
        several tokens comes with the last one.

        Args:
            ids: Token ids, such as those that a model samples.
            after: Token ids before them, such as the prompt; their text is not part of the result.
            skip_special_tokens: As in `decode`.
        """
        context = list(after)
        pending: list[int] = []
        piece = ""
        for token in ids:
            pending.append(int(token))
            piece = self._continuation(context, pending, skip_special_tokens)
            if piece and not piece.endswith("\ufffd"):  # which may be an incomplete character
                yield piece
                context, pending, piece = pending, [], ""
        if piece:
            yield piece

    def _continuation(self, context: list[int], ids: list[int], skip_special_tokens: bool) -> str:
        """Return what ids add to the text of the ids before them."""
        before = self.decode(context, skip_special_tokens=skip_special_tokens)
        after = self.decode([*context, *ids], skip_special_tokens=skip_special_tokens)
        return after[len(before) :]


def _values(ids: object) -> list[int]:
    """Return token ids as a list of integers."""
    if not isinstance(ids, list):
        ids = list(ids) if isinstance(ids, (tuple, range, Iterator)) else to_host(ids).tolist()
    if not isinstance(ids, list) or not all(isinstance(value, int) for value in ids):
        raise ArgumentTypeError(
            f"Tokenizer.decode: ids must be integers along one axis, not {ids!r:.60}"
        )
    return ids
