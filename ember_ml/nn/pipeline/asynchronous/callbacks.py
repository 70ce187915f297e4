"""Callbacks of asynchronous pipelines."""

from __future__ import annotations

from ember_ml.nn.pipeline.asynchronous.items import Outcome


class PipelineCallback:
    """Observer of a pipeline; its methods run on the event loop, so they must not block.

    An error in a callback goes to the exception handler of the event loop and changes nothing else.
    """

    def on_accept(self, index: int) -> None:
        """Observe an accepted item.

        Args:
            index: Position in the source of `map`, or number of the submitted item.
        """

    def on_stage_start(self, stage: str, size: int) -> None:
        """Observe the start of a call.

        Args:
            stage: Name of the stage.
            size: Number of items.
        """

    def on_stage_end(self, stage: str, size: int, seconds: float) -> None:
        """Observe the end of a call.

        Args:
            stage: Name of the stage.
            size: Number of items.
            seconds: Duration.
        """

    def on_outcome(self, index: int, outcome: Outcome, seconds: float) -> None:
        """Observe the outcome of an item.

        Args:
            index: Position in the source of `map`, or number of the submitted item.
            outcome: What became of the item.
            seconds: Time since acceptance.
        """
