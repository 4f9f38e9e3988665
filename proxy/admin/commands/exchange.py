"""How do books get into a file of JSON lines, and out of it? `hushql ledger export` and `hushql ledger import`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, TextIO

import typer

from proxy.admin.ledger_place import LedgerOption, StateOption, items_of, place_of, take_in
from proxy.errors import ConfigError, HushError
from proxy.ledger.books import Books
from proxy.ledger.exchange import read, written

STANDARD = Path("-")


def export(
    state: StateOption = None,
    ledger: LedgerOption = "",
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="A new file; - prints.")] = STANDARD,
) -> None:
    """Write all entries and stored answers as JSON lines, also while the proxy runs. They hold what people asked."""
    with _sink(output) as file:
        file.writelines(f"{line}\n" for line in written(items_of(place_of(state, ledger), Books())))


def take(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What export wrote; - reads standard input.")],
    state: StateOption = None,
    ledger: LedgerOption = "",
) -> None:
    """Fill a new state directory or database with an export. An old one forgets what was spent since."""
    place = place_of(state, ledger)
    with lines_of(file) as lines:
        report = take_in(place, read(lines))
    typer.echo(f"{place}: {report.entries} entries and {report.releases} releases, head {report.head[:16]}")


@contextlib.contextmanager
def lines_of(file: Path) -> Iterator[Iterable[str]]:
    """The lines of an export. Raises ConfigError if it cannot be read."""
    if file == STANDARD:
        yield sys.stdin
        return
    try:
        with file.open(encoding="ascii", errors="replace") as opened:
            yield opened
    except OSError as error:
        raise ConfigError(f"export {file} cannot be read: {error.strerror}") from error


@contextlib.contextmanager
def _sink(output: Path) -> Iterator[TextIO]:
    """Standard output, or a new file of mode 0600, which is removed again if the books do not verify."""
    if output == STANDARD:
        yield sys.stdout
        return
    try:
        with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except HushError:
        output.unlink()
        raise
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror}") from error
