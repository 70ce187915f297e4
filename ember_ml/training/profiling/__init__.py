"""Profiles: time by module and op, operations, memory and the cost of the dispatch."""

from ember_ml.training.profiling.chrome import trace_events as trace_events
from ember_ml.training.profiling.machine import matrix_rate as matrix_rate
from ember_ml.training.profiling.options import ProfileOptions as ProfileOptions
from ember_ml.training.profiling.page import page as page
from ember_ml.training.profiling.profiler import Profiler as Profiler
from ember_ml.training.profiling.profiler import profile as profile
from ember_ml.training.profiling.result import Profile as Profile
from ember_ml.training.profiling.result import Row as Row
from ember_ml.training.profiling.writing import write_profile as write_profile
