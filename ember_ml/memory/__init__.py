"""Memory of training: rematerialization, estimates, measurements and what would fit."""

from ember_ml.autodiff.transforms.checkpointing import checkpoint as checkpoint
from ember_ml.memory import manager as manager
from ember_ml.memory.advice import Option as Option
from ember_ml.memory.advice import options_that_fit as options_that_fit
from ember_ml.memory.estimation import Estimate as Estimate
from ember_ml.memory.estimation import estimate as estimate
from ember_ml.memory.estimation import measure as measure
from ember_ml.memory.manager import GradientCheckpointing as GradientCheckpointing
from ember_ml.memory.report import MemoryReport as MemoryReport
from ember_ml.memory.sizes import format_bytes as format_bytes
from ember_ml.memory.sizes import parse_bytes as parse_bytes
from ember_ml.nn.models.deferred_logits import DeferredLogits as DeferredLogits
from ember_ml.nn.remat import Remat as Remat
from ember_ml.nn.remat import remat as remat
from ember_ml.training.losses.chunked import chunked_cross_entropy as chunked_cross_entropy
