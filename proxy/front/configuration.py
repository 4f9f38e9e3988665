"""Which server settings make the front small, quiet and disposable?

Pure text: postgresql.conf for one server. The file belongs to the proxy; the server only reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.front.quoting import quote_config
from proxy.front.roles import READERS

PORT = 5432  # part of the socket's file name only: nothing listens on TCP
RESERVED_CONNECTIONS = 3  # for the proxy's own superuser, on top of the clients'
CONNECTION_SLACK = 10  # backends that are still closing while new sessions open

# Of every server, grouped by their reason.
_FIXED = (
    # disposable: rebuilt at every start, so nothing is kept safe
    ("fsync", "off"),
    ("restart_after_crash", "off"),  # recovery could lose what was never flushed; the proxy rebuilds
    ("full_page_writes", "off"),
    ("synchronous_commit", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("max_replication_slots", "0"),
    ("min_wal_size", "4MB"),
    ("max_wal_size", "32MB"),
    ("autovacuum", "off"),
    # small
    ("shared_buffers", "16MB"),
    ("huge_pages", "off"),
    ("dynamic_shared_memory_type", "mmap"),  # in the data directory: nothing stays behind after a kill
    ("jit", "off"),
    ("max_parallel_workers", "0"),
    ("max_parallel_workers_per_gather", "0"),
    ("max_logical_replication_workers", "0"),
    ("max_prepared_transactions", "0"),
    ("temp_file_limit", "64MB"),
    # says nothing about anybody's statements, neither in the log nor in statistics views
    ("logging_collector", "off"),
    ("log_destination", "stderr"),
    ("log_min_messages", "log"),
    ("log_min_error_statement", "panic"),
    ("log_statement", "none"),
    ("log_checkpoints", "off"),
    ("log_parameter_max_length", "0"),
    ("log_parameter_max_length_on_error", "0"),
    ("track_activities", "off"),
    ("track_counts", "off"),
    ("update_process_title", "off"),
    # the same answers everywhere
    ("lc_messages", "C"),
    ("standard_conforming_strings", "on"),
    ("default_text_search_config", "pg_catalog.english"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What differs between servers."""

    socket_dir: str
    hba_file: str
    ident_file: str
    max_sessions: int
    time_zone: str
    major: int


def configuration_text(settings: ServerSettings) -> str:
    """postgresql.conf."""
    pairs = [
        # reached through one private socket, by the proxy alone
        ("listen_addresses", ""),
        ("port", str(PORT)),
        ("unix_socket_directories", settings.socket_dir),
        ("unix_socket_permissions", "0700"),
        ("hba_file", settings.hba_file),
        ("ident_file", settings.ident_file),
        ("max_connections", str(settings.max_sessions + READERS + CONNECTION_SLACK + RESERVED_CONNECTIONS)),
        ("superuser_reserved_connections", str(RESERVED_CONNECTIONS)),
        ("timezone", settings.time_zone),
        *_FIXED,
    ]
    if settings.major >= 17:  # the release that introduced both
        pairs += [("max_notify_queue_pages", "64"), ("allow_alter_system", "off")]
    if settings.major >= 18:  # no separate I/O processes
        pairs += [("io_method", "sync")]
    return "".join(f"{name} = {quote_config(value)}\n" for name, value in pairs)
