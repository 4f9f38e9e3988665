"""Mistakes a tired programmer might make, as patches of the sources, each with the narrow tests that must notice it.

The other mutants of the repository exchange functions in a running process and are looked for by the fuzzer
(`tests/fuzz/mutants.py` and its neighbours). These change the text, so that they reach every layer.
"""

from __future__ import annotations

from dataclasses import dataclass

_STATEMENT = "tests/unit/plan/test_statement.py"
_DISTINCT = "tests/unit/plan/test_distinct.py"
_QUANTILES = "tests/unit/plan/test_quantiles.py"
_PLAN = "tests/unit/plan/test_release_plan.py"
_SELECTION = "tests/unit/dp/test_selection.py"
_MECHANISMS = "tests/unit/dp/test_mechanisms.py"
_ACCOUNTING = "tests/unit/dp/test_accounting.py"
_SAMPLERS = "tests/unit/dp/test_samplers.py"
_CHOICE = "tests/unit/dp/test_quantiles.py"
_NOISY = "tests/unit/release/test_noisy.py"
_PARTS = "tests/unit/release/test_parts.py"
_UNITS = "tests/unit/analysis/test_units.py"
_KEYS = "tests/unit/analysis/test_keys.py"
_DOMAINS = "tests/unit/analysis/test_domains.py"
_BOOKS = "tests/unit/ledger/test_books.py"
_SQLITE = "tests/unit/ledger/test_sqlite.py"
_DAMAGE = "tests/unit/ledger/test_damage.py"
_WINDOWS = "tests/unit/ledger/test_windows.py"
_SPLICE = "tests/unit/sql/test_splice.py"
_SPLIT = "tests/unit/sql/test_split.py"
_ESTIMATE = "tests/unit/session/test_estimate.py"
_SCREEN = "tests/unit/wire/test_screen.py"
_RANDOM_DISTINCT = "tests/fuzz/test_distinct.py::test_distinct_counts_are_the_oracles_and_move_within_their_bounds"
# Of the fuzzer's kept cases: each passes unless the rule that it is about is broken.
_PLANTED = "tests/fuzz/test_mutants.py::test_a_planted_mistake_is_found"
_ROWS_OF_A_CELL = f"{_PLANTED}[rows_of_a_cell_are_not_limited]"
_HEAVY_UNITS = f"{_PLANTED}[heavy_units_are_not_scaled]"
_MANY_KEYS = f"{_PLANTED}[keys_above_the_limit_stay]"


@dataclass(frozen=True, slots=True)
class Seeded:
    """A mistake. module: below proxy/. old: stands there once, and becomes new. caught_by: tests of one file."""

    area: str
    name: str
    module: str
    old: str
    new: str
    caught_by: str


SEEDED = (
    # --- bounding ------------------------------------------------------------------------------------------------
    Seeded("bounding", "twice as many rows of a group count", "plan/terms.py",
           "THEN {whole} / n ELSE",
           "THEN 2 * {whole} / n ELSE",
           _ROWS_OF_A_CELL),
    Seeded("bounding", "heavy units keep twice their bound", "plan/terms.py",
           "_NORM_UNITS * (ratio * ratio if",
           "2 * _NORM_UNITS * (ratio * ratio if",
           _HEAVY_UNITS),
    Seeded("bounding", "only the largest group of a unit is looked at", "plan/statement.py",
           "HAVING sum(q) > {limit}::{self._dialect.huge}",
           "HAVING max(q) > {limit}::{self._dialect.huge}",
           _HEAVY_UNITS),
    Seeded("bounding", "one private key too many is kept", "plan/statement.py",
           "AS placed WHERE place <= {limit})",
           "AS placed WHERE place <= {limit + 1})",
           _MANY_KEYS),
    Seeded("bounding", "a measure is clamped on one side", "plan/terms.py",
           "trunc(greatest(least({units}, {most}), {least}))",
           "trunc(greatest({units}, {least}))",
           _STATEMENT),
    Seeded("bounding", "a distinct count takes one value too many", "plan/distinct.py",
           "WHERE c <= {limits.values}",
           "WHERE c <= {limits.values + 1}",
           _RANDOM_DISTINCT),
    Seeded("bounding", "a distinct count takes twice as many groups", "plan/distinct.py",
           "WHERE g <= {self._limits.groups}",
           "WHERE g <= {2 * self._limits.groups}",
           _DISTINCT),
    Seeded("bounding", "the norm of distinct counts forgets what is left over", "plan/distinct.py",
           "math.sqrt(full * self.values**2 + rest**2)",
           "math.sqrt(full * self.values**2)",
           _DISTINCT),
    Seeded("bounding", "rows above the bound of a group weigh fully in a histogram", "plan/histogram.py",
           "THEN {double(float(limit))} / rows ELSE 1e0 END",
           "THEN 1e0 ELSE 1e0 END",
           _QUANTILES),
    Seeded("bounding", "rows that nobody owns stay", "analysis/units.py",
           "present = tuple(_is_present(c) for c in unit)",
           "present: tuple[Scalar, ...] = ()",
           _UNITS),
    Seeded("bounding", "rows that a join repeats count as one", "analysis/units.py",
           "for s in everybody) and not fan_out and not met.fan_out",
           "for s in everybody)",
           _UNITS),
    # --- keys ----------------------------------------------------------------------------------------------------
    Seeded("keys", "every private key is shown", "release/noisy.py",
           "for private, count in counts if count >= least]",
           "for private, count in counts if count >= -least]",
           _NOISY),
    Seeded("keys", "the count that is shown is drawn again", "release/noisy.py",
           "(*cell.moments[:moment], count, *cell.moments[moment + 1 :])",
           "(*cell.moments,)",
           _NOISY),
    Seeded("keys", "public keys without rows are left out", "release/noisy.py",
           "cells = ((key, exact.cell(key)) for key in plan.public_keys)",
           "cells = ((key, exact.cell(key)) for key in plan.public_keys if any(exact.cell(key)))",
           _NOISY),
    Seeded("keys", "rows come in the engine's order", "release/noisy.py",
           "NoisyCells(tuple(sorted(cells, key=lambda c: tuple(order(k) for k in c.key))))",
           "NoisyCells(tuple(cells))",
           _NOISY),
    Seeded("keys", "a threshold forgets the group of units", "dp/selection.py",
           "_quantile_up(log_hidden / (group_size * keys))",
           "_quantile_up(log_hidden / keys)",
           _SELECTION),
    Seeded("keys", "a threshold forgets that a unit holds many keys", "dp/selection.py",
           "_quantile_up(log_hidden / (group_size * keys))",
           "_quantile_up(log_hidden / group_size)",
           _SELECTION),
    Seeded("keys", "a unit's weight falls too fast with its keys", "dp/selection.py",
           "min(1.0, norm_ratio / math.sqrt(keys))",
           "min(1.0, norm_ratio / keys)",
           _SELECTION),
    Seeded("keys", "min_units does not raise the threshold", "dp/selection.py",
           " + max(0, min_units - 1)) * _UP",
           ") * _UP",
           _SELECTION),
    Seeded("keys", "NULL is no public key", "analysis/keys.py",
           "(NULL_KEY,) if domains.may_be_null(scalar) else ()",
           "()",
           _KEYS),
    Seeded("keys", "groups of one unit each are allowed", "analysis/units.py",
           "if is_unit_value(block, reference):\n                raise BadGroups(",
           "if False:\n                raise BadGroups(",
           _UNITS),
    # --- noise ---------------------------------------------------------------------------------------------------
    Seeded("noise", "Gaussian noise of half the variance", "dp/mechanisms.py",
           "math.sqrt(2.0 * rho_or_epsilon)",
           "math.sqrt(4.0 * rho_or_epsilon)",
           _MECHANISMS),
    Seeded("noise", "Laplace noise of half the scale", "dp/mechanisms.py",
           "            return rho_or_epsilon\n",
           "            return 2.0 * rho_or_epsilon\n",
           _MECHANISMS),
    Seeded("noise", "no noise at all", "release/noisy.py",
           "tuple(m + d for m, d in zip(moments, own, strict=True))",
           "tuple(m for m, d in zip(moments, own, strict=True))",
           _NOISY),
    Seeded("noise", "distinct counts without noise", "release/parts.py",
           "(exact.get(identity(c.key), 0) + draw,)",
           "(exact.get(identity(c.key), 0),)",
           _PARTS),
    Seeded("noise", "noise that was used stays in the stock", "dp/samplers.py",
           "            del self._ready[start:]\n",
           "",
           _SAMPLERS),
    Seeded("noise", "a forked process goes on with its parent's noise", "dp/samplers.py",
           ("        if self._stock.process != os.getpid():  # a fork that ran no Python hook\n"
            "            self.renew()\n"),
           "",
           _SAMPLERS),
    Seeded("noise", "a choice is half as random", "dp/quantiles.py",
           "scale=2.0 * sensitivity / ladder.epsilon * _UP",
           "scale=sensitivity / ladder.epsilon * _UP",
           _CHOICE),
    Seeded("noise", "a score near an end may move further than its sensitivity", "dp/quantiles.py",
           "steepest = whole if is_near_end(fraction) else max(p, whole - p)",
           "steepest = min(p, whole - p)",
           _CHOICE),
    Seeded("noise", "what the library grants is not compared with the charge", "dp/samplers.py",
           "if not draw.charge * _SPENT <= granted <= draw.charge:",
           "if not 0 <= granted:",
           _CHOICE),
    Seeded("noise", "a replaced unit moves as much as a removed one", "plan/release_plan.py",
           "(2 if privacy.neighbors is Neighbors.REPLACE_ONE else 1)",
           "1",
           _PLAN),
    # --- accounting ----------------------------------------------------------------------------------------------
    Seeded("accounting", "the pool of keys and the conversion use one delta twice", "dp/accounting.py",
           "math.nextafter(privacy.delta - privacy.delta_pool, 0.0) if privacy.delta_pool else privacy.delta",
           "privacy.delta",
           _ACCOUNTING),
    Seeded("accounting", "charges are rounded up and noise with them", "dp/accounting.py",
           "math.floor(_scaled(amount, PICO))",
           "math.ceil(_scaled(amount, PICO))",
           _ACCOUNTING),
    Seeded("accounting", "an epsilon is read as rho", "dp/accounting.py",
           "return (epsilon - terms - _TO_RHO_SLACK * (epsilon + size)) / (1.0 + x)",
           "return epsilon - terms - _TO_RHO_SLACK * (epsilon + size)",
           _ACCOUNTING),
    Seeded("accounting", "a pure charge costs less in rho", "ledger/tabs.py",
           "Cost(-(-(epsilon.pico**2) // (2 * _PICO)), epsilon.atto)",
           "Cost(epsilon.pico**2 // (2 * _PICO), epsilon.atto)",
           _WINDOWS),
    Seeded("accounting", "shares of delta are rounded up", "dp/selection.py",
           "delta_pool_atto * pico_r // pico_account)",
           "-(-delta_pool_atto * pico_r // pico_account))",
           _SELECTION),
    # --- splitting -----------------------------------------------------------------------------------------------
    Seeded("splitting", "each part of a release gets the whole charge", "plan/parts.py",
           "share, rest = divmod(pico, takers)",
           "share, rest = pico, 0",
           _DISTINCT),
    Seeded("splitting", "the levels of several quantiles are not divided", "dp/quantiles.py",
           "self.amount / (self.levels * self.groups) * _DOWN",
           "self.amount / self.groups * _DOWN",
           _CHOICE),
    Seeded("splitting", "quantiles of many groups are charged as one", "dp/quantiles.py",
           "self.amount / (self.levels * self.groups) * _DOWN",
           "self.amount / self.levels * _DOWN",
           _CHOICE),
    Seeded("splitting", "each release of a statement gets the whole charge", "session/answer.py",
           "share = whole // max(1, releases)",
           "share = whole",
           _ESTIMATE),
    Seeded("splitting", "the text of private rows reaches the front", "sql/split.py",
           ("            if kind is Kind.PRIVATE:\n"
            "                self._empty(cte.this, max(1, len(meaning.columns)))\n"),
           "",
           _SPLIT),
    Seeded("splitting", "rows of a private table are shown", "sql/split.py",
           "if walker.visit(tree, MappingProxyType({})) is Kind.PRIVATE:",
           "if walker.visit(tree, MappingProxyType({})) is None:",
           _SPLIT),
    # --- domains -------------------------------------------------------------------------------------------------
    Seeded("domains", "WHERE proves that a call cannot raise", "analysis/domains.py",
           "may_raise(arguments, self.declared(scalar))",
           "may_raise(tuple(self.of(a) for a in scalar.args), self.of(scalar))",
           _DOMAINS),
    Seeded("domains", "calls that may raise are not caught", "sql/render.py",
           "may_raise=self._may_raise(call))",
           "may_raise=False)",
           _STATEMENT),
    Seeded("domains", "one alternative of an OR is enough to be there", "analysis/domains.py",
           "return all(any(_implies_present(p, scalar)",
           "return any(any(_implies_present(p, scalar)",
           _DOMAINS),
    Seeded("domains", "a sub-select of others meets a row", "analysis/meeting.py",
           "len(ours) == len(theirs) and all(frozenset(p) in equal",
           "len(ours) == len(theirs) and any(frozenset(p) in equal",
           _UNITS),
    # --- ledger --------------------------------------------------------------------------------------------------
    Seeded("ledger", "limits are not looked at", "ledger/books.py",
           "        if short:\n            raise AccountSpent.of(short)\n",
           "",
           _SQLITE),
    Seeded("ledger", "delta has no limit", "ledger/books.py",
           "return total.pico <= limit.pico and total.atto <= limit.atto",
           "return total.pico <= limit.pico",
           _SQLITE),
    Seeded("ledger", "entries need not continue each other", "ledger/books.py",
           "if event.previous != self.head:",
           'if event.previous == "":',
           _BOOKS),
    Seeded("ledger", "a release is shown to whoever shares an account with its payer", "ledger/picking.py",
           "if all(books.has_paid(account, release_id) for account in accounts):",
           "if any(books.has_paid(account, release_id) for account in accounts):",
           _SQLITE),
    Seeded("ledger", "a clock that goes back gives budget back", "ledger/books.py",
           "return max(self.day, day_of(at))",
           "return day_of(at)",
           _SQLITE),
    Seeded("ledger", "a charge is not forced to the disk", "ledger/schema.py",
           'connection.execute("pragma synchronous = full")',
           'connection.execute("pragma synchronous = normal")',
           _SQLITE),
    Seeded("ledger", "the older of two marks is believed", "ledger/head.py",
           "return max(marks, key=lambda mark: mark.seq)",
           "return min(marks, key=lambda mark: mark.seq)",
           _DAMAGE),
    # --- relay ---------------------------------------------------------------------------------------------------
    Seeded("relay", "quotes in keys end the array", "sql/splice.py",
           ".replace('\"', '\\\\\"')",
           "",
           _SPLICE),
    Seeded("relay", "backslashes in keys are not doubled", "sql/splice.py",
           '        return " E" + text_literal(text.replace("\\\\", "\\\\\\\\"))',
           '        return " E" + text_literal(text)',
           _SPLICE),
    Seeded("relay", "keys are looked through for marks", "sql/splice.py",
           ", marks.sub(lambda m: parts[m[0]][1], patch.template)",
           ", marks.sub(lambda m: parts[m[0]][1], marks.sub(lambda m: parts[m[0]][1], patch.template))",
           _SPLICE),
    Seeded("relay", "NOTIFY goes through as a function", "wire/screen.py",
           'if token.text == "pg_notify":',
           'if token.text == "notify":',
           _SCREEN),
    Seeded("relay", "pg_settings can be updated", "wire/screen.py",
           'if {"update", "pg_settings"} <= texts:',
           'if {"update", "settings"} <= texts:',
           _SCREEN),
)  # fmt: skip
