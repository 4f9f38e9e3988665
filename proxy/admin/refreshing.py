"""What does a running proxy do when it is asked to serve new data?

It checks what its policy declares against the new data, serves them, and writes their label into the policy's
file. What runs goes on with the old data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from proxy.admin.control import Responder
from proxy.admin.hosting import Hosted, Reloading
from proxy.errors import ConfigError, HushError
from proxy.policy.refreshed import with_data


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RefreshRequest(_Said):
    """version: the new label. path: of the new file, absolute; "" for files that are where they were."""

    kind: Literal["refresh"]
    dataset: str
    version: str
    path: str


class RefreshReply(_Said):
    """message: what went wrong; "" if nothing did."""

    message: str = ""
    detail: str = ""
    hint: str = ""


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
            return RefreshReply(message=error.message, detail=error.detail, hint=error.hint).model_dump_json()
        return RefreshReply().model_dump_json()

    async def _refresh(self, request: RefreshRequest) -> None:
        hosted = next((h for h in self.hosted if h.name == request.dataset), None)
        if hosted is None:
            names = ", ".join(h.name for h in self.hosted)
            raise ConfigError(f'the proxy does not serve a dataset "{request.dataset}"', hint=f"It serves {names}.")
        if request.version == hosted.dataset.current.policy.data_version:
            raise ConfigError(
                f'the data that are served have the label "{request.version}" already',
                detail="Stored answers about them would be given for the new data.",
                hint="Leave out --version, or give another label.",
            )
        await self.reloading.refresh(hosted, lambda text: with_data(text, version=request.version, path=request.path))
