"""Optional packages, and the commands that install them."""

from __future__ import annotations

import sys

REQUIREMENTS = {
    "numpy": "numpy>=2.1",
    "torch": "torch>=2.5",
    "mlx": "mlx[cpu]>=0.30" if sys.platform == "linux" else "mlx>=0.30",
    "networkx": "networkx>=3.2",
    "tensorboard": "tensorboard>=2.18",
    "ray": "ray>=2.40",
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
