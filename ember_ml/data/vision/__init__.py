"""Images: files, transforms with boxes and masks, and datasets of image files.

Images are arrays (height, width, channels), uint8 as read. Files and resizing need the package
Pillow, which is imported when it is first used.
"""

from ember_ml.data.vision.color import ColorJitter as ColorJitter
from ember_ml.data.vision.color import Normalize as Normalize
from ember_ml.data.vision.color import ToFloat as ToFloat
from ember_ml.data.vision.cropping import CenterCrop as CenterCrop
from ember_ml.data.vision.cropping import Pad as Pad
from ember_ml.data.vision.cropping import RandomCrop as RandomCrop
from ember_ml.data.vision.cropping import RandomFlip as RandomFlip
from ember_ml.data.vision.files import ImageInfo as ImageInfo
from ember_ml.data.vision.files import info as info
from ember_ml.data.vision.files import read as read
from ember_ml.data.vision.files import write as write
from ember_ml.data.vision.folder import ImageFiles as ImageFiles
from ember_ml.data.vision.folder import ImageFolder as ImageFolder
from ember_ml.data.vision.patching import Patches as Patches
from ember_ml.data.vision.patching import patches as patches
from ember_ml.data.vision.resizing import RandomResizedCrop as RandomResizedCrop
from ember_ml.data.vision.resizing import Resize as Resize
from ember_ml.data.vision.resizing import resize as resize
from ember_ml.data.vision.scenes import Scene as Scene
from ember_ml.data.vision.transforms import Compose as Compose
from ember_ml.data.vision.transforms import Transform as Transform
from ember_ml.data.vision.transforms import Transformed as Transformed
