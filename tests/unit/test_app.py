"""What is checked and said before anything is started?"""

from __future__ import annotations

import asyncio
import importlib
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.app import Proxy, _open_ledger, check_own_package
from proxy.config import LedgerAt, Listen, ServeConfig, TlsFiles
from proxy.errors import ConfigError, LedgerFailed


def warnings_of(config: ServeConfig, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What is said about the address; nothing listens on it."""

    async def bound() -> None:
        proxy = Proxy(config)
        proxy._sockets()
        await proxy.stop()

    with caplog.at_level(logging.WARNING, "hushql"):
        asyncio.run(bound())
    return [record.getMessage() for record in caplog.records]


def test_a_ledger_elsewhere_is_used_and_not_files(tmp_path: Path) -> None:
    config = ServeConfig(policies=(tmp_path,), state=tmp_path / "s", ledger=LedgerAt("postgresql://127.0.0.1:1/none"))
    with pytest.raises(LedgerFailed, match="the ledger's PostgreSQL cannot be used"):
        _open_ledger(config.state, config.ledger)
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["lock"]


def test_answers_that_travel_in_clear_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = ServeConfig(policies=(tmp_path,), state=tmp_path, listen=Listen("0.0.0.0", 0))
    (said,) = warnings_of(config, caplog)
    assert said.startswith("listening on 0.0.0.0:0 without TLS")
    assert "--tls-cert" in said


def test_no_warning_with_tls_or_on_this_machine_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    local = ServeConfig(policies=(tmp_path,), state=tmp_path, listen=Listen("127.0.0.1", 0))
    tls = TlsFiles(tmp_path / "crt", tmp_path / "key")
    secure = ServeConfig(policies=(tmp_path,), state=tmp_path, listen=Listen("0.0.0.0", 0), tls=tls)
    assert warnings_of(local, caplog) + warnings_of(secure, caplog) == []


def test_a_package_of_our_own_is_accepted() -> None:
    check_own_package()


def test_files_of_another_distribution_in_our_package_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The distribution proxy.py installs a package of the same name, with `common` in it."""
    package = importlib.import_module("proxy")
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "__init__.py").touch()
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    with pytest.raises(ConfigError, match="another distribution") as refused:
        check_own_package()
    assert "proxy.py" in refused.value.detail
    assert "environment of its own" in refused.value.hint


def test_nothing_of_the_console_is_loaded_where_it_is_not_turned_on() -> None:
    loaded = "import sys, proxy.__main__; print(*sorted({name.split('.')[0] for name in sys.modules}), *sys.modules)"
    names = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True).stdout.split()
    assert not {"starlette", "uvicorn", "jinja2", "proxy.console"} & set(names)


def test_a_console_that_would_send_passwords_in_the_clear_is_refused(tmp_path: Path) -> None:
    config = ServeConfig(policies=(tmp_path,), state=tmp_path, console=Listen("0.0.0.0", 0))
    proxy = Proxy(config)
    with pytest.raises(ConfigError, match="would send passwords in the clear"):
        proxy._console_sockets()
    asyncio.run(proxy.stop())
