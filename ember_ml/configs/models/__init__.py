"""Configs of the models."""

from ember_ml.configs.models.base import AutoEncoderConfig as AutoEncoderConfig
from ember_ml.configs.models.base import ForecasterConfig as ForecasterConfig
from ember_ml.configs.models.base import LanguageModelConfig as LanguageModelConfig
from ember_ml.configs.models.base import SequenceClassifierConfig as SequenceClassifierConfig
from ember_ml.configs.models.base import SequenceRegressorConfig as SequenceRegressorConfig
from ember_ml.configs.models.named import FFTConvModelConfig as FFTConvModelConfig
from ember_ml.configs.models.named import GRUModelConfig as GRUModelConfig
from ember_ml.configs.models.named import HybridModelConfig as HybridModelConfig
from ember_ml.configs.models.named import HyenaModelConfig as HyenaModelConfig
from ember_ml.configs.models.named import LiquidModelConfig as LiquidModelConfig
from ember_ml.configs.models.named import LSTMModelConfig as LSTMModelConfig
from ember_ml.configs.models.named import MambaModelConfig as MambaModelConfig
from ember_ml.configs.models.named import MoEModelConfig as MoEModelConfig
from ember_ml.configs.models.named import RWKVModelConfig as RWKVModelConfig
from ember_ml.configs.models.named import TransformerModelConfig as TransformerModelConfig
