"""HTML page of the spikes of a model and their causes."""

from ember_ml.training.tracing.page import page as page
from ember_ml.training.tracing.page import write_trace as write_trace
from ember_ml.training.tracing.trace import Trace as Trace
from ember_ml.training.tracing.trace import trace as trace
