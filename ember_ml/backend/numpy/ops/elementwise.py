"""Arithmetic, element by element."""

from numpy import add as add
from numpy import divide as divide
from numpy import exp as exp
from numpy import subtract as subtract

RIGHT_SCALARS = LEFT_SCALARS = {"add": add, "subtract": subtract, "divide": divide}
