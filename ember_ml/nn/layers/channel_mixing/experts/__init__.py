"""What a mixture of experts is made of: experts, routers, and what brings the two together."""

from ember_ml.nn.layers.channel_mixing.experts.combining import combine as combine
from ember_ml.nn.layers.channel_mixing.experts.dispatch import Work as Work
from ember_ml.nn.layers.channel_mixing.experts.dispatch import dispatch as dispatch
from ember_ml.nn.layers.channel_mixing.experts.layers import LayerExperts as LayerExperts
from ember_ml.nn.layers.channel_mixing.experts.losses import balance_loss as balance_loss
from ember_ml.nn.layers.channel_mixing.experts.losses import z_loss as z_loss
from ember_ml.nn.layers.channel_mixing.experts.routers import ROUTERS as ROUTERS
from ember_ml.nn.layers.channel_mixing.experts.routers import (
    ExpertChoiceRouter as ExpertChoiceRouter,
)
from ember_ml.nn.layers.channel_mixing.experts.routers import NoisyRouter as NoisyRouter
from ember_ml.nn.layers.channel_mixing.experts.routers import Router as Router
from ember_ml.nn.layers.channel_mixing.experts.routers import SigmoidRouter as SigmoidRouter
from ember_ml.nn.layers.channel_mixing.experts.routers import SoftmaxRouter as SoftmaxRouter
from ember_ml.nn.layers.channel_mixing.experts.routers import TopPRouter as TopPRouter
from ember_ml.nn.layers.channel_mixing.experts.routing import Routing as Routing
from ember_ml.nn.layers.channel_mixing.experts.stacked import GatedExperts as GatedExperts
from ember_ml.nn.layers.channel_mixing.experts.stacked import LinearExperts as LinearExperts
from ember_ml.nn.layers.channel_mixing.experts.stacked import MLPExperts as MLPExperts
