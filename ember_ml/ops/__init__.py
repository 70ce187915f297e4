"""Every operation, under one namespace: the array API standard's names and more."""

import contextlib
import importlib
import pkgutil

for _info in pkgutil.walk_packages(__path__, "ember_ml.ops."):
    with contextlib.suppress(ImportError, AttributeError, SyntaxError):
        _module = importlib.import_module(_info.name)
        for _name in getattr(_module, "__all__", ()):
            globals()[_name] = getattr(_module, _name)
