"""Serving: continuous batching, and an HTTP server with OpenAI's endpoints.

The server needs the extra `[serve]`; the engine does not.
"""

from ember_ml.serving.engine import Engine as Engine
from ember_ml.serving.errors import DeadlineExceeded as DeadlineExceeded
from ember_ml.serving.errors import EngineError as EngineError
from ember_ml.serving.errors import Overloaded as Overloaded
from ember_ml.serving.errors import PipelineClosed as PipelineClosed
from ember_ml.serving.limits import Limits as Limits
from ember_ml.serving.sequences import Mailbox as Mailbox
from ember_ml.serving.sequences import Sequence as Sequence
