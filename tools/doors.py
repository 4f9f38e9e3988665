"""Does each dangerous thing go through its one door?

Randomness, SQL parsing, the types that carry the privacy guarantee, and I/O in the core: for each, a table here says
which files may, and why. Reads syntax trees only, so it sees names, not values: what flows where is the type checker's
business. Test code is not looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from tools.names import Use, uses
from tools.sources import ROOT, Finding, Source, python_sources, report


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Names that only some files may use.

    names: dotted prefixes; `os.urandom` covers the function, `random` the whole module.
    allowed: path prefixes of the files that may, each with its reason.
    within: path prefixes the rule covers.
    """

    names: tuple[str, ...]
    allowed: tuple[tuple[str, str], ...]
    why: str
    within: tuple[str, ...] = ("proxy/",)

    def forbids(self, path: str, name: str) -> bool:
        covered = path.startswith(self.within) and any(name == n or name.startswith(n + ".") for n in self.names)
        return covered and not any(path.startswith(prefix) for prefix, _ in self.allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """A class whose instances prove something, so that few may make one (or even name it).

    constructed_in, named_in: path prefixes. Annotations, `isinstance` and patterns count as naming only.
    """

    name: str
    constructed_in: tuple[str, ...]
    named_in: tuple[str, ...]
    why: str


CORE = ("proxy/wire/", "proxy/sql/", "proxy/policy/", "proxy/dp/", "proxy/analysis/", "proxy/plan/",
        "proxy/pipeline/")  # fmt: skip
SAMPLERS = ("proxy/dp/samplers.py", "the one module that draws")

DOORS = (
    Door(
        names=("numpy.random", "random", "uuid.uuid1", "scipy.stats"),
        allowed=(
            ("proxy/admin/demo/data.py", "synthetic rows; no privacy claim rests on them"),
            ("proxy/admin/demo/survey.py", "synthetic people; no privacy claim rests on them"),
        ),
        why="a predictable generator; noise comes from proxy.dp.samplers",
    ),
    Door(
        names=("os.urandom", "os.getrandom", "secrets", "uuid.uuid4", "ssl.RAND_bytes", "opendp"),
        allowed=(SAMPLERS,),
        why="randomness has one door: proxy.dp.samplers",
    ),
    Door(
        names=("sqlglot", "sqlglotc"),
        allowed=(("proxy/sql/", "the one package that reads and writes SQL"),),
        why="sqlglot has one door: proxy.sql",
    ),
    Door(
        names=(
            *("__import__", "eval", "exec", "compile", "builtins", "runpy"),
            *("importlib.import_module", "importlib.reload"),
            *("importlib.machinery", "importlib.util.module_from_spec", "importlib.util.spec_from_file_location"),
        ),
        allowed=(),
        why="code found at run time walks around every other door",
    ),
    Door(
        names=(
            *("socket", "socketserver", "ssl", "select", "selectors", "http", "urllib", "asyncio", "subprocess"),
            *("sqlite3", "dbm", "shelve", "tempfile", "shutil", "glob", "fcntl", "mmap", "pathlib.Path"),
            *("open", "io.open", "print", "input", "sys.stdin", "sys.stdout", "sys.stderr"),
            *("logging", "warnings", "threading", "multiprocessing", "concurrent", "queue", "signal"),
            *("time", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today"),
            *("datetime.date.today", "os", "locale", "getpass", "platform"),
        ),
        allowed=((SAMPLERS[0], "drops its pool at fork, locks it between threads"),),
        why="the core does no input or output and keeps no clock; pass the value in",
        within=CORE,
    ),
    Door(
        names=tuple(f"proxy.sql.render.dialect.{name}" for name in ("quote", "text_literal", "double")),
        allowed=(("proxy/plan/parts/quantile_grid.py", "a name in a hint, which a client is to write"),),
        why="not every engine reads what standard SQL quotes; a private statement takes its dialect's own",
        within=("proxy/plan/", "proxy/sql/render/renderer.py"),
    ),
)

SEALS = (
    Seal(
        name="Reserved",
        constructed_in=("proxy/ledger/",),
        named_in=("proxy/",),
        why="it proves that the charge is durable, so the ledger alone makes one",
    ),
    Seal(
        name="Unpromised",
        constructed_in=("proxy/plan/unpromised.py",),
        named_in=("proxy/",),
        why="it proves that nothing is read that is promised, so what plans such statements makes it",
    ),
    Seal(
        name="Release",
        constructed_in=("proxy/release/",),
        named_in=("proxy/",),
        why="it proves that noise was added, so proxy.release alone makes one",
    ),
    Seal(
        name="RawResult",
        constructed_in=("proxy/engines/",),
        named_in=("proxy/engines/", "proxy/release/"),
        why="exact answers are seen by engines and release alone",
    ),
)


def door_findings(source: Source, use: Use) -> Iterator[Finding]:
    """Doors that one use of a name walks around."""
    for door in DOORS:
        if door.forbids(source.path, use.name):
            yield Finding(source.path, use.line, f"{use.name}: {door.why}")


def seal_findings(source: Source, use: Use) -> Iterator[Finding]:
    """Sealed classes that one use of a name makes or sees where it may not."""
    for seal in SEALS:
        if use.name.rpartition(".")[2] != seal.name or use.is_definition or not source.path.startswith("proxy/"):
            continue
        if not source.path.startswith(seal.named_in):
            yield Finding(source.path, use.line, f"{seal.name} is named: {seal.why}")
        elif use.is_value and not source.path.startswith(seal.constructed_in):
            yield Finding(source.path, use.line, f"{seal.name} is used as a value: {seal.why}")


def findings(source: Source) -> Iterator[Finding]:
    """Everything in one file that goes around a door, each line and text once."""
    seen: set[Finding] = set()
    for use in uses(source.tree):
        for found in (*door_findings(source, use), *seal_findings(source, use)):
            if found not in seen:
                seen.add(found)
                yield found


def main() -> int:
    return report("doors", (found for source in python_sources(ROOT, "proxy") for found in findings(source)))


if __name__ == "__main__":
    sys.exit(main())
