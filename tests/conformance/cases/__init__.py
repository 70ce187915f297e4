"""Rows of the conformance table, a file a family."""
