"""Recorded run of a model with spiking layers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ember_ml._core.errors import ArgumentError, EmberError
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff import CausalContext, GradientTape
from ember_ml.autodiff.causal.spikes.loss import LossInfluence
from ember_ml.configs.fields import ComponentLike
from ember_ml.nn.layers.sequence_mixing.spiking import SpikingLayer
from ember_ml.nn.module import Module
from ember_ml.training import losses


@dataclass(frozen=True)
class Trace:
    """Recorded run of a model.

    Attributes:
        model: Name of the model's class.
        context: The recorded ops and spikes.
        kinds: Class of each module, by its path.
        loss: Value of the loss; None without targets.
        influence: Influence of the spikes on the loss; None without targets.
    """

    model: str
    context: CausalContext
    kinds: Mapping[str, str]
    loss: float | None = None
    influence: LossInfluence | None = None


def trace(
    model: Module,
    inputs: Tensor,
    targets: Tensor | None = None,
    loss: ComponentLike | None = None,
) -> Trace:
    """Return the recorded spikes of a model, in inference mode.

    Args:
        model: Model with spiking layers.
        inputs: Batch of inputs.
        targets: Targets, for the influence of each spike on the loss. Default: none.
        loss: Name or config of the loss. Default: cross-entropy for integers, otherwise the mean
            squared error.
    """
    check_spiking(model)
    training = model.training
    model.eval()
    try:
        with GradientTape(causal=True) as tape:
            assert tape.causal is not None
            tape.causal.register_module(model)
            if inputs.dtype.is_floating:
                tape.watch(inputs)  # so that layers with frozen parameters are recorded too
            output = _call(model, inputs)
            value = None if targets is None else _loss(loss, output, targets)
    finally:
        model.train(training)
    kinds = {path: type(each).__name__ for path, each in model.named_modules()}
    result = Trace(type(model).__name__, tape.causal, kinds)
    if value is None:
        return result
    if not math.isfinite(float(value)):
        raise ArgumentError(
            f"the loss is {float(value)}: check the targets for NaN and infinite values"
        )
    return replace(result, loss=float(value), influence=tape.causal.influence_on(value))


def check_spiking(model: Module) -> None:
    """Raise an error if a model has no spiking layers."""
    if not any(isinstance(each, SpikingLayer) for each in model.modules()):
        leaves = [each for each in model.modules() if len(list(each.modules())) == 1]
        has = f"it has {', '.join(dict.fromkeys(type(each).__name__ for each in leaves))}"
        raise ArgumentError(
            f"the model {type(model).__name__} has no spiking layers, such as LIF; {has}"
        )


def _call(model: Module, inputs: Tensor) -> Tensor:
    try:
        output = model(inputs)
    except (EmberError, IndexError) as error:
        raise ArgumentError(
            f"the model {type(model).__name__} does not take the input of shape {inputs.shape}, "
            f"(batch, time, features): {error}"
        ) from error
    if not isinstance(output, Tensor):
        raise ArgumentError(
            f"the model {type(model).__name__} returns {type(output).__name__}, not a tensor"
        )
    return output


def _loss(loss: ComponentLike | None, output: Tensor, targets: Tensor) -> Tensor:
    if loss is None:
        loss = "mse" if targets.dtype.is_floating else "cross_entropy"
    function = losses.get(loss)
    try:
        return function(output, targets)
    except EmberError as error:
        raise ArgumentError(
            f"the targets of shape {targets.shape} do not fit the output of shape {output.shape}: "
            f"{error}"
        ) from error
