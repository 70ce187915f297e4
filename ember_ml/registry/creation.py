"""Components from their names.

Type checkers read the generated stub next to this module, which declares the class that each
built-in name creates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ember_ml.registry.components import get


def create(name: str | Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Build a component from its name and arguments, or from {"type": name, ...}.

    Args:
        name: "kind/name", or a mapping with "type" and the fields of the config.
        *args: Positional arguments of the component.
        **kwargs: Keyword arguments of the component.

    Example:
        >>> create("layers/dense", 4, 2).config.out_features
        2
    """
    if isinstance(name, Mapping):
        from ember_ml.configs import Config

        return Config.from_dict(name).create(*args, **kwargs)
    return get(name).target(*args, **kwargs)
