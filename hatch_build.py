"""Build hook: compile the C kernels into a platform wheel, or build a pure wheel without them."""

from __future__ import annotations

import importlib.util
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def _build_module(root: str) -> Any:
    """Return ember_ml._native.build without importing ember_ml, whose requirements are missing."""
    path = Path(root, "ember_ml", "_native", "build.py")
    spec = importlib.util.spec_from_file_location("build_native", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class NativeBuildHook(BuildHookInterface):
    """Adds the compiled kernels to a wheel; an editable install has them in the source tree."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the libraries and declare the platform of the wheel."""
        native = _build_module(self.root)
        self._folder = tempfile.TemporaryDirectory()
        target = native.FOLDER if version == "editable" else Path(self._folder.name)
        try:
            paths = native.build(target)
        except native.BuildError as error:
            self.app.display_warning(f"Ember ML is built without C kernels: {error}")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        if version != "editable":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
            build_data["force_include"].update(
                {str(path): f"ember_ml/_native/{path.name}" for path in paths}
            )

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary libraries."""
        self._folder.cleanup()
