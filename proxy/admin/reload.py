"""When does a policy or users file have new content, and who is told?

Files are looked at in a fixed rhythm: a change is its identity, rights, size or time, so that editors which write in
place and those which rename a new file over the old are both seen. A file is read once two looks in a row agree,
so that half-written ones are not. What a new text means, and whether it is right, is the caller's business; the caller
may ask to be told again of what it could not take.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from proxy.admin.files import read_text
from proxy.errors import ConfigError

#: Gets the files that changed; returns those whose next change is to be told whatever it is, even of the time alone.
OnChange = Callable[[frozenset[Path]], Awaitable[frozenset[Path]]]


@dataclass(frozen=True, slots=True)
class _Look:
    """What one look at a file saw: enough to notice any change without reading it."""

    device: int
    inode: int
    mode: int
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class _Nothing:
    """No file is there, as for a moment while some editors save."""


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """What stands in the place of a text that cannot be read."""


_Sight = _Look | _Nothing


@dataclass(slots=True)
class _Watched:
    """seen: the last look. settled: the look that was judged last, if any. mode, text: as they were then."""

    seen: _Sight
    settled: _Sight | None
    mode: int
    text: str | _Unreadable


class FileWatch:
    """Tells of new content of files, and of new rights to them, all of one look together, in one task.

    A file that vanishes or cannot be read has new content, and once more when it can be read again.
    `poke` (SIGHUP) makes the next look tell of every file even if nothing changed.
    """

    def __init__(self, files: Iterable[Path], on_change: OnChange, *, interval_s: float = 1.0) -> None:
        """What the files hold now is known."""
        self._files = {path: _Watched(_Nothing(), None, _mode(_sight(path)), _text(path)) for path in files}
        self._awaited: dict[Path, _Watched] = {}
        self._on_change = on_change
        self._interval_s = interval_s
        self._poked = asyncio.Event()

    def poke(self) -> None:
        """Tell of everything at once, as an admin who sends SIGHUP wants."""
        self._poked.set()

    async def run(self) -> None:
        """Watch until cancelled. An exception of `on_change` ends the watch: the caller decides what is survivable."""
        while True:
            await self.look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):  # wait_for of Python 3.11 may swallow a cancellation
                    await self._poked.wait()

    async def look(self) -> None:
        """Look at every file once."""
        is_poked = self._poked.is_set()
        self._poked.clear()
        changed = [path for path, watched in self._files.items() if await self._has_changed(path, watched, is_poked)]
        changed += [path for path, watched in self._awaited.items() if await _has_moved(path, watched)]
        if changed:
            awaited = await self._on_change(frozenset(changed))
            known = {} if is_poked else self._awaited
            self._awaited = {path: known.get(path) or await _first_look(path) for path in awaited}

    async def _has_changed(self, path: Path, watched: _Watched, is_poked: bool) -> bool:
        if not await _has_moved(path, watched) and not is_poked:
            return False
        text = await asyncio.to_thread(_text, path)
        if not is_poked and await asyncio.to_thread(_sight, path) != watched.seen:
            watched.settled = None  # written while it was read: told of when it is whole
            return False
        watched.settled = watched.seen
        before = watched.mode, watched.text
        watched.mode, watched.text = _mode(watched.seen), text
        return is_poked or (watched.mode, watched.text) != before


async def _first_look(path: Path) -> _Watched:
    sight = await asyncio.to_thread(_sight, path)
    return _Watched(sight, sight, _mode(sight), _Unreadable())


async def _has_moved(path: Path, watched: _Watched) -> bool:
    """Whether two looks in a row saw the same, which is not what was seen before them."""
    sight = await asyncio.to_thread(_sight, path)
    is_steady, watched.seen = sight == watched.seen, sight
    has_moved = is_steady and sight != watched.settled
    if has_moved:
        watched.settled = sight
    return has_moved


def _text(path: Path) -> str | _Unreadable:
    try:
        return read_text(path, "file")
    except ConfigError:
        return _Unreadable()


def _mode(sight: _Sight) -> int:
    """The rights to a file, which a users file must not give away; 0 if it is not there."""
    return sight.mode if isinstance(sight, _Look) else 0


def _sight(path: Path) -> _Sight:
    try:
        found = path.stat()
    except OSError:
        return _Nothing()
    return _Look(found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns)


@contextlib.contextmanager
def poked_by_hangup(watch: FileWatch) -> Iterator[None]:
    """While inside, SIGHUP to this process pokes the watch. To be entered in the event loop's thread."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, watch.poke)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
