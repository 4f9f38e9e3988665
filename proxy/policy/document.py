"""What may be written in a policy file, key by key?

The models give the shape, the defaults and the descriptions that editors show. What needs more than one
key to judge (names that must exist, bounds of a column's type) is checked in `columns`, `tables`, `settings`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema

from proxy.sqltypes import TYPE_NAMES

SCHEMA_URL = "https://json-schema.org/draft/2020-12/schema"

PlainValue = Annotated[object, WithJsonSchema({"type": ["string", "number", "boolean"]})]
Listable = Annotated[object, WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]  # null: if randomized


def _as_text(value: object) -> object:
    """Numbers are fine where a label is wanted: `data_version: 7` means '7'."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _duration_schema() -> WithJsonSchema:
    return WithJsonSchema({"type": ["string", "integer"], "pattern": r"^[0-9.]+ *(us|ms|s|min|h|d)$|^0$"})


Label = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "number"]})]
DurationText = Annotated[object, _duration_schema()]
WholeNumber = Annotated[int, Field(ge=1, le=1_000_000_000)]
UNIONS = frozenset({"unit", "max_rows_per_unit", "max_rows_per_group", "max_groups_per_unit"})  # of several kinds
UNION_KINDS = frozenset({"#column", "#columns", "#path", "#number", "#ceiling"})


def _no_boolean(value: object) -> object:
    """Python counts true as 1; a file does not mean that."""
    return str(value).lower() if isinstance(value, bool) else value


class Document(BaseModel):
    """A mapping whose keys are all known; types are not converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)


class SourceDocument(Document):
    """Where the private rows are."""

    engine: Literal["duckdb", "postgres", "spark"] = Field(
        description="duckdb reads a database file or Parquet/CSV files; postgres reads a server; spark asks a cluster."
    )
    path: str | None = Field(default=None, min_length=1, description="DuckDB database file, relative to this file.")
    files: dict[str, str] | None = Field(
        default=None,
        min_length=1,
        description="One Parquet or CSV file for each table of the policy, relative to this file. Engine spark: Parquet"
        " files or folders as its server names them, /lake/orders or s3://lake/orders.",
    )
    dsn: str | None = Field(
        default=None,
        min_length=1,
        description="PostgreSQL connection string; take it from the environment: ${SHOP_DSN}.",
    )
    url: str | None = Field(
        default=None, min_length=1, description="Address of a Spark Connect server: sc://host:443/;use_ssl=true."
    )
    token: str | None = Field(
        default=None, min_length=1, description="The server's token; take it from the environment: ${SPARK_TOKEN}."
    )
    immutable: bool | None = Field(
        default=None, description="Engine spark: true, which says that nobody changes these rows while they are served."
    )
    may_write: bool | None = Field(
        default=None,
        description="Engine spark: true serves also where tables may be created; else the server must forbid it.",
    )
    data_version: Label = Field(
        description="A label of the data's state. Change it when the data change: stored answers are not reused then."
    )


class PrivacyDocument(Document):
    """Who is protected, and how strongly."""

    unit: str = Field(
        min_length=1,
        max_length=63,
        description="The word messages use for who is protected (customer, patient); `row` if each row stands alone.",
    )
    unit_changed_from: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        description="The word that `unit` was: acknowledges that all that was released before is outside the promise.",
    )
    neighbors: Literal["add_remove", "replace_one"] = Field(
        default="add_remove",
        description="What one unit may do to the data: be there or not, or be exchanged (double noise).",
    )
    group_size: int = Field(default=1, ge=1, le=1000, description="So many units together are protected as one.")
    accounting: Literal["zcdp", "pure"] = Field(
        default="zcdp",
        description="zcdp: Gaussian noise, small delta. pure: Laplace noise, delta 0, listed group keys only.",
    )
    delta: float | None = Field(
        default=None, description="Chance that the promise fails, in (0, 0.01]; default 1e-6, pure 0."
    )
    delta_pool: float | None = Field(
        default=None,
        description="Part of delta that pays for groups nobody listed. Default: half, or 0 if there are none.",
    )
    query_epsilon: float | None = Field(
        default=None,
        description="Epsilon of one query, unless the client sets hush.epsilon. Default: by `questions`, or 0.5.",
    )
    max_query_epsilon: float = Field(default=100.0, description="The most a client may set hush.epsilon to.")
    confirm: bool = Field(
        default=False,
        description="Refuse what is expected to be all noise until it is asked again, unless hush.confirm is off.",
    )
    tell_cut: bool = Field(
        default=True,
        description="Where no profile tells it, tell how many units have rows left out, for 2 % of the charge.",
    )
    profile: Literal["known", "charged"] = Field(
        default="known",
        description="What profiles tell: known to who may ask a table, or paid for first by each login and session.",
    )
    raw_select: Literal["refuse", "empty", "made_up"] = Field(
        default="refuse",
        description="SELECT of private rows: an error, no rows, or rows that are made up from this policy alone.",
    )
    time_zone: str = Field(
        default="UTC", description="Time zone in which dates and times are understood, as Europe/Zurich."
    )
    time_grid: DurationText = Field(default="10ms", description="Answers leave on this time grid; 0 turns it off.")
    min_units: int = Field(
        default=0, ge=0, le=1_000_000_000, description="Extra units an unlisted group needs to appear."
    )
    reuse_factor: float = Field(
        default=2.0, description="From 1 to 1000; not used yet: stored answers are given for the same noise only."
    )


class AccountDocument(Document):
    """The most an account may spend, over its life or in each calendar window."""

    epsilon: float = Field(description="Epsilon at the policy's delta, from 0.0001 to 1000000.")
    questions: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="How many questions it is to pay for, in place of privacy.query_epsilon."
    )
    refresh: str | None = Field(
        default=None, description="`lifetime` (default): what is spent stays spent; `day`, `week`, `month`: per window."
    )
    acknowledge_lifetime_loss: bool | None = Field(
        default=None, description="true is required of a budget that refreshes: its loss over a lifetime has no bound."
    )


class BudgetsDocument(Document):
    """The accounts that every query is charged to."""

    dataset: AccountDocument = Field(description="All users together. The only guarantee against users who share.")
    role: AccountDocument | None = Field(
        default=None, description="All logins of one role together, for each role. No limit of its own if left out."
    )
    user: AccountDocument | None = Field(default=None, description="Each login. No limit of its own if left out.")
    session: AccountDocument | None = Field(default=None, description="Each session. No limit of its own if left out.")


class RandomizedDocument(Document):
    """How values were randomized before they were stored: one of the ways."""

    keep: float | None = Field(default=None, description="Kept with this chance, else any of the values, all alike.")
    epsilon: float | None = Field(default=None, description="Kept as often as this epsilon allows, else any value.")
    truth: float | None = Field(default=None, description="Two coins: the truth is told with this chance, ...")
    yes: float | None = Field(default=None, description="... else yes is said with this one: true, or the first value.")
    laplace: float | None = Field(default=None, description="Laplace noise of this scale on a number in its bounds.")
    gaussian: float | None = Field(
        default=None, description="Gaussian noise of this standard deviation on a number in its bounds."
    )


class ColumnDocument(Document):
    """One column that clients may name."""

    type: str = Field(description="PostgreSQL type.", json_schema_extra={"examples": [*sorted(TYPE_NAMES)]})
    key: bool | None = Field(default=None, description="The unit or a join key: usable in joins, never shown.")
    bounds: list[PlainValue] | None = Field(default=None, description="[low, high]: measures are clamped to it.")
    values: list[Listable] | None = Field(
        default=None, description="Every value the column may have; public. null may be one of a randomized column's."
    )
    nullable: bool = Field(default=True, description="false: NULL counts as the middle of the bounds.")
    hidden: bool = Field(default=False, description="Used to find the unit, but not there for clients.")
    case_blind: bool = Field(default=False, description="Text groups are compared in lower case.")
    sum_bounds: list[PlainValue] | None = Field(
        default=None, description="[low, high] of one unit's sum of this column."
    )
    randomized: RandomizedDocument | None = Field(
        default=None, description="Values were randomized before they were stored; bounds and values are the true ones."
    )
    public: bool = Field(default=False, description="In a local table: the column was stored as it is, for everybody.")


class UnitPath(Document):
    """The unit is that of the parent row."""

    via: str = Field(min_length=1, description="The table whose row says who owns this one.")
    on: str = Field(min_length=1, description="Column of this table that refers to the parent's row.")


def _unit_kind(value: object) -> str:
    if isinstance(value, dict | UnitPath):
        return "#path"
    return "#columns" if isinstance(value, list) else "#column"


UnitNames = Annotated[
    Annotated[str, Field(min_length=1), Tag("#column")]
    | Annotated[list[str], Field(min_length=1), Tag("#columns")]
    | Annotated[UnitPath, Tag("#path")],
    Discriminator(_unit_kind),
]


class AtMost(Document):
    """A contribution bound that nothing raises, whatever a profile tells."""

    at_most: WholeNumber = Field(
        description="Never more, also where a profile tells that more would be nearer the truth."
    )


RowsBound = Annotated[
    Annotated[WholeNumber, Tag("#number")] | Annotated[AtMost, Tag("#ceiling")],
    Discriminator(lambda value: "#ceiling" if isinstance(value, dict | AtMost) else "#number"),
]


class TableDocument(Document):
    """One table that clients may name."""

    public: bool = Field(default=False, description="Nobody's data: answered exactly and free.")
    local: bool = Field(
        default=False,
        description="Private before it was stored: each column is randomized or declared public; nothing is charged.",
    )
    raw_select: Literal["refuse", "allow"] = Field(
        default="refuse", description="Of a local table: whether its rows are shown as they are stored."
    )
    relation: str | None = Field(
        default=None, min_length=1, description="Its name in the engine, if different: main.users."
    )
    unit: UnitNames | None = Field(
        default=None, description="Column with the unit, list of such columns, or {via: table, on: column}."
    )
    unit_unique: bool = Field(
        default=False, description="Each unit has one row at most; checked when the dataset starts."
    )
    joins: dict[str, str | list[str]] = Field(default={}, description="Column: table.column it may be equated with.")
    complete_joins: list[str] = Field(
        default=[], description="Columns of joins whose every row meets one of the other table; checked at the start."
    )
    max_rows_per_unit: RowsBound | None = Field(
        default=None,
        description="T: rows of one unit, all groups together. {at_most: 60} is a ceiling; without it, by the profile.",
    )
    max_rows_per_group: RowsBound | None = Field(
        default=None, description="C: rows of one unit in one group. Default T."
    )
    max_groups_per_unit: RowsBound | None = Field(default=None, description="G: groups one unit is in. Default T.")
    max_rows_per: dict[str, WholeNumber] = Field(
        default={}, description="Rows of one unit for each value of a column, [columns] or month(column): {year: 2}."
    )
    max_keys_per_unit: WholeNumber = Field(default=1000, description="K: most unlisted group keys one unit may hold.")
    unit_filter: Literal["allow", "refuse"] = Field(
        default="refuse", description="Predicates that name the unit's column."
    )
    unit_constant: list[str] = Field(default=[], description="Columns that have one value for all rows of a unit.")
    comment: str = Field(default="", description="Shown to clients as the table's comment.")
    columns: dict[str, ColumnDocument] = Field(description="Every column that exists for clients.", min_length=1)


class AccessDocument(Document):
    """Who may log in."""

    users_file: str = Field(default="users.yaml", min_length=1, description="File of logins, relative to this file.")


class LimitsDocument(Document):
    """What one client may use of the machine."""

    max_sessions: int = Field(default=100, ge=1, le=10_000, description="Open sessions, all logins together.")
    max_sessions_per_user: int = Field(default=50, ge=1, le=10_000, description="Open sessions of one login.")
    statement_timeout: DurationText = Field(default="60s", description="Longest run time of one statement.")
    idle_timeout: DurationText = Field(default="1h", description="Sessions that are idle for so long are closed.")
    login_timeout: DurationText = Field(default="10s", description="Time a client has to log in.")
    max_statement_bytes: int = Field(default=1_000_000, ge=1_000, le=100_000_000, description="Longest statement text.")
    engine_memory: str = Field(
        default="4GB", pattern=r"^[1-9][0-9]{0,6} ?(MB|GB|TB)$", description="Memory of the engine, as 4GB or 500MB."
    )
    engine_threads: int = Field(default=0, ge=0, le=1024, description="Threads of the engine; 0: one for each core.")


class PolicyDocument(Document):
    """A policy of hushql: which data exist for clients, who is protected, and how much may be asked."""

    version: Annotated[Literal[1], BeforeValidator(_no_boolean)] = Field(description="Version of this format: 1.")
    dataset: str = Field(description="Name of the database that clients connect to.")
    source: SourceDocument = Field(description="Where the private rows are.")
    privacy: PrivacyDocument = Field(description="Who is protected, and how strongly.")
    budgets: BudgetsDocument = Field(description="How much may be asked.")
    tables: dict[str, TableDocument] = Field(description="What exists for clients.", min_length=1)
    access: AccessDocument = Field(default=AccessDocument(), description="Who may log in.")
    limits: LimitsDocument = Field(default=LimitsDocument(), description="What one client may use of the machine.")


def schema() -> dict[str, object]:
    """JSON Schema of a policy file, for editors and other checkers."""
    return {"$schema": SCHEMA_URL, **PolicyDocument.model_json_schema(), "title": "hushql policy"}
