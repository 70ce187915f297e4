"""Datasets, and a loader that yields batches of tensors."""

from typing import TYPE_CHECKING

from ember_ml._core import namespaces as _namespaces
from ember_ml.data.arrays import ArrayDataset as ArrayDataset
from ember_ml.data.collate import default_collate as default_collate
from ember_ml.data.collate import pad_collate as pad_collate
from ember_ml.data.combined import ConcatDataset as ConcatDataset
from ember_ml.data.combined import Subset as Subset
from ember_ml.data.combined import random_split as random_split
from ember_ml.data.dataset import Dataset as Dataset
from ember_ml.data.dataset import MapDataset as MapDataset
from ember_ml.data.errors import DataFileError as DataFileError
from ember_ml.data.errors import WorkerError as WorkerError
from ember_ml.data.generated import GeneratedDataset as GeneratedDataset
from ember_ml.data.loader import DataLoader as DataLoader
from ember_ml.data.memory_map import MemoryMappedDataset as MemoryMappedDataset
from ember_ml.data.random import random_stream as random_stream
from ember_ml.data.series import SeriesWindows as SeriesWindows
from ember_ml.data.stream import IterableDataset as IterableDataset

if TYPE_CHECKING:
    from ember_ml.data import audio as audio
    from ember_ml.data import augmentation as augmentation
    from ember_ml.data import features as features
    from ember_ml.data import tables as tables
    from ember_ml.data import text as text
    from ember_ml.data import vision as vision

_PACKAGES = ("audio", "augmentation", "features", "tables", "text", "vision")
__getattr__, __dir__ = _namespaces.attach(
    __name__, {name: f"{__name__}.{name}" for name in _PACKAGES}
)
