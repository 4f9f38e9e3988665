"""How does `hushql demo-data` write the made-up shop to a file?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, TaskID

from proxy.admin.demo.data import Summary, generate
from proxy.admin.demo.survey import PEOPLE, generate_survey


def demo_data(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The DuckDB file to write.", show_default=False)],
    scale: Annotated[float, typer.Option("--scale", help="1: half a million orders; 20: ten million.")] = 1.0,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    is_survey: Annotated[bool, typer.Option("--survey", help="A survey's answers for policies/survey.yaml.")] = False,
) -> None:
    """Make up a shop's data for policies/shop.yaml, the same on every machine."""
    if is_survey:
        generate_survey(path, replace=force)
        typer.echo(f"{path}: {PEOPLE} people")
        return
    summary = generate_with_progress(path, scale, replace=force)
    typer.echo(
        f"{path}: {summary.users} users, {summary.orders} orders, {summary.items} items, {summary.visits} visits"
    )


def generate_with_progress(path: Path, scale: float, *, replace: bool) -> Summary:
    """Generate while a bar on standard error shows how far each table is."""
    tasks: dict[str, TaskID] = {}
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:

        def show(table: str, done: int, rows: int) -> None:
            if table not in tasks:
                tasks[table] = bar.add_task(table, total=rows)
            bar.update(tasks[table], completed=done, total=rows)

        return generate(path, scale, show, replace=replace)
