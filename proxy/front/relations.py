"""Which relations, functions and settings does the schema `hush` offer to clients?

Names and types only: the contents are released per statement by the session, which reuses these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from proxy.dp.accounting import usual_epsilon
from proxy.policy.model import Policy
from proxy.sqltypes import SqlType

SCHEMA = "hush"

# relation -> its columns in order. Costs in rho are exact multiples of 1e-12, hence numeric; what is
# converted to (epsilon, delta) is a float. NULL: unlimited, not applicable, or not known yet.
RELATIONS: Mapping[str, tuple[tuple[str, SqlType], ...]] = MappingProxyType(
    {
        "budget": (
            ("account", SqlType.TEXT),
            ("kind", SqlType.TEXT),
            ("epsilon_limit", SqlType.FLOAT8),
            ("epsilon_spent", SqlType.FLOAT8),
            ("epsilon_remaining", SqlType.FLOAT8),
            ("rho_limit", SqlType.NUMERIC),
            ("rho_spent", SqlType.NUMERIC),
            ("delta", SqlType.FLOAT8),
            ("queries_left", SqlType.INT8),
            ("window_ends", SqlType.TIMESTAMPTZ),
            ("lifetime_epsilon", SqlType.FLOAT8),
            ("everyone_epsilon", SqlType.FLOAT8),
            ("outside_promise", SqlType.TEXT),
            ("profile_epsilon", SqlType.FLOAT8),
        ),
        "history": (
            ("at", SqlType.TIMESTAMPTZ),
            ("query", SqlType.TEXT),
            ("epsilon", SqlType.FLOAT8),
            ("rho", SqlType.NUMERIC),
            ("delta", SqlType.FLOAT8),
            ("reused", SqlType.BOOL),
            ("outcome", SqlType.TEXT),
        ),
        "last_query": (
            ("column", SqlType.TEXT),
            ("mechanism", SqlType.TEXT),
            ("bound", SqlType.TEXT),
            ("sd", SqlType.FLOAT8),
            ("half_width_95", SqlType.FLOAT8),
            ("epsilon", SqlType.FLOAT8),
            ("rho", SqlType.NUMERIC),
            ("delta", SqlType.FLOAT8),
            ("reused", SqlType.BOOL),
            ("left_out", SqlType.TEXT),
        ),
        "messages": (
            ("severity", SqlType.TEXT),
            ("message", SqlType.TEXT),
            ("detail", SqlType.TEXT),
        ),
        "policy": (
            ("table", SqlType.TEXT),
            ("column", SqlType.TEXT),
            ("type", SqlType.TEXT),
            ("bounds", SqlType.TEXT),
            ("values", SqlType.TEXT),
            ("unit", SqlType.TEXT),
            ("public", SqlType.BOOL),
            ("loaded_at", SqlType.TIMESTAMPTZ),
            ("status", SqlType.TEXT),
            ("profile", SqlType.TEXT),
        ),
    }
)

# the same for logins of administrators; the public PostgreSQL lets nobody read its own, empty ones
ADMIN_RELATIONS: Mapping[str, tuple[tuple[str, SqlType], ...]] = MappingProxyType({
    "admin_history": (
        ("at", SqlType.TIMESTAMPTZ), ("login", SqlType.TEXT), ("role", SqlType.TEXT), ("tables", SqlType.TEXT),
        ("query", SqlType.TEXT), ("epsilon", SqlType.FLOAT8), ("rho", SqlType.NUMERIC), ("delta", SqlType.FLOAT8),
        ("dataset_epsilon", SqlType.FLOAT8), ("dataset_rho", SqlType.NUMERIC),
    ),
    "admin_budget": (
        ("day", SqlType.DATE), ("kind", SqlType.TEXT), ("account", SqlType.TEXT), ("tables", SqlType.TEXT),
        ("statements", SqlType.INT8), ("epsilon", SqlType.FLOAT8), ("rho", SqlType.NUMERIC), ("delta", SqlType.FLOAT8),
    ),
})  # fmt: skip

# function in a FROM clause, of one text -> the columns of its rows
CALLS: Mapping[str, tuple[tuple[str, SqlType], ...]] = MappingProxyType(
    {
        "estimate": (
            ("statement", SqlType.INT4),
            ("account", SqlType.TEXT),
            ("rho", SqlType.NUMERIC),
            ("epsilon", SqlType.FLOAT8),
            ("delta", SqlType.FLOAT8),
            ("reused", SqlType.BOOL),
            ("fits", SqlType.BOOL),
            ("half_width_95", SqlType.TEXT),
            ("refusal", SqlType.TEXT),
            ("forecast", SqlType.TEXT),
        ),
    }
)

CALL_COMMENTS: Mapping[str, str] = MappingProxyType(
    {"estimate": "what statements, given as one text, would cost and how accurate they would be"}
)

RELATION_COMMENTS: Mapping[str, str] = MappingProxyType(
    {
        "admin_budget": "what each account was charged, by day and tables",
        "admin_history": "the charged statements of all logins",
        "budget": "the accounts that your queries are charged to, and what is left",
        "history": "your own charged statements",
        "last_query": "noise and charge of your last private statement",
        "messages": "the notices of your last private statement",
        "policy": "tables and columns you may query, with their declared bounds and values",
    }
)

# function -> what it gives around an aggregate of the select list
FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "sd": "standard deviation of the noise in an aggregate",
        "low": "lower end of the 95 % noise interval of an aggregate",
        "high": "upper end of the 95 % noise interval of an aggregate",
    }
)


def setting_defaults(policy: Policy) -> tuple[tuple[str, str], ...]:
    """What SHOW gives for each hush.* setting before any SET. Empty text: not set, the policy decides."""
    return (
        ("hush.epsilon", f"{usual_epsilon(policy.privacy):.15g}"),
        ("hush.max_rows_per_group", ""),
        ("hush.max_groups", ""),
        ("hush.session", ""),
        ("hush.intervals", "off"),
        ("hush.notes", "off"),
        ("hush.fresh", "off"),
        ("hush.nonnegative", "on"),
        ("hush.consistency", "on"),
        ("hush.digits", "noise"),
        ("hush.confirm", "on" if policy.privacy.confirm else "off"),
        ("hush.target_error", ""),
        ("hush.max_charge", ""),
        ("hush.weights", ""),
    )
