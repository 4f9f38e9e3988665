"""What must every request and every answer have, whichever page it is for?

Headers that keep scripts out, bodies of a limited size, tokens that other sites cannot know. What pages show is not
its business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Of a form: a statement of a mebibyte takes three, each byte written as %XX, and a policy's text may be longer.
MOST_BYTES = 8 * 1024 * 1024
#: A login, a password, a database and a token: strangers send no more.
MOST_LOGIN_BYTES = 16 * 1024
_MOST_FIELDS = 100
_NONCE_BYTES = 16
_FIXED = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def policy_of(nonce: str) -> str:
    """The content security policy: our own files and nothing else; style sheets that carry the nonce (the editor's)."""
    return "; ".join((
        "default-src 'none'", "script-src 'self'", f"style-src 'self' 'nonce-{nonce}'", "img-src 'self' data: blob:",
        "connect-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'",
    ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Headers:
    """Wraps the application: every answer carries the headers, and no page is kept by anybody unless it says so."""

    app: ASGIApp
    random_bytes: Callable[[int], bytes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        nonce = scope["nonce"] = self.random_bytes(_NONCE_BYTES).hex()

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["content-security-policy"] = policy_of(nonce)
                headers.update(_FIXED)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self.app(scope, receive, sent)


def check_origin(request: Request) -> None:
    """Refuse a changing request that another site's page sent. Raises HTTPException 403."""
    site, origin = request.headers.get("sec-fetch-site", "same-origin"), request.headers.get("origin", "")
    if site != "same-origin" or (origin and urlsplit(origin).netloc != request.headers.get("host", "")):
        raise HTTPException(403, "this request came from another site")


async def read_form(request: Request, most_bytes: int = MOST_BYTES) -> Mapping[str, str]:
    """The fields of a form, the last of each name. Raises HTTPException 413 or 400."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most_bytes:
            raise HTTPException(413, f"more than {most_bytes} bytes")
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise HTTPException(400, "the form cannot be read") from None
    return dict(fields)
