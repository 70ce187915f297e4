"""Parts of a mixture of experts: experts, routers, dispatch and auxiliary losses."""

from ember_ml.nn.layers.channel_mixing.experts.dispatch import ExpertOutputs, combine, dispatch
from ember_ml.nn.layers.channel_mixing.experts.expert_modules import (
    GatedExperts,
    LayerExperts,
    LinearExperts,
    MLPExperts,
)
from ember_ml.nn.layers.channel_mixing.experts.routers import (
    ROUTERS,
    ExpertChoiceRouter,
    NoisyRouter,
    Router,
    SigmoidRouter,
    SoftmaxRouter,
    TopPRouter,
)
from ember_ml.nn.layers.channel_mixing.experts.routing import Routing, balance_loss, z_loss

__all__ = [
    "ROUTERS",
    "ExpertChoiceRouter",
    "ExpertOutputs",
    "GatedExperts",
    "LayerExperts",
    "LinearExperts",
    "MLPExperts",
    "NoisyRouter",
    "Router",
    "Routing",
    "SigmoidRouter",
    "SoftmaxRouter",
    "TopPRouter",
    "balance_loss",
    "combine",
    "dispatch",
    "z_loss",
]
