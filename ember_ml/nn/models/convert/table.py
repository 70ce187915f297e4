"""All families."""

from __future__ import annotations

from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.gemma import GEMMA2, GEMMA3
from ember_ml.nn.models.convert.gpt2 import GPT2
from ember_ml.nn.models.convert.gpt_neox import GPT_NEOX
from ember_ml.nn.models.convert.griffin import RECURRENT_GEMMA
from ember_ml.nn.models.convert.jamba import JAMBA
from ember_ml.nn.models.convert.llama import LLAMA, MISTRAL, OLMO2, PHI3, QWEN2, QWEN3, SMOLLM3
from ember_ml.nn.models.convert.mamba import FALCON_MAMBA, MAMBA, MAMBA2
from ember_ml.nn.models.convert.mixtral import MIXTRAL

FAMILIES: dict[str, Family] = {
    "gpt2": GPT2,
    "llama": LLAMA,
    "mistral": MISTRAL,
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "smollm3": SMOLLM3,
    "olmo2": OLMO2,
    "phi3": PHI3,
    "gemma2": GEMMA2,
    "gemma3_text": GEMMA3,
    "gpt_neox": GPT_NEOX,
    "mixtral": MIXTRAL,
    "mamba": MAMBA,
    "falcon_mamba": FALCON_MAMBA,
    "mamba2": MAMBA2,
    "jamba": JAMBA,
    "recurrent_gemma": RECURRENT_GEMMA,
}
"""model_type of a config.json -> family; the first that fits a model is the default of `export`."""
