"""NumPy trains in one process."""

from __future__ import annotations

AXES: tuple[str, ...] = ()
"""Mesh axes that the backend has."""
LAUNCHER: str | None = None
"""Module that starts processes."""
