"""Conversion of models from and to checkpoints of Hugging Face transformers."""

from ember_ml.nn.models.convert.errors import ConversionError as ConversionError
from ember_ml.nn.models.convert.exporting import export as export
from ember_ml.nn.models.convert.importing import convert as convert
from ember_ml.nn.models.convert.table import FAMILIES as FAMILIES
