"""How do values travel between the proxy and a process that thinks for it?

What both have is sent by its name: premises and their tables, so that a handle that comes back is of the very premises
it was made under. Only values of the packages that thinking is made of can be unpacked.
"""

from __future__ import annotations

import copyreg
import enum
import io
import pickle
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

from proxy.pipeline.premises import Premises
from proxy.policy.model import Table

_PACKAGES = ("proxy.pipeline.", "proxy.sql.", "proxy.analysis.", "proxy.plan.", "proxy.policy.", "proxy.dp.",
             "proxy.wire.")  # fmt: skip
_MODULES = frozenset(("proxy.workers.parcel", "proxy.sqltypes", "proxy.errors",
                      "datetime", "decimal", "fractions", "zoneinfo", "uuid"))  # fmt: skip
_BUILTINS = frozenset(("frozenset", "set", "complex", "bytearray", "range", "slice"))


class SharedPremises:
    """Premises that both ends know by a number, and their tables."""

    def __init__(self) -> None:
        self._premises: dict[int, Premises] = {}
        self._tables: dict[tuple[int, str, str], Table] = {}
        self._names: dict[int, tuple[object, ...]] = {}  # by `id()`; what has one is kept above

    def add(self, number: int, premises: Premises) -> None:
        """Know premises by a number."""
        self._premises[number] = premises
        self._names[id(premises)] = (number,)
        for kind, name, table in _tables(premises):
            self._tables[number, kind, name] = table
            self._names.setdefault(id(table), (number, kind, name))

    def forget(self, number: int) -> None:
        """Know them no more."""
        del self._names[id(self._premises.pop(number))]
        for key in [key for key in self._tables if key[0] == number]:
            table = self._tables.pop(key)
            if self._names.get(id(table)) == key:
                del self._names[id(table)]

    def premises(self, number: int) -> Premises:
        return self._premises[number]

    def table(self, number: int, kind: str, name: str) -> Table:
        return self._tables[number, kind, name]

    def name_of(self, value: object) -> tuple[object, ...]:
        """Under which name both know a value; () if they do not."""
        return self._names.get(id(value), ())


def _tables(premises: Premises) -> Iterator[tuple[str, str, Table]]:
    for name, table in premises.named.items():
        yield "named", name, table
    for name, table in premises.tables.items():
        yield "all", name, table


def _premises(*name: object) -> None:
    """Stands in a parcel for `Shared.premises`."""
    raise AssertionError(f"{name} is looked up where a parcel is unpacked")


def _table(*name: object) -> None:
    """Stands in a parcel for `Shared.table`."""
    raise AssertionError(f"{name} is looked up where a parcel is unpacked")


def _member(family: type[enum.Enum], name: str) -> enum.Enum:
    return family[name]


def _families(of: type[enum.Enum] = enum.Enum) -> Iterator[type[enum.Enum]]:
    """All enumerations; Python spells their members in a parcel otherwise in each of its versions."""
    for family in of.__subclasses__():
        yield family
        yield from _families(family)


def _frozen(given: dict[object, object]) -> Mapping[object, object]:
    return MappingProxyType(given)


class Packer:
    """Packs and unpacks what two processes say to each other that share premises."""

    def __init__(self, shared: SharedPremises) -> None:
        self.shared = shared
        self._found: dict[tuple[str, str], object] = {}
        self._reduce: dict[type, Callable[[Any], Any]] = {
            **copyreg.dispatch_table,
            **{f: lambda member: (_member, (type(member), member.name)) for f in _families()},
            ZoneInfo: lambda zone: (ZoneInfo, (zone.key,)),
            MappingProxyType: lambda given: (_frozen, (dict(given),)),
            Premises: self._reduced,
            Table: self._reduced,
        }

    def _reduced(self, given: Premises | Table) -> str | tuple[Any, ...]:
        name = self.shared.name_of(given)
        if not name:
            return given.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return (_premises if isinstance(given, Premises) else _table), name

    def pack(self, value: object) -> bytes:
        """Raises pickle.PicklingError and others if there is something in it that cannot travel."""
        buffer = io.BytesIO()
        pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
        pickler.dispatch_table = self._reduce
        pickler.dump(value)
        return buffer.getvalue()

    def unpack(self, parcel: bytes) -> Any:  # noqa: ANN401 - the caller knows what was packed
        """Raises pickle.UnpicklingError for what may not be in a parcel."""
        return _Unpickler(io.BytesIO(parcel), self.shared, self._found).load()


class _Unpickler(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, shared: SharedPremises, known: dict[tuple[str, str], object]) -> None:
        """known: what was found by its module and name; a parcel names some sixty, and the same ones each time."""
        super().__init__(buffer)
        self._known = known
        self._stand_ins: Mapping[str, Callable[..., object]] = {"_premises": shared.premises, "_table": shared.table}

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as in the class above it
        if module == __name__ and name in self._stand_ins:
            return self._stand_ins[name]
        if (module, name) not in self._known:
            is_ours = module in _MODULES or module.startswith(_PACKAGES) or (module == "builtins" and name in _BUILTINS)
            if not is_ours or "." in name:
                raise pickle.UnpicklingError(f"{module}.{name} does not belong in a parcel")
            self._known[module, name] = super().find_class(module, name)
        return self._known[module, name]
