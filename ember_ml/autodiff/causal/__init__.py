"""The causal context of a tape: which ops a tensor came from, and which followed from it."""

from ember_ml.autodiff.causal.context import CausalContext as CausalContext
from ember_ml.autodiff.causal.events import Event as Event
