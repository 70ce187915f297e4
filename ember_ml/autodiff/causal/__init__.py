"""What caused what: the ops of a tape with their places in space, time and cause."""

from ember_ml.autodiff.causal.context import CausalContext as CausalContext
from ember_ml.autodiff.causal.events import Event as Event
