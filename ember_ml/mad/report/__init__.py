"""Report of a sweep: an HTML page, and the results as JSON and CSV."""

from ember_ml.mad.report.page import write_report as write_report
