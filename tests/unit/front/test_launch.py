"""The script that gives up rights and becomes a program, run as it is run in earnest."""

from __future__ import annotations

import ctypes
import os
import pwd
import resource
import subprocess
import sys
from collections.abc import Callable

import pytest

from proxy.front import launch
from proxy.front.account import SystemUser, own_account
from proxy.front.binaries import clean_environment, launch_command

ME = own_account()


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())


def test_limits_mask_directory_and_environment_are_set() -> None:
    shell = ["/bin/sh", "-c", "umask; pwd; ulimit -v; ulimit -f; ulimit -c; env | grep -c PG"]
    done = run(launch_command(ME, shell, address_space=1 << 30, file_size=1 << 20))
    assert done.stdout.split() == ["0077", "/", str(1 << 20), str((1 << 20) // 512), "0", "0"]


def test_a_program_that_is_not_there_is_an_error_of_the_launcher() -> None:
    done = run(launch_command(ME, ["/no/such/program"]))
    assert done.returncode == launch.LAUNCH_FAILED
    assert done.stderr == "cannot start /no/such/program: No such file or directory\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's parent-death signal is Linux's")
def test_a_child_of_somebody_else_does_not_start() -> None:
    command = launch_command(ME, ["/bin/echo", "started"])
    command[4] = "1"
    done = run(command)
    assert (done.returncode, done.stdout) == (launch.LAUNCH_FAILED, "")


def test_a_limit_is_never_raised() -> None:
    hard = "import resource as r, sys; r.setrlimit(r.RLIMIT_FSIZE, (4096, 4096));"
    inner = launch_command(ME, ["/bin/sh", "-c", "ulimit -f"], file_size=1 << 30)
    script = f"{hard} import os; c = {inner!r}; c[4] = str(os.getppid()); os.execv(c[0], c)"
    done = run([sys.executable, "-I", "-S", "-c", script])
    assert done.stdout.split() == ["8"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] != 4096


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
def test_root_becomes_the_account_with_all_its_groups_gone() -> None:
    nobody = pwd.getpwnam("nobody")
    account = SystemUser("nobody", nobody.pw_uid, nobody.pw_gid)
    done = run(launch_command(account, ["/usr/bin/id"]))
    assert f"uid={nobody.pw_uid}(" in done.stdout
    assert f"groups={nobody.pw_gid}(" in done.stdout
    assert "(root)" not in done.stdout


# --- the same steps inside this process, with the irrevocable ones replaced -----------------------


class Became(BaseException):
    """Raised where the process would have become another program, or ended."""


class Kernel:
    """Records what would have been asked of the operating system, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, parent: int = 77, prctl: int = 0) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.prctl_result = prctl
        for name in ("setgroups", "setgid", "setuid", "umask", "chdir"):
            monkeypatch.setattr(os, name, self.recorder(name))
        monkeypatch.setattr(os, "execv", self.recorder("execv", ends=True))
        monkeypatch.setattr(os, "_exit", self.recorder("_exit", ends=True))
        monkeypatch.setattr(os, "getppid", lambda: parent)
        monkeypatch.setattr(resource, "setrlimit", self.recorder("setrlimit"))
        monkeypatch.setattr(launch, "_write_oom_score", self.recorder("oom"))
        monkeypatch.setattr(ctypes, "CDLL", lambda _name, **_options: self)
        monkeypatch.setattr(sys, "platform", "linux")

    def recorder(self, name: str, *, ends: bool = False) -> Callable[..., None]:
        def record(*arguments: object) -> None:
            self.asked.append((name, *arguments))
            if ends:
                raise Became

        return record

    def prctl(self, *arguments: int) -> int:
        self.asked.append(("prctl", *arguments))
        return self.prctl_result

    def names(self) -> list[object]:
        return [asked[0] for asked in self.asked]


def test_rights_are_dropped_before_the_life_is_tied_and_the_program_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent-death signal is forgotten at a change of user, so the order matters."""
    kernel = Kernel(monkeypatch)
    with pytest.raises(Became):
        launch.main(["77", "9", "8", "1000", "2000", "/bin/x", "y"])
    limits = ["setrlimit"] * 3
    assert kernel.names() == ["oom", *limits, "setgroups", "setgid", "setuid", "umask", "prctl", "chdir", "execv"]
    assert ("setgroups", []) in kernel.asked
    assert ("setgid", 8) in kernel.asked
    assert ("setuid", 9) in kernel.asked
    assert kernel.asked[-1] == ("execv", "/bin/x", ["/bin/x", "y"])


def test_nothing_is_dropped_or_limited_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Became):
        launch.main(["77", "-1", "-1", "0", "0", "/bin/x"])
    assert kernel.names() == ["oom", "setrlimit", "umask", "chdir", "execv"]


def test_an_orphan_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch, parent=1)
    with pytest.raises(Became):
        launch.main(["77", "-1", "-1", "0", "0", "/bin/x"])
    assert kernel.asked[-1] == ("_exit", launch.LAUNCH_FAILED)


def test_a_failed_step_ends_the_launch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = Kernel(monkeypatch, prctl=-1)
    with pytest.raises(Became):
        launch.main(["77", "-1", "-1", "0", "0", "/bin/x"])
    assert kernel.asked[-1] == ("_exit", launch.LAUNCH_FAILED)
    assert capsys.readouterr().err == "cannot start /bin/x: prctl failed\n"


def test_a_lower_hard_limit_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (10, 20))
    launch._limit(resource.RLIMIT_AS, 30)
    launch._limit(resource.RLIMIT_AS, 5)
    assert [asked[2] for asked in kernel.asked] == [(20, 20), (5, 5)]
