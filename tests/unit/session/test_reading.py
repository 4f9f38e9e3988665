"""A work is done again until every text is read that it asks for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from proxy.errors import FrontFailed, Unsupported
from proxy.session.asking.reading import NoReader, TextReader, informed
from proxy.sql.algebra.constants import InputStyle, InputText, Readings, Unread
from proxy.sql.algebra.nodes import Literal
from proxy.sqltypes import SqlType

Result = TypeVar("Result")
ONE, TWO = (InputText(text, 23) for text in (" 1", " 2"))


class Echo:
    """Reads whole numbers, and remembers what it was asked. Implements `Reader`."""

    def __init__(self) -> None:
        self.asked: list[tuple[InputText, ...]] = []
        self.threads = set[str]()

    def read(self, texts: Sequence[InputText], style: InputStyle) -> tuple[bytes | None, ...]:
        self.asked.append(tuple(texts))
        self.threads.add(threading.current_thread().name)
        return tuple(int(t.text).to_bytes(4, "big") for t in texts)


async def work(known: Readings) -> list[object]:
    """First asks for one text, and then, as the other is another's consequence, for that."""
    for text in (ONE, TWO):
        if text not in known:
            raise Unread((text,))
    return list(known.values())


async def greedy(known: Readings) -> None:
    raise Unread((InputText(f"{len(known)}", 23),))


def told(work: Callable[[Readings], Awaitable[Result]], reader: TextReader) -> Result:
    async def awaited() -> Result:
        with ThreadPoolExecutor(1, "waits") as waiting:
            return await informed(work, reader, InputStyle(), waiting)

    return asyncio.run(awaited())


def test_texts_are_read_once_each_and_not_where_sessions_wait() -> None:
    reader = Echo()
    assert told(work, reader) == [Literal(1, SqlType.INT4), Literal(2, SqlType.INT4)]
    assert reader.asked == [(ONE,), (TWO,)]
    assert reader.threads == {"waits_0"}


def test_a_work_that_never_has_enough_is_refused() -> None:
    with pytest.raises(Unsupported, match="nested too deeply"):
        told(greedy, Echo())


def test_what_postgresql_says_of_a_text_is_the_error() -> None:
    with pytest.raises(FrontFailed):
        told(work, NoReader())


def test_where_there_is_no_postgresql_nothing_is_read() -> None:
    with pytest.raises(FrontFailed):
        NoReader().read((ONE,), InputStyle())
