"""How does the console run beside the proxy, on its own listener, in the same event loop?"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from proxy.console.application import build
from proxy.console.doors import BrowserLine, Door
from proxy.console.served import Serving
from proxy.errors import ConfigError
from proxy.server.sockets import listen

_CLOSE_S = 2


class _Quiet(uvicorn.Server):
    """Signals are the proxy's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class RunningConsole:
    """Answers browsers from `start` until `stop`."""

    def __init__(
        self, serving: Serving, sockets: tuple[socket.socket, ...], certificate: tuple[Path, Path] | None
    ) -> None:
        """sockets: bound; taken over by `start`, and closed by `stop`. certificate: chain and key of TLS, PEM."""
        self._application = build(serving)
        self._sockets = sockets
        cert, key = certificate or (None, None)
        config = uvicorn.Config(
            self._application, lifespan="off", log_config=None, access_log=False, server_header=False, ws="none",
            timeout_graceful_shutdown=_CLOSE_S, http=BrowserLine, proxy_headers=False,
            ssl_certfile=cert, ssl_keyfile=key,
        )  # fmt: skip
        try:
            config.load()
        except (OSError, ssl.SSLError) as error:
            raise ConfigError("the console cannot use the TLS certificate and its key") from error
        if config.ssl is not None:
            config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
        self._server = _Quiet(config)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Let browsers connect, from now on. Raises ConfigError."""
        for bound in self._sockets:
            listen(bound)  # who connects before the task has begun waits
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=[*map(Door.of, self._sockets)]))

    async def stop(self) -> None:
        """End all sessions of browsers."""
        self._application.state.console.browsers.end_all()
        self._server.should_exit = True
        if self._task is not None:
            await self._task
