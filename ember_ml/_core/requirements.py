"""Optional packages, and the commands that install them."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

REQUIREMENTS = {
    "numpy": "numpy>=2.1",
    "torch": "torch>=2.5",
    "mlx": "mlx[cpu]>=0.30" if sys.platform == "linux" else "mlx>=0.30",
    "networkx": "networkx>=3.2",
    "tensorboard": "tensorboard>=2.18",
    "ray": "ray>=2.40",
    "soundfile": "soundfile>=0.13",
    "soxr": "soxr>=0.5",
    "tokenizers": "tokenizers>=0.21",
    "PIL": "pillow>=11",
    "pyarrow": "pyarrow>=18",
    "datasets": "datasets>=4",
    "optuna": "optuna>=5",
    "starlette": "starlette>=1.0",
    "uvicorn": "uvicorn>=0.35",
    "onnxruntime": "onnxruntime>=1.22",
    "onnxscript": "onnxscript>=0.5",
    "nir": "nir>=1.0.6",
    "triton": "triton>=3.4",
}
"""Import name of a package -> its requirement, as in the extras of the project."""


def install_command(package: str) -> str:
    """Return the command that installs a package.

    It names the package itself rather than an extra of Ember ML, so that it works for every kind
    of installation, such as one from a clone.

    Args:
        package: Import name of the package.

    Example:
        >>> from ember_ml._core.requirements import install_command
        >>> install_command("networkx")
        "pip install 'networkx>=3.2'"
    """
    return f"pip install '{REQUIREMENTS[package]}'"


def import_optional(package: str, purpose: str) -> ModuleType:
    """Return an optional package; an ImportError names the command that installs it.

    Args:
        package: Import name of the package, or of a module in it.
        purpose: What needs it, such as "data.audio".
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        command = install_command(package.partition(".")[0])
        raise ImportError(f"{purpose} needs {package}; install it with: {command}") from error
