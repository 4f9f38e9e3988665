"""How does `hushql policy init` make a policy to start from, out of what a database says about itself?"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from psycopg.conninfo import conninfo_to_dict
from rich.console import Console
from rich.progress import Progress

from proxy.admin.files import replace_text
from proxy.admin.proposing.dbt import read_project, with_dbt
from proxy.admin.proposing.proposal import Candidate, Proposal, TableLeftOut, candidates, propose
from proxy.admin.proposing.text import MARK, Amounts, PlacedSource, decisions, write, yaml_text
from proxy.admin.proposing.unclear import Unclear
from proxy.engines.described import FoundTable
from proxy.engines.described import LookingProgress as Told
from proxy.engines.duckdb_described import describe_database, describe_file
from proxy.engines.postgres_described import describe_server
from proxy.errors import ConfigError
from proxy.policy.environment import substitute
from proxy.policy.figures import figure
from proxy.policy.load import load_policy
from proxy.policy.problems import FileProblems

_MOST_SHOWN = 5  # tables that could be the unit
_FILES = (".csv", ".csv.gz", ".parquet")
_DSN = re.compile(r"postgres(ql)?://|\w+\s*=")
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")

Sources = Annotated[
    list[str],
    typer.Option(
        "--from",
        metavar="DSN|FILE",
        help="A PostgreSQL connection string (${NAME} reads the environment), a DuckDB file, or CSV and Parquet files.",
        show_default=False,
    ),
]
UnitOption = Annotated[
    str,
    typer.Option(
        "--unit", metavar="TABLE[.COLUMN]|row", help="Whose rows are protected; row: each is a person.",
        show_default="a guess",
    ),
]  # fmt: skip
DatasetOption = Annotated[
    str, typer.Option("--dataset", metavar="NAME", help="Database name for clients.", show_default="the source's name")
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Where to write.", show_default="standard output")
]


@dataclass(frozen=True, slots=True)
class _Described:
    """tables, the source's lines for the policy, and a name for the dataset."""

    tables: tuple[FoundTable, ...]
    source: PlacedSource
    name: str


def init(
    sources: Sources,
    unit: UnitOption = "",
    dataset: DatasetOption = "",
    out: Out = None,
    dbt: Annotated[
        Path | None,
        typer.Option(
            "--dbt",
            metavar="FILE",
            help="target/manifest.json of dbt: descriptions and tests of the tables.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing at a terminal; take what is proposed.")] = False,
) -> None:
    """Propose a policy from tables, types, keys and constraints. Reads no rows; what is yours to decide is marked.

    At a terminal the most important decisions are asked one by one, each with a default.
    """
    if out is not None and out.exists() and not force:
        raise ConfigError(f"{out} exists", hint="Give --force to replace it.")
    found = _describe(sources, Path() if out is None else out.parent)
    if not found.tables:
        raise ConfigError("no table is there that this login may read")
    if dbt is not None:
        found = replace(found, tables=with_dbt(found.tables, read_project(dbt)))
    is_asked = out is not None and not yes and sys.stdin.isatty()
    proposal = propose(found.tables, unit or (_asked_unit(candidates(found.tables)) if is_asked else ""))
    amounts = _asked_amounts() if is_asked else Amounts()
    text = write(proposal, _dataset_name(dataset or found.name), found.source, amounts)
    if out is None:
        typer.echo(text, nl=False)
    else:
        replace_text(out, text)
    _tell(proposal, text, "the policy" if out is None else str(out))


def _describe(sources: Sequence[str], folder: Path) -> _Described:
    is_files = [source.lower().endswith(_FILES) for source in sources]
    if len(sources) > 1 and not all(is_files):
        raise ConfigError(
            "several sources can only be CSV and Parquet files", hint="Give one database, or files alone."
        )
    if sources[0].startswith("sc://"):
        raise ConfigError(
            "policy init reads no Spark server",
            hint="Let it look at a copy of some of the files; docs/guide/spark.md says what to change then.",
        )
    if all(is_files):
        return _files([Path(source) for source in sources], folder)
    if "${" in sources[0] or _DSN.match(sources[0]):
        return _server(sources[0])
    path = Path(sources[0])
    if not path.is_file():
        raise ConfigError(f"{path} is no file, and no connection string either")
    lines = ("engine: duckdb", f"path: {yaml_text(os.path.relpath(path, folder))}")
    return _Described(
        _with_progress(path.name, lambda told: describe_database(path, told)), PlacedSource(lines), path.stem
    )


def _files(paths: list[Path], folder: Path) -> _Described:
    tables = tuple(describe_file(path) for path in paths)
    names = [table.relation[0].lower() for table in tables]
    if len(set(names)) < len(names):
        raise ConfigError("two files have one name, so their tables would have, too", hint="Rename one of them.")
    pairs = zip(names, paths, strict=True)
    files = (f"  {yaml_text(name)}: {yaml_text(os.path.relpath(path, folder))}" for name, path in pairs)
    return _Described(tables, PlacedSource(("engine: duckdb", "files:", *files)), names[0])


def _server(written: str) -> _Described:
    expanded = substitute(written, os.environ)
    if expanded.complaints:
        raise ConfigError("; ".join(expanded.complaints))
    parts: dict[str, object] = {}
    try:
        parts = dict(conninfo_to_dict(expanded.text))
    except psycopg.Error:
        written = ""
    if not written:  # outside the handler: its words quote the password
        raise ConfigError("the connection string cannot be read", hint="Write postgresql://user@host/database.")
    name = str(parts.get("dbname") or parts.get("service") or "dataset")
    tables = _with_progress(name, lambda told: describe_server(expanded.text, told))
    lines = ["engine: postgres", f"dsn: {_kept_dsn(written, name, has_password='password' in parts)}"]
    return _Described(tables, PlacedSource(tuple(lines)), name)


def _kept_dsn(written: str, name: str, *, has_password: bool) -> str:
    """The connection string as the policy is to have it: never with a password."""
    if "${" in written:
        return f'"{written}"'
    if has_password:
        variable = f"{re.sub('[^A-Z0-9]+', '_', name.upper())}_DSN"
        return f'"${{{variable}}}" # {MARK}: it holds a password, so set {variable} or use a passfile and no password'
    return yaml_text(written)


def _with_progress(title: str, read: Callable[[Told], tuple[FoundTable, ...]]) -> tuple[FoundTable, ...]:
    """Read while a bar on standard error shows how far it is; no bar where nobody is at a terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        return read(lambda done, total: bar.update(task, completed=done, total=total))


def _dataset_name(name: str) -> str:
    plain = _NO_NAME.sub("_", name).strip("-")[:60]
    return plain if plain[:1].isalpha() or plain[:1] == "_" else f"d_{plain}"


def _asked_unit(likely: Sequence[Candidate]) -> str:
    """Who is protected, as `--unit` takes it."""
    for candidate in likely[:_MOST_SHOWN]:
        typer.echo(f"  {candidate.option}: {candidate.reasons}", err=True)
    typer.echo("Who is protected? TABLE.COLUMN of the person's id, or row if each row is a person.", err=True)
    return str(typer.prompt("unit", default=likely[0].option if likely else "row", err=True))


def _asked_amounts() -> Amounts:
    known = Amounts()
    dataset = _asked_number("epsilon of all that may ever be learnt, by all together", known.dataset)
    user = _asked_number("epsilon of what one login may learn", known.user)
    return Amounts(dataset=dataset, user=user, questions=_asked_number("questions of one login", known.questions))


def _asked_number(what: str, default: str) -> str:
    """A positive number; what is none is asked again."""
    while True:
        number = float(typer.prompt(what, default=float(default), type=float, err=True))
        if 0 < number < math.inf:
            return figure(number, 15).replace(",", "")
        typer.echo("Give a number above zero.", err=True)


def _tell(proposal: Proposal, text: str, where: str) -> None:
    """What was made, and what of it is to be decided, in order of importance, on standard error."""
    left_out = sum(isinstance(t.owner, (TableLeftOut, Unclear)) for t in proposal.tables)
    listed = len(proposal.tables) - left_out
    asked = decisions(text)
    typer.echo(
        f"{where}: {listed} table{'' if listed == 1 else 's'} of {proposal.unit_table or 'rows'}, {left_out} left out,"
        f" {len(asked)} decisions are yours (look for {MARK})",
        err=True,
    )
    for candidate in proposal.candidates[:_MOST_SHOWN]:
        is_taken = candidate.table == proposal.unit_table
        typer.echo(
            f"{'taken as' if is_taken else 'could be'} the unit: {candidate.option}: {candidate.reasons}", err=True
        )
    for line, words in asked:
        typer.echo(f"line {line}: {words}", err=True)
    known = re.sub(r"\$\{[^}]*\}", "host=unknown", text)
    try:
        load_policy(known, filename=where, environment={})
    except FileProblems as error:
        for problem in error.problems:
            typer.echo(f"still to be decided: {problem.render(where)}", err=True)
