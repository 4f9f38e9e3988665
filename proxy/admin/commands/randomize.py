"""How does `hushql randomize` make data that were private before anybody stored them?

What it draws and writes is `randomize_rows`'s business; here are its options, its progress and what it says.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from proxy.admin.files import read_policy
from proxy.admin.randomize_rows import randomize_rows
from proxy.errors import ConfigError
from proxy.plan.unpromised import protected_words
from proxy.policy.model import Policy, Table
from proxy.policy.response import GaussianNoise, LaplaceNoise, TwoCoins


def randomize(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A CSV or Parquet file of true rows.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The CSV or Parquet file to write.")],
    policy_file: Annotated[Path, typer.Option("--policy", help="A policy that says how columns are randomized.")],
    table_name: Annotated[str, typer.Option("--table", help="The local table; needed if there are several.")] = "",
    keep_order: Annotated[bool, typer.Option("--keep-order", help="The order of rows is public: keep it.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
) -> None:
    """Randomize each row of a file as a policy's local table says, before the file is given to anybody.

    Columns that are neither randomized nor declared public are left out, and rows are in random order.
    """
    policy = read_policy(policy_file, os.environ)
    table = _local_table(policy, table_name)
    if target.exists() and not force:
        raise ConfigError(f"{target} exists", hint="Give another name, or --force to replace it.")
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,} rows"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"randomizing {table.name}", total=None)
        done = randomize_rows(
            source, target, table, time_zone=policy.privacy.time_zone, keep_order=keep_order,
            show=lambda rows: bar.update(task, completed=rows),
        )  # fmt: skip
    typer.echo(
        f"{target}: {done.rows:,} rows, protected before they are given away: {protected_words(table, policy.privacy)}"
    )
    for name, count in done.replaced:
        typer.echo(f"{name}: {count:,} not declared in the policy, counted as {_instead(table, name)}", err=True)
    order = "the order of IN, which counts as public" if keep_order else "random order"
    typer.echo(f"Rows are in {order}. Randomizing the same people again is a second release: its epsilon is added.")


def _instead(table: Table, name: str) -> str:
    """What stood in for values that are not declared."""
    column = table.columns[[c.name for c in table.columns].index(name)]
    if isinstance(column.randomized, LaplaceNoise | GaussianNoise):
        return "the middle between the bounds"
    return "no" if isinstance(column.randomized, TwoCoins) else "the first listed value"


def _local_table(policy: Policy, name: str) -> Table:
    """The table that is meant. Raises ConfigError if none is, or several could be."""
    local = {t.name: t for t in policy.tables.values() if t.is_local}
    if not local:
        raise ConfigError("the policy has no local table", hint="Write 'local: true' at a table of randomized columns.")
    if not name and len(local) > 1:
        raise ConfigError("the policy has several local tables", hint=f"Give one: --table {next(iter(local))}.")
    if name and name not in local:
        raise ConfigError(f'"{name}" is no local table', hint=f"Local tables: {', '.join(local)}.")
    return local[name] if name else next(iter(local.values()))
