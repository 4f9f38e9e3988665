"""How is the data of a served dataset exchanged? The command `hushql data refresh`, and what the proxy does then.

The proxy checks what its policy declares against the new data, serves them, and writes their label into the policy's
file. What runs goes on with the old data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import BaseModel, ConfigDict, ValidationError

from proxy.admin.control import Responder, ask
from proxy.admin.hosting import Hosted, Reloading
from proxy.admin.output import print_error
from proxy.errors import ConfigError, HushError
from proxy.policy.refreshed import with_data

app = typer.Typer(no_args_is_help=True, help="Exchange the data of served datasets.")


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RefreshRequest(_Said):
    """version: the new label. path: of the new file, absolute; "" for files that are where they were."""

    kind: Literal["refresh"]
    dataset: str
    version: str
    path: str


class _Reply(_Said):
    """message: what went wrong; "" if nothing did."""

    message: str = ""
    detail: str = ""
    hint: str = ""


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
    reply = _Reply.model_validate_json(text)
    if reply.message:
        print_error(ConfigError(reply.message, detail=reply.detail, hint=reply.hint))
        raise typer.Exit(1)
    typer.echo(f"{dataset}: data version {label} is served{f', from {file}' if file else ''}")
    typer.echo("statements that run go on with the old data; stored answers about them are not given again")


@dataclass(frozen=True, slots=True)
class Refreshing:
    """The running proxy's part. otherwise: answers what is no request to refresh."""

    hosted: Sequence[Hosted]
    reloading: Reloading
    otherwise: Responder

    async def answer(self, line: str) -> str:
        """The reply to a command's request."""
        try:
            request = RefreshRequest.model_validate_json(line)
        except ValidationError:
            return await self.otherwise(line)
        try:
            await self._refresh(request)
        except HushError as error:
            return _Reply(message=error.message, detail=error.detail, hint=error.hint).model_dump_json()
        return _Reply().model_dump_json()

    async def _refresh(self, request: RefreshRequest) -> None:
        hosted = next((h for h in self.hosted if h.name == request.dataset), None)
        if hosted is None:
            names = ", ".join(h.name for h in self.hosted)
            raise ConfigError(f'the proxy does not serve a dataset "{request.dataset}"', hint=f"It serves {names}.")
        if request.version == hosted.dataset.current.policy.data_version:
            raise ConfigError(
                f"the data that are served have the label {request.version} already",
                detail="Stored answers about them would be given for the new data.",
                hint="Leave out --version, or give another label.",
            )
        await self.reloading.refresh(hosted, lambda text: with_data(text, version=request.version, path=request.path))
