"""How do true rows of a file become randomized rows of another?

Each value is mapped to its number in the declared list, or clamped and put on a grid, by a fixed rule; what is written
is made from the number that was drawn, never copied. Nothing of the input but public columns reaches the output: no
spelling, order, statistics or metadata. Rows pass in batches; their random order is a sort on disk.
The argument is in docs/claims/local-model.md.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import assert_never

import duckdb
import numpy as np
from numpy.typing import NDArray

from proxy.dp.samplers import Distribution, noised, order_keys, responded
from proxy.errors import ConfigError
from proxy.ledger.sqlite.directory import sync_directory
from proxy.policy.model import Column, Listed, Table
from proxy.policy.response import GaussianNoise, KeptOrUniform, LaplaceNoise, Noised, NotRandomized, TwoCoins
from proxy.sql.render.dialect import quote, text_literal
from proxy.sqltypes import SqlType, Value

_BATCH = 100_000  # rows
_MEMORY = "1GB"  # of the engine; sorting goes to disk beyond
_FINEST, _LARGEST = 18, 2**52  # digits after the point; numbers of grid steps that doubles hold
_STEPS = 1000  # of the grid in the smaller of noise and range

_Cells = NDArray[np.int64] | NDArray[np.object_] | NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class _Grid:
    """Steps of 10**-digits; lo and hi are true bounds in steps, not beyond the declared ones."""

    digits: int
    lo: int
    hi: int


@dataclass(frozen=True, slots=True)
class RandomizedRows:
    """rows: how many were written. replaced: of columns with values outside of what is declared, how many these are."""

    rows: int
    replaced: tuple[tuple[str, int], ...]


def grid_of(noise: Noised) -> _Grid:
    """The grid on which a column's noise is drawn. Raises ConfigError if doubles do not hold it."""
    size = noise.scale if isinstance(noise, LaplaceNoise) else noise.sd
    digits = 0
    while min(size, noise.hi - noise.lo) * 10**digits < _STEPS:
        digits += 1
    lo, hi = math.ceil(noise.lo * 10**digits), math.floor(noise.hi * 10**digits)
    if digits > _FINEST or max(abs(lo), abs(hi), 100 * size * 10**digits) > _LARGEST:
        raise ConfigError("bounds and noise of a column are of too different sizes to be randomized exactly")
    return _Grid(digits, lo, hi)


def randomize_rows(
    source: Path, target: Path, table: Table, *, time_zone: str, keep_order: bool, show: Callable[[int], object]
) -> RandomizedRows:
    """Write the randomized rows. Raises ConfigError, naming files and columns and no value.

    show: is told how many rows are done. The target appears as a whole or not at all. What is told of replaced values
    depends on true rows, and is for whoever holds them.
    """
    columns = table.columns
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".hushql-randomize-") as folder:
            unfinished = Path(folder) / f"rows{_suffix(target)}"
            with contextlib.closing(duckdb.connect(str(Path(folder) / "rows.duckdb"))) as made:
                _prepare(made, time_zone, folder)
                rows, replaced = _fill(made, source, table, columns, show), _replaced(source, columns)
                _write(made, unfinished, table, columns, keep_order=keep_order)
            _publish(unfinished, target)
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror}") from error
    return RandomizedRows(rows, replaced)


def _suffix(path: Path) -> str:
    found = path.suffix.lower()
    if found not in (".csv", ".parquet"):
        raise ConfigError(f"{path} is neither .csv nor .parquet")
    return found


def _prepare(connection: duckdb.DuckDBPyConnection, time_zone: str, folder: str) -> None:
    connection.execute(f"set memory_limit = {text_literal(_MEMORY)}")
    connection.execute(f"set temp_directory = {text_literal(folder)}")
    connection.execute(f"set TimeZone = {text_literal(time_zone)}")
    connection.execute("set enable_progress_bar = false")


def _publish(unfinished: Path, target: Path) -> None:
    descriptor = os.open(unfinished, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(unfinished, target)
    sync_directory(target.parent)


# --- what is read -----------------------------------------------------------------------------------------


def _fill(
    made: duckdb.DuckDBPyConnection,
    source: Path,
    table: Table,
    columns: Sequence[Column],
    show: Callable[[int], object],
) -> int:
    """Put what was drawn for each row, and a number to sort by, into a table on disk."""
    kinds = ", ".join(f"c{i} {_kept_type(c)}" for i, c in enumerate(columns))
    made.execute(f"create table drawn (place bigint, random ubigint, {kinds})")
    rows = 0
    for batch in _batches(source, table, columns):
        count = len(batch[0])
        chunk: dict[str, _Cells] = {"place": np.arange(rows, rows + count), "random": order_keys(count)}
        chunk |= {f"c{i}": _drawn(c, cells) for i, (c, cells) in enumerate(zip(columns, batch, strict=True))}
        made.register("chunk", chunk)
        made.execute("insert into drawn select * from chunk")
        made.unregister("chunk")
        rows += count
        show(rows)
    return rows


def _batches(source: Path, table: Table, columns: Sequence[Column]) -> Iterator[tuple[Sequence[object], ...]]:
    if not source.is_file():
        raise ConfigError(f"{source} {'is not a file' if source.exists() else 'does not exist'}")
    reader = _reader(source)
    try:
        with contextlib.closing(duckdb.connect()) as connection:
            connection.execute(f"set memory_limit = {text_literal(_MEMORY)}")
            connection.execute("set enable_progress_bar = false")
            if _suffix(source) == ".csv":
                _check_header(connection, source, columns)
            there = {row[0] for row in connection.execute(f"describe select * from {reader}").fetchall()}
            missing = [c.name for c in columns if c.name not in there]
            if missing:
                raise ConfigError(
                    f"{source} has no column {', '.join(missing)} of table {table.name}",
                    hint="Columns are named as in the policy, of a CSV file in its first line; each line has as many"
                    " values.",
                )
            read = ", ".join(_read(c) for c in columns)
            cursor = connection.execute(f"select {read} from {reader}")
            while rows := cursor.fetchmany(_BATCH):
                yield tuple(zip(*rows, strict=True))
    except duckdb.Error:
        kind = _suffix(source)[1:]
        hint = "A CSV file is UTF-8 text with a line for each row." if kind == "csv" else ""
        raise ConfigError(f"{source} cannot be read as {kind} rows", hint=hint) from None


def _reader(source: Path, *, header: bool = True) -> str:
    path = text_literal(str(source))
    is_csv = _suffix(source) == ".csv"
    return f"read_csv({path}, header = {header}, all_varchar = true)" if is_csv else f"read_parquet({path})"


def _check_header(connection: duckdb.DuckDBPyConnection, source: Path, columns: Sequence[Column]) -> None:
    """Refuse a file in which two columns have a name that is read: the reader would take the first."""
    names = connection.execute(f"select * from {_reader(source, header=False)} limit 1").fetchone() or ()
    for column in columns:
        if [str(name).strip().casefold() for name in names].count(column.name.casefold()) > 1:
            raise ConfigError(f"{source} has two columns {column.name}", hint="Rename one of them in its first line.")


def _replaced(source: Path, columns: Sequence[Column]) -> tuple[tuple[str, int], ...]:
    """How many values of a column are none of those declared, of columns that have such."""
    asked = {c.name: f"count(*) filter (where {_is_replaced(c)})" for c in columns if c.is_randomized}
    with contextlib.closing(duckdb.connect()) as connection:
        connection.execute(f"set memory_limit = {text_literal(_MEMORY)}")
        connection.execute("set enable_progress_bar = false")
        row = connection.execute(f"select {', '.join(asked.values())} from {_reader(source)}").fetchone()
    return tuple((name, count) for name, count in zip(asked, row or (), strict=True) if count)


def _is_replaced(column: Column) -> str:
    name = quote(column.name)
    if isinstance(column.randomized, LaplaceNoise | GaussianNoise):
        return f"coalesce(isnan(try_cast({name} as double)), true)"
    may_be_null = isinstance(column.randomized, KeptOrUniform) and column.randomized.choices > len(_values(column))
    return f"{_place(column, name)} is null{f' and {name} is not null' if may_be_null else ''}"


def _read(column: Column) -> str:
    """What of a column is read: the number of a value, a number, or a public value."""
    name = quote(column.name)
    match column.randomized:
        case KeptOrUniform() | TwoCoins():
            return _index(column, name)
        case LaplaceNoise() | GaussianNoise():
            return f"try_cast({name} as double)"
        case NotRandomized():
            return f"cast(try_cast({name} as {_engine_type(column)}) as varchar)"
        case _ as never:
            assert_never(never)


def _index(column: Column, name: str) -> str:
    """The number of a value in the declared list; of what is not listed that of the first, of coins that of no."""
    values, found = _values(column), f"{_place(column, name)} - 1"
    match column.randomized:
        case TwoCoins():
            return f"coalesce({found} = {_yes(column)}, false)::bigint"
        case KeptOrUniform(_, choices) if choices > len(values):
            return f"case when {name} is null then {len(values)} else coalesce({found}, 0) end"
        case _:
            return f"coalesce({found}, 0)"


def _place(column: Column, name: str) -> str:
    """The place in the declared list, from 1; NULL for what is not listed."""
    kind = _engine_type(column)
    return f"list_position([{', '.join(map(_literal, _values(column)))}]::{kind}[], try_cast({name} as {kind}))"


def _values(column: Column) -> tuple[Value, ...]:
    return column.domain.values if isinstance(column.domain, Listed) else ()


def _yes(column: Column) -> int:
    """The number of yes: of the two values of coins it is true, or the first."""
    return 1 if column.type is SqlType.BOOL else 0


def _literal(value: Value) -> str:
    return text_literal(str(value).lower() if isinstance(value, bool) else str(value))


def _engine_type(column: Column) -> str:
    names = {SqlType.NUMERIC: "decimal(38, 10)", SqlType.FLOAT4: "float", SqlType.FLOAT8: "double",
             SqlType.BPCHAR: "varchar", SqlType.VARCHAR: "varchar"}  # fmt: skip
    return names.get(column.type, column.type.pg_name)


# --- what is drawn and written ----------------------------------------------------------------------------


def _kept_type(column: Column) -> str:
    return "bigint" if column.is_randomized else "varchar"


def _drawn(column: Column, cells: Sequence[object]) -> _Cells:
    match column.randomized:
        case KeptOrUniform() | TwoCoins() as response:
            return responded(np.array(cells, dtype=np.int64), response)
        case LaplaceNoise() | GaussianNoise() as noise:
            return _with_noise(np.array(cells, dtype=np.float64), noise)
        case NotRandomized():
            return np.array(cells, dtype=np.object_)
        case _ as never:
            assert_never(never)


def _with_noise(values: NDArray[np.float64], noise: Noised) -> NDArray[np.int64]:
    """Steps of the grid: what is no number is the middle, what is beyond the bounds is the end, then noise."""
    grid = grid_of(noise)
    middle = float((noise.lo + noise.hi) / 2)
    clamped = np.clip(np.where(np.isnan(values), middle, values), float(noise.lo), float(noise.hi))
    steps = np.clip(np.rint(clamped * 10.0**grid.digits), grid.lo, grid.hi).astype(np.int64)
    size, distribution, most = (
        (noise.scale, Distribution.LAPLACE, noise.epsilon) if isinstance(noise, LaplaceNoise)
        else (noise.sd, Distribution.GAUSSIAN, noise.rho)
    )  # fmt: skip
    return noised(steps, distribution, float(size * 10**grid.digits), lo=grid.lo, hi=grid.hi, most=most)


def _write(
    made: duckdb.DuckDBPyConnection, path: Path, table: Table, columns: Sequence[Column], *, keep_order: bool
) -> None:
    written = ", ".join(f"{_written(c, f'c{i}')} as {quote(c.name)}" for i, c in enumerate(columns))
    order = "place" if keep_order else "random"
    form = "format csv, header true" if path.suffix == ".csv" else "format parquet"
    try:
        made.execute(f"copy (select {written} from drawn order by {order}) to {text_literal(str(path))} ({form})")
    except duckdb.Error:
        raise ConfigError(f"the rows of table {table.name} cannot be written") from None


def _written(column: Column, name: str) -> str:
    """A value made from the number that was drawn."""
    kind = _engine_type(column)
    match column.randomized:
        case TwoCoins():
            yes, values = _yes(column), _values(column)
            said, unsaid = _literal(values[yes]), _literal(values[1 - yes])
            return f"cast(case when {name} = 1 then {said} else {unsaid} end as {kind})"
        case KeptOrUniform():
            listed = ", ".join(_literal(v) for v in _values(column))
            return f"list_extract([{listed}]::{kind}[], {name} + 1)"  # behind the last is NULL
        case LaplaceNoise() | GaussianNoise() as noise:
            digits = grid_of(noise).digits
            return f"cast(cast({name} as double) / {Fraction(10) ** digits}::double as {_noised_type(column, digits)})"
        case NotRandomized():
            return f"cast({name} as {kind})"
        case _ as never:
            assert_never(never)


def _noised_type(column: Column, digits: int) -> str:
    return f"decimal(38, {digits})" if column.type is SqlType.NUMERIC else _engine_type(column)
