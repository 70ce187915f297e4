"""MAD: comparison of architectures on small synthetic tasks."""

from ember_ml.mad.architecture import Architecture as Architecture
from ember_ml.mad.architecture import architecture as architecture
from ember_ml.mad.compare import Comparison as Comparison
from ember_ml.mad.compare import compare as compare
from ember_ml.mad.compare import standings as standings
from ember_ml.mad.pool import ProcessPool as ProcessPool
from ember_ml.mad.run import Result as Result
from ember_ml.mad.run import execute as execute
from ember_ml.mad.scales import SCALES as SCALES
from ember_ml.mad.scales import Scale as Scale
from ember_ml.mad.scales import full_name
from ember_ml.mad.scores import cells as cells
from ember_ml.mad.sizes import Size as Size
from ember_ml.mad.sizes import SizesError as SizesError
from ember_ml.mad.sizes import SizesWarning as SizesWarning
from ember_ml.mad.sizes import check_sizes as check_sizes
from ember_ml.mad.sizes import sizes_of as sizes_of
from ember_ml.mad.store import Store as Store
from ember_ml.mad.store import SweepError as SweepError
from ember_ml.mad.sweep import Sweep as Sweep
from ember_ml.mad.tasks import Draws as Draws
from ember_ml.mad.tasks import Task as Task
from ember_ml.registry import build


def task(name: str, **sizes: float | str) -> Task:
    """Build a task.

    Args:
        name: Name of the task, such as "in-context-recall", or its short name, such as "recall".
        sizes: Fields of the task that differ from their defaults.

    Returns:
        The task, a dataset of its training examples.

    Example:
        >>> ember_ml.mad.task("in-context-recall", seq_len=32).vocab_size
        16
    """
    built: Task = build("tasks", {"type": full_name(name), **sizes})
    return built
