"""Training of Ember modules by the pipelines of torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from ember_ml._core.tensor import Tensor, wrap
from ember_ml.backend.torch import DTYPES
from ember_ml.backend.torch.distributed import Topology
from ember_ml.interop._torch_calls import BACKEND
from ember_ml.interop.torch_parallel import TorchParallel, reshard
from ember_ml.nn.auxiliary_losses import ReportedLosses, reported_losses

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
Description = tuple[Sequence[int], str]
"""Shape and dtype of a tensor between two stages."""


class Losses(Protocol):
    """The losses of a stage."""

    def reported(self, losses: ReportedLosses, number: int) -> Tensor | None:
        """Return the value to differentiate for losses that the layers of the stage report.

        Args:
            losses: The losses.
            number: Number of the microbatch.

        Returns:
            The value; None if that of `final` contains it.
        """

    def final(self, output: Tensor, number: int) -> Tensor:
        """Return the value to differentiate for an output of the last stage.

        Args:
            output: The output.
            number: Number of the microbatch.
        """


class TorchPipeline:
    """One stage of a pipeline.

    Args:
        modules: The stage.
        topology: The groups of the processes.
    """

    def __init__(self, modules: TorchParallel, topology: Topology) -> None:
        self.modules = modules
        self._topology = topology
        self._schedules: dict[Any, tuple[_Stage, Any]] = {}
        self._losses: Losses | None = None

    def step(
        self,
        inputs: Tensor,
        options: Mapping[str, Tensor],
        losses: Losses,
        microbatches: int,
        schedule: str,
        ends: tuple[Description, Description],
        synchronize: bool,
    ) -> None:
        """Run a batch through all stages and back, which adds to the gradients of the parameters.

        Args:
            inputs: Input of the model, used by the first stage.
            options: Keyword arguments of each stage.
            losses: What to differentiate.
            microbatches: Number of parts of the batch.
            schedule: Order of the passes: "gpipe" or "1f1b".
            ends: Shape and dtype of a part before and after this stage.
            synchronize: Whether the gradients are averaged over the processes that share batches,
                with those of earlier batches that were not.
        """
        group = self._topology.groups["pp"]
        key = (microbatches, schedule, repr(ends))
        if key not in self._schedules:
            self._schedules[key] = self._build(microbatches, schedule, ends)
        stage, passes = self._schedules[key]
        self._losses = stage.losses = losses
        stage.synchronizes = synchronize
        natives = {name: x.native for name, x in options.items()}
        arguments = (inputs.native,) if group.rank == 0 else ()
        numbers = torch.arange(microbatches) if group.rank == group.size - 1 else None
        with torch.enable_grad(), self.modules.training(), self.modules.recomputing():
            passes.step(*arguments, target=numbers, losses=[], return_outputs=False, **natives)

    def _build(
        self, microbatches: int, schedule: str, ends: tuple[Description, Description]
    ) -> tuple[_Stage, Any]:
        group, device = self._topology.groups["pp"], self._topology.device
        before, after = [_example(*end) for end in ends]
        if group.rank == 0:
            before = before.detach()
        stage = _Stage(
            self.modules.wrapped,
            group.rank,
            group.size,
            device,
            input_args=before,
            output_args=after,
            group=group.handle,
        )
        passes = SCHEDULES[schedule](
            stage, microbatches, loss_fn=self._loss_of_part, scale_grads=False
        )
        return stage, passes

    def _loss_of_part(self, output: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
        assert self._losses is not None, "step has set it"
        return self._losses.final(wrap(output, BACKEND), int(number)).native


class _Stage(PipelineStage):  # type: ignore[misc]
    """Stage of a pipeline whose layers may report losses.

    It averages gradients over processes after the last batch of a step only.
    """

    losses: Losses | None = None
    synchronizes = True
    _number = 0

    def forward_one_chunk(self, fwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the stage for a microbatch."""
        self._number = fwd_chunk_id
        return super().forward_one_chunk(fwd_chunk_id, *args, **kwargs)

    def forward_maybe_with_nosync(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the module; its gradient has that of the reported losses."""
        with reported_losses() as reported:
            output = super().forward_maybe_with_nosync(*args, **kwargs)
        if not reported or self.losses is None:
            return output
        value = self.losses.reported(reported, self._number)
        return output if value is None else _WithLoss.apply(output, value.native)

    def backward_maybe_with_nosync(
        self, backward_type: str, bwd_kwargs: dict[str, Any], last_backward: bool = False
    ) -> Any:
        """Compute the gradients of a microbatch."""
        is_last = last_backward and self.synchronizes
        return super().backward_maybe_with_nosync(backward_type, bwd_kwargs, is_last)

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        """Let FSDP2 average the gradients; without synchronization, free gathered parameters."""
        if self.synchronizes:
            super().perform_reduce_grad(grad_scale_factor)
        else:
            reshard(self.submod)


class _WithLoss(torch.autograd.Function):  # type: ignore[misc]
    """The output of a stage; its backward pass also differentiates a loss."""

    @staticmethod
    def forward(ctx: Any, output: torch.Tensor, loss: torch.Tensor) -> torch.Tensor:
        """Return the output."""
        ctx.save_for_backward(loss)
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients of the output and of the loss."""
        return gradient, torch.ones_like(ctx.saved_tensors[0])


def _example(shape: Sequence[int], dtype: str) -> torch.Tensor:
    """Return a tensor without memory, which has a gradient if it can."""
    example = torch.empty(tuple(shape), dtype=DTYPES[dtype], device="meta")
    return example.requires_grad_(example.is_floating_point())
