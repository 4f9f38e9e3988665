"""How do the texts of a statement get read that only PostgreSQL understands?

Understanding is pure: it says which texts are to be read, and is done again with what they stand for. Parameters come
first, once for a statement; then what is written in the statement itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from typing import Protocol, TypeVar

from proxy.errors import FrontFailed, Unsupported
from proxy.session.asking.binary_values import value_of
from proxy.sql.algebra.constants import Given, InputStyle, InputText, Readings, Unread

Result = TypeVar("Result")
_MOST_ROUNDS = 12  # what a text stands for may decide which other texts are looked at


class TextReader(Protocol):
    """Reads texts as PostgreSQL's input functions do; safe to call from any thread, and waits."""

    def read(self, texts: Sequence[InputText], style: InputStyle) -> tuple[bytes | None, ...]:
        """The value of each text in binary. Raises HushError."""
        ...


class NoReader:
    """Where there is no PostgreSQL to ask. Implements `Reader`."""

    def read(self, texts: Sequence[InputText], style: InputStyle) -> tuple[bytes | None, ...]:
        raise FrontFailed("there is no PostgreSQL that reads these texts", detail=f"There are {len(texts)} of them.")


def readings(texts: Sequence[InputText], reader: TextReader, style: InputStyle) -> dict[InputText, Given]:
    """What texts stand for. Raises HushError."""
    return {t: value_of(t.oid, data) for t, data in zip(texts, reader.read(texts, style), strict=True)}


async def informed(
    work: Callable[[Readings], Awaitable[Result]], reader: TextReader, style: InputStyle, waiting: Executor
) -> Result:
    """What a work finds once all texts are read that it asks for, by a thread. Raises what it raises, and HushError."""
    known: Readings = {}
    for _ in range(_MOST_ROUNDS):
        try:
            return await work(known)
        except Unread as wanted:
            texts = wanted.texts
        found = await asyncio.get_running_loop().run_in_executor(waiting, readings, texts, reader, style)
        known = {**known, **found}
    raise Unsupported("texts that stand for texts are nested too deeply", hint="Write the values themselves.")
