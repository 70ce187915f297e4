"""HTML report of a search."""

from ember_ml.training.tuning.report.page import write_report as write_report
