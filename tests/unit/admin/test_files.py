"""Are files read within limits and replaced whole?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proxy.admin.files import read_policy, read_text, replace_text
from proxy.config import (
    BinariesIn,
    Listen,
    NoTls,
    ServeConfig,
    TlsFiles,
    UsersAt,
    check_files,
    check_private,
    parse_listen,
)
from proxy.errors import ConfigError
from tests.unit.policy.case_files import BASE


def test_policy_with_environment(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(BASE.replace("v1", "${V}"), encoding="utf-8")
    assert read_policy(path, {"V": "v9"}).data_version == "v9"


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"ab\xff")
    with pytest.raises(ConfigError, match="is not UTF-8 text, at byte 2"):
        read_text(tmp_path / "p", "policy")


def test_text_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.admin.files._LARGEST_BYTES", 3)
    (tmp_path / "p").write_bytes(b"abc")
    assert read_text(tmp_path / "p", "policy") == "abc"
    (tmp_path / "p").write_bytes(b"abcd")
    with pytest.raises(ConfigError, match="is larger than 3 bytes"):
        read_text(tmp_path / "p", "policy")


def test_replacement_keeps_the_owner(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        assert os.geteuid() > 0  # only root can make the case; every other user keeps its own files anyway
        return
    path = tmp_path / "u"
    path.write_text("old", encoding="utf-8")
    os.chown(path, 65534, 65534)
    replace_text(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid, path.stat().st_mode & 0o777) == (65534, 65534, 0o600)


def test_failed_replacement_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "u"
    path.write_text("old", encoding="utf-8")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ConfigError, match="cannot be written: No space left on device"):
        replace_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["u"]


def test_replacement_in_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        replace_text(tmp_path / "no" / "u", "new")


# --- options ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, expected",
    [
        ("127.0.0.1:6432", Listen("127.0.0.1", 6432)),
        ("[::1]:0", Listen("::1", 0)),
        ("db.example.org:65535", Listen("db.example.org", 65535)),
    ],
)
def test_address(text: str, expected: Listen) -> None:
    assert parse_listen(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize("text", ["", "6432", ":6432", "a:", "a:b", "::1:6432", "[::1]", "a:99999", "a b:1", "a:-1"])
def test_address_that_is_none(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_listen(text)


def test_no_policy_is_refused() -> None:
    with pytest.raises(ConfigError, match="no policy is given"):
        ServeConfig(policies=(), state=Path("s"))


def serve(folder: Path, *, tls: NoTls | TlsFiles = NoTls(), users: str = "") -> ServeConfig:  # noqa: B008 frozen
    policy = folder / "p.yaml"
    policy.write_text(BASE, encoding="utf-8")
    config = ServeConfig(policies=(policy,), state=folder / "state", tls=tls)
    return config if not users else ServeConfig(policies=(policy,), state=folder / "state", users=UsersAt(Path(users)))


def test_files_of_options_are_looked_at_first(tmp_path: Path) -> None:
    check_files(serve(tmp_path))
    with pytest.raises(ConfigError, match="users file /nowhere does not exist"):
        check_files(serve(tmp_path, users="/nowhere"))
    with pytest.raises(ConfigError, match="is not a file"):
        check_files(serve(tmp_path, users=str(tmp_path)))
    (tmp_path / "state").touch()
    with pytest.raises(ConfigError, match=r"state .* is not a directory"):
        check_files(serve(tmp_path))


def test_tls_key_must_be_private(tmp_path: Path) -> None:
    tls = TlsFiles(tmp_path / "cert", tmp_path / "key")
    tls.cert.touch()
    tls.key.touch()
    tls.key.chmod(0o644)
    with pytest.raises(ConfigError, match=r"TLS key .* has mode 0644"):
        check_files(serve(tmp_path, tls=tls))
    tls.key.chmod(0o600)
    check_files(serve(tmp_path, tls=tls))


def test_a_secret_that_is_mounted_for_the_process_s_own_group_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of mode 0440, the owner being another, as Kubernetes mounts secrets under an fsGroup."""
    path = tmp_path / "users.yaml"
    path.touch()
    path.chmod(0o440)
    owner, group = path.stat().st_uid, path.stat().st_gid
    with pytest.raises(ConfigError, match="has mode 0440"):
        check_private(path, "users file")  # its owner could close it
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    check_private(path, "users file")
    monkeypatch.setattr("os.getegid", lambda: group + 1)
    with pytest.raises(ConfigError, match="has mode 0440"):
        check_private(path, "users file")
    monkeypatch.undo()
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    for mode in (0o460, 0o444, 0o450):
        path.chmod(mode)
        with pytest.raises(ConfigError, match=f"has mode {mode:04o}"):
            check_private(path, "users file")


def test_front_needs_its_programs(tmp_path: Path) -> None:
    policy = serve(tmp_path).policies
    config = ServeConfig(policies=policy, state=tmp_path / "state", front=BinariesIn(tmp_path))
    with pytest.raises(ConfigError, match=r"PostgreSQL program .*initdb does not exist"):
        check_files(config)


def test_private_check_of_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        check_private(tmp_path / "no", "users file")


def test_file_without_right_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = serve(tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ConfigError, match=r"p\.yaml cannot be read"):
        check_files(config)
