"""Control of gradient flow."""

from mlx.core import array as alias
from mlx.core import stop_gradient

__all__ = ["alias", "stop_gradient"]
