"""What the tests of commands share."""

from __future__ import annotations

import pytest

from tests.unit.admin.command_line import CommandLine
from tests.unit.admin.profile_shop import filled, folder

__all__ = ["filled", "folder"]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """Runs one command line; `out` and `err` are what it printed."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("HUSHQL_PASSWORD", raising=False)
    return CommandLine(capsys)
