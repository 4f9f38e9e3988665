"""How do commands print: tables for people, JSON for programs, one line for what went wrong?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import typer
from rich.cells import cell_len

from proxy.errors import HushError
from proxy.policy.problems import FileProblems


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: frozenset[int] = frozenset()) -> None:
    """A table on standard output; columns whose number is in `right` are aligned right. Words are never wrapped."""
    safe = [[_safe(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(headings, *safe, strict=True)]
    typer.secho(_line(headings, widths, right), bold=True)
    for row in safe:
        typer.echo(_line(row, widths, right))


def _line(cells: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    padded = []
    for i, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        space = " " * (width - cell_len(cell))
        padded.append(space + cell if i in right else cell + space)
    return "  ".join(padded).rstrip()


def print_error(error: HushError) -> None:
    """What went wrong, on standard error: one line, or one for each problem of a file; never a traceback."""
    text = error.message if isinstance(error, FileProblems) else f"hushql: {' '.join(error.text().split())}"
    typer.echo("\n".join(_safe(line) for line in text.splitlines()), err=True)


def _safe(text: str) -> str:
    """Text without characters that could steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
