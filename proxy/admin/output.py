"""How do commands print: tables for people, JSON for programs, one line for what went wrong?"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

import typer
from rich.console import Console
from rich.table import Table

from proxy.errors import HushError
from proxy.policy.problems import FileProblems


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: frozenset[int] = frozenset()) -> None:
    """A table on standard output; columns whose number is in `right` are aligned right. Words are never wrapped."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i in right else "left", no_wrap=True, overflow="ignore")
    for row in rows:
        table.add_row(*(_safe(cell) for cell in row))
    width = None if sys.stdout.isatty() else 10_000
    Console(highlight=False, markup=False, soft_wrap=True, width=width).print(table)


def print_error(error: HushError) -> None:
    """What went wrong, on standard error: one line, or one for each problem of a file; never a traceback."""
    text = error.message if isinstance(error, FileProblems) else f"hushql: {' '.join(error.text().split())}"
    typer.echo("\n".join(_safe(line) for line in text.splitlines()), err=True)


def _safe(text: str) -> str:
    """Text without characters that could steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
