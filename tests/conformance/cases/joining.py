"""Rows for `ember_ml.ops.joining`."""

from __future__ import annotations

import numpy as np
import torch

from tests.conformance.table import case, real

case("joining.concat", [real(2, 3), real(4, 3)], reference=np.concatenate)
case("joining.concat", [real(2, 3), real(2, 1), real(2, 0)], reference=np.concatenate, axis=1)
case("joining.concat", [real(2, 3, 1), real(2, 3, 2)], reference=np.concatenate, axis=-1)
case("joining.concat", [real(2, 3), real(4), real()], reference=np.concatenate, axis=None)
case("joining.concat", [real(0), real(3)], reference=np.concatenate)
case("joining.concat", [real(3, 4, transposed=True), real(3, 4)], reference=np.concatenate)
case("joining.concat", [real(1)], reference=np.concatenate)
for axis in (0, 1, -1):
    case("joining.stack", [real(2, 3), real(2, 3)], reference=np.stack, axis=axis)
case("joining.stack", [real(), real(), real()], reference=np.stack)
case("joining.stack", [real(0, 2)], reference=np.stack, axis=1)
for name, reference in (
    ("vstack", np.vstack),
    ("hstack", np.hstack),
    ("dstack", np.dstack),
    ("column_stack", np.column_stack),
):
    case(f"joining.{name}", [real(3), real(3)], reference=reference)
    case(f"joining.{name}", [real(2, 3), real(2, 3)], reference=reference)
    case(f"joining.{name}", [real(2, 3, 2), real(2, 3, 2)], reference=reference)
for name, reference in (("vstack", np.vstack), ("hstack", np.hstack), ("dstack", np.dstack)):
    case(f"joining.{name}", [real(), real()], reference=reference)
case("joining.column_stack", [real(3), real(3, 2)], reference=np.column_stack)

case("joining.split", real(6, 2), 3, reference=np.split)
case("joining.split", real(2, 6), 2, reference=np.split, axis=-1)
case("joining.split", real(0, 3), 2, reference=np.split)
case("joining.split", real(7), [2, 5], reference=np.split)
case("joining.split", real(7), [5, 2], reference=np.split)
case("joining.split", real(7), (0, 9), reference=np.split)
case("joining.split", real(7), [-3], reference=np.split)
case("joining.split", real(2, 7), [], reference=np.split, axis=1)
case("joining.array_split", real(7, 2), 3, reference=np.array_split)
case("joining.array_split", real(2, 2), 3, reference=np.array_split, axis=1)
case("joining.array_split", real(7), [2, 3], reference=np.array_split)


def chunk(x, chunks, axis=0):
    return [part.numpy() for part in torch.from_numpy(np.array(x)).chunk(chunks, axis)]


for chunks in (1, 3, 4, 7, 9):
    case("joining.chunk", real(7), chunks, reference=chunk)
case("joining.chunk", real(2, 6), 4, reference=chunk, axis=-1)
case("joining.chunk", real(0, 2), 3, reference=chunk)
case("joining.split_at", real(5, 2), [1, 3], reference=np.split)
case("joining.split_at", real(2, 5), [0], reference=np.split, axis=1)
for axis in (0, 1, -1):
    case("joining.unstack", real(2, 3, 4), reference=np.unstack, axis=axis)
case("joining.unstack", real(3), reference=np.unstack)
case("joining.unstack", real(0, 2), reference=np.unstack)

case("joining.append", real(2, 3), real(4), reference=np.append)
case("joining.append", real(2, 3), real(2, 1), reference=np.append, axis=1)
case("joining.delete", real(5), 1, reference=np.delete)
case("joining.delete", real(3, 4), [0, -1], reference=np.delete, axis=1)
case("joining.delete", real(2, 3), slice(None, None, 2), reference=np.delete)
case("joining.delete", real(3, 2), [], reference=np.delete, axis=0)
case("joining.insert", real(5), 2, real(), reference=np.insert)
case("joining.insert", real(5), -1, real(3), reference=np.insert)
case("joining.insert", real(5), [3, 1, 1, 5], real(4), reference=np.insert)
case("joining.insert", real(2, 3), 1, real(2), reference=np.insert, axis=1)
case("joining.insert", real(2, 3), 2, real(3), reference=np.insert, axis=0)
case("joining.insert", real(2, 3), [0, 2], real(2), reference=np.insert, axis=1)
case("joining.insert", real(2, 3), [0, 2], real(2, 1), reference=np.insert, axis=1)
