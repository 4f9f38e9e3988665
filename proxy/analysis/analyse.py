"""What may a planner rely on about one block? Its unit, bounds, keys and measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proxy.analysis.domains import LARGEST_MEASURE, Domains
from proxy.analysis.estimated import with_cells
from proxy.analysis.implied import implied_rows
from proxy.analysis.joint_keys import joints_of
from proxy.analysis.key_values import KeyValues
from proxy.analysis.keys import Joint, Key, PrivateKey, classify_key, few_enough, public_size
from proxy.analysis.learned import NOTHING_LEARNED, Learned
from proxy.analysis.rows_per import NOTHING_DECLARED, DeclaredRows, declared_rows
from proxy.analysis.rows_together import in_one_branch
from proxy.analysis.units import EveryRow, Owned, UniqueKeys, own
from proxy.errors import BadGroups, MissingBounds
from proxy.policy.model import BoundSource, ByProfile, Privacy, Table, WrittenBound, limit_or
from proxy.sql.algebra.describe import describe_scalar
from proxy.sql.algebra.nodes import TRUE, Block, Grouped, Scalar, columns_in_order, columns_of
from proxy.sql.functions.domains.intervals import number_range
from proxy.sql.syntax.names import spelled

_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """Contribution bounds that only ever lower the policy's: a client's own, 0 if not set, and what was learned."""

    rows_per_group: int = 0
    groups: int = 0
    learned: Learned = NOTHING_LEARNED


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributionBounds:
    """T, C, G and K of docs/claims/bounding.md for one block.

    rows: T, of a unit in all groups; rows_per_group: C; groups: G; keys: K, private keys of a unit.
    source: who set T, C and G, in words for EXPLAIN. ceiling: rows of a unit that no bound by a profile exceeds, 0 for
    any. is_fixed: no profile raises C or G, since an administrator or the client says so. declared: what the policy
    says of rows with the same values, which units are taken not to exceed. is_implied: no unit can have more.
    """

    rows: int
    rows_per_group: int
    groups: int
    keys: int
    source: str
    ceiling: int = 0
    is_fixed: bool = False
    declared: DeclaredRows = NOTHING_DECLARED
    is_implied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysed:
    """A block with its owner, keys and contribution bounds.

    has_constant_keys: every key is the same in all rows of a unit, so a unit is in one group.
    beside: keys of the statement's other grouping sets, by which these rows are not grouped; a row outside the domain
    of one of them is in no set. joints: public keys that have few combinations; none where sets are to add up.
    """

    owned: Owned
    domains: Domains
    keys: tuple[Key, ...]
    bounds: ContributionBounds
    has_constant_keys: bool
    beside: tuple[Key, ...] = ()
    joints: tuple[Joint, ...] = ()

    @property
    def private_keys(self) -> tuple[PrivateKey, ...]:
        return tuple(k for k in self.keys if isinstance(k, PrivateKey))


def analyse(
    block: Block, tables: Mapping[str, Table], unique: UniqueKeys, privacy: Privacy, lowered: Lowered,
    every_key: tuple[Scalar, ...] = (),
) -> Analysed:  # fmt: skip
    """Infer what the release of a block needs. Raises HushError when it cannot be released.

    every_key: those of all grouping sets, of which the block is one.
    """
    assert not block.sets, "grouping sets are analysed one by one"
    owned = own(with_cells(block), tables, unique)
    domains = Domains(owned.block)
    listed = KeyValues(domains)
    classified = few_enough({k: classify_key(k, domains, listed) for k in every_key or block.keys}, domains)
    keys = tuple(classified[k] for k in block.keys)
    if privacy.delta_pool <= 0 and not owned.is_local and any(isinstance(k, PrivateKey) for k in keys):
        raise BadGroups(
            "this grouping has keys that the policy does not list",
            detail="Showing them needs a delta, and this dataset allows none.",
            hint="Group by a column with listed values, or fix the keys with WHERE column IN (...).",
        )
    constant = all(is_constant(k.scalar, owned) for k in keys)
    joints = () if every_key else joints_of(keys, domains, listed, owned.enforced_constants)
    declared = declared_rows(owned, block.keys, domains, listed)
    implied = implied_rows(owned, domains)
    bounds = _bounds(owned, keys, joints, declared, implied, constant=constant, lowered=lowered)
    return Analysed(owned=owned, domains=domains, keys=keys, bounds=bounds, has_constant_keys=constant, joints=joints,
                    beside=tuple(k for s, k in classified.items() if s not in block.keys))  # fmt: skip


def is_constant(scalar: Scalar, owned: Owned) -> bool:
    """Whether a scalar is the same in all rows of a unit."""
    return all(c.scan in owned.constant_scans or c in owned.enforced_constants for c in columns_of(scalar))


def _bounds(
    owned: Owned, keys: tuple[Key, ...], joints: tuple[Joint, ...], declared: DeclaredRows, implied: int, *,
    constant: bool, lowered: Lowered,
) -> ContributionBounds:  # fmt: skip
    table = owned.bounds_from
    if isinstance(owned.unit, EveryRow) or owned.is_one_row_per_unit:
        return ContributionBounds(rows=1, rows_per_group=1, groups=1, keys=1, source="one row per unit")
    rows, source = _rows(owned, table, lowered.learned)
    if 0 < declared.rows < rows:
        rows, source = declared.rows, f"{source}, max_rows_per"
    if 0 < implied < rows:
        rows, source = implied, "by the statement"
    per_group = min(rows, limit_or(table.rows_per_group, rows))
    if 0 < declared.per_group < per_group and not constant:
        per_group, source = declared.per_group, f"{source}, max_rows_per in a group"
    groups = min(rows, limit_or(table.groups_per_unit, rows))
    in_branch = in_one_branch(owned, (k.scalar for k in keys))
    if constant:
        per_group, groups = rows, 1
    elif in_branch:
        per_group = min(per_group, in_branch)
    is_implied = implied == rows and (constant or (groups == rows and per_group in (rows, in_branch)))
    if lowered.rows_per_group and lowered.rows_per_group < per_group:
        per_group, source = lowered.rows_per_group, f"{source}, lowered by hush.max_rows_per_group"
        rows = min(rows, per_group) if groups == 1 else rows
    if lowered.groups and lowered.groups < groups:
        groups, source = lowered.groups, f"{source}, lowered by hush.max_groups"
    if not any(isinstance(k, PrivateKey) for k in keys):
        groups = min(groups, public_size(keys, joints))
    lowest = lowered.rows_per_group or lowered.groups
    return ContributionBounds(
        rows=rows, rows_per_group=per_group, groups=groups, source=source,
        keys=1 if constant else min(table.keys_per_unit, implied or table.keys_per_unit),
        is_implied=is_implied and not lowest,
        ceiling=limit_or(table.rows_per_unit, 0) if _is_ceiling(table.rows_per_unit) else 0,
        is_fixed=bool(lowest) or _is_ceiling(table.rows_per_group) or _is_ceiling(table.groups_per_unit),
        declared=declared,
    )  # fmt: skip


def _is_ceiling(limit: BoundSource) -> bool:
    return isinstance(limit, WrittenBound) and limit.is_ceiling


def _rows(owned: Owned, table: Table, learned: Learned) -> tuple[int, str]:
    """T, and who set it."""
    allowed, usual = limit_or(table.rows_per_unit, 1), learned.rows_of(owned)
    source = f'policy, table "{table.name}"'
    if isinstance(table.rows_per_unit, ByProfile):
        source = f'profile of table "{table.name}", data version {table.rows_per_unit.data_version}'
    if usual is None or usual[0] >= allowed:
        return allowed, source
    return usual[0], f"{source}, {usual[0]} of {allowed} rows {usual[1]}"


def measure_bounds(scalar: Scalar, analysed: Analysed, where: Scalar = TRUE) -> tuple[float, float]:
    """[lo, hi] of a measure of the rows that pass `where`. Raises MissingBounds with what would bound it."""
    ends = number_range(analysed.domains.of(scalar, where))
    if ends is not None and max(abs(ends[0]), abs(ends[1])) > LARGEST_MEASURE:
        raise MissingBounds(
            "the bounds of this expression are too large",
            detail="Sums are computed for bounds of up to 1e100; noise is as large as the bounds.",
            hint=f"Clamp it between smaller numbers: least(greatest({_shown(scalar)}, 0), 100).",
        )
    if ends is not None:
        return ends
    unbounded = [c for c in columns_in_order(scalar) if number_range(analysed.domains.of(c, where)) is None]
    detail = "Sums, averages and statistics need bounds on what they are of; one row could change them at will."
    if not unbounded or not unbounded[0].type.is_number:
        raise MissingBounds(
            "no bounds can be inferred for this expression", detail=detail,
            hint=f"Clamp it between numbers of your own: least(greatest({_shown(scalar)}, 0), 100).",
        )  # fmt: skip
    scan = analysed.owned.block.scan(unbounded[0].scan)
    if isinstance(scan.rows, Grouped):
        raise MissingBounds(
            "no bounds are known for a value that a sub-select computes for each unit", detail=detail,
            hint="Clamp it between numbers of your own, for example least(greatest(total, 0), 1000) or"
            " WHERE total BETWEEN 0 AND 1000.",
        )  # fmt: skip
    table, column = scan.table.name, unbounded[0].name
    name = spelled(column)
    raise MissingBounds(
        f'no bounds are known for "{table}"."{column}"', detail=detail,
        hint=f"Add a condition with numbers of your own, WHERE {name} BETWEEN 0 AND 100, or clamp it,"
        f" least(greatest({name}, 0), 100). The admin can declare them for everybody: bounds: [0, 100]"
        f" at tables.{table}.columns.{column}.",
    )  # fmt: skip


def _shown(scalar: Scalar) -> str:
    """An expression as the client may have written it, if it is short and of functions that have such names."""
    text = describe_scalar(scalar)
    is_plain = len(text) <= _LONGEST_SHOWN and not any(name in text for name in ("cast_", "position("))
    return text if is_plain else "<expression>"
