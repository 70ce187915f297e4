"""Linear algebra: the array API standard's `linalg` and more; also available as `ops.linalg`."""

from ember_ml._core import namespaces as _namespaces
from ember_ml.ops.contraction import cross, dot, kron, matmul, multi_dot, outer, tensordot, vecdot
from ember_ml.ops.linearalg.decompositions import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lu,
    qr,
    svd,
    svdvals,
)
from ember_ml.ops.linearalg.diagonals import block_diag, diag, diag_embed, diagflat, diagonal, trace
from ember_ml.ops.linearalg.matrix_functions import (
    det,
    expm,
    matrix_exp,
    matrix_power,
    matrix_rank,
    null_space,
    orth,
    slogdet,
)
from ember_ml.ops.linearalg.norms import cond, matrix_norm, norm, vector_norm
from ember_ml.ops.linearalg.results import (
    EighResult,
    EigResult,
    LstsqResult,
    LUResult,
    QRResult,
    SlogdetResult,
    SVDResult,
)
from ember_ml.ops.linearalg.solving import cholesky_solve, inv, lstsq, pinv, solve, solve_triangular
from ember_ml.ops.manipulation import matrix_transpose

__all__ = [
    "EigResult",
    "EighResult",
    "LUResult",
    "LstsqResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "block_diag",
    "cholesky",
    "cholesky_solve",
    "cond",
    "cross",
    "det",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "dot",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "kron",
    "lstsq",
    "lu",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "null_space",
    "orth",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

__dir__ = _namespaces.without_files(__name__)
