"""Which constants do a client's bound parameters stand for?

A parameter in binary form, or in a plain text, is read here. Every other text is a matter for PostgreSQL's input
functions, before anything else is made of the statement: what plan, release and ledger see is the value alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from proxy.errors import InvalidParameter
from proxy.session.asking.binary_values import value_of
from proxy.session.contract import Parameter
from proxy.sql.algebra.constants import TIME_OID, Bindings, Elements, Given, InputText, TimeOfDay, name_of_type
from proxy.sql.algebra.nodes import Literal, Null, Span
from proxy.sql.literals.interval_texts import plain_span
from proxy.sql.literals.plain_texts import plain_elements, plain_time_of_day, read_plain
from proxy.sqltypes import BY_ARRAY_OID, BY_OID, SqlType


def unread(parameters: tuple[Parameter, ...]) -> tuple[InputText, ...]:
    """The texts that PostgreSQL is to read."""
    found = (_unread(number, parameter) for number, parameter in enumerate(parameters, start=1))
    return tuple(dict.fromkeys(text for texts in found for text in texts))


def canonical(parameters: tuple[Parameter, ...], read: Mapping[InputText, bytes | None]) -> tuple[Parameter, ...]:
    """The same values, each in the form in which `read_parameters` knows it. read: the bytes of every unread text."""
    return tuple(_canonical(number, p, read) for number, p in enumerate(parameters, start=1))


def read_parameters(parameters: tuple[Parameter, ...]) -> Bindings:
    """Canonical parameters by number, from 1. Types outside the algebra are left out: naming one there is refused."""
    found: dict[int, Given] = {}
    for number, parameter in enumerate(parameters, start=1):
        if not _is_supported(parameter.oid):
            continue
        try:
            found[number] = _value(parameter)
        except ValueError as error:
            raise InvalidParameter(f"parameter ${number} is not a valid {name_of_type(parameter.oid)}") from error
    return found


def _canonical(number: int, parameter: Parameter, read: Mapping[InputText, bytes | None]) -> Parameter:
    texts = _unread(number, parameter)
    return replace(parameter, format=1, data=read[texts[0]]) if texts else parameter


def _unread(number: int, parameter: Parameter) -> tuple[InputText, ...]:
    """The text of a parameter that is not plain, or nothing."""
    if parameter.format or parameter.data is None or not _is_supported(parameter.oid):
        return ()
    try:
        text = parameter.data.decode()
    except UnicodeDecodeError as error:
        raise InvalidParameter(f"parameter ${number} is not a valid {name_of_type(parameter.oid)}") from error
    try:
        _plain(parameter.oid, text)
    except ValueError:
        return (InputText(text, parameter.oid),)
    return ()


def _is_supported(oid: int) -> bool:
    return oid in BY_OID or oid == TIME_OID or (oid in BY_ARRAY_OID and BY_ARRAY_OID[oid] is not SqlType.INTERVAL)


def _value(parameter: Parameter) -> Given:
    """Raises ValueError."""
    if parameter.format or parameter.data is None:
        return value_of(parameter.oid, parameter.data)
    return _plain(parameter.oid, parameter.data.decode())


def _plain(oid: int, text: str) -> Literal | Null | Span | Elements | TimeOfDay:
    """Raises ValueError for a text that is not plain."""
    kind, element = BY_OID.get(oid), BY_ARRAY_OID.get(oid)
    if kind is SqlType.INTERVAL:
        return plain_span(text)
    if kind is not None:
        return Literal(read_plain(text, kind), kind)
    if element is None:
        return TimeOfDay(plain_time_of_day(text))
    return Elements(tuple(Literal(read_plain(item, element), element) for item in plain_elements(text)))
