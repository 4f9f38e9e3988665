"""Which rows does a part of a release read, and how does its SQL name the private keys that were kept?"""

from __future__ import annotations

from proxy.analysis.keys import PrivateKey
from proxy.plan.sql.moment_sql import MomentTerms


def part_rows(terms: MomentTerms, condition: str, value: str) -> str:
    """A SELECT of the rows that pass a condition, of kept keys alone: unit (`u0`, ..), key (`k0`, ..), value (`x`)."""
    named = [*zip(terms.unit_columns(), terms.units, strict=True), *zip(terms.key_texts(), terms.keys, strict=True)]
    columns = ", ".join(f"{text} AS {name}" for text, name in [*named, (value, "x")])
    passing = terms.source.where() if condition == "TRUE" else f"{terms.source.where()} AND {condition}"
    rows = f"SELECT {columns}\n  FROM {terms.source.tables()}\n  WHERE {passing}"
    return f"SELECT * FROM (\n  {rows}) AS present{_of_kept_keys(terms)}"


def _of_kept_keys(terms: MomentTerms) -> str:
    """A join with the private keys that were released. Nothing without such keys."""
    private = [(n, k) for n, k in zip(terms.keys, terms.analysed.keys, strict=True) if isinstance(k, PrivateKey)]
    if not private:
        return ""
    return f"\n  {terms.dialect.among([(f'present.{name}', k.scalar.type) for name, k in private])}"
