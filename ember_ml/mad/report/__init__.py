"""The report of a sweep: one page to look at, and its numbers as JSON and CSV."""

from ember_ml.mad.report.write import write_report as write_report
