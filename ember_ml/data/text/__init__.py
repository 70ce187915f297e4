"""Text: tokenizers, streams of lines and documents, padding, packing and token files."""

from ember_ml.data.text.calls import TokenizerError as TokenizerError
from ember_ml.data.text.lines import JSONLDataset as JSONLDataset
from ember_ml.data.text.lines import LineDataset as LineDataset
from ember_ml.data.text.packed import PackedTokens as PackedTokens
from ember_ml.data.text.packing import PackedStream as PackedStream
from ember_ml.data.text.packing import pack as pack
from ember_ml.data.text.packing import pad as pad
from ember_ml.data.text.tokenize import Tokenize as Tokenize
from ember_ml.data.text.tokenizer import Encoded as Encoded
from ember_ml.data.text.tokenizer import Tokenizer as Tokenizer
from ember_ml.data.text.vocabulary import Vocabulary as Vocabulary
from ember_ml.data.text.vocabulary import VocabularyError as VocabularyError
from ember_ml.data.text.windows import TokenWindows as TokenWindows
