"""`ember kernels`: the kernels on this machine, and the compilation of Triton kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ember_ml.cli import output
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.backend.torch.kernels.ahead import Compiled


def kernels(
    settings: Settings,
    action: Annotated[
        Literal["list", "check"],
        typer.Argument(help="check: compile all Triton kernels for sm_80, sm_90 and gfx942."),
    ] = "list",
    as_json: JsonOption = False,
) -> None:
    """List the kernels of each op and device, or compile the Triton kernels for GPUs."""
    if action == "list":
        _list(as_json)
    else:
        _check(as_json)


def _list(as_json: bool) -> None:
    from ember_ml import backend

    rows = backend.kernels()
    if as_json:
        output.write_json([row._asdict() for row in rows])
        return
    cells = [
        (row.op, row.backend, row.device, row.language, "yes" if row.in_use else "no", row.reason)
        for row in rows
    ]
    heads = ("op", "backend", "device", "language", "in use", "reason")
    output.console().print(output.table(cells, *heads))


def _check(as_json: bool) -> None:
    """Compile all Triton kernels; exit with code 1 if one fails or spills without a reason."""
    results = _compile()
    if as_json:
        output.write_json([{**row._asdict(), "passed": row.passed} for row in results])
    else:
        output.console().print(compiled_table(results))
        for row in results:
            if row.error:
                output.remark(f"{row.module}.{row.program} for {row.target}: {row.error}")
        output.say(f"{sum(row.passed for row in results)} of {len(results)} passed")
    if not all(row.passed for row in results):
        raise typer.Exit(1)


def _compile() -> list[Compiled]:
    """Return the results; raise if torch or Triton is missing or interprets."""
    import os

    from ember_ml._core.errors import ArgumentError, EmberError
    from ember_ml.backend.selection import import_backend

    if os.environ.get("TRITON_INTERPRET") == "1":
        raise ArgumentError("TRITON_INTERPRET=1 replaces the compiler; unset it")
    import_backend("torch")
    from ember_ml.backend.torch.kernels import ahead

    try:
        return list(ahead.compile_all())
    except ImportError as error:
        raise EmberError(str(error)) from None


def compiled_table(results: list[Compiled]) -> object:
    """Return the table of compiled kernels.

    Args:
        results: Results of the compiler.
    """
    cells = [
        (
            *(row.module, row.program, row.dtype, row.target),
            *(str(row.registers), str(row.spills), str(row.shared)),
            ("passed" if row.passed else "failed") + (f": {row.reason}" if row.spills else ""),
        )
        for row in results
    ]
    heads = ("kernel", "program", "dtype", "target", "registers", "spilled B", "shared B", "")
    return output.table(cells, *heads)
