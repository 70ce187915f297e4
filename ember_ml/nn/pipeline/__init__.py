"""Pipelines: stages that process data one after the other."""

from typing import TYPE_CHECKING

from ember_ml._core import namespaces as _namespaces

if TYPE_CHECKING:
    from ember_ml.nn.pipeline.asynchronous import AsyncPipeline as AsyncPipeline
    from ember_ml.nn.pipeline.asynchronous import AsyncStage as AsyncStage
    from ember_ml.nn.pipeline.asynchronous import Batch as Batch
    from ember_ml.nn.pipeline.asynchronous import DeadlineExceeded as DeadlineExceeded
    from ember_ml.nn.pipeline.asynchronous import Failure as Failure
    from ember_ml.nn.pipeline.asynchronous import ItemSkipped as ItemSkipped
    from ember_ml.nn.pipeline.asynchronous import Overloaded as Overloaded
    from ember_ml.nn.pipeline.asynchronous import PipelineCallback as PipelineCallback
    from ember_ml.nn.pipeline.asynchronous import PipelineClosed as PipelineClosed
    from ember_ml.nn.pipeline.asynchronous import PipelineError as PipelineError
    from ember_ml.nn.pipeline.asynchronous import StageError as StageError
    from ember_ml.nn.pipeline.asynchronous import StageStuck as StageStuck
    from ember_ml.nn.pipeline.asynchronous import StageTimeout as StageTimeout
    from ember_ml.nn.pipeline.asynchronous import TooManyFailures as TooManyFailures
    from ember_ml.nn.pipeline.base import Pipeline as Pipeline
    from ember_ml.nn.pipeline.decoding import ClassLabels as ClassLabels
    from ember_ml.nn.pipeline.decoding import Inverse as Inverse
    from ember_ml.nn.pipeline.feature import AudioFeaturePipeline as AudioFeaturePipeline
    from ember_ml.nn.pipeline.feature import FeaturePipeline as FeaturePipeline
    from ember_ml.nn.pipeline.feature import TextFeaturePipeline as TextFeaturePipeline
    from ember_ml.nn.pipeline.feature.audio import FrameStatistics as FrameStatistics
    from ember_ml.nn.pipeline.feature.text import TokenCounts as TokenCounts
    from ember_ml.nn.pipeline.inference import InferencePipeline as InferencePipeline

_ASYNCHRONOUS = (
    *("AsyncPipeline", "AsyncStage", "Batch", "DeadlineExceeded", "Failure", "ItemSkipped"),
    *("Overloaded", "PipelineCallback", "PipelineClosed", "PipelineError", "StageError"),
    *("StageStuck", "StageTimeout", "TooManyFailures"),
)
_FEATURE = ("AudioFeaturePipeline", "FeaturePipeline", "TextFeaturePipeline")
_NAMES: dict[str, str] = {
    **dict.fromkeys(_ASYNCHRONOUS, f"{__name__}.asynchronous"),
    **dict.fromkeys(_FEATURE, f"{__name__}.feature"),
    "ClassLabels": f"{__name__}.decoding",
    "FrameStatistics": f"{__name__}.feature.audio",
    "InferencePipeline": f"{__name__}.inference",
    "Inverse": f"{__name__}.decoding",
    "Pipeline": f"{__name__}.base",
    "SelfTrainingPipeline": "ember_ml.training.pipelines",
    "TokenCounts": f"{__name__}.feature.text",
    "TrainingPipeline": "ember_ml.training.pipelines",
}
__getattr__, __dir__ = _namespaces.attach(__name__, _NAMES)
