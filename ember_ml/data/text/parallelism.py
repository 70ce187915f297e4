"""Threads of Hugging Face tokenizers in processes that fork or are workers.

The threads do not survive a fork. Without a setting, the library prints a warning in each child
that is forked after its threads were used.
"""

from __future__ import annotations

import multiprocessing
import os

VARIABLE = "TOKENIZERS_PARALLELISM"


def disable_in_workers() -> None:
    """Use one thread in worker processes, which share the cores; a setting of the user wins."""
    if multiprocessing.parent_process() is not None:
        os.environ.setdefault(VARIABLE, "false")


class _ForkSetting:
    """Setting of forked processes: one thread, without a warning."""

    def __init__(self) -> None:
        self.is_own = False

    def before(self) -> None:
        """Set the variable, which the child inherits."""
        self.is_own = VARIABLE not in os.environ
        if self.is_own:
            os.environ[VARIABLE] = "false"

    def after_in_parent(self) -> None:
        """Remove the variable again."""
        if self.is_own:
            os.environ.pop(VARIABLE, None)


_setting = _ForkSetting()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_setting.before, after_in_parent=_setting.after_in_parent)
