"""Description of a program's compilation ahead of time."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Build(NamedTuple):
    """A program with the types and constants of one use.

    Attributes:
        program: Function decorated with `triton.jit`. Arguments whose names end in `_ptr` point to
            float32 by default, those with upper-case names are constants, others are int32.
        constants: Values of the constants.
        types: Types of other arguments, such as {"x_ptr": "*bf16"}.
        warps: Number of warps of a program instance.
        spills: Reason for spilled registers; empty if the program must not spill any.
    """

    program: Any
    constants: dict[str, Any]
    types: Mapping[str, str] = MappingProxyType({})
    warps: int = 4
    spills: str = ""

    def signature(self) -> dict[str, str]:
        """Return the type of each argument."""
        return {name: self.types.get(name, _type(name)) for name in self.program.arg_names}


def _type(name: str) -> str:
    if name.isupper():
        return "constexpr"
    return "*fp32" if name.endswith("_ptr") else "i32"
