"""How is a shop's database made up, the same on every machine?

Synthetic rows only, so numpy's generator with a fixed seed is fine here and nowhere else. Activity is skewed: a
few customers have more orders than the policy's bound. Orders are numbered in the order of their time; in the file,
orders and visits lie in the order of customers, which is where those who compute for each customer want them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from proxy.admin.demo import tables as shop
from proxy.errors import ConfigError

MakingProgress = Callable[[str, int, int], None]
"""Called with a table's name, rows written so far and rows in all, with 0 and about how many when a table begins."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MadeColumns = dict[str, NDArray[np.generic]]

_SEED = 20240101
_CHUNK_ROWS = 1_000_000
_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1)
_SPREAD = 1.1  # of the logarithm of customers' activity: about 1.5 % have more than six times the mean
_MEMORY_LIMIT = "2GB"
_FEWEST_CUSTOMERS = 500  # room for the places with a fixed number of customers


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Rows of each generated table."""

    users: int
    orders: int
    items: int
    visits: int


@dataclass(frozen=True, slots=True)
class _Customers:
    """user_id is the index plus one. start_day: first day of the shop's calendar they can be active on."""

    activity: Floats
    start_day: Ints


def generate(path: Path, scale: float, progress: MakingProgress, *, replace: bool = False) -> Summary:
    """Write the shop's DuckDB file; scale 1 is 50,000 customers with half a million orders.

    The file appears complete or not at all. Raises ConfigError if it exists and `replace` is false.
    """
    if not 0.001 <= scale <= 100:
        raise ConfigError(f"scale {scale:g} is out of range", hint="Use 0.001 to 100.")
    with appearing(path, replace=replace) as temporary:
        return _write(temporary, scale, progress)


@contextmanager
def appearing(path: Path, *, replace: bool) -> Iterator[Path]:
    """A path to write a DuckDB file to, which then appears complete or not at all.

    Raises ConfigError if it exists and `replace` is false, or cannot be written.
    """
    if path.exists() and not replace:
        raise ConfigError(f"{path} exists already", hint="Use --force to replace it, or choose another path.")
    if not path.parent.is_dir():
        raise ConfigError(f"folder {path.parent} does not exist")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(path)
    except (duckdb.Error, OSError) as error:
        raise ConfigError(
            f"{path} cannot be written", hint="Look at the free space and rights of its folder."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
        temporary.with_name(temporary.name + ".wal").unlink(missing_ok=True)


def _write(path: Path, scale: float, progress: MakingProgress) -> Summary:
    random = [np.random.default_rng([_SEED, table]) for table in range(4)]
    with duckdb.connect(str(path), config={"memory_limit": _MEMORY_LIMIT}) as connection:
        connection.execute(shop.CREATE)
        connection.executemany("insert into stores values ($1, $2, $3, $4)", [list(row) for row in shop.STORES])
        customers = _write_users(connection, max(_FEWEST_CUSTOMERS, round(shop.CUSTOMERS * scale)), random[0], progress)
        orders = _write_orders(connection, customers, random[1], progress)
        items = _write_items(connection, orders, random[2], progress)
        visits = _write_visits(connection, customers, random[3], progress)
        connection.execute("checkpoint")
    return Summary(users=len(customers.activity), orders=orders, items=items, visits=visits)


def _insert(connection: duckdb.DuckDBPyConnection, sql: str, words: dict[str, list[str]], chunk: MadeColumns) -> None:
    connection.register("chunk", chunk)
    connection.execute(sql, words)
    connection.unregister("chunk")


def _chunks(rows: int) -> Iterator[slice]:
    return (slice(start, min(start + _CHUNK_ROWS, rows)) for start in range(0, rows, _CHUNK_ROWS))


# --- users ------------------------------------------------------------------------------------------


def _write_users(
    connection: duckdb.DuckDBPyConnection, count: int, random: np.random.Generator, progress: MakingProgress
) -> _Customers:
    cities = _cities(count, random)
    age = np.clip(np.rint(random.gamma(9.0, 4.6, count)), 16, 104).astype(np.int64)
    age[random.random(count) < 0.03] = -1
    age[400::1009] = 999  # a form's way to say unknown; outside the policy's bounds
    newsletter = (random.random(count) < 0.35).astype(np.int64)
    newsletter[random.random(count) < 0.05] = -1
    calendar_days = (shop.LAST_DAY - shop.FIRST_JOINED).days
    joined = np.floor(calendar_days * np.sqrt(random.random(count))).astype(np.int64)
    activity = random.lognormal(-_SPREAD * _SPREAD / 2, _SPREAD, count)
    columns: MadeColumns = {
        "user_id": np.arange(1, count + 1),
        "age": age,
        "city": cities,
        "plan": _words(random, shop.PLAN_WEIGHTS, count, null_share=0.01),
        "newsletter": newsletter,
        "joined": joined,
    }
    words = {"cities": [*_all_places()], "plans": [*shop.PLANS]}
    for part in _chunks(count):
        _insert(connection, shop.INSERT_USERS, words, {name: values[part] for name, values in columns.items()})
        progress("users", part.stop, count)
    start = np.maximum(0, joined - (shop.FIRST_DAY - shop.FIRST_JOINED).days)
    return _Customers(activity, start)


def _all_places() -> tuple[str, ...]:
    return (*shop.CITIES, *shop.SMALL_TOWNS, *shop.HAMLETS, *shop.VILLAGES_OF_ONE)


def _cities(count: int, random: np.random.Generator) -> Ints:
    """Index of each customer's place: large ones by rank, then the small ones with their fixed numbers."""
    weights = 1.0 / np.arange(1, len(shop.CITIES) + 1)
    places = _words(random, tuple(weights), count, null_share=0.02)
    chosen = random.permutation(count)
    sizes = [shop.TOWN_CUSTOMERS] * len(shop.SMALL_TOWNS) + [shop.HAMLET_CUSTOMERS] * len(shop.HAMLETS)
    sizes += [1] * len(shop.VILLAGES_OF_ONE)
    position = 0
    for place, size in enumerate(sizes, start=len(shop.CITIES) + 1):
        places[chosen[position : position + size]] = place
        position += size
    return places


def _words(random: np.random.Generator, weights: tuple[float, ...], count: int, *, null_share: float = 0.0) -> Ints:
    """Indexes into a list of words, 1 for the first; 0 stands for NULL."""
    edges = np.cumsum(np.asarray(weights, dtype=np.float64))
    found = 1 + np.searchsorted(edges / edges[-1], random.random(count), side="right").astype(np.int64)
    found = np.minimum(found, len(weights))
    if null_share:
        found[random.random(count) < null_share] = 0
    return found


# --- events in time ---------------------------------------------------------------------------------


def _calendar() -> Floats:
    """Cumulative share of activity at the start of each day, and 1 at the end."""
    days = (shop.LAST_DAY - shop.FIRST_DAY).days + 1
    weights = np.empty(days)
    for i in range(days):
        day = shop.FIRST_DAY + timedelta(days=i)
        weights[i] = shop.WEEKDAYS[day.weekday()] * shop.MONTHS[day.month - 1] * (1.0 + 0.3 * i / days)
    edges = np.concatenate(([0.0], np.cumsum(weights)))
    return np.asarray(edges / edges[-1], dtype=np.float64)


def _events(customers: _Customers, mean: float, random: np.random.Generator) -> tuple[Ints, Ints]:
    """(customer index, microseconds since 1970) of every event, in the order of customers and of time."""
    counts = random.poisson(customers.activity * mean)
    owner = np.repeat(np.arange(len(counts)), counts)
    calendar = _calendar()
    low = calendar[customers.start_day][owner]
    share = low + (1.0 - low) * random.random(len(owner))
    day = np.clip(np.searchsorted(calendar, share, side="right") - 1, 0, len(calendar) - 2).astype(np.int64)
    hour = _words(random, tuple(float(h) for h in shop.HOURS), len(owner)) - 1
    second = random.integers(0, 3600, len(owner))
    start = (shop.FIRST_DAY - _EPOCH).days
    at = (start + day) * _DAY_US + (hour * 3600 + second) * 1_000_000
    order = np.lexsort((at, owner))
    return owner[order], at[order]


def _write_orders(
    connection: duckdb.DuckDBPyConnection, customers: _Customers, random: np.random.Generator, progress: MakingProgress
) -> int:
    progress("orders", 0, round(len(customers.activity) * shop.ORDERS_PER_CUSTOMER))
    owner, at = _events(customers, shop.ORDERS_PER_CUSTOMER, random)
    number = np.empty(len(at), dtype=np.int64)
    number[np.argsort(at, kind="stable")] = np.arange(1, len(at) + 1)
    for part in _chunks(len(owner)):
        rows = part.stop - part.start
        status = 1 + (random.random(rows) < 0.06).astype(np.int64)
        status[random.random(rows) < 0.004] = 0
        chunk: MadeColumns = {
            "order_id": number[part],
            "user_id": owner[part] + 1,
            "store_id": _words(random, tuple(float(w) for w in shop.STORE_WEIGHTS), rows),
            "cents": np.rint(np.clip(random.lognormal(3.6, 0.9, rows), 1.0, 9000.0) * 100).astype(np.int64),
            "status": status,
            "at": at[part],
        }
        _insert(connection, shop.INSERT_ORDERS, {"statuses": [*shop.STATUSES]}, chunk)
        progress("orders", part.stop, len(owner))
    return len(owner)


def _write_items(
    connection: duckdb.DuckDBPyConnection, orders: int, random: np.random.Generator, progress: MakingProgress
) -> int:
    """One to eight lines for each order, in the order of the orders."""
    prices = np.asarray((0.0, *shop.CATEGORY_PRICES))
    total = 0
    for part in _chunks(orders):
        lines = np.minimum(1 + random.poisson(1.1, part.stop - part.start), 8)
        order_id = np.repeat(np.arange(part.start + 1, part.stop + 1), lines)
        first = np.repeat(np.cumsum(lines) - lines, lines)
        category = _words(random, shop.CATEGORY_WEIGHTS, len(order_id))
        cents = np.rint(prices[category] * random.lognormal(0.0, 0.5, len(order_id)) * 100).astype(np.int64)
        cents[random.random(len(order_id)) < 0.002] = -1
        chunk: MadeColumns = {
            "order_id": order_id,
            "line": np.arange(len(order_id)) - first + 1,
            "category": category,
            "quantity": np.minimum(random.geometric(0.6, len(order_id)), 10),
            "cents": cents,
        }
        _insert(connection, shop.INSERT_ITEMS, {"categories": [*shop.CATEGORIES]}, chunk)
        total += len(order_id)
        progress("items", part.stop, orders)
    return total


def _write_visits(
    connection: duckdb.DuckDBPyConnection, customers: _Customers, random: np.random.Generator, progress: MakingProgress
) -> int:
    progress("visits", 0, round(len(customers.activity) * shop.VISITS_PER_CUSTOMER))
    owner, at = _events(customers, shop.VISITS_PER_CUSTOMER, random)
    words = {"devices": [*shop.DEVICES], "campaigns": [*shop.CAMPAIGNS]}
    for part in _chunks(len(owner)):
        rows = part.stop - part.start
        campaign = _words(random, shop.CAMPAIGN_WEIGHTS, rows, null_share=0.6)
        campaign[random.random(rows) < shop.PRIVATE_CAMPAIGN_SHARE] = len(shop.CAMPAIGNS) + 1
        seconds = random.exponential(140.0, rows)
        seconds[random.random(rows) < 0.01] = -1.0
        chunk: MadeColumns = {
            "user_id": owner[part] + 1,
            "at": at[part],
            "device": _words(random, shop.DEVICE_WEIGHTS, rows, null_share=0.01),
            "campaign": campaign,
            "seconds": seconds,
        }
        _insert(connection, shop.INSERT_VISITS, words, chunk)
        progress("visits", part.stop, len(owner))
    return len(owner)
