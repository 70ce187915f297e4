"""Sweeps: many independent jobs in processes of this machine or on a Ray cluster."""

from ember_ml.training.sweeps.cluster import ClusterError as ClusterError
from ember_ml.training.sweeps.cluster import RayRunner as RayRunner
from ember_ml.training.sweeps.jobs import Event as Event
from ember_ml.training.sweeps.jobs import Job as Job
from ember_ml.training.sweeps.jobs import Report as Report
from ember_ml.training.sweeps.jobs import Runner as Runner
from ember_ml.training.sweeps.jobs import Source as Source
from ember_ml.training.sweeps.jobs import work_name as work_name
from ember_ml.training.sweeps.processes import ProcessRunner as ProcessRunner
from ember_ml.training.sweeps.processes import num_cores as num_cores
