"""How is a statement cancelled that the front runs?"""

from __future__ import annotations

import asyncio

from proxy.wire.startup import cancel_packet

_TIMEOUT_S = 5.0


async def cancel_on_front(socket_path: str, key: bytes) -> None:
    """Pass a cancel request on to the front. It may be too late or the front gone; both end the statement anyway."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            reader, writer = await asyncio.open_unix_connection(socket_path)
            try:
                writer.write(cancel_packet(key))
                await reader.read()  # the front hangs up once the signal is sent
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return
