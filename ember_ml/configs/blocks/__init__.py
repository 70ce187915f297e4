"""Configs of the blocks."""

from ember_ml.configs.blocks.base import BlockConfig as BlockConfig
from ember_ml.configs.blocks.base import ResidualConfig as ResidualConfig
from ember_ml.configs.blocks.mixers import FFTConvBlockConfig as FFTConvBlockConfig
from ember_ml.configs.blocks.mixers import GRUBlockConfig as GRUBlockConfig
from ember_ml.configs.blocks.mixers import HybridBlockConfig as HybridBlockConfig
from ember_ml.configs.blocks.mixers import HyenaBlockConfig as HyenaBlockConfig
from ember_ml.configs.blocks.mixers import LiquidBlockConfig as LiquidBlockConfig
from ember_ml.configs.blocks.mixers import LSTMBlockConfig as LSTMBlockConfig
from ember_ml.configs.blocks.mixers import MambaBlockConfig as MambaBlockConfig
from ember_ml.configs.blocks.mixers import MLPBlockConfig as MLPBlockConfig
from ember_ml.configs.blocks.mixers import MoEBlockConfig as MoEBlockConfig
from ember_ml.configs.blocks.mixers import ParallelConfig as ParallelConfig
from ember_ml.configs.blocks.mixers import RWKVBlockConfig as RWKVBlockConfig
from ember_ml.configs.blocks.mixers import TransformerConfig as TransformerConfig
from ember_ml.configs.blocks.ncp import HiddenBlockConfig as HiddenBlockConfig
from ember_ml.configs.blocks.ncp import InputBlockConfig as InputBlockConfig
from ember_ml.configs.blocks.ncp import OutputBlockConfig as OutputBlockConfig
