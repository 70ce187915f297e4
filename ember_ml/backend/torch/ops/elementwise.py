"""Arithmetic, element by element."""

import torch
from torch import add as add
from torch import divide as divide
from torch import exp as exp
from torch import subtract as subtract

RIGHT_SCALARS = {"add": add, "subtract": subtract, "divide": divide}
LEFT_SCALARS = {"add": lambda s, t: torch.add(t, s), "subtract": lambda s, t: torch.rsub(t, s)}
