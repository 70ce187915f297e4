"""Audio: files, resampling, augmentation and datasets of recordings.

Samples are float32 arrays, (samples,) if mono and (channels, samples) otherwise. Files need the
package soundfile, resampling the package soxr; both are imported when they are first used.
"""

from ember_ml.data.audio.augmentation import AddNoise as AddNoise
from ember_ml.data.audio.augmentation import Augmentation as Augmentation
from ember_ml.data.audio.augmentation import Compose as Compose
from ember_ml.data.audio.augmentation import Gain as Gain
from ember_ml.data.audio.augmentation import RandomCrop as RandomCrop
from ember_ml.data.audio.augmentation import Speed as Speed
from ember_ml.data.audio.augmentation import TimeShift as TimeShift
from ember_ml.data.audio.blocks import stream as stream
from ember_ml.data.audio.files import Audio as Audio
from ember_ml.data.audio.files import AudioInfo as AudioInfo
from ember_ml.data.audio.files import info as info
from ember_ml.data.audio.files import read as read
from ember_ml.data.audio.files import write as write
from ember_ml.data.audio.folder import AudioFolder as AudioFolder
from ember_ml.data.audio.length import fit_length as fit_length
from ember_ml.data.audio.masking import FrequencyMask as FrequencyMask
from ember_ml.data.audio.masking import SpecAugment as SpecAugment
from ember_ml.data.audio.masking import TimeMask as TimeMask
from ember_ml.data.audio.resampling import Resampler as Resampler
from ember_ml.data.audio.resampling import resample as resample
