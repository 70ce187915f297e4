"""Dtypes and promotion rules, the same for all backends."""

from __future__ import annotations

from ember_ml._core.errors import ArgumentTypeError, DTypeError

KINDS = ("bool", "uint", "int", "float", "complex")


class EmberDType:
    """Type of a tensor's elements, such as `tensor.float32`.

    There is one object per dtype. It equals its own name: `x.dtype == "float32"` works too.

    Attributes:
        name: Name of the dtype.
        kind: One of `KINDS`.
        bits: Size of an element in bits.
        itemsize: Size of an element in bytes.
        is_integer: Whether this is a signed or unsigned integer type (bool is not).
        is_floating: Whether this is a real floating-point type.
        is_complex: Whether this is a complex type.
    """

    __slots__ = ("bits", "is_complex", "is_floating", "is_integer", "itemsize", "kind", "name")

    def __init__(self, name: str, kind: str, bits: int) -> None:
        self.name = name
        self.kind = kind
        self.bits = bits
        self.itemsize = bits // 8
        self.is_integer = kind in ("int", "uint")
        self.is_floating = kind == "float"
        self.is_complex = kind == "complex"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other == self.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"ember_ml.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return from_name, (self.name,)


bool_ = EmberDType("bool", "bool", 8)
int8 = EmberDType("int8", "int", 8)
int16 = EmberDType("int16", "int", 16)
int32 = EmberDType("int32", "int", 32)
int64 = EmberDType("int64", "int", 64)
uint8 = EmberDType("uint8", "uint", 8)
uint16 = EmberDType("uint16", "uint", 16)
uint32 = EmberDType("uint32", "uint", 32)
uint64 = EmberDType("uint64", "uint", 64)
float16 = EmberDType("float16", "float", 16)
bfloat16 = EmberDType("bfloat16", "float", 16)
float32 = EmberDType("float32", "float", 32)
float64 = EmberDType("float64", "float", 64)
complex64 = EmberDType("complex64", "complex", 64)
complex128 = EmberDType("complex128", "complex", 128)

DTYPES: dict[str, EmberDType] = {
    dtype.name: dtype
    for dtype in (
        bool_,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
        float16,
        bfloat16,
        float32,
        float64,
        complex64,
        complex128,
    )
}

DEFAULT_INT = int64
DEFAULT_FLOAT = float32
DEFAULT_COMPLEX = complex64

PYTHON_TYPES: dict[type, EmberDType] = {
    bool: bool_,
    int: DEFAULT_INT,
    float: DEFAULT_FLOAT,
    complex: DEFAULT_COMPLEX,
}
"""Dtype of a Python scalar where no operand decides it."""


def from_name(name: str) -> EmberDType:
    """Return the dtype of a name."""
    try:
        return DTYPES[name]
    except KeyError:
        raise ArgumentTypeError(f"unknown dtype {name!r}; known: {', '.join(DTYPES)}") from None


def real_part(dtype: EmberDType) -> EmberDType:
    """Return the dtype of the real part; a dtype that is not complex is returned as it is."""
    if dtype.kind != "complex":
        return dtype
    return float32 if dtype.bits == 64 else float64


def complex_of(dtype: EmberDType) -> EmberDType:
    """Return the complex dtype whose real and imaginary part hold `dtype`."""
    return complex128 if dtype in (float64, complex128) else complex64


def _promote_integers(x: EmberDType, y: EmberDType) -> EmberDType:
    if x.kind == y.kind:
        return x if x.bits >= y.bits else y
    signed, unsigned = (x, y) if x.kind == "int" else (y, x)
    if signed.bits > unsigned.bits:
        return signed
    if unsigned.bits == 64:
        raise DTypeError(f"{x} and {y} have no common integer dtype; cast one of them with astype")
    return DTYPES[f"int{2 * unsigned.bits}"]


def _promote_floats(x: EmberDType, y: EmberDType) -> EmberDType:
    if x.bits == y.bits:
        return x if x is y else float32  # float16 with bfloat16
    return x if x.bits > y.bits else y


def promote(x: EmberDType, y: EmberDType) -> EmberDType:
    """Return the dtype of an op on two dtypes.

    The table is that of the array API standard, with float16 and bfloat16 added. bool promotes to
    any other dtype; an integer with a float or complex takes the other's dtype, whatever its width.
    uint64 with a signed integer raises a `DTypeError`.

    Args:
        x: Dtype of the first operand.
        y: Dtype of the second operand.
    """
    if x is y:
        return x
    low, high = (x, y) if KINDS.index(x.kind) <= KINDS.index(y.kind) else (y, x)
    if low.kind == "bool":
        return high
    if high.is_integer:
        return _promote_integers(x, y)
    if low.is_integer:
        return high
    if high.kind == "float":
        return _promote_floats(x, y)
    return complex_of(_promote_floats(real_part(low), real_part(high)))


def promote_scalar(dtype: EmberDType, scalar: type) -> EmberDType:
    """Return the dtype of an op on a tensor and a Python scalar; only the scalar's kind counts."""
    if scalar is bool or dtype.kind == "complex":
        return dtype
    if scalar is int:
        return DEFAULT_INT if dtype.kind == "bool" else dtype
    if scalar is complex:
        return complex_of(dtype)
    return dtype if dtype.kind == "float" else DEFAULT_FLOAT


INTEGER_RANGES: dict[EmberDType, tuple[int, int]] = {
    dtype: (0, 2**dtype.bits - 1)
    if dtype.kind == "uint"
    else (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1)
    for dtype in DTYPES.values()
    if dtype.is_integer
}
