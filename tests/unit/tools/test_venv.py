"""Does `make VENV=...` leave the environment of another checkout alone?"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment that looks like one made by the checkout `first`, whose pip would leave a trace."""
    environment, first = tmp_path / "venv", tmp_path / "first"
    (first / "proxy").mkdir(parents=True)
    (first / "proxy" / "__init__.py").touch()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (site,) = environment.glob("lib/python3*/site-packages")
    (site / "hushql.pth").write_text(f"{first}\n")
    (site / "pip.py").write_text(f"open({str(tmp_path / 'asked')!r}, 'a').write('x')\nprint('pip 1')\n")
    return environment


def _made(checkout: Path, environment: Path) -> subprocess.CompletedProcess[str]:
    script = ["sh", str(ROOT / "tools" / "venv.sh"), str(environment)]
    return subprocess.run(script, cwd=checkout, capture_output=True, text=True, timeout=300, check=False)


def test_the_environment_of_another_checkout_is_refused_and_stays_as_it_is(environment: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    shutil.copy(ROOT / "requirements-dev.lock", second)
    refused = _made(second, environment)
    assert refused.returncode == 1
    assert f"the environment {environment} belongs to another checkout: {tmp_path / 'first'}\n" in refused.stderr
    assert "Name another with VENV=" in refused.stderr
    assert not (tmp_path / "asked").exists()


def test_its_own_checkout_may_install_again(environment: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "requirements-dev.lock", tmp_path / "first")
    assert _made(tmp_path / "first", environment).returncode == 0
    assert (tmp_path / "asked").exists()


def test_each_checkout_has_a_stamp_of_its_own() -> None:
    asked = subprocess.run(
        ["make", "-n", "VENV=/nowhere", "check-types"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert f"/nowhere/.installed{str(ROOT).replace('/', '-')}" in asked.stdout
