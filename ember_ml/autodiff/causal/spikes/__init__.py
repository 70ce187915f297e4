"""Spiking runs of a causal context: their record, and queries on it."""

from ember_ml.autodiff.causal.spikes.events import Cause as Cause
from ember_ml.autodiff.causal.spikes.events import Causes as Causes
from ember_ml.autodiff.causal.spikes.events import Counterfactual as Counterfactual
from ember_ml.autodiff.causal.spikes.events import Related as Related
from ember_ml.autodiff.causal.spikes.events import SpikeEvent as SpikeEvent
from ember_ml.autodiff.causal.spikes.loss import LossInfluence as LossInfluence
from ember_ml.autodiff.causal.spikes.report import report_spikes as report_spikes
from ember_ml.autodiff.causal.spikes.report import synapse_taps as synapse_taps
from ember_ml.autodiff.causal.spikes.report import watch_drive as watch_drive
