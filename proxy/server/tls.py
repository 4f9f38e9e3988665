"""How is the server's certificate loaded?"""

from __future__ import annotations

import ssl
from pathlib import Path

from proxy.errors import ConfigError
from proxy.server.datasets import TlsOffered
from proxy.wire.certificate import end_point
from proxy.wire.startup import ALPN


def load_tls(certificate: Path, key: Path, *, is_required: bool = False) -> TlsOffered:
    """Read a PEM chain, the server's own certificate first, and its unencrypted key. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([ALPN])
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
        text = certificate.read_text(encoding="ascii", errors="replace")
    except (OSError, ssl.SSLError, ConfigError) as error:
        raise ConfigError(
            f"the TLS certificate {certificate} and the key {key} cannot be used together",
            hint="Both are PEM files; the key is the certificate's own and not encrypted.",
        ) from error
    start = text.index(ssl.PEM_HEADER)
    end = text.index(ssl.PEM_FOOTER, start) + len(ssl.PEM_FOOTER)
    return TlsOffered(context, end_point(ssl.PEM_cert_to_DER_cert(text[start:end] + "\n")), is_required)


def _no_password() -> str:
    raise ConfigError("the key is encrypted")
