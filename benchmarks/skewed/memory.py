"""How much memory does one statement need? Each is run in a process of its own, which says the most that it held."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import duckdb

from proxy.engines.duckdb_open import DATABASE, set_optimizer

_MOST, _BESIDE_MB = 1.5, 300.0


@dataclass(frozen=True, slots=True)
class Held:
    """The most megabytes that processes held which ran the plain and the private statements."""

    plain_mb: float
    private_mb: float

    @property
    def most_mb(self) -> float:
        return _MOST * self.plain_mb + _BESIDE_MB

    @property
    def is_within(self) -> bool:
        return self.private_mb <= self.most_mb


def held(data: Path, plain: str, private: tuple[str, ...]) -> Held:
    """Of a question's statements over one file."""
    return Held(_peak_mb(data, (plain,), is_private=False), _peak_mb(data, private, is_private=True))


def _peak_mb(data: Path, statements: tuple[str, ...], *, is_private: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(number) for number in range(len(statements))]
        for file, sql in zip(files, statements, strict=True):
            file.write_text(sql)
        command = [sys.executable, "-m", "benchmarks.skewed.memory", str(data), "private" if is_private else "plain"]
        done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    data, how, *files = sys.argv[1:]
    with duckdb.connect() as connection:
        connection.execute(f"attach '{data.replace(chr(39), chr(39) * 2)}' as {DATABASE} (read_only)")
        connection.execute(f"use {DATABASE}")
        if how == "private":
            set_optimizer(connection)
            connection.execute("set preserve_insertion_order = false")
        for file in files:
            connection.execute(Path(file).read_text()).fetchall()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
