"""Models: complete networks for language modeling, classification, regression and control."""

from ember_ml.nn.models.autoencoder import AutoEncoder as AutoEncoder
from ember_ml.nn.models.backbone import Backbone as Backbone
from ember_ml.nn.models.base import Model as Model
from ember_ml.nn.models.decoding import Generation as Generation
from ember_ml.nn.models.decoding import GenerationOptions as GenerationOptions
from ember_ml.nn.models.generation import Generator as Generator
from ember_ml.nn.models.heads import Forecaster as Forecaster
from ember_ml.nn.models.heads import SequenceClassifier as SequenceClassifier
from ember_ml.nn.models.heads import SequenceRegressor as SequenceRegressor
from ember_ml.nn.models.language import LanguageModel as LanguageModel
from ember_ml.nn.models.liquid import LiquidModel as LiquidModel
from ember_ml.nn.models.presets import FFTConvModel as FFTConvModel
from ember_ml.nn.models.presets import GRUModel as GRUModel
from ember_ml.nn.models.presets import HybridModel as HybridModel
from ember_ml.nn.models.presets import HyenaModel as HyenaModel
from ember_ml.nn.models.presets import LSTMModel as LSTMModel
from ember_ml.nn.models.presets import MambaModel as MambaModel
from ember_ml.nn.models.presets import MoEModel as MoEModel
from ember_ml.nn.models.presets import RWKVModel as RWKVModel
from ember_ml.nn.models.presets import TransformerModel as TransformerModel
from ember_ml.nn.models.spatial import SeRNN as SeRNN
from ember_ml.nn.models.spatial import SeRSNN as SeRSNN
from ember_ml.nn.models.spatial import SpatialModel as SpatialModel
