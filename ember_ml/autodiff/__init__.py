"""Gradients on every backend: gradient tapes and function transforms."""

from typing import TYPE_CHECKING

from ember_ml._core import namespaces as _namespaces
from ember_ml.autodiff import missing_gradients as missing_gradients
from ember_ml.autodiff.tape import GradientTape as GradientTape
from ember_ml.autodiff.transforms.batching import vmap as vmap
from ember_ml.autodiff.transforms.checkpointing import checkpoint as checkpoint
from ember_ml.autodiff.transforms.compiling import compile as compile
from ember_ml.autodiff.transforms.custom import custom_gradient as custom_gradient
from ember_ml.autodiff.transforms.gradients import grad as grad
from ember_ml.autodiff.transforms.gradients import value_and_grad as value_and_grad
from ember_ml.autodiff.transforms.jacobians import hessian as hessian
from ember_ml.autodiff.transforms.jacobians import jacobian as jacobian
from ember_ml.autodiff.transforms.products import jvp as jvp
from ember_ml.autodiff.transforms.products import vjp as vjp
from ember_ml.ops.gradients import stop_gradient as stop_gradient

if TYPE_CHECKING:
    from ember_ml.autodiff import causal as causal
    from ember_ml.autodiff.causal import CausalContext as CausalContext
    from ember_ml.autodiff.causal import SpikeEvent as SpikeEvent

__all__ = [
    "CausalContext",
    "GradientTape",
    "SpikeEvent",
    "checkpoint",
    "compile",
    "custom_gradient",
    "grad",
    "hessian",
    "jacobian",
    "jvp",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
]

_CAUSAL = f"{__name__}.causal"  # it needs NumPy
__getattr__, __dir__ = _namespaces.attach(
    __name__, {"causal": _CAUSAL, "CausalContext": _CAUSAL, "SpikeEvent": _CAUSAL}
)
