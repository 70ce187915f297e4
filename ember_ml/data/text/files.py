"""Tokenizers in the files of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

from ember_ml.data.text.calls import TokenizerError
from ember_ml.data.text.tokenizer import FILE, Tokenizer
from ember_ml.data.text.vocabulary import FILE as VOCABULARY_FILE
from ember_ml.data.text.vocabulary import Vocabulary


def read_files(files: Mapping[str, bytes]) -> Tokenizer | Vocabulary:
    """Return the tokenizer or vocabulary of the files that `to_files` returned.

    Args:
        files: File name -> content.

    Raises:
        TokenizerError: If there is no such file, or it is damaged.
        VocabularyError: If the file of a vocabulary is damaged.
    """
    if FILE in files:
        return Tokenizer.from_files(files)
    if VOCABULARY_FILE in files:
        return Vocabulary.from_json(files[VOCABULARY_FILE], VOCABULARY_FILE)
    raise TokenizerError(
        f"there is no {FILE} or {VOCABULARY_FILE} among {', '.join(files) or 'no files'}"
    )
