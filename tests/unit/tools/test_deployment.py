"""Are the examples of how hushql is kept running what their readers take: systemd, compose, this command?"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.unit.admin.command_line import CommandLine

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def _unit() -> dict[str, str]:
    lines = (EXAMPLES / "hushql.service").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def _is_served(command: CommandLine, arguments: list[str], folder: Path) -> None:
    """Whether the command takes these arguments, with a policy and a state of its own."""
    (folder / "policy.yaml").touch()
    moved = {"policy.yaml": str(folder / "policy.yaml"), "/etc/hushql/policy.yaml": str(folder / "policy.yaml"),
             "/var/lib/hushql": str(folder / "state")}  # fmt: skip
    assert command(*(moved.get(argument, argument) for argument in arguments)) == 0, command.err
    assert len(command.served) == 1


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    text = (EXAMPLES / "hushql.service").read_text()
    unit = tmp_path / "hushql.service"
    unit.write_text(text.replace("/opt/hushql/bin/hushql", sys.executable))
    verify = shutil.which("systemd-analyze")
    if verify is not None:  # where there is none, nobody runs the unit either
        checked = subprocess.run([verify, "verify", str(unit)], capture_output=True, text=True, check=False)
        said = [line for line in checked.stderr.splitlines() if str(unit) in line or "hushql" in line]
        assert said == [], checked.stderr
    assert {"NoNewPrivileges", "ProtectSystem", "CapabilityBoundingSet", "SystemCallFilter"} <= _unit().keys()
    assert _unit()["LimitCORE"] == "0"
    assert _unit()["StateDirectoryMode"] == "0700"


def test_the_unit_starts_what_the_command_takes(command: CommandLine, tmp_path: Path) -> None:
    program, *arguments = shlex.split(_unit()["ExecStart"])
    assert program == "/opt/hushql/bin/hushql"
    _is_served(command, arguments, tmp_path)


def test_compose_starts_what_the_command_takes_with_nothing_to_write_but_the_state(
    command: CommandLine, tmp_path: Path
) -> None:
    (service,) = YAML(typ="safe").load((EXAMPLES / "compose.yaml").read_text())["services"].values()
    _is_served(command, shlex.split(service["command"]), tmp_path)
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert [volume for volume in service["volumes"] if not volume.endswith(":ro")] == ["state:/var/lib/hushql"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert (EXAMPLES / service["build"] / "Dockerfile").is_file()
