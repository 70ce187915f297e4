"""Robustness tests: crashes, damaged files, concurrent writers, random combinations."""
