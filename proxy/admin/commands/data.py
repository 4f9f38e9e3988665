"""What does `hushql data` take, and what does it tell?"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from proxy.admin.control import ask
from proxy.admin.output import print_error
from proxy.admin.refreshing import RefreshReply, RefreshRequest
from proxy.errors import ConfigError

app = typer.Typer(no_args_is_help=True, help="Exchange the data of served datasets.")


@app.callback()
def group() -> None:
    """Exchange the data of served datasets."""


@app.command("refresh")
def refresh(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="Of the running proxy.", show_default=False)],
    state: Annotated[
        Path, typer.Option("--state", metavar="DIR", help="State directory of the proxy.", envvar="HUSHQL_STATE")
    ],
    path: Annotated[
        Path | None,
        typer.Option("--path", metavar="NEW", help="The new DuckDB file.", show_default="the policy's, replaced"),
    ] = None,
    version: Annotated[
        str, typer.Option("--version", metavar="LABEL", help="The label of the new data.", show_default="the time")
    ] = "",
) -> None:
    """Have the running proxy serve new data, if they keep what the policy declares; else it serves on what it has.

    Exit status 1 if it does. The policy's file is edited: source.path, with --path, and source.data_version.
    """
    label = version or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    file = "" if path is None else str(path.resolve())
    text = ask(state, RefreshRequest(kind="refresh", dataset=dataset, version=label, path=file).model_dump_json())
    if text is None:
        raise ConfigError(
            f"no proxy runs on the state directory {state}",
            hint="Edit source.path and source.data_version in the policy, and start one.",
        )
    reply = RefreshReply.model_validate_json(text)
    if reply.message:
        print_error(ConfigError(reply.message, detail=reply.detail, hint=reply.hint))
        raise typer.Exit(1)
    typer.echo(f"{dataset}: data version {label} is served{f', from {file}' if file else ''}")
    typer.echo("statements that run go on with the old data; stored answers about them are not given again")
