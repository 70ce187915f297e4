"""Selection of the backend, and the backends themselves (one folder each)."""

from ember_ml.backend.kernel_table import Kernel as Kernel
from ember_ml.backend.kernel_table import kernels as kernels
from ember_ml.backend.selection import BACKENDS as BACKENDS
from ember_ml.backend.selection import auto_select_backend as auto_select_backend
from ember_ml.backend.selection import available as available
from ember_ml.backend.selection import get_backend as get_backend
from ember_ml.backend.selection import get_backend_module as get_backend_module
from ember_ml.backend.selection import selection_reason as selection_reason
from ember_ml.backend.selection import set_backend as set_backend
from ember_ml.backend.selection import use_backend as use_backend
