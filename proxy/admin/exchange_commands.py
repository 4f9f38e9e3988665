"""How do books get into a file of JSON lines, and out of it? `hushql ledger export` and `hushql ledger import`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, TextIO

import typer

from proxy.errors import ConfigError, HushError
from proxy.ledger.exchange import read, written
from proxy.ledger.moving import items_of, take_in

STANDARD = Path("-")

State = Annotated[
    Path, typer.Option("--state", metavar="DIR", help="State directory of the proxy.", envvar="HUSHQL_STATE")
]


def export(
    state: State,
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="A new file; - prints.")] = STANDARD,
) -> None:
    """Write all entries and stored answers as JSON lines, also while the proxy runs. They hold what people asked."""
    with _sink(output) as file:
        file.writelines(f"{line}\n" for line in written(items_of(state)))


def take(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What export wrote; - reads standard input.")],
    state: State,
) -> None:
    """Fill a new state directory with an export. An old export is an old ledger: what was spent since is unknown."""
    with lines_of(file) as lines:
        report = take_in(state, read(lines))
    typer.echo(f"{state}: {report.entries} entries and {report.releases} releases, head {report.head[:16]}")


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
