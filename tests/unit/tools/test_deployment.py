"""Are the examples of how hushql is kept running what their readers take: systemd, compose, this command?"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # it has no types
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


def _manifests() -> list[dict[str, Any]]:
    return list(YAML(typ="safe").load_all((EXAMPLES / "kubernetes.yaml").read_text()))


def test_kubernetes_takes_the_manifests() -> None:
    newest = kubernetes_validate.latest_version()
    for manifest in _manifests():
        kubernetes_validate.validate(manifest, newest, strict=True)
    wrong = next(m for m in _manifests() if m["kind"] == "StatefulSet")
    wrong["spec"]["replica"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, newest, strict=True)


def test_kubernetes_starts_what_the_command_takes(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pods,) = (m["spec"] for m in _manifests() if m["kind"] == "StatefulSet")
    pod = pods["template"]["spec"]
    (container,) = pod["containers"]
    mounted = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    for folder in mounted.values():
        (tmp_path / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for name in ("etc/hushql/policy.yaml", "etc/hushql-users/users.yaml", "etc/hushql-tls/cert.pem",
                 "etc/hushql-tls/key.pem"):  # fmt: skip
        (tmp_path / name).touch(0o600)
    arguments = [a.replace("=/", f"={tmp_path}/") if "=/" in a else a for a in container["args"]]
    assert command(*(f"{tmp_path}{a}" if a.startswith("/") else a for a in arguments)) == 0, command.err
    assert len(command.served) == 1
    assert pods["replicas"] == 2
    assert any(a.startswith("--ledger=postgresql://") for a in container["args"]), "one ledger for both"
    assert pods["volumeClaimTemplates"][0]["metadata"]["name"] == "state", "and a state directory for each"
    ports = {p["name"]: p["containerPort"] for p in container["ports"]}
    probes = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")}
    assert {kind: probe["path"] for kind, probe in probes.items()} == {
        "startup": "/readyz", "readiness": "/readyz", "liveness": "/healthz"
    }  # fmt: skip
    assert {probe["port"] for probe in probes.values()} <= set(ports)
    assert f"--metrics=0.0.0.0:{ports['metrics']}" in container["args"]
    secrets = [v["secret"] for v in pod["volumes"] if "secret" in v]
    assert {s["defaultMode"] for s in secrets} == {0o440}
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"], "or such files are not taken"


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
