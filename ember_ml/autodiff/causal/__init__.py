"""The causal context of a tape: which ops and spikes a result came from, and what they caused."""

from ember_ml.autodiff.causal.context import CausalContext as CausalContext
from ember_ml.autodiff.causal.events import Event as Event
from ember_ml.autodiff.causal.spikes import SpikeEvent as SpikeEvent
from ember_ml.autodiff.causal.spikes import report_spikes as report_spikes
from ember_ml.autodiff.causal.spikes import watch_drive as watch_drive
