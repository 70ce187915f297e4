"""Training of one model by several processes, on one machine or many."""

from ember_ml._core import namespaces as _namespaces
from ember_ml.distributed.environment import Environment as Environment
from ember_ml.distributed.environment import read_environment as read_environment
from ember_ml.distributed.errors import DistributedError as DistributedError
from ember_ml.distributed.launching import launch as launch
from ember_ml.distributed.layout import Layout as Layout
from ember_ml.distributed.mesh import Mesh as Mesh
from ember_ml.distributed.strategy import DataParallelStrategy as DataParallelStrategy
from ember_ml.distributed.strategy import FSDPStrategy as FSDPStrategy
from ember_ml.distributed.strategy import MeshStrategy as MeshStrategy
from ember_ml.distributed.strategy import PipelineStrategy as PipelineStrategy
from ember_ml.distributed.strategy import Strategy as Strategy
from ember_ml.distributed.strategy import TensorParallelStrategy as TensorParallelStrategy
from ember_ml.distributed.world import capabilities as capabilities

__dir__ = _namespaces.without_files(__name__, "strategy")
