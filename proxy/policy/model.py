"""What does the admin's policy say, as values the rest of the program can rely on?

Frozen and already validated: reading YAML, line numbers and messages are `policy.load`'s business.
Every question about a table that a planner may ask is answered here or not at all.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from proxy.policy.outside.logins import NoOutside, Outside
from proxy.policy.response import NotRandomized, Randomized
from proxy.sqltypes import SqlType, Value

MIN_QUERY_EPSILON = 1e-4
MAX_QUERY_EPSILON = 100.0


class Accounting(enum.Enum):
    """How charges compose."""

    ZCDP = "zcdp"
    PURE = "pure"


class Neighbors(enum.Enum):
    """Which two databases must be indistinguishable."""

    ADD_REMOVE = "add_remove"
    REPLACE_ONE = "replace_one"


class ProfileUse(enum.Enum):
    """Who pays for what profiles tell, beside the dataset: nobody, or every other account of whoever is told."""

    KNOWN = "known"
    CHARGED = "charged"


class RawSelect(enum.Enum):
    """What answers a SELECT of private rows themselves: an error, no rows, or rows made from the policy alone."""

    REFUSE = "refuse"
    EMPTY = "empty"
    MADE_UP = "made_up"


@dataclass(frozen=True, slots=True)
class Promise:
    """What a release hides: so many units together, each of them there or not, or exchanged for another."""

    group_size: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        if self.group_size < 1:
            raise ValueError(f"a promise is about one unit at least, not {self.group_size}")

    @property
    def reach(self) -> int:
        """How many times the most that one unit adds two databases may differ by which must look alike."""
        return self.group_size * (2 if self.neighbors is Neighbors.REPLACE_ONE else 1)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing is declared about a column's values."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """Values lie in [lo, hi]; measures are clamped to it, predicates see NULL outside."""

    lo: Value
    hi: Value


@dataclass(frozen=True, slots=True)
class Listed:
    """Values are one of a finite public set, in the policy's order."""

    values: tuple[Value, ...]

    def words(self) -> tuple[str, ...]:
        """The values as clients read them; truth values as SQL spells them."""
        return tuple(str(v).lower() if isinstance(v, bool) else str(v) for v in self.values)


Domain = Unknown | Bounded | Listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column that clients may name.

    key: the unit or a join key: usable in joins and COUNT(DISTINCT unit), never shown.
    nullable: False is enforced by mapping NULL to the middle of the bounds.
    case_blind: group keys are compared after lower().
    hidden: exists for joins along a path, not for clients.
    found: the domain is what a public table held when it was loaded, not declared.
    randomized: how each value was randomized before it was stored; `domain` is that of the stored values.
    limited_digits: the data, not the policy, declare a precision with which each number but NaN has a double. It is not
        shown, so that what was learned of a column stays valid.
    """

    name: str
    type: SqlType
    key: bool = False
    domain: Domain = field(default_factory=Unknown)
    nullable: bool = True
    hidden: bool = False
    case_blind: bool = False
    found: bool = False
    limited_digits: bool = field(default=False, repr=False)
    sum_bounds: Bounded | Unknown = field(default_factory=Unknown)
    randomized: Randomized | NotRandomized = field(default_factory=NotRandomized)

    @property
    def is_randomized(self) -> bool:
        return not isinstance(self.randomized, NotRandomized)


# --- who owns a row -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PublicTable:
    """Nobody: answered exactly and free."""


@dataclass(frozen=True, slots=True)
class RowUnit:
    """Each row is a unit of its own (event-level privacy)."""


@dataclass(frozen=True, slots=True)
class UnitColumns:
    """The unit stands in these columns of the table; any NULL part makes a NULL unit."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnitVia:
    """The unit is that of the row of `parent` whose key equals this table's column `on`.

    parent_key: the parent's column, unique there (checked per data version at start-up).
    """

    parent: str
    on: str
    parent_key: str


@dataclass(frozen=True, slots=True)
class LocalTable:
    """Whoever randomized the row before it was stored: outside the dataset's promise, see docs/claims/local-model.md.

    Everything is public but the true values of randomized columns. columns: where persons stand, if they stand there.
    shows_rows: whether stored rows are shown to clients as they are.
    """

    columns: tuple[str, ...] = ()
    shows_rows: bool = False


Ownership = PublicTable | RowUnit | UnitColumns | UnitVia | LocalTable


@dataclass(frozen=True, slots=True)
class JoinKey:
    """`column` of this table may be equated with `table.ref_column`."""

    column: str
    table: str
    ref_column: str


@dataclass(frozen=True, slots=True)
class WrittenBound:
    """A contribution bound the admin wrote. is_ceiling: whatever a profile tells, nothing raises it."""

    limit: int
    is_ceiling: bool = False


@dataclass(frozen=True, slots=True)
class ByProfile:
    """A contribution bound where the admin wrote none: what all but about one unit have, by a profile."""

    limit: int
    data_version: str


@dataclass(frozen=True, slots=True)
class NotGiven:
    """The policy is silent: `analysis` knows the default."""


BoundSource = WrittenBound | ByProfile | NotGiven


def limit_or(limit: BoundSource, default: int) -> int:
    """What the policy or a profile says, or the default where both are silent."""
    return default if isinstance(limit, NotGiven) else limit.limit


@dataclass(frozen=True, slots=True)
class PerKey:
    """A column, or the year, quarter, month, week, day or hour of its times."""

    column: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class RowsPer:
    """So many rows of a unit count that are alike in all of the keys."""

    keys: tuple[PerKey, ...]
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One relation that clients may name.

    relation: its name in the engine, dotted parts split. complete_joins: those by which each row meets a row.
    rows_per_unit (T), rows_per_group (C), groups_per_unit (G): contribution bounds.
    rows_per: bounds of rows that have the same values. keys_per_unit (K): most private keys one unit may hold.
    rows_where: the condition that rows must pass to exist for a role, as its users file has it; "" for none.
    """

    name: str
    relation: tuple[str, ...]
    ownership: Ownership
    columns: tuple[Column, ...]
    unit_unique: bool = False
    joins: tuple[JoinKey, ...] = ()
    complete_joins: tuple[JoinKey, ...] = ()
    rows_per_unit: BoundSource = field(default_factory=NotGiven)
    rows_per_group: BoundSource = field(default_factory=NotGiven)
    groups_per_unit: BoundSource = field(default_factory=NotGiven)
    rows_per: tuple[RowsPer, ...] = ()
    keys_per_unit: int = 1000
    unit_filter_allowed: bool = False
    unit_constant: tuple[str, ...] = ()
    comment: str = ""
    rows_where: str = ""

    @property
    def is_public(self) -> bool:
        """Whether it is nobody's, so that PostgreSQL answers all that is asked of it."""
        return isinstance(self.ownership, PublicTable)

    @property
    def is_local(self) -> bool:
        """Whether rows were private before they were stored, so that nothing is charged and nothing promised."""
        return isinstance(self.ownership, LocalTable)

    @property
    def shows_rows(self) -> bool:
        """Whether its rows are shown as they are stored: those of a public table, and of a local one that says so."""
        return self.is_public or (isinstance(self.ownership, LocalTable) and self.ownership.shows_rows)

    @property
    def is_promised(self) -> bool:
        """Whether the dataset's promise is about its rows."""
        return not (self.is_public or self.is_local)

    @property
    def randomized(self) -> tuple[Randomized, ...]:
        """The mechanisms of its randomized columns, in order."""
        return tuple(c.randomized for c in self.columns if not isinstance(c.randomized, NotRandomized))

    @property
    def shown_unit(self) -> tuple[str, ...]:
        """The columns of its unit as far as advice may name them: none if one is hidden, or if a path leads to it."""
        columns = self.ownership.columns if isinstance(self.ownership, UnitColumns) else ()
        return columns if all(map(self.shows, columns)) else ()

    def shows(self, name: str) -> bool:
        """Whether it has a column of that name that clients may name."""
        column = self.column(name)
        return column is not None and not column.hidden

    def column(self, name: str) -> Column | None:
        """The column of that exact name, hidden ones included."""
        return next((c for c in self.columns if c.name == name), None)


# --- source, privacy, budgets ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DuckDBFile:
    """A DuckDB database file, opened read-only."""

    path: str


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Parquet or CSV files, one per table name of the policy, served through DuckDB."""

    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PostgresSource:
    """A PostgreSQL database; the DSN may hold a secret and must never be printed."""

    dsn: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SparkSource:
    """A server of Spark Connect's protocol. The token must never be printed.

    may_write: its login may create tables, and is served with all the same.
    """

    url: str
    token: str = field(default="", repr=False)
    may_write: bool = False


Source = DuckDBFile | DataFiles | PostgresSource | SparkSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """The promise and its parameters. delta = delta_pool + the conversion's part.

    query_epsilon: of a query that says none, unless `questions` decide it: for accounts of an epsilon each, how many
    queries it is to pay for. See `dp.accounting.usual_epsilon`. confirm: what is expected to say nothing is refused
    once, unless the client turns that off. tell_cut: where no profile tells, answers tell of how many units rows are
    left out.
    """

    unit: str
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    group_size: int = 1
    accounting: Accounting = Accounting.ZCDP
    delta: float = 1e-6
    delta_pool: float = 5e-7
    query_epsilon: float = 0.5
    questions: tuple[tuple[float, int], ...] = ()
    max_query_epsilon: float = 100.0
    confirm: bool = False
    tell_cut: bool = True
    profile: ProfileUse = ProfileUse.KNOWN
    raw_select: RawSelect = RawSelect.REFUSE
    time_zone: str = "UTC"
    time_grid_s: float = 0.010
    min_units: int = 0
    reuse_factor: float = 2.0

    def __post_init__(self) -> None:
        if not MIN_QUERY_EPSILON <= self.max_query_epsilon <= MAX_QUERY_EPSILON:
            raise ValueError(f"the most a client may choose is out of range: {self.max_query_epsilon:g}")

    @property
    def promise(self) -> Promise:
        return Promise(self.group_size, self.neighbors)


@dataclass(frozen=True, slots=True)
class NoLimit:
    """An account that is counted and never refuses."""


class Refresh(enum.StrEnum):
    """How long a limit is for: the life of the data, or one calendar window of UTC after the other."""

    LIFETIME = "lifetime"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class EpsilonLimit:
    """The most (epsilon, delta) an account may spend in each window, delta being the policy's."""

    epsilon: float
    refresh: Refresh = Refresh.LIFETIME


AccountLimit = EpsilonLimit | NoLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Limits of the accounts that every charge is booked to."""

    dataset: AccountLimit
    user: AccountLimit
    session: AccountLimit
    role: AccountLimit = field(default_factory=NoLimit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one stranger or one session may use."""

    max_sessions: int = 100
    max_sessions_per_user: int = 50
    statement_timeout_s: float = 60.0
    idle_timeout_s: float = 3600.0
    login_timeout_s: float = 10.0
    max_statement_bytes: int = 1_000_000
    engine_memory: str = "4GB"
    engine_threads: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A whole, valid policy. digest: SHA-256 of its canonical content, part of every reuse key.

    unit_changed_from: which unit was protected before, in its accounts; "" if none was.
    """

    dataset: str
    source: Source
    data_version: str
    privacy: Privacy
    budgets: Budgets
    tables: Mapping[str, Table]
    digest: str
    users_file: str
    limits: Limits = field(default_factory=Limits)
    unit_changed_from: str = ""

    def private_tables(self) -> tuple[Table, ...]:
        """Those that the promise is about."""
        return tuple(t for t in self.tables.values() if t.is_promised)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """One user of `users.yaml`: a SCRAM verifier, never a password."""

    name: str
    scram: str = field(repr=False)
    role: str
    budget: AccountLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What the logins of a role may see. An empty `tables` means all of the policy. shared: limit of all together.

    budget: of each login that has none of its own. columns: of tables of which it may not read all.
    rows: conditions, by table, that rows must pass to exist for it. settings: what its sessions begin with, in words of
    SET.
    """

    name: str
    tables: tuple[str, ...] = ()
    is_admin: bool = False
    shared: AccountLimit = field(default_factory=NoLimit)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    rows: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    budget: AccountLimit = field(default_factory=NoLimit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """Somebody from outside the users file who has logged in. groups: those that were told of them when last asked."""

    name: str
    role: str
    budget: AccountLimit
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Users:
    """All logins and roles of a users file, and who else may log in. guests: those who have, by name."""

    logins: Mapping[str, Login]
    roles: Mapping[str, Role]
    outside: Outside = field(default_factory=NoOutside)
    guests: Mapping[str, Guest] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def everyone(self) -> Mapping[str, Login | Guest]:
        """Logins of the file and guests, by name; the file's come first."""
        return {**self.guests, **self.logins} if self.guests else self.logins

    @property
    def roles_of_guests(self) -> tuple[Role, ...]:
        """The roles that groups from outside give."""
        groups = () if isinstance(self.outside, NoOutside) else self.outside.groups
        return tuple(self.roles[name] for name in dict.fromkeys(role for _, role in groups))

    def find(self, name: str) -> Login | Guest | None:
        """The login of that name, if there is one."""
        return self.logins.get(name) or self.guests.get(name)

    def is_of_file(self, name: str) -> bool:
        """Whether the users file has the name, or one that differs from it in case alone.

        Claim (docs/claims/logins-from-outside.md): such a name is never asked for outside, so a login of the file
        and one from outside are never told apart by case alone.
        """
        return name in self.logins or any(login.casefold() == name.casefold() for login in self.logins)
