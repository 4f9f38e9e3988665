"""Mistakes in what is shown besides answers: when work has ended, what became of an edit, what errors say."""

from __future__ import annotations

from tests.mutants.mistake import Seeded

_GRID = "tests/unit/session/test_grid.py"
_TIME_GRID = "tests/unit/session/test_time_grid.py"
_ERRORS = "tests/unit/test_errors.py"
_PLAIN_ROWS = "tests/unit/sql/test_plain_rows.py"
_MADE_UP = "tests/unit/policy/test_made_up.py"
_MADE_UP_ROWS = "tests/unit/session/test_made_up.py"
_EDITS = "tests/attacks/test_refused_edits.py"

SHOWING = (
    Seeded("showing", "errors do not wait for the grid", "session/answering/answer.py",
           "            finally:\n                if _is_charged(paid, stage):\n                    yield\n",
           "                if _is_charged(paid, stage):\n                    yield\n            finally:\n",
           _TIME_GRID),
    Seeded("showing", "a release is stored before the grid", "session/answering/answer.py",
           "                if _is_charged(paid, stage):\n                    yield\n                attempt.store()",
           "                attempt.store()\n                if _is_charged(paid, stage):\n                    yield",
           _TIME_GRID),
    Seeded("showing", "a stored release is shown at once to who pays for it", "session/answering/answer.py",
           "return any(c.pico for r in receipts for c in r.charged) or any(",
           "return any(",
           _TIME_GRID),
    Seeded("showing", "a cancellation acts at once", "session/answering/grid.py",
           "await _undisturbed(asyncio.create_task(run.grid.tick()))",
           "pass",
           _GRID),
    Seeded("showing", "a thread is free for others when its work has ended", "session/answering/grid.py",
           """            if isinstance(step, _Waits):
                await self.grid.tick()
                self._told(self.grid.begun_s - came_s, self._clock.now() - self.grid.begun_s)
        finally:
            self._threads.free.release()
""",
           """        finally:
            self._threads.free.release()
        if isinstance(step, _Waits):
            await self.grid.tick()
""",
           _GRID),
    Seeded("showing", "what ends at the moment of a step waits for no step", "session/answering/grid.py",
           "max(1, math.ceil(elapsed / self.step_s))",
           "math.ceil(elapsed / self.step_s)",
           _GRID),
    Seeded("showing", "everybody reads why an edit was refused", "session/relations.py",
           "    return IN_FORCE, viewer.version.in_force_since",
           "    return viewer.dataset.trouble or IN_FORCE, viewer.version.in_force_since",
           _EDITS),
    Seeded("showing", "everybody sees when a policy was loaded again", "session/dataset.py",
           "replace(version, in_force_since=old.in_force_since) if is_same else version",
           "version",
           _EDITS),
    Seeded("showing", "errors go to clients as they are", "wire/responses.py",
           "    error = error.told()\n",
           "",
           _ERRORS),
    Seeded("showing", "made-up rows are counted by a column that is none", "sql/query/plain_rows.py",
           "return of is not None and is_here and _has(of, name)",
           "return of is not None and is_here",
           _PLAIN_ROWS),
    Seeded("showing", "made-up rows are aggregated", "sql/query/plain_rows.py",
           "        exp.TimestampTrunc,",
           "        exp.TimestampTrunc, exp.Max,",
           _PLAIN_ROWS),
    Seeded("showing", "made-up rows are within what was found of the data", "session/answering/made_up.py",
           "visible, patches = version.visible_tables(login), []",
           "visible, patches = version.premises(login).named, []",
           _MADE_UP_ROWS),
    Seeded("showing", "made-up rows are kept in tables", "pipeline/statements.py",
           "cut.is_made_up and made:",
           "cut.is_made_up and made and False:",
           _MADE_UP_ROWS),
    Seeded("showing", "columns that are not shown have made-up values", "policy/made_up.py",
           " for c in table.columns if not c.hidden)",
           " for c in table.columns)",
           _MADE_UP),
)  # fmt: skip
