"""What is packed in one process is the same in another, down to its hashes; what both have is not sent."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from proxy import errors
from proxy.errors import HushError, Unsupported
from proxy.pipeline.ahead import Foreseen, foresee
from proxy.pipeline.outline import Cuts
from proxy.pipeline.premises import Premises, Terms
from proxy.pipeline.statements import QueryString, Understood
from proxy.plan.words.explain_sets import explain_plan
from proxy.sql.algebra.constants import Constants
from proxy.sql.query.probe import Probe
from proxy.wire.exchange import Refusal
from proxy.workers.parcel import Packer, SharedPremises
from tests.unit.sql.corpus import CASES, Case, cases, policy, premises_of

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=ZoneInfo("UTC"))
TERMS = Terms(epsilon=1.0, limits=(10**12,))
PREMISES = premises_of(policy())


def packer(premises: Premises, number: int = 1) -> Packer:
    shared = SharedPremises()
    shared.add(number, premises)
    return Packer(shared)


def foreseen(sql: str) -> Foreseen:
    asked = QueryString(premises=PREMISES, text=sql, has_intervals=False, told=((),))
    return foresee(Cuts(), asked, TERMS, Constants({}, NOW))


@pytest.fixture(scope="module")
def both() -> tuple[Packer, Packer]:
    """The ends of a line: what one packs the other unpacks, with premises of its own."""
    ours = packer(PREMISES)
    theirs = packer(Packer(SharedPremises()).unpack(Packer(SharedPremises()).pack(PREMISES)))
    return ours, theirs


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.place)
def test_all_that_is_understood_and_planned_comes_back(case: Case, both: tuple[Packer, Packer]) -> None:
    ours, theirs = both
    found = foreseen(case.sql)
    back = ours.unpack(theirs.pack(theirs.unpack(ours.pack(found))))
    for piece, returned in zip(found.pieces, back.pieces, strict=True):
        if isinstance(piece.refusal, Refusal):
            assert returned.refusal.error.args == piece.refusal.error.args
            assert vars(returned.refusal.error) == vars(piece.refusal.error)
            assert type(returned.refusal.error) is type(piece.refusal.error)
        else:
            assert returned == piece
    for planned, returned in zip(found.planned, back.planned, strict=True):
        assert (returned.blocks, returned.outputs, returned.types) == (planned.blocks, planned.outputs, planned.types)
        for plan, other in zip(planned.plans, returned.plans, strict=True):
            assert (other.fingerprint, other.stages, other.cost) == (plan.fingerprint, plan.stages, plan.cost)
            assert explain_plan(other, PREMISES.privacy) == explain_plan(plan, PREMISES.privacy)


def test_premises_and_tables_are_the_very_same_again(both: tuple[Packer, Packer]) -> None:
    ours, theirs = both
    found = foreseen("SELECT * FROM users LIMIT 0")
    (piece,) = ours.unpack(theirs.pack(theirs.unpack(ours.pack(found)))).pieces
    assert isinstance(piece.handle, Understood)
    assert piece.handle.premises is PREMISES
    assert isinstance(piece.handle.query, Probe)
    assert piece.handle.query.tables[0].table is PREMISES.named["users"]
    assert len(ours.pack(found)) < 1500, "neither is sent"


def test_what_is_forgotten_is_sent_as_it_is() -> None:
    shared = SharedPremises()
    shared.add(1, PREMISES)
    shared.forget(1)
    assert shared.name_of(PREMISES) == ()
    assert shared.name_of(PREMISES.tables["users"]) == ()
    again = Packer(shared).unpack(Packer(shared).pack(PREMISES))
    assert again is not PREMISES
    assert again.tables == PREMISES.tables


def test_tables_that_two_premises_have_are_known_as_long_as_one_is() -> None:
    shared, other = SharedPremises(), premises_of(policy())
    shared.add(1, PREMISES)
    shared.add(2, other)
    shared.forget(2)
    assert shared.table(*shared.name_of(PREMISES.tables["users"])) is PREMISES.tables["users"]  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", ["1", "2"])
def test_hashes_are_those_of_the_process(seed: str, tmp_path: Path) -> None:
    """Scalars remember their hashes, and domains what they know by identity: neither means anything elsewhere."""
    text = "SELECT CASE WHEN age > 40 AND city IN ('a', 'b') THEN 'x' END, count(*) FROM users GROUP BY 1"
    planned = foreseen(text).planned[0]
    keys = planned.plans[0].analysed.keys  # type: ignore[union-attr]  # it has no grouping sets
    assert all(hash(k.scalar) for k in keys)
    path = tmp_path / "parcel"
    path.write_bytes(Packer(SharedPremises()).pack((planned.blocks[0].block.keys, keys)))
    script = (
        "import sys; from pathlib import Path; from proxy.workers.parcel import Packer, SharedPremises\n"
        f"scalars, keys = Packer(SharedPremises()).unpack(Path({str(path)!r}).read_bytes())\n"
        "assert {s: 1 for s in scalars}[keys[0].scalar] and len({*scalars, *(k.scalar for k in keys)}) == 1\n"
        "s = keys[0].scalar; assert hash(s) == hash((s.branches, s.otherwise, s.type))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, check=False, cwd=CASES.parents[1]
    )
    assert done.returncode == 0


ERRORS = [k for _, k in inspect.getmembers(errors, inspect.isclass) if issubclass(k, HushError)]


@pytest.mark.parametrize("kind", [k for k in ERRORS if k is not errors.TooMuch], ids=lambda k: k.__name__)
def test_errors_come_back_with_all_that_they_say(kind: type[HushError]) -> None:
    """All but the one that has words of its own, and is of engines."""
    error = kind("what", detail="Where.", hint="How.", position=7)
    back = Packer(SharedPremises()).unpack(Packer(SharedPremises()).pack(error))
    assert type(back) is kind
    assert (back.message, back.detail, back.hint, back.position) == ("what", "Where.", "How.", 7)
    assert str(back) == str(error)


@pytest.mark.parametrize("value", [print, eval, Path("/"), pickle.Unpickler, subprocess.Popen, getattr])
def test_what_thinking_is_not_made_of_cannot_be_unpacked(value: object) -> None:
    with pytest.raises(pickle.UnpicklingError, match="does not belong in a parcel"):
        Packer(SharedPremises()).unpack(pickle.dumps(value))


def test_a_path_of_names_cannot_be_unpacked() -> None:
    class_of_a_class = b"\x80\x05\x8c\x14proxy.workers.parcel\x8c\x0cpickle.loads\x93."
    with pytest.raises(pickle.UnpicklingError, match="does not belong in a parcel"):
        Packer(SharedPremises()).unpack(class_of_a_class)


def test_stand_ins_mean_nothing_by_themselves() -> None:
    from proxy.workers import parcel

    for stand_in in (parcel._premises, parcel._table):
        with pytest.raises(AssertionError):
            stand_in(1)


def test_an_error_of_planning_is_one_of_ours() -> None:
    assert isinstance(Packer(SharedPremises()).unpack(Packer(SharedPremises()).pack(Unsupported("no"))), Unsupported)
