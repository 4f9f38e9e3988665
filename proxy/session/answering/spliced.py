"""What does the front run in the place of a statement, once its numbers are there?

Nothing is computed here: released columns are put into the client's own text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from proxy.pipeline.outline import Outline
from proxy.pipeline.plans import Planned
from proxy.pipeline.statements import Understood
from proxy.session.answering.answer import StageAnswer
from proxy.session.contract import Array, Asking, Notice, Piece, Spliced
from proxy.sql.query.front.interval_columns import noted
from proxy.sql.query.front.splice import InjectedColumn, Patch, SplicedText, array_text, erase, splice, system_template
from proxy.sql.query.probe import Probe
from proxy.sql.query.stages import StageText
from proxy.sql.syntax.locate import TextSpan
from proxy.sql.syntax.wrappers import Wrapper
from proxy.sqltypes import SqlType

_NOWHERE = TextSpan(0, 0)


def block_patches(query: Outline, planned: Planned, answer: StageAnswer) -> tuple[Patch, ...]:
    """The released columns of each block in its place; CTEs over private rows are emptied."""
    patches = []
    for span, bound, release in zip(query.spans, planned.blocks, answer.releases, strict=True):
        columns = tuple(InjectedColumn(r.column.name, r.column.type, r.values) for r in release.columns)
        patches.append(Patch(span, bound.outer, bound.marker, columns, bound.inner))
    patches += [erase(e) for e in query.emptied]
    return tuple(patches)


def probed(handle: Understood, query: Probe, count: int) -> Spliced:
    """A statement about empty tables. count: of the client's parameters, here and below."""
    patches = []
    for empty in query.tables:
        columns = tuple(InjectedColumn(c.name, c.type, ()) for c in empty.table.columns if not c.hidden)
        template, marker = system_template(empty.table.name, columns, needs_alias=empty.needs_alias)
        patches.append(Patch(empty.span, template, marker, columns))
    patches += without_schemas(query)
    notice = Notice(severity="NOTICE", sqlstate="00000", message="rows of private tables are not shown",
                    detail="Ask for aggregates, such as count(*).")  # fmt: skip
    return spliced(handle, tuple(patches), count, (notice,) if query.hides_rows else ())


def without_schemas(query: Probe) -> tuple[Patch, ...]:
    """Columns with the name of their table alone: what stands in its place is in no schema."""
    return tuple(Patch(span, "", '"hush_nothing"', ()) for span in query.schemas)


def with_notes(found: Spliced, said: Sequence[Notice]) -> Spliced:
    """The statement with its notices in the column that was asked for, if it was."""
    note = "; ".join(n.message for n in said)
    return replace(found, sql=noted(found.sql, note), literal_sql=noted(found.literal_sql, note))


def spliced(handle: Understood, patches: tuple[Patch, ...], count: int, notices: tuple[Notice, ...]) -> Spliced:
    """The whole statement with its patches; under EXPLAIN or another wrapper values are written as literals."""
    text = splice(handle.query.text, patches, count + 1)
    literal = f"{handle.wrapped.before}{text.with_literals}{handle.wrapped.after}"
    if handle.wrapped.wrapper is not Wrapper.NONE:
        return Spliced(sql=literal, literal_sql=literal, arrays=(), notices=notices)
    return Spliced(sql=text.with_parameters, literal_sql=literal, arrays=_arrays(text), notices=notices)


def asking(stage: StageText, query: Outline, patches: tuple[Patch, ...], count: int, piece: Piece) -> Asking:
    """What the front is asked for the value of a stage."""
    text = splice(query.text, patches, count + 1)
    return Asking(sql=stage.asking(text.with_parameters), arrays=_arrays(text), piece=piece)


def _arrays(text: SplicedText) -> tuple[Array, ...]:
    return tuple(Array(oid=a.type.array_oid, text=array_text(a.values)) for a in text.arrays)


def explained(lines: list[str], kind: str, count: int) -> Spliced:
    """A statement that shows these lines, as EXPLAIN does. kind: text or json."""
    column = InjectedColumn("line", SqlType.TEXT, tuple(lines))
    source, marker = system_template("plan", (column,), needs_alias=True)
    template = f'SELECT plan.line::pg_catalog.{kind} AS "QUERY PLAN" FROM {source}'
    text = splice("", (Patch(_NOWHERE, template, marker, (column,)),), count + 1)
    return Spliced(
        sql=text.with_parameters, literal_sql=text.with_literals, arrays=_arrays(text), notices=(), tag="EXPLAIN"
    )
