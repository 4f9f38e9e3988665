"""What do the parts of a policy outside its tables say: source, privacy, limits?"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from proxy.policy.document import (
    LimitsDocument,
    PrivacyDocument,
    SourceDocument,
)
from proxy.policy.figures import figure
from proxy.policy.model import (
    MAX_QUERY_EPSILON,
    MIN_QUERY_EPSILON,
    Accounting,
    DataFiles,
    DuckDBFile,
    Limits,
    Neighbors,
    PostgresSource,
    Privacy,
    ProfileUse,
    RawSelect,
    Source,
    SparkSource,
    Table,
    Unknown,
)
from proxy.policy.problems import Path, ProblemReport, did_you_mean, one_of
from proxy.policy.values import WrongValue, read_duration_s

_DATASET = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
_RESERVED_DATASETS = frozenset({"template0", "template1", "postgres"})
_FILE_ENDINGS = (".parquet", ".csv", ".csv.gz")
_LARGEST_DELTA = 1e-2
_DEFAULT_DELTA = 1e-6
_DEFAULT_QUERY_EPSILON = 0.5
_LONGEST_GRID_S = 10.0
_LONGEST_TIMEOUT_S = 30 * 86400.0


def check_dataset(name: str, report: ProblemReport) -> None:
    """The dataset is a database name for clients and part of file names for us."""
    path: Path = ("dataset",)
    if not _DATASET.fullmatch(name):
        report.add(path, "expected letters, digits, _ and -, at most 63, starting with a letter or _")
    elif name.lower() in _RESERVED_DATASETS or name.lower().startswith("pg_"):
        report.add(path, f"the name {report.show(path, name)} is reserved by PostgreSQL; choose another")


def read_zone(name: str, report: ProblemReport) -> tzinfo:
    """The policy's time zone; UTC while the report says that it is none."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        path: Path = ("privacy", "time_zone")
        report.add(path, f"unknown time zone {report.show(path, name)}; expected a name as UTC or Europe/Zurich")
        return UTC


# --- source -----------------------------------------------------------------------------------------

_PLACES = {"duckdb": ("path", "files"), "postgres": ("dsn",), "spark": ("url",)}
_BESIDE = {"spark": ("files", "token", "immutable", "may_write")}  # what may stand beside the place
_KEYS = ("path", "files", "dsn", "url", "token", "immutable", "may_write")
_SCHEME, _TOKEN = "sc://", re.compile(r"\btoken\s*=", re.IGNORECASE)
_LAKE_PATH = re.compile(r"(?:[a-z][a-z0-9+.-]*:/)?/[^*?\[\]{}\\]*[^/*?\[\]{}\\]")
_NO_STEP = re.compile(r"(?<!:)//|/\.{1,2}(?:/|$)")


@dataclass(frozen=True, slots=True)
class DocumentPlaces:
    """folder: where relative paths start. tables: those of the policy, lost: faulty ones beside them.

    is_known: no part of the source was cut out, so that what is not there is missing.
    """

    folder: str
    tables: Collection[str]
    lost: frozenset[str]
    is_known: bool


def read_source(document: SourceDocument, places: DocumentPlaces, report: ProblemReport) -> Source | None:
    """The source, or None when the report says why not."""
    if not places.is_known:
        return None
    accepted, beside = _PLACES[document.engine], _BESIDE.get(document.engine, ())
    given = [name for name in _KEYS if getattr(document, name) is not None]
    for name in given:
        if name not in accepted + beside:
            report.add(("source", name), f"engine {document.engine} takes {' or '.join(accepted)}; remove the line")
    if len([name for name in given if name in accepted]) != 1:
        words = "expected either" if len(accepted) > 1 else "expected"
        report.add(("source",), f"{words} {' or '.join(accepted)} for engine {document.engine}")
        return None
    if document.url is not None:
        return _spark(document, document.url, places, report)
    if document.dsn is not None:
        return PostgresSource(document.dsn)
    if document.path is not None:
        return DuckDBFile(posixpath.join(places.folder, document.path))
    return _data_files(document.files or {}, places, report)


def _spark(document: SourceDocument, url: str, places: DocumentPlaces, report: ProblemReport) -> SparkSource:
    """The server. Its rows are served only if somebody answers for that they stay as they are."""
    if not url.startswith(_SCHEME) or not url.removeprefix(_SCHEME).partition("/")[0]:
        report.add(("source", "url"), "expected sc://host:15002, or sc://host:443/;use_ssl=true")
    if _TOKEN.search(url):
        report.add(("source", "url"), "a token stands in source.token, as ${SPARK_TOKEN}, and not in the address")
    if document.immutable is not True:
        words = (
            "write 'immutable: true' if nobody changes these rows while they are served; engine spark reads no others"
        )
        report.add(("source", "immutable") if document.immutable is not None else ("source",), words)
    expected = "expected a file or folder as /lake/orders or s3://lake/orders"
    if document.files is not None:
        _check_files(document.files, places, report, _is_lake_path, expected)
    return SparkSource(url, document.token or "", may_write=document.may_write is True)


def lake_relations(document: SourceDocument) -> dict[str, tuple[str, ...]]:
    """The relation of each table that stands in Parquet files which a Spark server reads by their path."""
    return {n: ("parquet", path) for n, path in (document.files or {}).items()} if document.engine == "spark" else {}


def _is_lake_path(path: str) -> bool:
    """Whether a path names one file or folder and is the one spelling of it."""
    return _LAKE_PATH.fullmatch(path) is not None and _NO_STEP.search(path) is None


def _check_files(
    files: dict[str, str], places: DocumentPlaces, report: ProblemReport, is_path: Callable[[str], bool], expected: str
) -> None:
    """Every table has a file, and every file a table."""
    tables = places.tables
    for name, file in files.items():
        path: Path = ("source", "files", name)
        if name not in tables and name not in places.lost:
            report.add(path, f"there is no table of that name{did_you_mean(name, tables)}; tables: {one_of(tables)}")
        if not is_path(file):
            report.add(path, f"{expected}, found {report.show(path, file)}")
    for name in tables:
        if name not in files:
            report.add(("source", "files"), f"no file for table '{name}'")


def _data_files(files: dict[str, str], places: DocumentPlaces, report: ProblemReport) -> DataFiles:
    expected = f"expected a file ending in {one_of(_FILE_ENDINGS)}"
    _check_files(files, places, report, lambda file: file.endswith(_FILE_ENDINGS), expected)
    return DataFiles(tuple((name, posixpath.join(places.folder, file)) for name, file in files.items()))


# --- privacy ----------------------------------------------------------------------------------------


def read_privacy(document: PrivacyDocument, tables: Iterable[Table], report: ProblemReport) -> Privacy:
    """The promise. Faulty numbers are reported and replaced by defaults so that reading can go on.

    The epsilon of a query may still follow from accounts: see `budgets`.
    """
    accounting = Accounting(document.accounting)
    delta, pool = _deltas(document, accounting, may_have_private_keys(tables), report)
    asked = _DEFAULT_QUERY_EPSILON if document.query_epsilon is None else document.query_epsilon
    query = read_epsilon(asked, ("privacy", "query_epsilon"), MAX_QUERY_EPSILON, report)
    most = read_epsilon(document.max_query_epsilon, ("privacy", "max_query_epsilon"), MAX_QUERY_EPSILON, report)
    if query > most:
        report.add(
            ("privacy", "query_epsilon"),
            f"must be at most max_query_epsilon ({figure(most, 6)}), found {figure(query, 6)}",
        )
    for name, word in (("unit", document.unit), ("unit_changed_from", document.unit_changed_from or "")):
        if not word.isprintable() or word != word.strip():
            report.add(("privacy", name), "expected a word, as customer")
    if not 1 <= document.reuse_factor <= 1000:
        report.add(("privacy", "reuse_factor"), "must be a number from 1 to 1000")
    return Privacy(
        unit=document.unit,
        neighbors=Neighbors(document.neighbors),
        group_size=document.group_size,
        accounting=accounting,
        delta=delta,
        delta_pool=pool,
        query_epsilon=query,
        max_query_epsilon=most,
        confirm=document.confirm,
        tell_cut=document.tell_cut,
        profile=ProfileUse(document.profile),
        raw_select=RawSelect(document.raw_select),
        time_zone=document.time_zone,
        time_grid_s=_duration(document.time_grid, ("privacy", "time_grid"), 0.0, _LONGEST_GRID_S, report),
        min_units=document.min_units,
        reuse_factor=document.reuse_factor,
    )


def may_have_private_keys(tables: Iterable[Table]) -> bool:
    """Whether a client could group by values that nobody listed or bounded."""
    return any(
        isinstance(column.domain, Unknown) and not column.key and not column.hidden
        for table in tables
        if not table.is_public
        for column in table.columns
    )


def _deltas(
    document: PrivacyDocument, accounting: Accounting, has_private_keys: bool, report: ProblemReport
) -> tuple[float, float]:
    """(delta, delta_pool). Zero both in pure mode; the pool is half where groups may be unlisted."""
    path: Path = ("privacy", "delta")
    pool_path: Path = ("privacy", "delta_pool")
    if accounting is Accounting.PURE:
        for here, value in ((path, document.delta), (pool_path, document.delta_pool)):
            if value:
                report.add(here, "pure accounting has delta 0; remove the line, or use 'accounting: zcdp'")
        return 0.0, 0.0
    delta = _DEFAULT_DELTA if document.delta is None else document.delta
    if not 0 < delta <= _LARGEST_DELTA:
        report.add(path, f"must be more than 0 and at most {_LARGEST_DELTA:g}, found {report.show(path, delta)}")
        delta = _DEFAULT_DELTA
    if document.delta_pool is None:
        return delta, (delta / 2 if has_private_keys else 0.0)
    if not 0 <= document.delta_pool < delta:
        found = report.show(pool_path, document.delta_pool)
        report.add(pool_path, f"must be at least 0 and less than delta ({delta:g}), found {found}")
    return delta, document.delta_pool


def read_epsilon(value: float, path: Path, largest: float, report: ProblemReport) -> float:
    """An epsilon from the smallest that a query may have to `largest`; the smallest while the report says why not."""
    if not MIN_QUERY_EPSILON <= value <= largest:
        report.add(
            path, f"must be from {figure(MIN_QUERY_EPSILON)} to {largest:.12g}, found {report.show(path, value)}"
        )
        return MIN_QUERY_EPSILON
    return float(value)


def _duration(raw: object, path: Path, least_s: float, most_s: float, report: ProblemReport) -> float:
    try:
        seconds = read_duration_s(raw)
    except WrongValue as wrong:
        report.add(path, f"{wrong}, found {report.show(path, raw)}")
        return most_s
    if not least_s <= seconds <= most_s:
        report.add(path, f"must be from {figure(least_s, 6)} to {most_s:.12g} seconds, found {report.show(path, raw)}")
    return seconds


# --- limits ---------------------------------------------------------------------------------------------


def read_limits(document: LimitsDocument, report: ProblemReport) -> Limits:
    """Limits with times in seconds."""

    def seconds(name: str, raw: object) -> float:
        return _duration(raw, ("limits", name), 0.001, _LONGEST_TIMEOUT_S, report)

    return Limits(
        max_sessions=document.max_sessions,
        max_sessions_per_user=document.max_sessions_per_user,
        statement_timeout_s=seconds("statement_timeout", document.statement_timeout),
        idle_timeout_s=seconds("idle_timeout", document.idle_timeout),
        login_timeout_s=seconds("login_timeout", document.login_timeout),
        max_statement_bytes=document.max_statement_bytes,
        engine_memory=document.engine_memory.replace(" ", ""),
        engine_threads=document.engine_threads,
    )
