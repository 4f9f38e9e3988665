"""Are lines of the log what the guide says, and without what clients wrote unless that is asked for?"""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from proxy.events import LogFormat, LoggedEvent, fingerprint_of, formatter_of, tell

_GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "admin.md"


def _told(caplog: pytest.LogCaptureFixture, kind: LogFormat, *, with_statements: bool) -> str:
    with caplog.at_level(logging.INFO, "hushql"):
        tell(LoggedEvent.STATEMENT, "shop/ann: answered", {"login": "ann", "statement": "SELECT 'Bob'", "epsilon": 0.5})
    return formatter_of(kind, with_statements=with_statements).format(caplog.records[-1])


def test_a_line_of_json_has_the_time_with_its_zone_and_the_fields(caplog: pytest.LogCaptureFixture) -> None:
    line = json.loads(_told(caplog, LogFormat.JSON, with_statements=False))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info", "event": "statement", "message": "shop/ann: answered", "login": "ann", "epsilon": 0.5,
    }  # fmt: skip


@pytest.mark.parametrize("kind", LogFormat)
def test_what_clients_wrote_is_logged_only_where_it_is_asked_for(
    caplog: pytest.LogCaptureFixture, kind: LogFormat
) -> None:
    assert "Bob" not in _told(caplog, kind, with_statements=False)
    assert "SELECT 'Bob'" in _told(caplog, kind, with_statements=True)


def test_other_lines_have_words_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "hushql"):
        logging.getLogger("hushql").warning("%s is %d", "it", 3)
    line = json.loads(formatter_of(LogFormat.JSON, with_statements=True).format(caplog.records[-1]))
    assert (line["level"], line["event"], line["message"]) == ("warning", "log", "it is 3")
    assert formatter_of(LogFormat.TEXT, with_statements=True).format(caplog.records[-1]).endswith("hushql it is 3")


def test_a_fingerprint_is_that_of_the_words() -> None:
    assert fingerprint_of("SELECT  1\n") == fingerprint_of("SELECT 1")
    assert fingerprint_of("SELECT 1") != fingerprint_of("SELECT 2")
    assert len(fingerprint_of("\ud800")) == 16


@pytest.mark.parametrize("event", LoggedEvent)
def test_each_event_is_in_the_guide(event: LoggedEvent) -> None:
    assert f"| `{event.value}` |" in _GUIDE.read_text()
