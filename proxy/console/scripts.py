"""Which scripts and styles do pages load, and from where?

They are read once and answered from memory, compressed for browsers that take it: they hold no secret whose length
could tell of it. Their address has the hash of them all, so a browser keeps them for good and asks for the next
version by another address.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

PREFIX = "/static/"
_FOLDER = Path(__file__).resolve().parent / "static"
_FOREVER = "private, max-age=31536000, immutable"


class Scripts:
    """All of the console's own files."""

    def __init__(self) -> None:
        paths = sorted(path for path in _FOLDER.rglob("*") if path.is_file())
        self._files = {path.relative_to(_FOLDER).as_posix(): path.read_bytes() for path in paths}
        whole = hashlib.sha256()
        for name, content in self._files.items():
            whole.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(content).digest())
        self._digest = whole.hexdigest()[:16]
        self._packed = {name: gzip.compress(content, mtime=0) for name, content in self._files.items()}
        self.base = f"{PREFIX}{self._digest}"

    async def answer(self, request: Request) -> Response:
        """One file. Raises HTTPException 404 for any other name, and for those of another version."""
        name = request.path_params["name"]
        if request.path_params["digest"] != self._digest or name not in self._files:
            raise HTTPException(404, "there is no such file")
        kind, _ = mimetypes.guess_type(name)
        headers = {"cache-control": _FOREVER, "vary": "accept-encoding"}
        if not _takes_gzip(request.headers.get("accept-encoding", "")):
            return Response(self._files[name], media_type=kind or "text/plain", headers=headers)
        packed = {**headers, "content-encoding": "gzip"}
        return Response(self._packed[name], media_type=kind or "text/plain", headers=packed)


def _takes_gzip(accepted: str) -> bool:
    """Whether a browser names it, without forbidding it (RFC 9110, 12.5.3)."""
    words = [word.replace(" ", "").partition(";") for word in accepted.lower().split(",")]
    return any(name == "gzip" and weight.rstrip("0.") != "q=" for name, _, weight in words)
