"""With which text does DuckDB spell a function, and when could it raise?"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.sql.functions.hazards import Hazard, never


@dataclass(frozen=True, slots=True)
class Written:
    """How one function is written.

    text: with `{0}`, `{1}` in the place of rendered arguments. may_raise: whether DuckDB could raise for some row. Such
    a call is inside TRY, and NULL where it would have raised. Its arguments never raise themselves, since an engine may
    compute a part apart from what stands around it.
    """

    text: str
    may_raise: Hazard = never
