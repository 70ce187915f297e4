"""Blocks: layers with norms and residual connections."""

from ember_ml.nn.blocks.base import Block as Block
from ember_ml.nn.blocks.hybrid import HybridBlock as HybridBlock
from ember_ml.nn.blocks.hybrid import MoEBlock as MoEBlock
from ember_ml.nn.blocks.hybrid import ParallelMixers as ParallelMixers
from ember_ml.nn.blocks.linear_time import FFTConvBlock as FFTConvBlock
from ember_ml.nn.blocks.linear_time import HyenaBlock as HyenaBlock
from ember_ml.nn.blocks.linear_time import MambaBlock as MambaBlock
from ember_ml.nn.blocks.linear_time import RWKVBlock as RWKVBlock
from ember_ml.nn.blocks.ncp import HiddenBlock as HiddenBlock
from ember_ml.nn.blocks.ncp import InputBlock as InputBlock
from ember_ml.nn.blocks.ncp import OutputBlock as OutputBlock
from ember_ml.nn.blocks.parallel import ParallelBlock as ParallelBlock
from ember_ml.nn.blocks.recurrent import GRUBlock as GRUBlock
from ember_ml.nn.blocks.recurrent import LiquidBlock as LiquidBlock
from ember_ml.nn.blocks.recurrent import LSTMBlock as LSTMBlock
from ember_ml.nn.blocks.residual import ResidualBlock as ResidualBlock
from ember_ml.nn.blocks.transformer import MLPBlock as MLPBlock
from ember_ml.nn.blocks.transformer import TransformerBlock as TransformerBlock
