"""Dtypes that an op computes in, and casts of the others."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml._core.dtype import DEFAULT_FLOAT, EmberDType
from ember_ml._core.errors import DTypeError, UnsupportedDTypeError


class DTypeRule(NamedTuple):
    """Dtypes that an op accepts.

    Args:
        name: Description for error messages.
        kinds: Kinds of dtype that the op computes in.
        lift: Whether integers and bools are cast to the default float first.
        contraction: Whether mixing half and full precision is an error.
    """

    name: str
    kinds: frozenset[str]
    lift: bool = False
    contraction: bool = False

    def takes(self, dtype: EmberDType) -> bool:
        """Return whether the op computes in `dtype` without a cast."""
        return dtype.kind in self.kinds

    def resolve(self, op: str, dtype: EmberDType) -> EmberDType:
        """Return the dtype that operands of `dtype` are cast to."""
        if dtype.kind in self.kinds:
            return dtype
        if self.lift and dtype.kind in ("bool", "int", "uint"):
            return DEFAULT_FLOAT
        raise UnsupportedDTypeError(f"{op} takes {self.name} dtypes, not {dtype}")

    def check_pair(self, op: str, x: EmberDType, y: EmberDType) -> None:
        """Raise if a contraction mixes half and full precision."""
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


ANY = DTypeRule("all", frozenset({"bool", "uint", "int", "float", "complex"}))
NUMERIC = DTypeRule("numeric", frozenset({"uint", "int", "float", "complex"}))
ORDERED = DTypeRule("real", frozenset({"bool", "uint", "int", "float"}))
REAL = DTypeRule("real numeric", frozenset({"uint", "int", "float"}))
FLOAT = DTypeRule("floating", frozenset({"float", "complex"}), lift=True)
REAL_FLOAT = DTypeRule("real floating", frozenset({"float"}), lift=True)
COMPLEX = DTypeRule("complex", frozenset({"complex"}))
INTEGER = DTypeRule("integer", frozenset({"uint", "int"}))
BITWISE = DTypeRule("integer and bool", frozenset({"bool", "uint", "int"}))
CONTRACTION = DTypeRule("numeric", frozenset({"uint", "int", "float", "complex"}), contraction=True)
