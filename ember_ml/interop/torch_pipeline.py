"""Training of Ember modules by the pipelines of torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from ember_ml._core.tensor import Tensor, wrap
from ember_ml.backend.torch import DTYPES
from ember_ml.backend.torch.distributed import Topology
from ember_ml.interop.torch_modules import BACKEND
from ember_ml.interop.torch_parallel import TorchParallel

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
Description = tuple[Sequence[int], str]
"""Shape and dtype of a tensor between two stages."""


class TorchPipeline:
    """One stage of a pipeline.

    Args:
        modules: The stage.
        topology: The groups of the processes.
    """

    def __init__(self, modules: TorchParallel, topology: Topology) -> None:
        self.modules = modules
        self._topology = topology
        self._schedules: dict[Any, Any] = {}
        self._loss: Callable[[Tensor, int], Tensor] | None = None

    def step(
        self,
        inputs: Tensor,
        options: Mapping[str, Tensor],
        loss: Callable[[Tensor, int], Tensor],
        microbatches: int,
        schedule: str,
        ends: tuple[Description, Description],
    ) -> None:
        """Run a batch through all stages and back, which adds to the gradients of the parameters.

        Args:
            inputs: Input of the model, used by the first stage.
            options: Keyword arguments of each stage.
            loss: Function of an output and the number of its microbatch that returns the value to
                differentiate; the last stage calls it.
            microbatches: Number of parts of the batch.
            schedule: Order of the passes: "gpipe" or "1f1b".
            ends: Shape and dtype of a part before and after this stage.
        """
        group = self._topology.groups["pp"]
        key = (microbatches, schedule, repr(ends))
        if key not in self._schedules:
            self._schedules[key] = self._build(microbatches, schedule, ends)
        self._loss = loss
        natives = {name: x.native for name, x in options.items()}
        arguments = (inputs.native,) if group.rank == 0 else ()
        numbers = torch.arange(microbatches) if group.rank == group.size - 1 else None
        with torch.enable_grad(), self.modules.training(), self.modules.recomputing():
            self._schedules[key].step(
                *arguments, target=numbers, losses=[], return_outputs=False, **natives
            )

    def _build(
        self, microbatches: int, schedule: str, ends: tuple[Description, Description]
    ) -> Any:
        group, device = self._topology.groups["pp"], self._topology.device
        before, after = [_example(*end) for end in ends]
        if group.rank == 0:
            before = before.detach()
        stage = PipelineStage(
            self.modules.wrapped,
            group.rank,
            group.size,
            device,
            input_args=before,
            output_args=after,
            group=group.handle,
        )
        return SCHEDULES[schedule](
            stage, microbatches, loss_fn=self._loss_of_part, scale_grads=False
        )

    def _loss_of_part(self, output: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
        assert self._loss is not None, "step has set it"
        return self._loss(wrap(output, BACKEND), int(number)).native


def _example(shape: Sequence[int], dtype: str) -> torch.Tensor:
    """Return a tensor without memory, which has a gradient if it can."""
    example = torch.empty(tuple(shape), dtype=DTYPES[dtype], device="meta")
    return example.requires_grad_(example.is_floating_point())
