"""Asynchronous pipelines: concurrent stages with bounded queues, batches and deadlines."""

from ember_ml.nn.pipeline.asynchronous.async_stage import AsyncStage as AsyncStage
from ember_ml.nn.pipeline.asynchronous.batch import Batch as Batch
from ember_ml.nn.pipeline.asynchronous.callbacks import PipelineCallback as PipelineCallback
from ember_ml.nn.pipeline.asynchronous.errors import DeadlineExceeded as DeadlineExceeded
from ember_ml.nn.pipeline.asynchronous.errors import ItemSkipped as ItemSkipped
from ember_ml.nn.pipeline.asynchronous.errors import Overloaded as Overloaded
from ember_ml.nn.pipeline.asynchronous.errors import PipelineClosed as PipelineClosed
from ember_ml.nn.pipeline.asynchronous.errors import PipelineError as PipelineError
from ember_ml.nn.pipeline.asynchronous.errors import StageError as StageError
from ember_ml.nn.pipeline.asynchronous.errors import StageStuck as StageStuck
from ember_ml.nn.pipeline.asynchronous.errors import StageTimeout as StageTimeout
from ember_ml.nn.pipeline.asynchronous.errors import TooManyFailures as TooManyFailures
from ember_ml.nn.pipeline.asynchronous.items import Failure as Failure
from ember_ml.nn.pipeline.asynchronous.pipeline import AsyncPipeline as AsyncPipeline
from ember_ml.nn.pipeline.asynchronous.stats import StageStats as StageStats
from ember_ml.nn.pipeline.asynchronous.stats import Stats as Stats
from ember_ml.nn.pipeline.asynchronous.streams import MapStream as MapStream
