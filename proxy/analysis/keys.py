"""Which keys may a grouped release show: all of a public domain, or only those above a threshold?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import chain, product
from operator import itemgetter
from typing import assert_never

from proxy.analysis.absent import may_be_null
from proxy.analysis.domains import Domains
from proxy.analysis.key_values import MOST_KEYS, KeyValues
from proxy.errors import BadGroups
from proxy.policy.model import Bounded, Domain, Listed
from proxy.sql.algebra.nodes import ColumnRef, Scalar, columns_in_order, columns_of
from proxy.sql.functions.letters import lower
from proxy.sqltypes import SqlType, Value


@dataclass(frozen=True, slots=True)
class NullKey:
    """The group of rows whose key is NULL."""


NULL_KEY = NullKey()
KeyValue = Value | NullKey


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Every value is emitted, present or not, in this order; NULL is among them iff it can occur."""

    scalar: Scalar
    values: tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A value is emitted only if its noisy number of units reaches a threshold."""

    scalar: Scalar


Key = PublicKey | PrivateKey


@dataclass(frozen=True, slots=True)
class Joint:
    """The only combinations that several public keys have together. places: theirs among the public keys."""

    places: tuple[int, ...]
    values: tuple[tuple[KeyValue, ...], ...]


def classify_key(scalar: Scalar, domains: Domains, listed: KeyValues) -> Key:
    """Public if the key's values are few and known without looking at the data."""
    if scalar.type is SqlType.INTERVAL:
        raise BadGroups("grouping by an interval is not supported", hint="Group by a number of days, or by a text.")
    values = public_values(scalar, domains, listed)
    if values is None:
        return PrivateKey(scalar)
    nullable: tuple[KeyValue, ...] = (NULL_KEY,) if may_be_null(scalar, domains, listed) else ()
    return PublicKey(scalar, (*values, *nullable))


def few_enough(keys: Mapping[Scalar, Key], domains: Domains) -> Mapping[Scalar, Key]:
    """The keys. Where all combinations are too many, those are private whose values were only found in a table."""
    if public_size(tuple(keys.values())) <= MOST_KEYS:
        return keys
    found = {s for s in keys if any(domains.column(c).found for c in columns_of(s))}
    return {s: PrivateKey(s) if s in found else k for s, k in keys.items()}


def public_values(scalar: Scalar, domains: Domains, listed: KeyValues) -> tuple[Value, ...] | None:
    """The finite public domain of a key in its canonical spelling, or None."""
    values = listed.of(scalar)
    if values is None or len(values) > MOST_KEYS:
        return None
    spelled = (canonical(v, scalar, domains) for v in values)
    return tuple({key_identity(v): v for v in spelled}.values())


def canonical(value: Value, scalar: Scalar, domains: Domains) -> Value:
    """One spelling of a key's value."""
    if isinstance(value, str) and isinstance(scalar, ColumnRef) and domains.column(scalar).case_blind:
        return lower(value)
    if isinstance(value, int) and scalar.type.is_number and not scalar.type.is_integer:
        return int(float(value))  # the engine computes such a key as a double
    if isinstance(value, date) and not isinstance(value, datetime) and scalar.type is not SqlType.DATE:
        return datetime(value.year, value.month, value.day)
    return value


def key_identity(value: KeyValue | None) -> object:
    """Equal for values that the engine and the policy spell differently but SQL calls one key."""
    match value:
        case None | NullKey():
            return NULL_KEY
        case bool():
            return value
        case int():
            return value  # equal to a float of the same value, and never rounded to its neighbour's
        case float() | Decimal():
            return "NaN" if math.isnan(value) else float(value)
        case datetime():
            return value.replace(tzinfo=None)
        case str() | date():
            return value
        case _ as never:
            assert_never(never)


def domain_filters(keys: tuple[Key, ...], domains: Domains) -> tuple[tuple[ColumnRef, Domain, bool], ...]:
    """Columns in keys whose values outside the declared domain are dropped: (column, domain, keeps NULL)."""
    references = dict.fromkeys(c for k in keys for c in columns_in_order(k.scalar))
    return tuple(
        (c, domains.column(c).domain, domains.column(c).nullable)
        for c in references
        if isinstance(domains.column(c).domain, (Bounded, Listed)) or not domains.column(c).nullable
    )


def public_size(keys: tuple[Key, ...], joints: tuple[Joint, ...] = ()) -> int:
    """How many combinations of the public keys there are, at least 1."""
    return max(1, math.prod(len(values) for _, values in _factors(keys, joints)))


def public_product(keys: tuple[Key, ...], joints: tuple[Joint, ...] = ()) -> tuple[tuple[KeyValue, ...], ...]:
    """Every combination of the public keys that a row may have. Raises BadGroups when they are too many."""
    factors = _factors(keys, joints)
    if public_size(keys, joints) > MOST_KEYS:
        raise BadGroups(
            f"the grouping has more than {MOST_KEYS} possible public keys",
            hint="Group by fewer columns, or by coarser values such as date_trunc('month', x).",
        )
    order = [place for places, _ in factors for place in places]
    back = sorted(range(len(order)), key=order.__getitem__)
    flat = (tuple(chain.from_iterable(parts)) for parts in product(*(values for _, values in factors)))
    return tuple(map(itemgetter(*back), flat)) if joints and len(back) > 1 else tuple(flat)


def _factors(
    keys: tuple[Key, ...], joints: tuple[Joint, ...]
) -> list[tuple[tuple[int, ...], tuple[tuple[KeyValue, ...], ...]]]:
    """What combines freely: values of one key, and of keys that belong together."""
    joined = {place for joint in joints for place in joint.places}
    public = enumerate(k for k in keys if isinstance(k, PublicKey))
    alone = [((place,), tuple((v,) for v in key.values)) for place, key in public if place not in joined]
    return [*((j.places, j.values) for j in joints), *alone]
