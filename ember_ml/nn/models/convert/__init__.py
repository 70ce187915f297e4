"""Checkpoints of transformers read as models of Ember, and models written as such checkpoints."""

from ember_ml.nn.models.convert.errors import ConversionError as ConversionError
from ember_ml.nn.models.convert.exporting import export as export
from ember_ml.nn.models.convert.importing import convert as convert
