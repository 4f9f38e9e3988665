"""`make audit`: does the auditor pass the product, and does it notice each planted error of a factor of two?

Prints what it finds as a page for the documents; --write keeps it. Ends with 1 if anything is not as it must be.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.audit.auditor import KINDS, Finding, audited, audited_keys, refuses_unlisted_keys
from tests.audit.evidence import FALSE_ALARM, ROUNDS
from tests.audit.world import MODES, write_world
from tests.e2e.served import ROOT, Served, serving

PAGE = ROOT / "docs" / "audit.md"
_PAGE = """\
# An audit from outside

Written by `make audit`.

It starts the product, the product with half the noise, and the product with thresholds for half the noise. It asks each
about databases with and without a person whose rows weigh as much as the bounds allow, over the wire and as any client
can, and computes the least privacy loss with which the answers are consistent. What was charged it reads in
`hush.last_query`. The product must not be shown to lose more than that; with the mistake it must be.

The loss is that of one event, such as "the count is at least 3". Half of the answers choose it, the others count it,
and its two probabilities are bounded by Clopper and Pearson. A correct proxy is flagged with a probability of at most
{each:g} in each line, {together:.2g} in all. Power is how many of {rounds} sets of as many answers, drawn from those of
the proxy with the mistake, would flag it.

`mu` is the distance of two normal laws, the root of 2 rho. `rho` is read off the divergences of all orders. `delta` is
the chance that a key of one person alone is shown. Under `pure`, keys that nobody listed are refused, which is asked
too.

| release | accounting | number | charged | product loses at least | with the mistake | answers | power |
| --- | --- | --- | --- | --- | --- | --- | --- |
{lines}
Answers are those that are counted, of both databases. All of it took {taken_s:.0f} s on {machine} processors,
which others were using too.
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """The same question to the product and to a proxy with a mistake."""

    product: Finding
    planted: Finding

    @property
    def is_as_it_must_be(self) -> bool:
        return self.planted.is_flagged and not self.product.is_flagged


@contextmanager
def proxy(*program: str) -> Iterator[Served]:
    with (
        tempfile.TemporaryDirectory(prefix="audit") as folder,
        serving(Path(folder), write_world(Path(folder)), program=("-m", *program)) as running,
    ):
        yield running


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.audit", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    started = time.perf_counter()
    with proxy("proxy") as product:
        ours = [*_of_all_kinds(product), audited_keys(product)]
        refused = refuses_unlisted_keys(product)
    with proxy("tests.audit.planted", "half_the_noise") as planted:
        theirs = list(_of_all_kinds(planted))
    with proxy("tests.audit.planted", "half_the_threshold") as planted:
        theirs.append(audited_keys(planted))
    pairs = [Pair(*pair) for pair in zip(ours, theirs, strict=True)]
    page = written(pairs, time.perf_counter() - started)
    print(page)
    if options.write:
        PAGE.write_text(page)
    return 0 if refused and all(pair.is_as_it_must_be for pair in pairs) else 1


def _of_all_kinds(served: Served) -> Iterator[Finding]:
    for kind in KINDS:
        for mode in MODES:
            started = time.perf_counter()
            yield audited(served, kind, mode)
            print(f"{kind.name}, {mode}: {time.perf_counter() - started:.1f} s", file=sys.stderr)


def written(pairs: Sequence[Pair], taken_s: float) -> str:
    lines = "".join(
        f"| {p.product.kind} | {p.product.mode} | {p.product.promise.value} | {p.product.charged:.4g} "
        f"| {_verdict(p.product)} | {_verdict(p.planted)} | {p.product.answers} | {p.planted.power:.1%} |\n"
        for p in pairs
    )
    return _PAGE.format(
        lines=lines,
        taken_s=taken_s,
        each=FALSE_ALARM,
        rounds=ROUNDS,
        together=FALSE_ALARM * len(pairs),
        machine=os.cpu_count(),
    )


def _verdict(finding: Finding) -> str:
    return f"{finding.proven:.4g}{' (flagged)' if finding.is_flagged else ''}"


if __name__ == "__main__":
    sys.exit(main())
