"""Arithmetic, element by element."""

from mlx.core import add as add
from mlx.core import divide as divide
from mlx.core import exp as exp
from mlx.core import subtract as subtract

RIGHT_SCALARS = LEFT_SCALARS = {"add": add, "subtract": subtract, "divide": divide}
