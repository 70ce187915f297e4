"""Random transforms of inputs for training: vectors, images and sequences."""

from ember_ml.data.augmentation.base import Augmentation, Compose
from ember_ml.data.augmentation.images import Erase, Shift
from ember_ml.data.augmentation.sequences import Crop, TimeMask, TimeShift
from ember_ml.data.augmentation.values import Drop, Jitter, Scale
from ember_ml.data.augmentation.views import Views

__all__ = [
    "Augmentation",
    "Compose",
    "Crop",
    "Drop",
    "Erase",
    "Jitter",
    "Scale",
    "Shift",
    "TimeMask",
    "TimeShift",
    "Views",
]
