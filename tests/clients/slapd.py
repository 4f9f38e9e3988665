"""A real directory: Debian's slapd, with people and groups of a test's own."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.certificates import Certificates
from tests.ports import reserved_port

SLAPD, SLAPADD = "/usr/sbin/slapd", "/usr/sbin/slapadd"
BASE = "dc=example,dc=org"
PEOPLE, GROUPS = f"ou=people,{BASE}", f"ou=groups,{BASE}"
ROOT, ROOT_PASSWORD = f"cn=root,{BASE}", "root secret"
SERVICE, SERVICE_PASSWORD = f"cn=hushql,{BASE}", "service secret"
ANALYSTS, CHIEFS = f"cn=analysts,{GROUPS}", f"cn=chiefs,{GROUPS}"
_START_S = 20.0


def person(uid: str, password: str, *more: str, dn: str = "") -> str:
    """An entry of somebody, as LDIF."""
    lines = [
        f"dn: {dn or f'uid={uid},{PEOPLE}'}",
        "objectClass: inetOrgPerson",
        f"uid: {uid}",
        f"cn: {uid}",
        f"sn: {uid}",
    ]
    return "\n".join([*lines, f"userPassword: {_hashed(password)}", *more]) + "\n"


def group(dn: str, *members: str) -> str:
    """An entry of a group of these distinguished names, as LDIF."""
    shown = "\n".join(f"member: {m}" for m in members)
    return f"dn: {dn}\nobjectClass: groupOfNames\ncn: {dn.split('=')[1].split(',', maxsplit=1)[0]}\n{shown}\n"


def _hashed(password: str) -> str:
    digest = hashlib.sha1(password.encode() + b"salt").digest() + b"salt"
    return "{SSHA}" + base64.b64encode(digest).decode()


@dataclass(slots=True)
class Directory:
    """A running slapd. port: of ldaps://, plain_port: of ldap:// with STARTTLS."""

    process: subprocess.Popen[bytes]
    port: int
    plain_port: int
    folder: Path
    held: ExitStack

    def modify(self, ldif: str) -> None:
        """Change entries as the directory's administrator."""
        uri = f"ldap://127.0.0.1:{self.plain_port}"
        subprocess.run(
            ["ldapmodify", "-H", uri, "-x", "-D", ROOT, "-w", ROOT_PASSWORD], input=ldif.encode(), check=True,
            capture_output=True, timeout=60,
        )  # fmt: skip

    def close(self) -> None:
        """End it for good."""
        self.stop()
        self.held.close()

    def stop(self) -> None:
        """End it, as when it cannot be reached."""
        self.process.terminate()
        self.process.wait(30)

    def start_again(self) -> None:
        self.process = _run(self.folder, self.port, self.plain_port)


def start_directory(folder: Path, certificates: Certificates, entries: str) -> Directory:
    """A directory with a root, the service account, the two branches and these entries."""
    data = folder / "data"
    data.mkdir()
    (folder / "slapd.conf").write_text(
        f"""include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
pidfile {folder}/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCertificateFile {certificates.cert}
TLSCertificateKeyFile {certificates.key}
database mdb
maxsize 10485760
suffix "{BASE}"
directory {data}
rootdn "{ROOT}"
rootpw "{ROOT_PASSWORD}"
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{SERVICE}" read by users read by anonymous auth
"""
    )
    secret = _hashed(SERVICE_PASSWORD)
    trunk = (
        f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example\n\n"
        f"dn: {PEOPLE}\nobjectClass: organizationalUnit\nou: people\n\n"
        f"dn: {GROUPS}\nobjectClass: organizationalUnit\nou: groups\n\n"
        f"dn: {SERVICE}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\ncn: hushql\n"
        f"userPassword: {secret}\n\n"
    )
    ldif = folder / "entries.ldif"
    ldif.write_text(trunk + entries)
    subprocess.run([SLAPADD, "-f", folder / "slapd.conf", "-l", ldif], check=True, capture_output=True, timeout=60)
    held = ExitStack()
    port, plain_port = held.enter_context(reserved_port()), held.enter_context(reserved_port())
    return Directory(_run(folder, port, plain_port), port, plain_port, folder, held)


def _run(folder: Path, port: int, plain_port: int) -> subprocess.Popen[bytes]:
    places = f"ldaps://127.0.0.1:{port} ldap://127.0.0.1:{plain_port}"
    process = subprocess.Popen([SLAPD, "-d", "0", "-f", folder / "slapd.conf", "-h", places], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + _START_S
    asked = ["ldapwhoami", "-x", "-H", f"ldap://127.0.0.1:{plain_port}"]
    while subprocess.run(asked, capture_output=True, check=False, timeout=30).returncode != 0:
        assert process.poll() is None, "slapd has ended"
        assert time.monotonic() < deadline, "slapd does not answer"
    return process
