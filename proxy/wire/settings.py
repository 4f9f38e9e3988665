"""Which settings of the front may a client change, and how is a duration read?

The list is closed: a setting that can take memory, processes or locks beyond a session's share is not on it, and
neither is one that changes how a statement is cut into tokens. PostgreSQL itself guards those of the superuser.
"""

from __future__ import annotations

from proxy.wire.encodings import codec_of

ALLOWED = frozenset(
    {
        # how values look
        "application_name", "bytea_output", "client_encoding", "datestyle", "extra_float_digits", "intervalstyle",
        "lc_messages", "lc_monetary", "lc_numeric", "lc_time", "timezone", "timezone_abbreviations", "xmlbinary",
        "xmloption", "quote_all_identifiers", "client_min_messages", "standard_conforming_strings",
        # names and types
        "search_path", "array_nulls", "check_function_bodies", "default_table_access_method", "default_tablespace",
        "temp_tablespaces", "default_text_search_config", "default_toast_compression", "escape_string_warning",
        "backslash_quote", "transform_null_equals", "row_security", "createrole_self_grant", "password_encryption",
        # transactions
        "default_transaction_deferrable", "default_transaction_isolation", "default_transaction_read_only",
        "transaction_deferrable", "transaction_isolation", "transaction_read_only", "synchronous_commit",
        # time-outs; the proxy has its own above them
        "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout",
        "transaction_timeout", "deadlock_timeout", "tcp_keepalives_idle", "tcp_keepalives_interval",
        "tcp_keepalives_count", "tcp_user_timeout", "client_connection_check_interval",
        # the planner's choices; bounded by the statement's time
        "constraint_exclusion", "cpu_index_tuple_cost", "cpu_operator_cost", "cpu_tuple_cost", "cursor_tuple_fraction",
        "effective_cache_size", "enable_async_append", "enable_bitmapscan", "enable_gathermerge", "enable_hashagg",
        "enable_hashjoin", "enable_incremental_sort", "enable_indexonlyscan", "enable_indexscan", "enable_material",
        "enable_memoize", "enable_mergejoin", "enable_nestloop", "enable_parallel_append", "enable_parallel_hash",
        "enable_partition_pruning", "enable_partitionwise_aggregate", "enable_partitionwise_join", "enable_seqscan",
        "enable_sort", "enable_tidscan", "from_collapse_limit", "geqo", "geqo_threshold", "jit", "join_collapse_limit",
        "plan_cache_mode", "random_page_cost", "seq_page_cost", "synchronize_seqscans",
        # refused by PostgreSQL itself, in its own words
        "role", "session_authorization",
    }
)  # fmt: skip

#: Spellings of true that `standard_conforming_strings` may be set to: off would change where a string ends.
_TRUE = frozenset({"on", "true", "yes", "1", "t", "y", "tru", "tr", "ye", "default"})

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "": 1e-3}


def may_set(name: str) -> bool:
    """Whether a client may change this setting; those of extensions and of the proxy have a dot in their name."""
    return name.lower() in ALLOWED or "." in name


def may_set_to(name: str, value: str) -> bool:
    """Whether a client may give this setting this value, as far as the relay must understand it."""
    if name.lower() == "standard_conforming_strings":
        return value.lower() in _TRUE
    if name.lower() == "client_encoding":
        return value.lower() in ("auto", "default") or bool(codec_of(value))
    return may_set(name)


def duration_s(text: str) -> float:
    """A time-out as `current_setting` spells it, in seconds; 0 for none. Unreadable text counts as none."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text[len(digits) :].strip()
    try:
        return max(0.0, float(digits) * _UNITS_S[unit])
    except (ValueError, KeyError):
        return 0.0
