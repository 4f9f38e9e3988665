"""When does a policy or users file have new content, and who is told?

Files are looked at in a fixed rhythm: a change is its identity, size or time, so that editors which write in
place and those which rename a new file over the old are both seen. A file is read once two looks in a row agree,
so that half-written ones are not. What a new text means, and whether it is right, is the caller's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from proxy.admin.files import read_text
from proxy.errors import ConfigError

OnChange = Callable[[Path, str], Awaitable[None]]
OnTrouble = Callable[[Path, ConfigError], None]


@dataclass(frozen=True, slots=True)
class _Look:
    """What one look at a file saw: enough to notice any change without reading it."""

    device: int
    inode: int
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class _Nothing:
    """No file is there, as for a moment while some editors save."""


_Sight = _Look | _Nothing


@dataclass(slots=True)
class _Watched:
    """seen: the last look. settled: the look whose content was read. text: that content.

    is_troubled: it could not be read, and whoever was told of that is to be told when it can be again.
    """

    seen: _Sight
    settled: _Sight
    text: str
    is_forced: bool = False
    is_troubled: bool = False


class FileWatch:
    """Tells of new content of files, one call at a time, in one task.

    `poke` (SIGHUP) makes the next look read every file and tell of it even if nothing changed.
    A file that cannot be read is told to `on_trouble` once, and the last content stays in force; when it can be read
    again its content is told even if it is the old one.
    """

    def __init__(
        self, files: dict[Path, str], on_change: OnChange, on_trouble: OnTrouble, *, interval_s: float = 1.0
    ) -> None:
        """files: each path with the text that is in force now."""
        self._files = {path: _Watched(_Nothing(), _Nothing(), text) for path, text in files.items()}
        self._on_change = on_change
        self._on_trouble = on_trouble
        self._interval_s = interval_s
        self._poked = asyncio.Event()

    def poke(self) -> None:
        """Read everything at once, as an admin who sends SIGHUP wants."""
        for watched in self._files.values():
            watched.is_forced = True
        self._poked.set()

    async def run(self) -> None:
        """Watch until cancelled. An exception of `on_change` ends the watch: the caller decides what is survivable."""
        while True:
            await self.look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):  # wait_for of Python 3.11 may swallow a cancellation
                    await self._poked.wait()
            self._poked.clear()

    async def look(self) -> None:
        """Look at every file once."""
        for path, watched in self._files.items():
            await self._look(path, watched)

    async def _look(self, path: Path, watched: _Watched) -> None:
        sight = await asyncio.to_thread(_sight, path)
        is_steady, watched.seen = sight == watched.seen, sight
        if not watched.is_forced and (not is_steady or sight == watched.settled):
            return
        is_forced, watched.is_forced, watched.settled = watched.is_forced, False, sight
        try:
            text = await asyncio.to_thread(read_text, path, "file")
        except ConfigError as error:
            watched.is_troubled = True
            self._on_trouble(path, error)
            return
        was_troubled, watched.is_troubled = watched.is_troubled, False
        if text != watched.text or is_forced or was_troubled:
            watched.text = text
            await self._on_change(path, text)


def _sight(path: Path) -> _Sight:
    try:
        found = path.stat()
    except OSError:
        return _Nothing()
    return _Look(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@contextlib.contextmanager
def poked_by_hangup(watch: FileWatch) -> Iterator[None]:
    """While inside, SIGHUP to this process pokes the watch. To be entered in the event loop's thread."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, watch.poke)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
