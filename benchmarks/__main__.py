"""`python -m benchmarks`: measure, print one table, and write the figures where they can be compared later."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import duckdb
from rich.console import Console
from rich.status import Status
from rich.table import Table

from benchmarks.engine import ROOT, Overhead, overheads, shop_at
from benchmarks.ledger import charges
from benchmarks.planning import Figure
from benchmarks.planning import figures as planning_figures
from benchmarks.postgres import postgres_overheads
from benchmarks.queries import LIMITED, OTHERS, POSTGRES
from benchmarks.skewed import Footprint, footprints, skewed_overheads
from benchmarks.skewed.data import Size
from benchmarks.tpch.timed import tpch_overheads
from benchmarks.wire import FixedCost, fixed_costs
from proxy.engines.freed_memory import keep_freed_memory

Measured = TypeVar("Measured", Overhead, FixedCost, Figure, Footprint)
_RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(slots=True)
class Results:
    """What was measured so far."""

    engine: list[Overhead]
    skewed: list[Overhead]
    memory: list[Footprint]
    postgres: list[Overhead]
    fixed: list[FixedCost]
    planning: list[Figure]


def main() -> int:
    keep_freed_memory()
    options = _options()
    console = Console(highlight=False)
    results = Results([], [], [], [], [], [])
    sizes = tuple(Size(round(m * 1e6), p) for m in options.million_rows for p in options.persons)
    questions = LIMITED if options.limited else (*LIMITED, *OTHERS)
    files = [shop_at(options.data, s) for s in options.scale] if {"engine", "postgres"} & set(options.section) else []
    with console.status("measuring") as status:
        for data in files:
            if "engine" in options.section:
                results.engine += _shown(overheads(data, questions, options.runs), status)
            if "postgres" in options.section:
                results.postgres += _shown(postgres_overheads(data, POSTGRES, options.runs), status)
        if "skewed" in options.section:
            results.skewed += _shown(skewed_overheads(options.data, sizes, options.runs), status)
        if "tpch" in options.section:
            found = tpch_overheads(options.data / "tpch", options.tpch_scale, options.generator, options.runs)
            results.skewed += _shown(found, status)
        if "memory" in options.section:
            results.memory += _shown(footprints(options.data, sizes), status)
        if "wire" in options.section:
            results.fixed += _shown(fixed_costs(options.data, options.statements), status)
        if "ledger" in options.section:
            results.fixed += _shown(charges(options.statements), status)
        if "planning" in options.section:
            results.planning += _shown(planning_figures(options.data, options.seconds), status)
    console.print(_table(results))
    if results.planning:
        console.print(_planning_table(results.planning))
    path = options.json or _RESULTS / f"{datetime.now(UTC):%Y-%m-%d}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_document(results, options), indent=2) + "\n")
    console.print(f"written to {path}", soft_wrap=True)
    if results.memory:
        console.print(_memory_table(results.memory))
    measured = (*results.engine, *results.skewed, *results.memory, *results.postgres, *results.fixed, *results.planning)
    return 0 if all(m.is_within for m in measured) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    default = Path(os.environ.get("HUSHQL_BENCH_DATA", ROOT / ".state" / "bench"))
    sections = ("engine", "skewed", "wire", "ledger", "planning")
    parser.add_argument("--section", nargs="+", choices=(*sections, "postgres", "memory", "tpch"), default=[*sections])
    parser.add_argument("--million-rows", nargs="+", type=float, default=[5], help="of uneven rows; 20 for memory")
    parser.add_argument("--tpch-scale", type=float, default=1)
    parser.add_argument("--generator", type=Path, default=ROOT / ".state" / "tpchgen" / "bin" / "tpchgen-cli",
                        help="of TPC-H; `make tpch` installs it")  # fmt: skip
    parser.add_argument("--persons", nargs="+", type=int, default=[200_000], help="whose uneven rows they are")
    parser.add_argument("--scale", nargs="+", type=float, default=[10, 20], help="10 is five million orders")
    parser.add_argument("--runs", type=int, default=7, help="interleaved runs of each query")
    parser.add_argument("--statements", type=int, default=300, help="statements of each kind over the wire")
    parser.add_argument("--seconds", type=float, default=30, help="of each wait beside long statements")
    parser.add_argument("--limited", action="store_true", help="only the queries with a limit")
    parser.add_argument("--data", type=Path, default=default, help="where the made-up shops are kept")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    return parser.parse_args()


def _shown(found: Iterable[Measured], status: Status) -> Iterator[Measured]:
    """Pass on what is measured and say what was last."""
    for one in found:
        status.update(f"measuring: {one.name} done")
        yield one


def _table(results: Results) -> Table:
    table = Table(
        "measured", "rows", "plain ms", "private ms", "ratio", "cpu ratio", "at most", "", title="hushql benchmarks"
    )
    named = [(m.name, m) for m in results.engine] + [(f"large: {m.name}", m) for m in results.skewed]
    named += [(f"postgres: {m.name}", m) for m in results.postgres]
    for name, m in named:
        most, pair = f"{m.question.most:g}" if m.question.most else "", m.pair
        table.add_row(name, f"{m.orders:,}", f"{pair.plain_ms:.1f}", f"{pair.other_ms:.1f}", f"{m.ratio:.2f}",
                      f"{pair.cpu_ratio:.2f}", most, _verdict(m.is_within, most))  # fmt: skip
    table.add_section()
    for f in results.fixed:
        most = f"{f.most_ms:g} ms" if f.most_ms else ""
        table.add_row(f.name, "", "", f"{f.median_ms:.2f}", "", "", most, _verdict(f.is_within, most))
    return table


def _memory_table(found: list[Footprint]) -> Table:
    table = Table("uneven", "rows", "plain MB", "private MB", "at most", "", title="memory")
    for one in found:
        of = one.held
        table.add_row(one.name, f"{one.rows:,}", f"{of.plain_mb:.0f}", f"{of.private_mb:.0f}", f"{of.most_mb:.0f}",
                      _verdict(one.is_within, "MB"))  # fmt: skip
    return table


def _planning_table(figures: list[Figure]) -> Table:
    table = Table("while", "measured", "figure", "", "goal", "", "load", title="planning")
    for f in figures:
        table.add_row(f.group, f.name, f"{f.value:,.2f}", f.unit, f.goal, _verdict(f.is_within, f.goal),
                      f"{f.load:.1f}" if f.load else "")  # fmt: skip
    return table


def _verdict(is_within: bool, most: str) -> str:
    if not most:
        return ""
    return "[green]ok[/]" if is_within else "[red]over[/]"


def _document(results: Results, options: argparse.Namespace) -> dict[str, object]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"system": platform.platform(), "cpu": _cpu(), "cores": os.cpu_count(), "load": os.getloadavg()[0]},
        "versions": {"python": platform.python_version(), "duckdb": duckdb.__version__},
        "runs": options.runs,
        "engine": _figures(results.engine),
        "skewed": _figures(results.skewed),
        "memory": [
            {"query": f.name, "rows": f.rows, "plain_mb": round(f.held.plain_mb),
             "private_mb": round(f.held.private_mb), "at_most_mb": round(f.held.most_mb)} for f in results.memory
        ],
        "postgres": _figures(results.postgres),
        "fixed": [
            {"statement": f.name, "median_ms": round(f.median_ms, 3), "at_most_ms": f.most_ms} for f in results.fixed
        ],
        "planning": [
            {"while": f.group, "measured": f.name, "figure": round(f.value, 3), "unit": f.unit, "goal": f.goal,
             "load": round(f.load, 2)} for f in results.planning
        ],
    }  # fmt: skip


def _figures(measured: list[Overhead]) -> list[dict[str, object]]:
    return [
        {"query": m.question.name, "sql": m.question.sql, "orders": m.orders,
         "plain_ms": round(m.pair.plain_ms, 2), "private_ms": round(m.pair.other_ms, 2),
         "ratio": round(m.ratio, 3), "cpu_ratio": round(m.pair.cpu_ratio, 3), "at_most": m.question.most}
        for m in measured
    ]  # fmt: skip


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


if __name__ == "__main__":
    raise SystemExit(main())
