"""`python -m benchmarks.accuracy`: ask, print one table, keep it. Status 1 if an error is too large."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.accuracy.data import bounds_of, flat, skewed
from benchmarks.accuracy.questions import asked_of
from benchmarks.accuracy.row import Row

RESULT = Path(__file__).resolve().parents[1] / "results" / "accuracy.json"
MOST, MOST_GENEROUS = 1.03, 1 / 1.7  # times the error of the best other way; where bounds are generous and data skewed


def main() -> int:
    table = Table("question", "data", "bounds", "epsilon", "error", "best other", "ratio")
    rows: list[Row] = []
    for data in (skewed(), flat()):
        for bounds in bounds_of(data).values():
            for row in asked_of(data, bounds):
                rows.append(row)
                best = min(row.others, key=row.others.__getitem__)
                table.add_row(row.question, row.data, row.bounds, f"{row.epsilon:g}", f"{row.ours:.4g}",
                              f"{row.others[best]:.4g} ({best})", f"{row.ratio:.3f}")  # fmt: skip
    Console(width=150).print(table)
    figures = [
        {**asdict(r), "ours": _short(r.ours), "others": {k: _short(v) for k, v in r.others.items()}} for r in rows
    ]
    RESULT.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return int(any(row.ratio > limit(row) for row in rows))


def limit(row: Row) -> float:
    """The largest ratio that a line of the table may have."""
    return MOST_GENEROUS if (row.data, row.bounds) == ("skewed", "generous") else MOST


def _short(value: float) -> float:
    return float(f"{value:.6g}")


if __name__ == "__main__":
    raise SystemExit(main())
