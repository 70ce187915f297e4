"""Decoding: options, sampling, beam search, speculative decoding, and text."""

from ember_ml.nn.models.decoding.options import GenerationOptions as GenerationOptions
from ember_ml.nn.models.decoding.result import Generation as Generation
