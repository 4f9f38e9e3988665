"""Open files: as many as the sessions need, and no start with too few."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from proxy.admin.open_files import FILES_PER_SESSION, MOST_BROWSERS, SPARE_FILES, make_room
from proxy.errors import ConfigError

NEEDED = FILES_PER_SESSION * 100 + SPARE_FILES


@pytest.fixture
def hard() -> Iterator[int]:
    """The hard limit; both are put back."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def soft() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_the_limit_is_raised_to_what_sessions_need_and_never_lowered(hard: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (NEEDED - 1, hard))
    make_room(100)
    assert soft() == NEEDED
    make_room(50)
    assert soft() == NEEDED


def test_a_console_needs_files_for_browsers_and_for_the_other_end_of_sessions(hard: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (NEEDED, hard))
    make_room(100, has_console=True)
    assert soft() == NEEDED + 100 + MOST_BROWSERS


@pytest.mark.parametrize("limit", [NEEDED, resource.RLIM_INFINITY])
def test_enough_is_left_as_it_is(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (limit, limit))
    monkeypatch.setattr(resource, "setrlimit", lambda *_arguments: pytest.fail("it was enough"))
    make_room(100)


def test_more_sessions_than_the_system_allows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `setrlimit` does above the hard limit."""

    def refused(kind: int, limits: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (256, NEEDED - 1))
    monkeypatch.setattr(resource, "setrlimit", refused)
    with pytest.raises(ConfigError, match=f"100 sessions need {NEEDED} open files") as error:
        make_room(100)
    assert "ulimit -n" in error.value.hint
