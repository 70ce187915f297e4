"""Which dtypes an op takes, and what it makes of the others."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml._core.dtype import DEFAULT_FLOAT, EmberDType
from ember_ml._core.errors import DTypeError, UnsupportedDTypeError


class Rule(NamedTuple):
    """The kinds of dtype an op computes in, and whether integers and bools become floats first."""

    name: str
    kinds: frozenset[str]
    lift: bool = False
    contraction: bool = False

    def takes(self, dtype: EmberDType) -> bool:
        """Whether the op computes in `dtype` itself."""
        return dtype.kind in self.kinds

    def resolve(self, op: str, dtype: EmberDType) -> EmberDType:
        """The dtype that operands of `dtype` are cast to."""
        if dtype.kind in self.kinds:
            return dtype
        if self.lift and dtype.kind in ("bool", "int", "uint"):
            return DEFAULT_FLOAT
        raise UnsupportedDTypeError(f"{op} takes {self.name} dtypes, not {dtype}")

    def check_pair(self, op: str, x: EmberDType, y: EmberDType) -> None:
        """Refuse to mix half and full precision in a contraction."""
        if (
            self.contraction
            and x.kind == y.kind == "float"
            and x is not y
            and 16 in (x.bits, y.bits)
        ):
            raise DTypeError(
                f"{op} does not mix {x} and {y}; "
                "cast one operand with astype to choose the precision"
            )


ANY = Rule("all", frozenset({"bool", "uint", "int", "float", "complex"}))
NUMERIC = Rule("numeric", frozenset({"uint", "int", "float", "complex"}))
ORDERED = Rule("real", frozenset({"bool", "uint", "int", "float"}))
REAL = Rule("real numeric", frozenset({"uint", "int", "float"}))
FLOAT = Rule("floating", frozenset({"float", "complex"}), lift=True)
REAL_FLOAT = Rule("real floating", frozenset({"float"}), lift=True)
COMPLEX = Rule("complex", frozenset({"complex"}))
INTEGER = Rule("integer", frozenset({"uint", "int"}))
BITWISE = Rule("integer and bool", frozenset({"bool", "uint", "int"}))
CONTRACTION = Rule("numeric", frozenset({"uint", "int", "float", "complex"}), contraction=True)
