"""Which questions has a login kept, under which labels?

One file for each login and dataset in the state directory. It holds labels and statements, and nothing of any answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response

from proxy.admin.files import locked_folder, read_text, replace_text
from proxy.console.visits import Console, Visit
from proxy.console.wire import LoginPlace
from proxy.errors import ConfigError, HushError, InvalidParameter

MOST_QUESTIONS = 100
MOST_LABEL, MOST_STATEMENT = 100, 20_000  # characters
_FOLDER = "questions"


@dataclass(frozen=True, slots=True)
class KeptQuestion:
    """A statement under the label that its login chose. Raises InvalidParameter for what is not kept."""

    label: str
    statement: str

    def __post_init__(self) -> None:
        if not 0 < len(self.label) <= MOST_LABEL or not self.label.isprintable():
            raise InvalidParameter(f"a label has from 1 to {MOST_LABEL} printable characters")
        if not self.statement.strip() or len(self.statement) > MOST_STATEMENT:
            raise InvalidParameter(f"a statement that is kept has from 1 to {MOST_STATEMENT} characters")


Questions = tuple[KeptQuestion, ...]


class KeptQuestions:
    """The questions of one login. Another login's are in another file, whose name follows from the login alone."""

    def __init__(self, state: Path, place: LoginPlace) -> None:
        """state: the proxy's directory. place: as which login, of which dataset."""
        self._folder = state / _FOLDER / place.database  # names of datasets are identifiers
        self._path = self._folder / f"{hashlib.sha256(place.login.encode()).hexdigest()}.json"

    def all(self) -> Questions:
        """In the order in which they were kept. Raises ConfigError."""
        if not self._path.exists():
            return ()
        try:
            return tuple(KeptQuestion(label, text) for label, text in json.loads(read_text(self._path, "questions")))
        except (ValueError, TypeError, InvalidParameter) as error:
            raise ConfigError(f"{self._path} holds no questions", hint="Remove the file.") from error

    def keep(self, label: str, statement: str) -> Questions:
        """Keep one more; all of them then. Raises ConfigError, InvalidParameter."""
        return self._changed(lambda kept: _and(kept, KeptQuestion(label.strip(), statement)))

    def rename(self, label: str, new: str) -> Questions:
        """Give one another label, in its place; all of them then. Raises ConfigError, InvalidParameter."""

        def renamed(kept: Questions) -> Questions:
            others = _without(kept, label)
            _check_free(others, new.strip())
            return tuple(KeptQuestion(new.strip(), q.statement) if q not in others else q for q in kept)

        return self._changed(renamed)

    def delete(self, label: str) -> Questions:
        """Forget one; the others. Raises ConfigError, InvalidParameter."""
        return self._changed(lambda kept: _without(kept, label))

    def _changed(self, change: Callable[[Questions], Questions]) -> Questions:
        try:
            self._folder.parent.mkdir(mode=0o700, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self._folder} cannot be made: {error.strerror}") from error
        with locked_folder(self._path):
            kept = change(self.all())
            replace_text(self._path, json.dumps([(one.label, one.statement) for one in kept]))
        return kept


def _and(kept: Questions, one: KeptQuestion) -> Questions:
    _check_free(kept, one.label)
    if len(kept) >= MOST_QUESTIONS:
        raise InvalidParameter(f"{MOST_QUESTIONS} questions are kept, which is the most", hint="Delete one of them.")
    return (*kept, one)


def _without(kept: Questions, label: str) -> Questions:
    others = tuple(one for one in kept if one.label != label)
    if len(others) == len(kept):
        raise InvalidParameter("no question has that label", hint="It was renamed or deleted meanwhile.")
    return others


def _check_free(kept: Questions, label: str) -> None:
    if any(one.label == label for one in kept):
        raise InvalidParameter("another question has that label", hint="Choose another, or delete that question.")


@dataclass(frozen=True, slots=True)
class KeptPages:
    """The part of the page on which people ask that lists what its login has kept."""

    console: Console

    async def listed(self, visit: Visit) -> Response:
        """All of them."""
        return await self._page(visit, self._of(visit).all)

    async def keep(self, visit: Visit) -> Response:
        """Keep the statement of the form under its label."""
        label, statement = visit.form.get("label", ""), visit.form.get("statement", "")
        return await self._page(visit, lambda: self._of(visit).keep(label, statement))

    async def rename(self, visit: Visit) -> Response:
        """Give one another label."""
        label, new = visit.form.get("label", ""), visit.form.get("new", "")
        return await self._page(visit, lambda: self._of(visit).rename(label, new))

    async def delete(self, visit: Visit) -> Response:
        """Forget one."""
        return await self._page(visit, lambda: self._of(visit).delete(visit.form.get("label", "")))

    def _of(self, visit: Visit) -> KeptQuestions:
        return KeptQuestions(self.console.serving.state, visit.place)

    async def _page(self, visit: Visit, change: Callable[[], Questions]) -> Response:
        try:
            kept, trouble = await asyncio.to_thread(change), ""
        except HushError as error:
            kept, trouble = await asyncio.to_thread(self._still_kept, visit), error.told().text()
        return self.console.page("kept.html", visit, kept=kept, trouble=trouble, status=409 if trouble else 200)

    def _still_kept(self, visit: Visit) -> Questions:
        try:
            return self._of(visit).all()
        except HushError:  # told already
            return ()
