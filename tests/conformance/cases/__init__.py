"""Rows of the conformance table, in the folders and files of `ember_ml/ops`."""

import importlib
import pkgutil

FAMILIES: set[str] = set()
"""Files with rows, named like the families of ops: "nn.attention"."""

for module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(module.name)
    if not module.ispkg:
        FAMILIES.add(module.name.removeprefix(f"{__name__}."))
